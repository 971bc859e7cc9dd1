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
	"parley/tools/testlog"
)

// A FakePlatform is a chat platform's API on this machine, for RunChannel. The bot has one account there. Chats are
// numbered from 1; each is one person's private chat with the bot. A failure inside the fake ends the test that New
// was given.
type FakePlatform interface {
	// Channel makes a channel to the account, as a newly started process would: it shares nothing with earlier
	// channels except what outlives a process.
	Channel(log *slog.Logger) channels.Channel
	// Address returns the address of a chat.
	Address(chat int) bus.Address
	// Say makes the person in a chat say something to the bot.
	Say(chat int, text string)
	// Unacknowledged returns how many messages the platform would deliver again because the channel has not
	// acknowledged them.
	Unacknowledged() int
	// Shown lists the bot's messages in a chat as people see them, in order.
	Shown(chat int) []ShownMessage
	// Break makes every call of that kind fail in the given way, until Mend is called.
	Break(call Call, trouble Trouble)
	Mend()
	// Calls returns how many calls of that kind have arrived, failed ones included.
	Calls(call Call) int
	// Down cuts every connection and refuses new ones until Up. The platform keeps what people say in the meantime
	// for the bot.
	Down()
	Up()
}

// A PressingPlatform is a FakePlatform on which people press buttons.
type PressingPlatform interface {
	// Press makes the person in a chat press the button with that label below the message with that id. told
	// reports whether the platform has been told that the press arrived.
	Press(chat int, id, label string) (told func() bool)
}

// A TypingPlatform is a FakePlatform that can show that the bot is at work, but only in some places.
type TypingPlatform interface {
	// TypingAddress returns a place in a chat where the platform can show it.
	TypingAddress(chat int) bus.Address
}

// A ShownMessage is one of the bot's messages as people see it.
type ShownMessage struct {
	ID   string // the id that Send returned; "" if the fake does not know it
	Text string // the text without markup; for a file, its caption
	File string // the file's name; "" if it has none
	// Buttons are the labels of the buttons below the text.
	Buttons []string
}

// A Call is a kind of call to a platform's API.
type Call string

// The kinds of calls. Each means the one call that has the effect: if sending a file takes several calls, Uploading
// is the one that shows the file.
const (
	Sending   Call = "send a text"
	Editing   Call = "edit a text"
	Uploading Call = "send a file"
	Finding   Call = "look for what was sent"
	Showing   Call = "show that the bot is at work"
	Receiving Call = "ask for what people say"
)

// A Trouble is a way in which a call fails.
type Trouble string

// The troubles. If the platform, or a proxy in its place, answers with a text, the text contains PersonWords.
const (
	RateLimited    Trouble = "refused for RetryAfter"
	PlaceRefused   Trouble = "refused for this chat for good"
	AccountRefused Trouble = "refused as the token is revoked"
	ServerError    Trouble = "answered with an inner error of the platform's"
	ProxyPage      Trouble = "turned away with a page by somebody before the platform"
	Garbage        Trouble = "answered with success and a page"
	CutBefore      Trouble = "cut off before anything was done"
	CutAfter       Trouble = "cut off after it was done"
	HangBefore     Trouble = "never answered, and nothing is done"
	HangAfter      Trouble = "never answered, though it was done"
)

// RetryAfter is the wait that the fake asks for when it refuses a call because of a rate limit.
const RetryAfter = time.Second

// PersonWords represents text that a person wrote: the suite puts it into messages, and no error and no log may contain
// it.
const PersonWords = "words-of-somebody"

// A Feature is something that a channel may lack by its nature.
type Feature string

// The features.
const (
	Inbound          Feature = "receiving"
	Acknowledgements Feature = "acknowledgements" // the platform keeps a message until it is acknowledged
	ManyChats        Feature = "many chats"
	Network          Feature = "a platform's API"
)

// A ChannelHarness gives RunChannel access to one adapter.
type ChannelHarness struct {
	// New starts a fake in which nothing was said, and stops it after the test.
	New func(t testing.TB) FakePlatform
	// Secrets are the account's tokens. No error and no log may contain one.
	Secrets []string
	// MissingFeatures names the features that the channel lacks, with the reasons. Checks that need such a feature are
	// skipped with this reason. A channel that lacks Inbound must refuse Receive.
	MissingFeatures map[Feature]string
	// MaxAcceptedLength is the length of the longest text that the platform accepts, in the unit of Limits.Length; 0 means
	// Limits.Length itself.
	MaxAcceptedLength int
}

// A channelCheck tests one promise of channels.Channel.
type channelCheck struct {
	promise          string
	requiredFeatures []Feature
	run              func(*channelRun)
}

func channelChecks() []channelCheck {
	acknowledged := []Feature{Inbound, Acknowledgements, Network}
	return []channelCheck{
		{"a message is acknowledged after it is published", acknowledged, checkAcknowledgement},
		{"a failed publish is repeated before what the chat says next", []Feature{Inbound}, checkFailedPublish},
		{"what was not published comes again after a restart", acknowledged, checkRestart},
		{"the order of each chat is kept", []Feature{Inbound, ManyChats}, checkOrder},
		{"no chat waits for another", []Feature{Inbound, ManyChats}, checkChatsAreIndependent},
		{"an outage is survived", acknowledged, checkOutage},
		{"no call leaves while the platform asks for patience", []Feature{Inbound, Network}, checkReceivingLimited},
		{"a revoked token ends Receive", []Feature{Inbound, Network}, checkReceivingRefused},
		{"Receive ends with its context", []Feature{Inbound}, checkReceiveEnds},
		{"a channel that only sends refuses Receive", nil, checkReceiveUnsupported},

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

// RunChannel checks every promise of channels.Channel for an adapter, and those of the optional interfaces that it
// implements. Each check fails if, at its end, the log contains one of the account's secrets or anybody's words.
func RunChannel(t *testing.T, h ChannelHarness) {
	for _, check := range channelChecks() {
		t.Run(check.promise, func(t *testing.T) {
			t.Parallel()
			for _, feature := range check.requiredFeatures {
				if why, lacks := h.MissingFeatures[feature]; lacks {
					t.Skipf("the channel lacks %s: %s", feature, why)
				}
			}
			check.run(newChannelRun(t, h))
		})
	}
}

// waitTimeout limits every wait for something that should happen.
const waitTimeout = 2 * time.Minute

// A channelRun is the state of one running check.
type channelRun struct {
	*testing.T
	ChannelHarness
	platform FakePlatform
	channel  channels.Channel
	log      *testlog.Buffer
}

func newChannelRun(t *testing.T, h ChannelHarness) *channelRun {
	r := &channelRun{T: t, ChannelHarness: h, platform: h.New(t), log: new(testlog.Buffer)}
	t.Cleanup(func() { r.checkSecrecy("the log", r.log.String()) }) // after everything else has ended
	r.channel = r.newChannel()
	return r
}

// newChannel returns a channel that shares nothing with earlier ones, as the next process would have it.
func (r *channelRun) newChannel() channels.Channel {
	return r.platform.Channel(slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// checkSecrecy fails the test if a text that leaves the adapter contains a secret or a person's words.
func (r *channelRun) checkSecrecy(what, text string) {
	r.Helper()
	for _, secret := range r.Secrets {
		if strings.Contains(text, secret) {
			r.Errorf("%s shows a secret: %s", what, text)
		}
	}
	if strings.Contains(text, PersonWords) {
		r.Errorf("%s shows what somebody wrote: %s", what, text)
	}
}

// faultOf returns an error as a SendError, and fails the test unless the error is one, has a code and contains no
// secrets.
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

// Until waits for a condition that nothing announces, and fails the test if it does not become true.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(waitTimeout)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain: ", what)
		}
	}
}

// until does what Until does, for this run's test.
func (r *channelRun) until(what string, holds func() bool) {
	r.Helper()
	Until(r, what, holds)
}

// say makes the person in a chat say a text followed by PersonWords.
func (r *channelRun) say(chat int, text string) { r.platform.Say(chat, text+" "+PersonWords) }

// receive runs Receive and returns a function that ends it and returns its error. publish is called with the texts
// without PersonWords.
func (r *channelRun) receive(ch channels.Channel, publish func(context.Context, bus.Inbound) error) (stop func() error) {
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- ch.Receive(ctx, func(ctx context.Context, in bus.Inbound) error {
			in.Text = strings.TrimSuffix(in.Text, " "+PersonWords)
			return publish(ctx, in)
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(waitTimeout):
			r.Error("Receive does not end with its context")
			return nil
		}
	})
	r.Cleanup(func() { _ = stop() }) // a check that wants the error has already called stop
	return stop
}
