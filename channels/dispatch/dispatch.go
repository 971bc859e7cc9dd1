// Package dispatch takes what the bot says from the bus and sends it, once, in order and in pace.
//
// Read dispatch.go first: claiming mailboxes and settling them. deliver.go is the
// way of one message, part by part, with the book written before and after each
// step; plan.go says as which parts a message is sent, and transmit.go hands one
// part to the platform and decides about what comes back. delivery_error.go
// says how a delivery may end without having sent its message. give_up.go says when
// a message is given up, fallback.go and notices.go what happens then.
// failure_streaks.go counts what fails in a row, and retry_schedule.go plans when it
// is tried again.
//
// The rest shows people that the bot is at work: typing.go, and drafts.go, which
// follows what turns say; draft_schedule.go decides what is shown when, and
// draft_calls.go calls the platform.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
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
	Policy Policy
	// Notify, if set, is told of what was given up before it is buried. It may
	// be told of the same message more than once.
	Notify func(ctx context.Context, out bus.Outbound, reason string) error
	// Hears, if set, gives the session that a reply at an address would reach;
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
}

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

// longestHold is how long one mailbox is worked on before others get their turn.
const longestHold = pacing.LongestWait

// Run sends until ctx is done, lets the sends in flight finish, and returns
// nil. It returns the channel's error when the platform refuses this account;
// nothing is given up then.
func (d *Dispatcher) Run(ctx context.Context) error {
	post := newRun(d)
	for {
		held, release, err := d.Bus.Hold(ctx, "dispatch/"+d.Name)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("hold the dispatch of %s: %w", d.Name, err)
		}
		err = post.serve(held)
		release()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("send through %s: %w", d.Name, err)
		}
		d.Log.Warn("dispatch was lost and is taken again", slog.String("channel", d.Name))
	}
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
}

func newRun(d *Dispatcher) *run {
	limits := d.Channel.Limits()
	p := &run{
		Dispatcher: d, policy: d.Policy.withDefaults(), limits: limits,
		pace: pacing.New(d.Name, limits, d.Bus), moved: newMovedChats(), streaks: newFailureStreaks(), retries: newRetrySchedule(), renderer: markup.New(),
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

// serve claims and sends until held ends or the platform refuses the account,
// and returns when nothing is in flight any more.
func (r *run) serve(held context.Context) error {
	ctx, stop := context.WithCancelCause(held)
	defer stop(nil)
	// What was begun is finished after ctx, but not for ever.
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var running sync.WaitGroup
	r.startIndicators(ctx, work, &running)
	refused := r.claimAll(ctx, stop, func(lease bus.Lease) error { return r.workMailbox(ctx, work, lease) }, cut)
	stop(nil)
	running.Wait()
	return refused
}

// startIndicators starts what lets people see the bot at work.
func (r *run) startIndicators(ctx, work context.Context, running *sync.WaitGroup) {
	listeners := []bus.Listener{r.pace}
	if r.typing != nil {
		listeners = append(listeners, r.typing)
		running.Go(func() { r.typing.show(ctx) })
	}
	if r.drafts != nil {
		listeners = append(listeners, r.drafts)
		r.drafts.start(ctx, work, running)
	}
	if r.reactions != nil {
		listeners = append(listeners, r.reactions)
		running.Go(func() { r.reactions.Run(ctx) })
	}
	running.Go(func() { bus.Follow(ctx, r.Bus, r.Name, listeners...) })
}

// claimAll works on mailboxes, at most AtOnce at a time, until ctx is done; it
// cuts off what is still at work Drain later.
func (r *run) claimAll(ctx context.Context, stop context.CancelCauseFunc, work func(bus.Lease) error, cut func()) error {
	var refused error
	var once sync.Once
	refuse := func(err error) {
		once.Do(func() { refused = err })
		stop(err)
	}
	wait, err := bus.ClaimEach(ctx, r.Bus, bus.OutboundTopic(r.Name), r.policy.AtOnce, func(lease bus.Lease) {
		if err := work(lease); err != nil {
			refuse(err)
		}
	})
	if err != nil {
		refuse(fmt.Errorf("claim mail: %w", err))
	}
	late := time.AfterFunc(r.policy.Drain, cut)
	defer late.Stop()
	wait()
	return refused
}

// workMailbox sends the mail of one address and settles once. Its error is the
// platform's refusal of the account.
func (r *run) workMailbox(ctx, work context.Context, lease bus.Lease) error {
	key := lease.Claim().Key
	r.drafts.blockAddress(key)
	end := r.sendMail(ctx, work, lease)
	r.drafts.unblockAddress(key, end.left)
	if end.leaseLost {
		return nil // whoever holds the mailbox now settles it
	}
	bus.RetrySettle(work, lease, end.End, r.policy.Drain, func(err error) {
		r.Log.Warn("mail could not be settled", slog.String("channel", r.Name), slog.String("address", key), slog.Any("error", err))
	})
	r.point("send:settled")
	return end.refused
}

// A mailboxEnd is how work on a mailbox has ended.
type mailboxEnd struct {
	bus.End
	left      bool  // mail that is still to be sent
	leaseLost bool  // so it is not to be settled here
	refused   error // the platform refuses the account
}

// sendMail works through the mail that is there and says how to settle it.
func (r *run) sendMail(ctx, work context.Context, lease bus.Lease) (end mailboxEnd) {
	began := time.Now()
	key := lease.Claim().Key
	if wait := r.retries.remaining(key, channels.Connected(r.Channel)); wait > 0 {
		return mailboxEnd{End: bus.End{Uncounted: true, After: wait}, left: true}
	}
	mail, err := lease.Mail(work, 0)
	if err != nil {
		r.Log.Warn("mail could not be read", slog.String("channel", r.Name), slog.String("address", key), slog.Any("error", err))
		return mailboxEnd{End: bus.End{Uncounted: true, After: time.Second}, left: true, leaseLost: errors.Is(err, bus.ErrFenced)}
	}
	for i, m := range mail {
		if ctx.Err() != nil || i > 0 && time.Since(began) > longestHold {
			end.Uncounted, end.left = true, true
			return end
		}
		attempts := 1 // only the first was tried when the mailbox was claimed before
		if i == 0 {
			attempts = lease.Claim().Attempts
		}
		if how, failed := errors.AsType[*deliveryError](r.deliver(ctx, work, lease, m, attempts)); failed {
			how.settles(&end.End, m)
			end.left = how.bury == "" || i+1 < len(mail)
			end.leaseLost, end.refused = how.leaseLost, how.refused
			return end
		}
		end.Done = m.Seq
	}
	r.retries.remove(key)
	return end
}
