package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// Codes of the dispatcher's own, beside the platforms'.
const (
	undecodable = "undecodable"
	panicked    = "panicked"
	expired     = "expired"
	empty       = "empty"
	badAddress  = "bad_address"
	gaveUp      = "given_up"
	uncertain   = "unknown"
)

const storageWait = 5 * time.Second // wait after a failure of the book's or the bus's

// A delivery is one message on its way to the platform.
type delivery struct {
	*run
	lease    bus.Lease
	out      bus.Outbound
	to       bus.Address   // out.To, or where that moved
	record   channels.Send // as the book has it; its ID is the message's on the bus
	attempts int
	paced    bool // the pace was waited for and not yet used
}

// deliver sends one message, from the first part that is not known to be sent.
func (r *run) deliver(ctx, work context.Context, lease bus.Lease, m bus.Message, attempts int) verdict {
	out, err := bus.DecodeOutbound(m.Body)
	if err != nil || out.To.Chat == "" {
		r.Log.Error("message cannot be read and is buried", slog.String("channel", r.Name), slog.String("id", m.ID), slog.Int("bytes", len(m.Body)))
		return verdict{bury: undecodable}
	}
	if !bus.IsClean(out.To.String()) {
		r.Log.Error("message is for no address and is buried", slog.String("channel", r.Name), slog.String("id", m.ID))
		return verdict{bury: badAddress}
	}
	if need, ok := unknownNeed(out.Needs); ok {
		r.Log.Warn("message needs what this release does not know and is left to another", slog.String("channel", r.Name),
			slog.String("id", m.ID), slog.String("need", markup.Verbatim(need)))
		return later(unknownNeedWait)
	}
	l := &delivery{run: r, lease: lease, out: out, to: out.To, record: channels.Send{ID: m.ID, To: out.To}, attempts: attempts}
	l.to.Chat = r.moved.current(out.To.Chat)
	v := l.recovering(func() verdict { return l.send(ctx, work) })
	if v.bury == panicked {
		v = l.recovering(func() verdict { return l.giveUp(work, panicked) })
	}
	if v.done || v.bury != "" {
		r.drafts.endFor(work, out)
	}
	if v.done && l.record.State() == channels.Sent {
		r.reactions.Answered(out)
	}
	return v
}

// recovering works on what may panic: that is tried again like anything else that
// goes wrong, and then given up.
func (d *delivery) recovering(work func() verdict) (v verdict) {
	defer func() {
		if r := recover(); r != nil {
			channels.LogPanic(d.Log, "send", d.Name, d.record.ID, r)
			v = verdict{after: backoff(d.attempts, longestBackoff)}
			if d.attempts >= leastAttempts {
				v = verdict{bury: panicked}
			}
		}
	}()
	return work()
}

func (d *delivery) send(ctx, work context.Context) verdict {
	fresh, v, ok := d.begin(ctx, work)
	if !ok {
		return v
	}
	if parts := d.record.Parts; len(parts) > 0 && parts[0].Edits != "" {
		// From here on the draft is this message, whoever goes on: were it still
		// one after the edit, the turn's next message would replace it again.
		d.drafts.endFor(work, d.out)
	}
	for i := range d.record.Parts {
		if i > 0 && ctx.Err() != nil {
			return later(0)
		}
		// A part that the platform refuses in one way may be tried in another.
		for !d.settled(i) {
			if v, ok := d.sendPart(ctx, work, i, fresh); !ok {
				return v
			}
			fresh = false
		}
		if i > 0 {
			continue
		}
		if v, ok := d.bindSubject(work); !ok {
			return v
		}
	}
	if v, ok := d.noteInSession(work); !ok {
		return v
	}
	return verdict{done: true}
}

// begin records the message and its parts, unless the book knows it. Fresh means
// that the first part was noted as sending just now, by us.
func (d *delivery) begin(ctx, work context.Context) (fresh bool, v verdict, ok bool) {
	// The book notes the first part as sending, so the pace is waited for before.
	if !d.expired() {
		if v, ok := d.waitForPace(ctx); !ok {
			return false, v, false
		}
	}
	parts, err := d.planParts(work)
	if err != nil {
		return false, d.bookFailed(err), false
	}
	if d.expired() {
		for i := range parts {
			parts[i] = channels.SentPart{State: channels.Failed, Code: expired, File: parts[i].File}
		}
	}
	d.record.Parts = parts
	known, fresh, err := d.Book.Begin(work, d.record)
	if err != nil {
		return false, d.bookFailed(err), false
	}
	d.record = known
	d.point("send:begun")
	return fresh, verdict{}, true
}

func (d *delivery) settled(i int) bool {
	state := d.record.Parts[i].State
	return state == channels.Sent || state == channels.Unsure
}

// expired says that the message is too old to be worth sending.
func (d *delivery) expired() bool {
	return !d.out.Expires.IsZero() && !time.Now().Before(d.out.Expires)
}

// partExpired says so of a part: a message of which something has arrived is sent
// whole, however late.
func (d *delivery) partExpired(i int) bool {
	if !d.expired() {
		return false
	}
	for _, p := range d.record.Parts[:i] {
		if p.State == channels.Sent {
			return false
		}
	}
	return true
}

// sendPart does the next thing for one part; false with what to do if that is not
// now. InHand says that it was noted as sending just now, by us.
func (d *delivery) sendPart(ctx, work context.Context, i int, inHand bool) (verdict, bool) {
	switch p := d.record.Parts[i]; p.State {
	case channels.Failed: // cut off in the middle of giving up
		return d.giveUp(work, p.Code), false
	case channels.Sending:
		if inHand {
			return d.transmit(work, i)
		}
		if v, settled, ok := d.resolveCutOff(ctx, work, i); settled || !ok {
			return v, ok
		}
		if d.partExpired(i) {
			return d.giveUp(work, expired), false
		}
	default:
		if d.partExpired(i) {
			return d.giveUp(work, expired), false
		}
		if v, ok := d.waitAndCheckLease(ctx, work); !ok { // or the book's news might be another's
			return v, false
		}
		p.State = channels.Sending
		if v, ok := d.mark(work, i, p); !ok {
			return v, false
		}
	}
	return d.transmit(work, i)
}

// waitAndCheckLease waits for the pace and asks for the lease.
func (d *delivery) waitAndCheckLease(ctx, work context.Context) (verdict, bool) {
	if v, ok := d.waitForPace(ctx); !ok {
		return v, false
	}
	return d.checkLease(work)
}

// resolveCutOff deals with a part that was found as sending. Settled means that
// there is nothing more to be done for it.
func (d *delivery) resolveCutOff(ctx, work context.Context, i int) (v verdict, settled, ok bool) {
	p := d.record.Parts[i]
	if p.Edits != "" && d.partExpired(i) {
		return verdict{}, false, true
	}
	if v, ok := d.waitAndCheckLease(ctx, work); !ok {
		return v, false, false
	}
	if p.Edits != "" {
		return verdict{}, false, true // an edit may be repeated
	}
	over := d.policy.OnUnknown == drop || d.triedLongEnough() || d.partExpired(i)
	if r, can := channels.AsReconciler(d.Channel); can {
		asked, cancel := context.WithTimeout(work, d.policy.Timeout)
		id, sent, err := r.FindSent(asked, d.to, d.platformPart(i))
		cancel()
		switch fault := channels.FaultOf(err); {
		case err == nil && sent:
			p.State, p.PlatformID = channels.Sent, id
			v, ok := d.mark(work, i, p)
			return v, true, ok
		case err == nil: // certainly not sent: it goes out as if for the first time
			return v, false, true
		case fault.Fault == channels.Retry:
			d.noteFailure(fault)
			if !d.shouldGiveUp() {
				return d.retryLater(work, fault), false, false
			}
			over = true
		}
	}
	if over {
		v, ok := d.leaveUnknown(work, i)
		return v, true, ok
	}
	p.Interrupted++
	v, ok = d.mark(work, i, p)
	return v, false, ok
}

// leaveUnknown leaves it at not knowing whether a part has arrived.
func (d *delivery) leaveUnknown(work context.Context, i int) (verdict, bool) {
	d.Log.Warn("nobody can tell whether a message was sent", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Int("part", i))
	// Once it is noted as unknown nobody comes back to it.
	if v, ok := d.sendToFallback(work, uncertain); !ok {
		return v, false
	}
	p := d.record.Parts[i]
	p.State = channels.Unsure
	p.Interrupted++
	return d.mark(work, i, p)
}

// giveUp gives a message up: what was not sent of it will not be, the session is
// told, it goes to where it can be delivered, and is buried. What has expired
// or says nothing is not buried and goes nowhere: nobody wants it, so there is
// nothing to look into and nothing to be replayed.
func (d *delivery) giveUp(work context.Context, code string) verdict {
	if v, ok := d.checkLease(work); !ok {
		return v
	}
	if code == "" {
		code = string(channels.Rejected)
	}
	for i, p := range d.record.Parts {
		if p.State == channels.Failed || d.settled(i) {
			continue
		}
		p.State, p.Code = channels.Failed, code
		if v, ok := d.mark(work, i, p); !ok {
			return v
		}
	}
	d.point("send:failed")
	if v, ok := d.notifySession(work, code); !ok {
		return v
	}
	if v, ok := d.explainRefusal(work, code); !ok {
		return v
	}
	switch code {
	case expired:
		d.Log.Info("message has expired", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return verdict{done: true}
	case empty:
		d.Log.Warn("message has nothing to see in it", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return verdict{done: true}
	}
	if v, ok := d.sendToFallback(work, code); !ok {
		return v
	}
	d.point("send:elsewhere")
	return verdict{bury: code}
}

// notifySession tells the session, where one has said it.
func (d *delivery) notifySession(work context.Context, code string) (verdict, bool) {
	if d.Notify == nil {
		return verdict{}, true
	}
	out := d.out
	out.ID = d.record.ID
	if err := d.Notify(work, out, code); err != nil && !errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("session could not be told", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return later(storageWait), false
	}
	return verdict{}, true
}

// checkLease asks the bus before an outward effect.
func (d *delivery) checkLease(work context.Context) (verdict, bool) {
	err := d.lease.Held(work)
	switch {
	case err == nil:
		return verdict{}, true
	case errors.Is(err, bus.ErrFenced):
		d.Log.Warn("lease was lost before a send", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return verdict{gone: true}, false
	}
	return later(0), false
}

// mark notes what became of a part.
func (d *delivery) mark(work context.Context, i int, now channels.SentPart) (verdict, bool) {
	err := d.insist(work, d.lease.Lost(), func(ctx context.Context) error { return d.Book.Mark(ctx, d.record.ID, i, now) })
	if err != nil {
		return d.bookFailed(err), false
	}
	d.record.Parts[i] = now
	return verdict{}, true
}

// insist writes into the book, however often that takes: what the platform has
// taken and the book does not know would be sent a second time. It ends without
// success when the lease is lost, or a while after ctx.
func (r *run) insist(work context.Context, lost <-chan struct{}, write func(context.Context) error) error {
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

func (d *delivery) bookFailed(err error) verdict {
	d.Log.Error("book could not be used", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	return later(storageWait)
}

// waitForPace waits until the pace allows a send. What would have to wait for long is
// given back instead.
func (d *delivery) waitForPace(ctx context.Context) (verdict, bool) {
	if d.paced {
		return verdict{}, true
	}
	after, err := d.pace.Wait(ctx, d.lease.Lost(), d.to.Chat)
	switch {
	case errors.Is(err, bus.ErrFenced):
		return verdict{gone: true}, false
	case err != nil:
		return later(0), false
	case after > 0:
		return later(after), false
	}
	d.paced = true
	return verdict{}, true
}
