package channelstest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/testlog"
)

// A FakePlatform is the API of a chat platform on this machine, as RunChannel
// plays with it. The bot has one account there. Chats are numbered from 1; in each
// the same one person talks to the bot alone. What goes wrong in a fake itself ends
// the test that New was given.
type FakePlatform interface {
	// Channel makes a channel to the account, as a process does that has just
	// begun: it shares nothing with earlier ones but what outlives a process.
	Channel(log *slog.Logger) channels.Channel
	// Address is where the messages of a chat come from and go to.
	Address(chat int) bus.Address
	// Say has the person of a chat say something to the bot.
	Say(chat int, text string)
	// Unacknowledged counts the messages that the platform would bring again.
	Unacknowledged() int
	// Shown lists the bot's messages in a chat as people see them, in order.
	Shown(chat int) []ShownMessage
	// Break has every call of that kind end in trouble, until Mend.
	Break(call Call, trouble Trouble)
	Mend()
	// Calls counts the calls of that kind that have arrived, failed ones too.
	Calls(call Call) int
	// Down cuts every connection and refuses new ones until Up. What people say
	// meanwhile is kept for the bot.
	Down()
	Up()
}

// A PressingPlatform is one on which people press buttons.
type PressingPlatform interface {
	// Press has the person of a chat press the button with that label below the
	// message with that id, and returns whether the platform was told that this has
	// arrived.
	Press(chat int, id, label string) (told func() bool)
}

// A TypingPlatform is one that shows in some places alone that the bot is at work.
type TypingPlatform interface {
	// TypingAddress is such a place in a chat.
	TypingAddress(chat int) bus.Address
}

// A ShownMessage is one of the bot's messages.
type ShownMessage struct {
	ID   string // as Send returned it; "" where nothing outside of the channel knows it
	Text string // without markup; beside a file its caption
	File string // the file's name; "" where there is none
	// Buttons are the labels of those below the text.
	Buttons []string
}

// A Call is a kind of calls of a platform's API.
type Call string

// The kinds of calls. Each stands for the one call by which its effect is had: of
// the several that a file may take it is the one that shows it.
const (
	Sending   Call = "send a text"
	Editing   Call = "edit a text"
	Uploading Call = "send a file"
	Finding   Call = "look for what was sent"
	Showing   Call = "show that the bot is at work"
	Receiving Call = "ask for what people say"
)

// A Trouble is how a call goes wrong.
type Trouble string

// The troubles. Where the platform or somebody before it answers with a text, the
// text holds Words.
const (
	RateLimited    Trouble = "refused for RetryAfter"         // nothing was done
	PlaceRefused   Trouble = "refused for this chat for good" // nothing was done
	AccountRefused Trouble = "refused as the token is revoked"
	ServerError    Trouble = "answered with an inner error of the platform's"
	ProxyPage      Trouble = "turned away with a page by somebody before the platform"
	Garbage        Trouble = "answered with success and a page"
	CutBefore      Trouble = "cut off before anything was done"
	CutAfter       Trouble = "cut off after it was done"
	HangBefore     Trouble = "never answered, and nothing is done"
	HangAfter      Trouble = "never answered, though it was done"
)

// RetryAfter is what a platform asks for that is asked too often.
const RetryAfter = time.Second

// Words stand for what a person wrote, and may be in no error and in no log.
const Words = "words-of-somebody"

// A Feature is what a channel may lack by its nature.
type Feature string

// The features.
const (
	Inbound          Feature = "receiving"
	Acknowledgements Feature = "acknowledgements" // the platform keeps a message until it is acknowledged
	ManyChats        Feature = "many chats"
	Network          Feature = "a platform's API"
)

// A ChannelHarness tells RunChannel about one adapter.
type ChannelHarness struct {
	// New starts a fake in which nothing was said, and ends it with the test.
	New func(t testing.TB) FakePlatform
	// Secrets are the tokens of the account. None may be in an error or in a log.
	Secrets []string
	// Lacks says why the channel has not a feature. The checks that need it are
	// skipped with these words. A channel that lacks Inbound has to refuse Receive.
	Lacks map[Feature]string
	// TakesUpTo is the longest text that the platform takes, in the unit of
	// Limits.Length; 0 is Limits.Length itself.
	TakesUpTo int
}

// A channelCheck is one promise of channels.Channel.
type channelCheck struct {
	promise string
	needs   []Feature
	run     func(*channelRun)
}

func channelChecks() []channelCheck {
	acknowledged := []Feature{Inbound, Acknowledgements, Network}
	return []channelCheck{
		{"a message is acknowledged after it is published", acknowledged, checkAcknowledgement},
		{"a failed publish is repeated before what the chat says next", []Feature{Inbound}, checkFailedPublish},
		{"what was not published comes again after a restart", acknowledged, checkRestart},
		{"the order of each chat is kept", []Feature{Inbound, ManyChats}, checkOrder},
		{"no chat waits for another", []Feature{Inbound, ManyChats}, checkSideBySide},
		{"an outage is survived", acknowledged, checkOutage},
		{"no call leaves while the platform asks for patience", []Feature{Inbound, Network}, checkReceivingLimited},
		{"a revoked token ends Receive", []Feature{Inbound, Network}, checkReceivingRefused},
		{"Receive ends with its context", []Feature{Inbound}, checkReceiveEnds},
		{"a channel that only sends refuses Receive", nil, checkReceiveRefuses},

		{"a file that comes with a message is fetched", []Feature{Inbound, Network}, checkAttachments},

		{"what is sent is shown in order under its ids", nil, checkSent},
		{"buttons are below the text until an edit removes them", nil, checkButtons},
		{"a press is published before it is told to have arrived", []Feature{Inbound}, checkPress},
		{"each trouble of Send is the fault that it means", []Feature{Network}, checkSendFaults},
		{"each trouble of SendFile is the fault that it means", []Feature{Network}, checkFileFaults},
		{"each trouble of Edit is the fault that it means", []Feature{Network}, checkEditFaults},
		{"a limit on showing the bot at work is told", []Feature{Network}, checkTypingLimited},
		{"a platform out of reach is tried again", []Feature{Network}, checkUnreachable},
		{"a send of unknown outcome is found out about", []Feature{Network}, checkFindSent},
		{"the lease is checked right before a request leaves", []Feature{Network}, checkLeaseChecked},
		{"Send ends with its context", []Feature{Network}, checkSendEnds},
		{"what Limits allows is taken", []Feature{Network}, checkLimits},
		{"what is too long is refused", []Feature{Network}, checkTooLong},
	}
}

// RunChannel checks every promise of channels.Channel on an adapter, and those of
// the abilities that it has. After each check, no secret of the account's and no
// word of anybody's may be in the log.
func RunChannel(t *testing.T, h ChannelHarness) {
	for _, check := range channelChecks() {
		t.Run(check.promise, func(t *testing.T) {
			t.Parallel()
			for _, feature := range check.needs {
				if why, lacks := h.Lacks[feature]; lacks {
					t.Skipf("the channel lacks %s: %s", feature, why)
				}
			}
			check.run(newChannelRun(t, h))
		})
	}
}

// patience bounds every wait that is expected to end.
const patience = 60 * time.Second

// A channelRun is one check at work.
type channelRun struct {
	*testing.T
	ChannelHarness
	platform FakePlatform
	channel  channels.Channel
	log      *testlog.Buffer
}

func newChannelRun(t *testing.T, h ChannelHarness) *channelRun {
	r := &channelRun{T: t, ChannelHarness: h, platform: h.New(t), log: new(testlog.Buffer)}
	t.Cleanup(func() { r.checkSecrecy("the log", r.log.String()) }) // after what runs has ended
	r.channel = r.restarted()
	return r
}

// restarted is the channel of the next process.
func (r *channelRun) restarted() channels.Channel {
	return r.platform.Channel(slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// checkSecrecy fails the test if a text that leaves the adapter has in it what may not.
func (r *channelRun) checkSecrecy(what, text string) {
	r.Helper()
	for _, secret := range r.Secrets {
		if strings.Contains(text, secret) {
			r.Errorf("%s shows a secret: %s", what, text)
		}
	}
	if strings.Contains(text, Words) {
		r.Errorf("%s shows what somebody wrote: %s", what, text)
	}
}

// faultOf is an error as the contract has it: typed, with a code, and free of secrets.
func (r *channelRun) faultOf(what string, err error) *channels.SendError {
	r.Helper()
	fault, ok := errors.AsType[*channels.SendError](err)
	if !ok {
		r.Fatalf("%s: got %v, want a *channels.SendError", what, err)
	}
	if fault.Code == "" {
		r.Errorf("%s: %v has no code", what, fault)
	}
	r.checkSecrecy("the error of what is "+what, err.Error()+fault.Code+fault.Remedy)
	return fault
}

// Until waits for a condition that nothing announces.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain: ", what)
		}
	}
}

// until waits as Until does.
func (r *channelRun) until(what string, holds func() bool) {
	r.Helper()
	Until(r, what, holds)
}

// say has the person of a chat say something with Words behind it.
func (r *channelRun) say(chat int, text string) { r.platform.Say(chat, text+" "+Words) }

// receive runs Receive and returns how to end it, which gives its error. Publish is
// given the texts without Words.
func (r *channelRun) receive(ch channels.Channel, publish func(context.Context, bus.Inbound) error) (stop func() error) {
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- ch.Receive(ctx, func(ctx context.Context, in bus.Inbound) error {
			in.Text = strings.TrimSuffix(in.Text, " "+Words)
			return publish(ctx, in)
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			r.Error("Receive does not end with its context")
			return nil
		}
	})
	r.Cleanup(func() { _ = stop() }) // the checks that look at the error have asked before
	return stop
}
