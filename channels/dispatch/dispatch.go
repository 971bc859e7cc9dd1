// Package dispatch takes what the bot says from the bus and sends it, once, in order and in pace.
//
// Read dispatch.go first: the Dispatcher and what its parts share while it runs.
// mailbox.go claims mailboxes and settles them. deliver.go is the way of one message,
// part by part, with the book written before and after each step; delivery.go is the
// message on that way, and how it may end. plan.go says as which parts a message is
// sent, transmit.go hands one part to the platform and decides about what comes back,
// and give_up.go says when a message is given up and what happens then. notices.go
// tells sessions what was told in their chats. failure_streaks.go counts what fails in
// a row, and retry_schedule.go plans when it is tried again.
//
// The rest shows people that the bot is at work: typing.go, and drafts.go, which
// follows what turns say; draft_schedule.go decides what is shown when, and
// draft_calls.go calls the platform. Both sleep by an alarm (alarm.go).
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/enclosure"
	"parley/channels/markup"
	"parley/channels/pacing"
	"parley/channels/reactions"
)

// A Carrier is what a Dispatcher needs of the bus.
type Carrier interface {
	bus.Bus
	bus.Holder
	bus.Pauser
	bus.Events
	bus.Inspector
}

// A Dispatcher sends what the bot says through one channel. It holds
// "dispatch/NAME", so one process of the fleet does so and pace is exact. What
// is said to one address goes out in order; addresses do not wait for each other.
//
// Each part is in the book as sending before the platform is called, and what
// became of it is noted right after. A part that is found as sending was cut
// off: the platform is asked if it can tell; where nobody can, it is counted as
// interrupted, and Policy.OnUnknown decides. An edit that was cut off is
// repeated: it says the same again.
type Dispatcher struct {
	Name    string // the channel's, in the configuration
	Channel channels.Channel
	Bus     Carrier
	Book    channels.Sends
	// Subjects, if set, ties messages about one thing together: a later one
	// replaces the earlier where the channel can edit, else it goes under it.
	Subjects channels.Subjects
	// Drafts, if set, lets answers be shown while they are being made, where the
	// channel asks for that.
	Drafts channels.Drafts
	// Files, if set, has the files that messages name.
	Files enclosure.Store
	// MayShorten tells whether what a session says at great length may go as a file, with
	// its beginning in the chat: all who may go on with the message know how. Nil is no.
	MayShorten func(ctx context.Context) bool
	// MayGrow, if set, tells whether a draft may be begun as a message that grows: all who
	// may have to replace it know how.
	MayGrow func(ctx context.Context) bool
	Policy  Policy
	// Notify, if set, is told of what was given up before it is buried. It may
	// be told of the same message more than once.
	Notify func(ctx context.Context, out bus.Outbound, reason string) error
	// SessionAt, if set, gives the session that a reply at an address would reach;
	// false where no agent listens. That session learns what was told there.
	SessionAt func(at bus.Address) (session string, ok bool)
	Log       *slog.Logger
	// Observe, if set, is told of each send whose outcome counts: "sent",
	// "failed" or "unknown", and how long the platform took.
	Observe func(result string, took time.Duration)
	// Point, if set, is called where a crash would matter: tests kill there.
	Point func(name string)
}

// Policy is how hard a Dispatcher tries. A zero field means its default.
type Policy struct {
	// OnUnknown is what to do about a part of which nobody can tell whether it
	// was sent: "resend" (default) or "drop".
	OnUnknown string
	// GiveUp is the age from which a message is given up that has been tried at
	// least ten times: a day.
	GiveUp time.Duration
	// FallbackAfter is how long sends to an address must have failed, at least
	// five times, before what is as old and has a fallback goes there: 15 minutes.
	FallbackAfter time.Duration
	// Drain is how long sends may go on after Run was told to stop: 10 s.
	Drain time.Duration
	// Timeout bounds one send: a minute; a file may take five times as long.
	Timeout time.Duration
	// AtOnce is how many addresses are sent to at once: 256.
	AtOnce int
	// Stream is how answers are shown while they are made: "" as the platform shows it
	// best, StreamEdit as messages that are edited, StreamOff not at all.
	Stream string
}

// The other values of Policy.Stream.
const (
	StreamEdit = "edit"
	StreamOff  = "off"
)

// drop is the other policy of OnUnknown.
const drop = "drop"

func (d Policy) withDefaults() Policy {
	if d.GiveUp <= 0 {
		d.GiveUp = 24 * time.Hour
	}
	if d.FallbackAfter <= 0 {
		d.FallbackAfter = 15 * time.Minute
	}
	if d.Drain <= 0 {
		d.Drain = 10 * time.Second
	}
	if d.Timeout <= 0 {
		d.Timeout = time.Minute
	}
	if d.AtOnce <= 0 {
		d.AtOnce = 256
	}
	return d
}

// mostFiles is how many files are sent at once, each of which is in memory.
const mostFiles = 4

// longestHold is how long one mailbox is worked on before others get their turn.
const longestHold = pacing.LongestWait

// Run sends until ctx is done, lets the sends in flight finish, and returns
// nil. It returns the channel's error when the platform refuses this account;
// nothing is given up then.
func (d *Dispatcher) Run(ctx context.Context) error {
	r := newRun(d)
	err := bus.WhileHeld(ctx, d.Bus, "dispatch/"+d.Name, func(held context.Context) error {
		err := r.serve(held)
		if err == nil && ctx.Err() == nil {
			d.Log.Warn("dispatch was lost and is taken again", slog.String("channel", d.Name))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("send through %s: %w", d.Name, err)
	}
	return nil
}

// A run is a Dispatcher at work.
type run struct {
	*Dispatcher
	policy    Policy
	limits    channels.Limits
	pace      *pacing.Pacer
	typing    *typing // nil where the channel shows none, as are the next two
	drafts    *drafts
	reactions *reactions.Reactions
	moved     *movedChats
	streaks   *failureStreaks
	retries   *retrySchedule
	renderer  *markup.Renderer

	filesAtOnce chan struct{} // has one for each file in memory
}

func newRun(d *Dispatcher) *run {
	limits := d.Channel.Limits()
	p := &run{
		Dispatcher: d, policy: d.Policy.withDefaults(), limits: limits,
		pace: pacing.New(d.Name, limits, d.Bus), moved: newMovedChats(), streaks: newFailureStreaks(), retries: newRetrySchedule(), renderer: markup.New(),
		filesAtOnce: make(chan struct{}, mostFiles),
	}
	if t, ok := channels.AsTyper(d.Channel); ok {
		p.typing = newTyping(t, p.pace)
	}
	p.drafts = newDrafts(p)
	p.reactions = reactions.New(d.Channel, d.Name, d.Log, p.pace)
	return p
}

func (r *run) point(name string) {
	if r.Point != nil {
		r.Point(name)
	}
}

func (r *run) observe(result string, took time.Duration) {
	if r.Observe != nil {
		r.Observe(result, took)
	}
}

func (r *run) render(text string) []channels.SentPart {
	return asParts(r.renderer.Render(text, r.limits.Dialect, r.limits.Length))
}

// renderEdit is render where the first part takes the place of a text.
func (r *run) renderEdit(text string) []channels.SentPart {
	return asParts(r.renderer.RenderFirst(text, r.limits.Dialect, r.limits.EditBytes, r.limits.Length))
}

func asParts(pieces []markup.Piece) []channels.SentPart {
	parts := make([]channels.SentPart, len(pieces))
	for i, piece := range pieces {
		parts[i] = channels.SentPart{Text: piece.Text, Plain: piece.Plain}
	}
	return parts
}

// writeToBook repeats a write until the book has taken it: a part that the platform
// has and the book does not know of would be sent a second time. It gives up when the
// lease is lost, or Policy.Drain after work has ended.
func (r *run) writeToBook(work context.Context, lost <-chan struct{}, write func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(work))
	defer cancel()
	defer context.AfterFunc(work, func() { time.AfterFunc(r.policy.Drain, cancel) })()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := write(ctx)
		if err == nil || errors.Is(err, channels.ErrNoSend) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-lost:
			return err
		case <-ctx.Done():
			return err
		}
	}
}
