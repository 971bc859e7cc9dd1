// Package gateway lets in what those say who may talk to the bot, and publishes it.
//
// Read gateway.go first: the way of a message from the channel to the bus. gate.go
// judges who may talk to the bot. admission.go tells owners of those who ask to be
// admitted, and these that they were; introduction.go tells people what the bot is, and
// opened.go shows them what it may do for them where they open a place of the bot's;
// ratings.go keeps what they think of answers, and changes.go takes what they edit and
// delete; earlier.go reads what was said in a thread
// before the bot is called into it;
// auto_reply.go tells people why a message was not taken, past the bus and the book.
// recent.go remembers, within bounds, what was done lately, so that it is not repeated.
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
	"parley/channels"
	"parley/channels/pacing"
	"parley/channels/reactions"
)

// Bus is what a Gateway needs of the bus.
type Bus interface {
	bus.Bus
	bus.Inspector
}

// A Gateway lets in what those say who may talk to the bot, and publishes it.
// Nothing of what others say is kept or logged, and what is not meant for the
// bot is passed over.
type Gateway struct {
	Name    string // the channel's, in the configuration
	Channel channels.Channel
	Bus     Bus
	// Events, if set, tells and is told of the pauses that the platform asks for.
	Events bus.Events
	Gate   *Gate
	// Route gives a message its session. With ErrNotNow it is handed again later; any
	// other error says that there is none.
	Route    func(context.Context, bus.Inbound) (session string, err error)
	Chats    channels.Chats
	Pairings channels.Pairings
	// Knows, if set, tells whether a session knows a message.
	Knows func(ctx context.Context, session, message string) (bool, error)
	// Whose, if set, finds the session that knows the message which a change is of, and who
	// has said it; "" where none does.
	Whose func(ctx context.Context, change bus.Inbound) (session, person string, err error)
	// Waits, if set, tells whether a turn of a session waits for people.
	Waits func(ctx context.Context, session string) (bool, error)
	// OwnData, if set, answers channels.IsOwnData. When it returns nil the command is
	// durable.
	OwnData func(context.Context, bus.Inbound) error
	// Introduction, if set, is what is said at a first contact; "" is nothing. Notes
	// remembers to whom.
	Introduction func(context.Context) (string, error)
	Notes        channels.Notes
	// History, if set, is how many messages are read that were said in a thread before
	// the bot is called into it.
	History func() int
	// Ratings, if set, keeps what people think of answers by their 👍 and 👎, and Rated
	// is told of each.
	Ratings channels.Ratings
	Rated   func(good bool)
	// AllReactions, if set, tells whether sessions hear of other reactions than thumbs.
	AllReactions func() bool
	// Owned, if set, is told of a person who has become an owner by a code.
	Owned func(ctx context.Context, person string)
	// About, if set, says to somebody who may talk to the bot what it may do for them in
	// a session, in Markdown.
	About func(session string, opened bus.Inbound) string
	Log   *slog.Logger
	Now   func() time.Time // nil is time.Now
}

// ErrNotNow says that a message cannot be taken now, and can be soon.
var ErrNotNow = errors.New("it cannot be taken now")

// Run receives until ctx is done, then returns nil. Its errors are the
// channel's: the platform refuses this account.
func (g *Gateway) Run(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	d := newIntake(g)
	var wg sync.WaitGroup
	wg.Go(func() { d.strangers.run(inner) })
	wg.Go(func() { d.guests.run(inner) })
	wg.Go(func() { d.welcome(inner) })
	if d.reactions != nil {
		wg.Go(func() { d.reactions.Run(inner) })
	}
	if g.Events != nil {
		wg.Go(func() { bus.Follow(inner, g.Events, g.Name, d.pace) })
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
	refuseEvery   = 5 * time.Minute // a stranger, in a chat of their own
	whisperEvery  = time.Hour       // a stranger, where others read along
	explainEvery  = time.Minute     // an address
	guessEvery    = 2 * time.Second
	noteChatEvery = time.Hour // an address; the note may have been erased
	maxPanics     = 3
)

// An intake is a Gateway at work.
type intake struct {
	*Gateway
	strangers  *autoReplier
	guests     *autoReplier
	guesses    *rate.Limiter // of owner's codes, all people together
	guessed    *recent
	notedChats *recent
	panics     *recent // by message and count
	reacted    *recent // by person and count
	reactions  *reactions.Reactions
	pace       *pacing.Pacer // for the pauses that the platform asks for

	introduced        *recent       // those who were told what the bot is
	announcedRequests *recent       // their requests, to the owners
	announcementPace  *rate.Limiter // of such announcements
	welcomed          *recent       // those who were admitted
	requested         chan struct{} // somebody waits to be admitted
	ownerChats        sync.Map      // where they talk to the bot alone, by their ids
}

func newIntake(g *Gateway) *intake {
	if g.Now == nil {
		clocked := *g
		clocked.Now = time.Now
		g = &clocked
	}
	pace := pacing.New(g.Name, g.Channel.Limits(), g.Events)
	return &intake{
		Gateway: g, pace: pace,
		// A flood of strangers costs one message a second; until it comes to
		// that, each is answered at once.
		strangers:  newAutoReplier(g.Channel, g.Now, pace, rate.NewLimiter(1, 30)),
		guests:     newAutoReplier(g.Channel, g.Now, pace, rate.NewLimiter(10, 30)),
		guesses:    rate.NewLimiter(10, 30),
		guessed:    newRecent(guessEvery),
		notedChats: newRecent(noteChatEvery),
		panics:     newRecent(0),
		reacted:    newRecent(reactionsEvery),
		reactions:  reactions.New(g.Channel, g.Name, g.Log, pace),

		introduced:        newRecent(0),
		announcedRequests: newRecent(0),
		announcementPace:  rate.NewLimiter(rate.Every(10*time.Minute), 5),
		welcomed:          newRecent(0),
		requested:         make(chan struct{}, 1),
	}
}

// accept is what the channel publishes through. A panic on behalf of one
// message is returned as an error, so that the platform hands it again; one
// that panics three times would block its chat for ever, so it is then taken as
// received and the chat is told.
func (d *intake) accept(ctx context.Context, in bus.Inbound) (err error) {
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
		d.explain(in, "I cannot read this message; something in it is too much for me.")
		err = nil
	}()
	return d.take(ctx, in)
}

func (d *intake) take(ctx context.Context, in bus.Inbound) error {
	if in.Kind == channels.Opened {
		return d.welcomeTo(ctx, in)
	}
	if in.Group && d.Gate.Mention(in.At.Chat) == channels.MentionNowhere {
		return nil
	}
	if in.Pressed {
		return d.takePress(ctx, in)
	}
	switch in.Kind {
	case bus.Reacted:
		return d.takeReaction(ctx, in)
	case bus.Edited, bus.Deleted:
		return d.takeChange(ctx, in)
	}
	if in.Group && !in.Mentioned {
		return d.overhear(ctx, in)
	}
	if owned, err := d.takeOwnerCode(ctx, in); owned || err != nil {
		return err
	}
	owner, ok, err := d.Gate.admits(ctx, d.Channel, d.Pairings, in.From)
	if err != nil {
		return err
	}
	if !ok {
		d.refuse(in)
		return nil
	}
	in.From.Owner, in.From.Approver = owner, d.Gate.approves(in.From)
	d.rememberOwner(in)
	return d.publish(ctx, in)
}

// takePress takes the command that a button says, from whoever may talk to the bot. In
// a group it needs no mention: the button is the bot's. It neither asks for admission
// nor makes the chat one in which the bot was spoken to.
func (d *intake) takePress(ctx context.Context, in bus.Inbound) error {
	said, urgent := channels.AsCommand(in)
	if said.Kind != bus.Command {
		return nil // no button of ours says it
	}
	owner, ok, err := d.Gate.admits(ctx, d.Channel, d.Pairings, in.From)
	if err != nil {
		return err
	}
	if !ok {
		return channels.ErrNotAdmitted
	}
	said.From.Owner, said.From.Approver = owner, d.Gate.approves(in.From)
	key, err := d.Route(ctx, in)
	if err == nil {
		err = bus.PublishInbound(ctx, d.Bus, key, said, urgent)
		if err != nil && !bus.IsRefusal(err) {
			return err
		}
	}
	if errors.Is(err, ErrNotNow) {
		return err
	}
	if err != nil { // it would be no other a moment later
		d.Log.Error("a press could not be taken", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		d.guests.enqueueOnce(in.At.String(), explainEvery, autoReply{key: in.ID + "#refused", to: in.At, replyTo: in.ReplyTo,
			compose: fixedText("I could not take what you have pressed. Please write it instead.")})
	}
	return nil
}

// overhear takes of what is said in a group, and not to the bot, that somebody who
// may talk to it says /stop while it works there, or answers a request by its id.
func (d *intake) overhear(ctx context.Context, in bus.Inbound) error {
	said, _ := channels.AsCommand(in)
	stops, answers := said.Text == "stop" && said.Args == "", channels.Answers(said)
	if said.Kind != bus.Command || !stops && !answers {
		return nil
	}
	owner, ok, err := d.Gate.admits(ctx, d.Channel, d.Pairings, in.From)
	if err != nil || !ok {
		return err
	}
	key, err := d.Route(ctx, in)
	if errors.Is(err, ErrNotNow) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // the bot works in no session that there is not
	}
	if !answers {
		working, err := d.Bus.HasMail(ctx, bus.InboundTopic, key)
		if err != nil {
			return fmt.Errorf("look whether a session is at work: %w", err)
		}
		if !working && !d.waits(ctx, key) {
			return nil
		}
	}
	in.From.Owner, in.From.Approver = owner, d.Gate.approves(in.From)
	return d.publish(ctx, in)
}

// takeOwnerCode makes an owner of the person who says an owner's code to the bot alone.
// Guesses are bounded, for each person and for all, and a wrong one is treated
// like anything else that the person might say.
func (d *intake) takeOwnerCode(ctx context.Context, in bus.Inbound) (bool, error) {
	code := ownerCode(in.Text)
	if in.Group || code == "" || len(d.Gate.settings().Owners) > 0 {
		return false, nil
	}
	if !d.guessed.add(in.From.ID, d.Now()) || !d.guesses.AllowN(d.Now(), 1) {
		return false, nil
	}
	chat := bus.Address{Channel: in.At.Channel, Chat: in.At.Chat}
	_, err := d.Pairings.Admit(ctx, channels.Admission{Code: code, Person: in.From.ID, Chat: chat.String()})
	if errors.Is(err, channels.ErrNoCode) {
		return false, nil
	}
	if err != nil {
		d.guessed.forget(in.From.ID) // it will be handed again
		return false, fmt.Errorf("admit an owner: %w", err)
	}
	d.noteName(ctx, in.From)
	if d.Owned != nil {
		d.Owned(ctx, in.From.ID)
	}
	d.Log.Info("the bot has an owner", slog.String("channel", d.Name), slog.String("person", in.From.ID))
	d.guests.enqueue(autoReply{key: in.ID + "#owner", to: in.At, compose: fixedText("You own this bot now. Say " + channels.CommandPrefix(d.Channel) + "help to see what it understands.")})
	return true, nil
}

func (d *intake) publish(ctx context.Context, in bus.Inbound) error {
	if said, _ := channels.AsCommand(in); channels.IsOwnData(said) && d.OwnData != nil && (in.Kind == bus.Said || in.Kind == "") {
		return d.OwnData(ctx, said)
	}
	key, err := d.Route(ctx, in)
	if errors.Is(err, ErrNotNow) {
		return err
	}
	if err != nil {
		d.Log.Error("message has no session", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		d.explain(in, "This message could not be taken: no session could be found for this chat.")
		return nil
	}
	d.introduce(ctx, in)
	said, urgent := channels.AsCommand(in)
	said = d.withEarlier(ctx, said)
	said.Private = !said.Group
	err = bus.PublishInbound(ctx, d.Bus, key, said, urgent)
	switch {
	case errors.Is(err, bus.ErrFull):
		d.explain(in, "Too many messages are waiting here already, so this one was not taken. Please say it again once I have answered, or say "+channels.CommandPrefix(d.Channel)+"stop.")
		return nil
	case errors.Is(err, bus.ErrInvalid):
		d.Log.Warn("message was not valid", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		d.explain(in, "This message could not be taken: it is too long.")
		return nil
	case err != nil:
		return err
	}
	if err := d.noteChat(ctx, in, key); err != nil {
		return err
	}
	d.reactions.Seen(said)
	return nil
}

// noteChat notes where the bot was spoken to, once for each address in a while. The
// message is durable already, so a failure only postpones the note to the next
// message; but of a group's thread, which needs no further mention from now on,
// the next would not come this far, so there the message is handed again.
func (d *intake) noteChat(ctx context.Context, in bus.Inbound, session string) error {
	at := in.At.String()
	if !d.notedChats.add(at, d.Now()) {
		return nil
	}
	seen := in.SentAt
	if seen.IsZero() {
		seen = d.Now()
	}
	chat := channels.Chat{Address: in.At, Session: session, Group: in.Group, Seen: seen}
	if !in.Group {
		chat.Person, chat.Name = in.From.ID, in.From.Name
		d.noteName(ctx, in.From)
	}
	err := d.Chats.Meet(ctx, chat)
	if err == nil {
		return nil
	}
	d.notedChats.forget(at)
	d.Log.Warn("chat was not noted", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
	if in.Group && in.At.Thread != "" {
		return fmt.Errorf("note the thread of message %s: %w", in.ID, err)
	}
	return nil
}
