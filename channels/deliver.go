package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"parley/bus"
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

const outOfOrder = 5 * time.Second // wait after a failure of the book's or the bus's

// A letter is one message on its way to the platform.
type letter struct {
	*post
	lease    bus.Lease
	out      bus.Outbound
	to       bus.Address // out.To, or where that moved
	send     Send        // as the book has it; its ID is the message's on the bus
	attempts int
	paced    bool // the pace was waited for and not yet used
}

// deliver sends one message, from the first part that is not known to be sent.
func (p *post) deliver(ctx, work context.Context, lease bus.Lease, m bus.Message, attempts int) verdict {
	out, err := bus.DecodeOutbound(m.Body)
	if err != nil || out.To.Chat == "" {
		p.Log.Error("message cannot be read and is buried", slog.String("channel", p.Name), slog.String("id", m.ID), slog.Int("bytes", len(m.Body)))
		return verdict{bury: undecodable}
	}
	if !bus.IsClean(out.To.String()) {
		p.Log.Error("message is for no address and is buried", slog.String("channel", p.Name), slog.String("id", m.ID))
		return verdict{bury: badAddress}
	}
	if need, ok := unmet(out.Needs); ok {
		p.Log.Warn("message needs what this release does not know and is left to another", slog.String("channel", p.Name),
			slog.String("id", m.ID), slog.String("need", verbatim(need)))
		return later(notKnown)
	}
	l := &letter{post: p, lease: lease, out: out, to: out.To, send: Send{ID: m.ID, To: out.To}, attempts: attempts}
	l.to.Chat = p.moved.now(out.To.Chat)
	v := l.survive(func() verdict { return l.try(ctx, work) })
	if v.bury == panicked {
		v = l.survive(func() verdict { return l.fail(work, panicked) })
	}
	if v.done || v.bury != "" {
		p.drafts.replaced(work, out)
	}
	if v.done && l.send.State() == Sent {
		p.reacts.answered(out)
	}
	return v
}

// survive works on what may panic: that is tried again like anything else that
// goes wrong, and then given up.
func (l *letter) survive(work func() verdict) (v verdict) {
	defer func() {
		if r := recover(); r != nil {
			panicLogged(l.Log, "send", l.Name, l.send.ID, r)
			v = verdict{after: backoff(l.attempts, longestBackoff)}
			if l.attempts >= leastAttempts {
				v = verdict{bury: panicked}
			}
		}
	}()
	return work()
}

// panicLogged shows of a panic its type alone: it may hold what somebody wrote.
func panicLogged(log *slog.Logger, what, channel, id string, r any) {
	log.Error("panic in a channel", slog.String("what", what), slog.String("channel", channel), slog.String("id", id),
		slog.String("panic", fmt.Sprintf("%T", r)), slog.String("stack", string(debug.Stack())))
}

func (l *letter) try(ctx, work context.Context) verdict {
	fresh, v, ok := l.begin(ctx, work)
	if !ok {
		return v
	}
	if parts := l.send.Parts; len(parts) > 0 && parts[0].Edits != "" {
		// From here on the draft is this message, whoever goes on: were it still
		// one after the edit, the turn's next message would replace it again.
		l.drafts.replaced(work, l.out)
	}
	for i := range l.send.Parts {
		if i > 0 && ctx.Err() != nil {
			return later(0)
		}
		// A part that the platform refuses in one way may be tried in another.
		for !l.through(i) {
			if v, ok := l.part(ctx, work, i, fresh); !ok {
				return v
			}
			fresh = false
		}
		if i > 0 {
			continue
		}
		if v, ok := l.tie(work); !ok {
			return v
		}
	}
	if v, ok := l.told(work); !ok {
		return v
	}
	return verdict{done: true}
}

// begin records the message and its parts, unless the book knows it. Fresh means
// that the first part was noted as sending just now, by us.
func (l *letter) begin(ctx, work context.Context) (fresh bool, v verdict, ok bool) {
	// The book notes the first part as sending, so the pace is waited for before.
	if !l.late() {
		if v, ok := l.wait(ctx); !ok {
			return false, v, false
		}
	}
	parts, err := l.plan(work)
	if err != nil {
		return false, l.bookFailed(err), false
	}
	if l.late() {
		for i := range parts {
			parts[i] = SentPart{State: Failed, Code: expired, File: parts[i].File}
		}
	}
	l.send.Parts = parts
	known, fresh, err := l.Book.Begin(work, l.send)
	if err != nil {
		return false, l.bookFailed(err), false
	}
	l.send = known
	l.point("send:begun")
	return fresh, verdict{}, true
}

func (l *letter) through(i int) bool {
	state := l.send.Parts[i].State
	return state == Sent || state == Unsure
}

// late says that the message is too old to be worth sending.
func (l *letter) late() bool { return !l.out.Expires.IsZero() && !time.Now().Before(l.out.Expires) }

// tooLate says so of a part: a message of which something has arrived is sent
// whole, however late.
func (l *letter) tooLate(i int) bool {
	if !l.late() {
		return false
	}
	for _, p := range l.send.Parts[:i] {
		if p.State == Sent {
			return false
		}
	}
	return true
}

// part does the next thing for one part; false with what to do if that is not
// now. InHand says that it was noted as sending just now, by us.
func (l *letter) part(ctx, work context.Context, i int, inHand bool) (verdict, bool) {
	switch p := l.send.Parts[i]; p.State {
	case Failed: // cut off in the middle of giving up
		return l.fail(work, p.Code), false
	case Sending:
		if inHand {
			return l.transmit(work, i)
		}
		if v, settled, ok := l.wasCutOff(ctx, work, i); settled || !ok {
			return v, ok
		}
		if l.tooLate(i) {
			return l.fail(work, expired), false
		}
	default:
		if l.tooLate(i) {
			return l.fail(work, expired), false
		}
		if v, ok := l.ready(ctx, work); !ok { // or the book's news might be another's
			return v, false
		}
		p.State = Sending
		if v, ok := l.mark(work, i, p); !ok {
			return v, false
		}
	}
	return l.transmit(work, i)
}

// ready waits for the pace and asks for the lease.
func (l *letter) ready(ctx, work context.Context) (verdict, bool) {
	if v, ok := l.wait(ctx); !ok {
		return v, false
	}
	return l.held(work)
}

// wasCutOff deals with a part that was found as sending. Settled means that
// there is nothing more to be done for it.
func (l *letter) wasCutOff(ctx, work context.Context, i int) (v verdict, settled, ok bool) {
	p := l.send.Parts[i]
	if p.Edits != "" && l.tooLate(i) {
		return verdict{}, false, true
	}
	if v, ok := l.ready(ctx, work); !ok {
		return v, false, false
	}
	if p.Edits != "" {
		return verdict{}, false, true // an edit may be repeated
	}
	over := l.delivery.OnUnknown == drop || l.worn() || l.tooLate(i)
	if r, can := reconciler(l.Channel); can {
		asked, cancel := context.WithTimeout(work, l.delivery.Timeout)
		id, sent, err := r.FindSent(asked, l.to, l.platformPart(i))
		cancel()
		switch fault := faultOf(err); {
		case err == nil && sent:
			p.State, p.PlatformID = Sent, id
			v, ok := l.mark(work, i, p)
			return v, true, ok
		case err == nil: // certainly not sent: it goes out as if for the first time
			return v, false, true
		case fault.Fault == Retry:
			l.failing(fault)
			if !l.givenUp() {
				return l.again(work, fault), false, false
			}
			over = true
		}
	}
	if over {
		v, ok := l.leave(work, i)
		return v, true, ok
	}
	p.Interrupted++
	v, ok = l.mark(work, i, p)
	return v, false, ok
}

// leave leaves it at not knowing whether a part has arrived.
func (l *letter) leave(work context.Context, i int) (verdict, bool) {
	l.Log.Warn("nobody can tell whether a message was sent", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Int("part", i))
	// Once it is noted as unknown nobody comes back to it.
	if v, ok := l.elsewhere(work, uncertain); !ok {
		return v, false
	}
	p := l.send.Parts[i]
	p.State = Unsure
	p.Interrupted++
	return l.mark(work, i, p)
}

// fail gives a message up: what was not sent of it will not be, the session is
// told, it goes to where it can be delivered, and is buried. What has expired
// or says nothing is not buried and goes nowhere: nobody wants it, so there is
// nothing to look into and nothing to be replayed.
func (l *letter) fail(work context.Context, code string) verdict {
	if v, ok := l.held(work); !ok {
		return v
	}
	if code == "" {
		code = string(Rejected)
	}
	for i, p := range l.send.Parts {
		if p.State == Failed || l.through(i) {
			continue
		}
		p.State, p.Code = Failed, code
		if v, ok := l.mark(work, i, p); !ok {
			return v
		}
	}
	l.point("send:failed")
	if v, ok := l.tell(work, code); !ok {
		return v
	}
	if v, ok := l.excuse(work, code); !ok {
		return v
	}
	switch code {
	case expired:
		l.Log.Info("message has expired", slog.String("channel", l.Name), slog.String("id", l.send.ID))
		return verdict{done: true}
	case empty:
		l.Log.Warn("message has nothing to see in it", slog.String("channel", l.Name), slog.String("id", l.send.ID))
		return verdict{done: true}
	}
	if v, ok := l.elsewhere(work, code); !ok {
		return v
	}
	l.point("send:elsewhere")
	return verdict{bury: code}
}

// tell tells the session, where one has said it.
func (l *letter) tell(work context.Context, code string) (verdict, bool) {
	if l.Notify == nil {
		return verdict{}, true
	}
	out := l.out
	out.ID = l.send.ID
	if err := l.Notify(work, out, code); err != nil && !errors.Is(err, bus.ErrInvalid) {
		l.Log.Warn("session could not be told", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
		return later(outOfOrder), false
	}
	return verdict{}, true
}

// held asks the bus before an outward effect.
func (l *letter) held(work context.Context) (verdict, bool) {
	err := l.lease.Held(work)
	switch {
	case err == nil:
		return verdict{}, true
	case errors.Is(err, bus.ErrFenced):
		l.Log.Warn("lease was lost before a send", slog.String("channel", l.Name), slog.String("id", l.send.ID))
		return verdict{gone: true}, false
	}
	return later(0), false
}

// mark notes what became of a part.
func (l *letter) mark(work context.Context, i int, now SentPart) (verdict, bool) {
	err := l.insist(work, l.lease.Lost(), func(ctx context.Context) error { return l.Book.Mark(ctx, l.send.ID, i, now) })
	if err != nil {
		return l.bookFailed(err), false
	}
	l.send.Parts[i] = now
	return verdict{}, true
}

// insist writes into the book, however often that takes: what the platform has
// taken and the book does not know would be sent a second time. It ends without
// success when the lease is lost, or a while after ctx.
func (p *post) insist(work context.Context, lost <-chan struct{}, write func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(work))
	defer cancel()
	defer context.AfterFunc(work, func() { time.AfterFunc(p.delivery.Drain, cancel) })()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := write(ctx)
		if err == nil || errors.Is(err, ErrNoSend) {
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

func (l *letter) bookFailed(err error) verdict {
	l.Log.Error("book could not be used", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
	return later(outOfOrder)
}

// wait waits until the pace allows a send. What would have to wait for long is
// given back instead.
func (l *letter) wait(ctx context.Context) (verdict, bool) {
	if l.paced {
		return verdict{}, true
	}
	after, err := l.pace.wait(ctx, l.lease.Lost(), l.to.Chat)
	switch {
	case errors.Is(err, bus.ErrFenced):
		return verdict{gone: true}, false
	case err != nil:
		return later(0), false
	case after > 0:
		return later(after), false
	}
	l.paced = true
	return verdict{}, true
}
