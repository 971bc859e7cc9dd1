// Package gateway publishes to the bus what people say on a channel, if they may talk to
// the bot.
//
// Read gateway.go first: it takes a message from the channel, and publish.go puts it on the bus for its session.
// gate.go decides who may talk to the bot. admission.go tells owners who asks to be admitted, and tells those
// people once they are; people.go carries out the owners' decisions. introduction.go tells people what the bot is,
// and opened.go tells people who open one of the bot's places what it can do for them. ratings.go stores what
// people think of answers, changes.go publishes their edits and deletions, and earlier.go reads a thread's messages
// from before the bot was called into it. auto_reply.go tells people why a message was not accepted, bypassing the
// bus and the book; refusals.go tells operators which rule refused it. recent.go remembers, within limits, what was
// done recently, so that it is not repeated.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/bus"
	"parley/bus/trace"
	"parley/channels"
	"parley/channels/pacing"
	"parley/channels/reactions"
)

// Bus lists what a Gateway needs from a bus.
type Bus interface {
	bus.Bus
	bus.Inspector
}

// A Gateway receives the messages from one channel and publishes those that are meant for the bot, if their senders
// may talk to it. It neither stores nor logs what anybody else says.
type Gateway struct {
	Name    string // the channel's name in the configuration
	Channel channels.Channel
	Bus     Bus
	// Events, if set, exchanges with other processes the news that the platform asked for a pause.
	Events bus.Events
	Gate   *Gate
	// Route returns the session for a message. If it returns ErrNotNow, the channel passes on the message again
	// later; any other error means that there is no session for the message.
	Route    RouteFunc
	Chats    channels.Chats
	Pairings channels.Pairings
	// KnowsMessage, if set, reports whether a session's log contains a message.
	KnowsMessage func(ctx context.Context, session, message string) (bool, error)
	// FindAuthor, if set, finds the session whose log contains the message that was edited or deleted (change.Of),
	// and the person who wrote it; "" if no session's log does.
	FindAuthor func(ctx context.Context, change bus.Inbound) (session, person string, err error)
	// WorksWithoutMail, if set, reports whether /stop has something to end in a session that has no mail: a turn that
	// waits for people, sub-agents, or background jobs.
	WorksWithoutMail func(ctx context.Context, session string) (bool, error)
	// OwnData, if set, carries out commands for which channels.IsOwnData is true. Once it has returned nil, the
	// command is durable.
	OwnData func(context.Context, bus.Inbound) error
	// IntroductionText, if set, returns the text for a person's first contact; "" means none. Notes remembers who has
	// received it.
	IntroductionText func(context.Context) (string, error)
	Notes            channels.Notes
	// HistoryLength, if set, returns how many of a thread's earlier messages to read when the bot is called into it.
	HistoryLength func() int
	// Ratings, if set, stores people's opinions of answers, which they give with 👍 and 👎; OnRated is called for each.
	Ratings channels.Ratings
	OnRated func(good bool)
	// AllReactions, if set, reports whether sessions are also told of reactions other than thumbs.
	AllReactions func() bool
	// OnDecided, if set, is called when a person has become an owner by a code (result "owner", with by and person
	// the same), and when an owner has decided about a person by a button: "admitted", "refused" or "revoked".
	OnDecided func(ctx context.Context, by, person, result string)
	// OnRefused, if set, is called with each message that is refused. It must not block.
	OnRefused func(Refusal)
	// AboutText, if set, returns a Markdown text that tells somebody who may talk to the bot what it can do for them in
	// a session.
	AboutText func(session string, opened bus.Inbound) string
	// Trace, if set, takes the first span of each message that is published.
	Trace trace.Recorder
	Log   *slog.Logger
	Now   func() time.Time // the clock; nil means time.Now
}

// A RouteFunc returns the session for a message, as described for Gateway.Route.
type RouteFunc func(context.Context, bus.Inbound) (RouteResult, error)

// A RouteResult says which session a message goes to. Gateway.Route returns it.
type RouteResult struct {
	Session string
	// Text is the message's text without the word that names the agent. Named says that there is such a word.
	Text       string
	NamesAgent bool
	// OtherSessions are the sessions of the other agents that people may talk to in that place.
	OtherSessions []string
}

// ErrNotNow says that a message cannot be accepted now, but can be soon.
var ErrNotNow = errors.New("it cannot be taken now")

// Run receives messages until ctx is done, then returns nil. It returns the channel's error
// if the platform refuses this account.
func (g *Gateway) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	d := newReceiver(g)
	var wg sync.WaitGroup
	wg.Go(func() { d.toStrangers.run(inner) })
	wg.Go(func() { d.toAdmitted.run(inner) })
	wg.Go(func() { d.runWelcomes(inner) })
	if d.reactions != nil {
		wg.Go(func() { d.reactions.Run(inner) })
	}
	if g.Events != nil {
		wg.Go(func() { bus.Follow(inner, g.Events, g.Name, d.pace) })
	}
	if t, ok := channels.AsUnaddressedTeller(g.Channel); ok {
		t.TellUnaddressed(func(id string, at bus.Address) {
			rule := RuleMention
			if g.Gate.Mention(at.Chat) == channels.MentionNowhere {
				rule = RuleChat
			}
			d.reportRefusal(bus.Inbound{ID: id, At: at}, rule, "")
		})
	}
	err := g.Channel.Receive(inner, d.accept)
	cancel()
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("receive from %s: %w", g.Name, err)
}

const (
	refusalInterval     = 5 * time.Minute // the minimum time between two refusals to a stranger in a private chat
	whisperInterval     = time.Hour       // the minimum time between two whispered refusals to a stranger in a group
	explanationInterval = time.Minute     // the minimum time between two explanations at an address
	codeAttemptInterval = 2 * time.Second // the minimum time between two attempts of a person at an owner's code
	recordChatInterval  = time.Hour       // the minimum time between two records of an address; the record may have been erased in between
	maxPanics           = 3               // the number of panics after which a message is given up
)

// A receiver is a Gateway at work, together with what it remembers in memory.
type receiver struct {
	*Gateway
	toStrangers     *autoReplier
	toAdmitted      *autoReplier
	codeRate        *rate.Limiter // limits attempts at owner's codes, for all people together
	codeAttempts    *recentKeys
	notedChats      *recentKeys
	panics          *recentKeys // messages whose handling panicked, by the message's id and the number of the panic
	recentReactions *recentKeys // reactions that sessions were told of recently, by person and a number
	refusals        *refusalLog
	reactions       *reactions.Reactions
	pace            *pacing.Pacer // knows the pauses that the platform asks for

	recentIntroductions *recentKeys   // people who were told what the bot is
	announcedRequests   *recentKeys   // people whose requests were announced to the owners
	announcementPace    *rate.Limiter // limits these announcements
	recentDecisions     *recentKeys   // messages by which owners have made decisions about people
	untoldOutcomes      sync.Map      // outcomes of decisions that owners have not been told yet, by the messages' ids
	recentWelcomes      *recentKeys   // people who were told that they are admitted
	requestMade         chan struct{} // signals that somebody is waiting to be admitted
	ownerChats          sync.Map      // the owners' private chats, by the owners' ids
}

func newReceiver(g *Gateway) *receiver {
	if g.Now == nil {
		clocked := *g
		clocked.Now = time.Now
		g = &clocked
	}
	pace := pacing.New(g.Name, g.Channel.Limits(), g.Events)
	return &receiver{
		Gateway: g, pace: pace,
		// After the first 30, a flood of strangers causes at most one message a second. Strangers who come more
		// slowly are answered immediately.
		toStrangers:     newAutoReplier(g.Channel, g.Now, pace, rate.NewLimiter(1, 30)),
		toAdmitted:      newAutoReplier(g.Channel, g.Now, pace, rate.NewLimiter(10, 30)),
		codeRate:        rate.NewLimiter(10, 30),
		codeAttempts:    newRecentKeys(codeAttemptInterval),
		notedChats:      newRecentKeys(recordChatInterval),
		panics:          newRecentKeys(0),
		recentReactions: newRecentKeys(reactionPeriod),
		refusals:        &refusalLog{log: g.Log, pace: rate.NewLimiter(refusalsLoggedPerSecond, refusalsBurst)},
		reactions:       reactions.New(g.Channel, g.Name, g.Log, pace),

		recentIntroductions: newRecentKeys(0),
		announcedRequests:   newRecentKeys(0),
		announcementPace:    rate.NewLimiter(rate.Every(10*time.Minute), 5),
		recentDecisions:     newRecentKeys(0),
		recentWelcomes:      newRecentKeys(0),
		requestMade:         make(chan struct{}, 1),
	}
}

// accept is the function to which the channel passes its messages. If handling a message panics, accept returns an
// error, so that the platform delivers the message again. A message that panics three times would block its chat
// forever, so accept then acknowledges it and tells the chat.
func (d *receiver) accept(ctx context.Context, in bus.Inbound) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		d.Log.Error("message could not be taken", slog.String("channel", d.Name), slog.String("id", in.ID),
			slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
		for n := range maxPanics - 1 {
			if d.panics.add(fmt.Sprintf("%d %s", n, in.ID), d.Now()) {
				err = fmt.Errorf("panic while taking message %s", in.ID)
				return
			}
		}
		d.reportRefusal(in, RuleUnreadable, "")
		d.explain(in, textUnreadable)
		err = nil
	}()
	if trace.IsOn(d.Trace) {
		in.Received = d.Now().UTC()
	}
	return d.handle(ctx, in)
}

// handle handles one event from the channel according to its kind: it judges the sender and publishes what is meant
// for the bot.
func (d *receiver) handle(ctx context.Context, in bus.Inbound) error {
	if in.Kind == channels.Opened {
		welcomes := placeGreeter{Gateway: d.Gateway, toStrangers: d.toStrangers, toAdmitted: d.toAdmitted}
		return welcomes.show(ctx, in)
	}
	if in.Group && d.Gate.Mention(in.At.Chat) == channels.MentionNowhere {
		d.reportRefusal(in, RuleChat, "")
		return nil
	}
	if in.Pressed {
		return d.handlePress(ctx, in)
	}
	switch in.Kind {
	case bus.Reacted:
		return d.handleReaction(ctx, in)
	case bus.Edited, bus.Deleted:
		return d.handleChange(ctx, in)
	}
	if in.Group && !in.Mentioned {
		return d.handleUnaddressed(ctx, in)
	}
	if owned, err := d.redeemOwnerCode(ctx, in); owned || err != nil {
		return err
	}
	who, ok, err := d.Gate.Judge(ctx, d.Channel, d.Pairings, in.From)
	if err != nil {
		return err
	}
	if !ok {
		d.reportRefusal(in, RuleStranger, "")
		d.refuse(in)
		return nil
	}
	in.From = who
	d.rememberOwner(in)
	if v, is := readDecision(in); is && who.Owner {
		return d.handleDecision(ctx, in, v)
	}
	return d.publish(ctx, in)
}

// redeemOwnerCode makes a person an owner if they say an owner's code in a private chat, and reports whether it
// did. If the settings name owners, codes have no effect. The number of attempts is limited, for each person and
// for all together; a wrong code is treated like any other message.
func (d *receiver) redeemOwnerCode(ctx context.Context, in bus.Inbound) (bool, error) {
	code := ownerCode(in.Text)
	if in.Group || code == "" || len(d.Gate.settings().Owners) > 0 {
		return false, nil
	}
	if !d.codeAttempts.add(in.From.ID, d.Now()) || !d.codeRate.AllowN(d.Now(), 1) {
		return false, nil
	}
	chat := bus.Address{Channel: in.At.Channel, Chat: in.At.Chat}
	_, err := d.Pairings.Admit(ctx, channels.Admission{Code: code, Person: in.From.ID, Chat: chat.String()})
	if errors.Is(err, channels.ErrNoCode) {
		return false, nil
	}
	if err != nil {
		d.codeAttempts.forget(in.From.ID) // the message will be passed on again
		return false, fmt.Errorf("admit an owner: %w", err)
	}
	d.noteName(ctx, in.From)
	if d.OnDecided != nil {
		d.OnDecided(ctx, in.From.ID, in.From.ID, "owner")
	}
	d.Log.Info("the bot has an owner", slog.String("channel", d.Name), slog.String("person", in.From.ID))
	d.toAdmitted.enqueue(autoReply{key: in.ID + "#owner", to: in.At, compose: fixedText(textOwnsNow(channels.CommandPrefix(d.Channel)))})
	return true, nil
}
