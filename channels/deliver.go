package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"parley/bus"
)

const (
	undecodable = "undecodable"
	panicked    = "panicked"
	outOfOrder  = 5 * time.Second // wait after a failure of the book's
)

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
func (p *post) deliver(ctx, work context.Context, lease bus.Lease, m bus.Message, attempts int) (v verdict) {
	defer func() {
		if r := recover(); r != nil {
			p.Log.Error("send panicked", slog.String("channel", p.Name), slog.String("id", m.ID),
				slog.String("panic", fmt.Sprintf("%T", r)), slog.String("stack", string(debug.Stack())))
			v = verdict{after: backoff(attempts, longestBackoff)}
			if attempts >= leastAttempts {
				v = verdict{bury: panicked}
			}
		}
	}()
	out, err := bus.DecodeOutbound(m.Body)
	if err != nil || out.To.Chat == "" {
		p.Log.Error("message cannot be read and is buried", slog.String("channel", p.Name), slog.String("id", m.ID), slog.Int("bytes", len(m.Body)))
		return verdict{bury: undecodable}
	}
	l := &letter{post: p, lease: lease, out: out, to: out.To, attempts: attempts}
	l.to.Chat = p.moved.now(out.To.Chat)
	// Begin notes the first part as sending, so the pace is waited for before.
	if v, ok := l.wait(ctx); !ok {
		return v
	}
	fresh := false
	l.send, fresh, err = p.Book.Begin(work, Send{ID: m.ID, To: out.To, Parts: p.render(out.Text)})
	if err != nil {
		return l.bookFailed(err)
	}
	p.point("send:begun")
	for i := range l.send.Parts {
		if i > 0 && ctx.Err() != nil {
			return later(0)
		}
		if v, ok := l.part(ctx, work, i, fresh && i == 0); !ok {
			return v
		}
	}
	return verdict{done: true}
}

func (p *post) render(text string) []SentPart {
	pieces := p.renderer.Render(text, p.limits.Dialect, p.limits.Length)
	parts := make([]SentPart, len(pieces))
	for i, piece := range pieces {
		parts[i] = SentPart{Text: piece.Text, Plain: piece.Plain}
	}
	return parts
}

// part brings one part to its end; false with what to do if that is not now.
// InHand says that it was noted as sending just now, by us.
func (l *letter) part(ctx, work context.Context, i int, inHand bool) (verdict, bool) {
	switch p := l.send.Parts[i]; p.State {
	case Sent, Unsure:
		return verdict{}, true
	case Failed: // cut off in the middle of giving up
		return l.fail(work, i, p.Code), false
	case Sending:
		if inHand {
			return l.transmit(work, i)
		}
		if v, settled, ok := l.wasCutOff(ctx, work, i); settled || !ok {
			return v, ok
		}
	default:
		if v, ok := l.wait(ctx); !ok {
			return v, false
		}
		if v, ok := l.held(work); !ok { // or the book's news might be another's
			return v, false
		}
		if v, ok := l.mark(work, i, SentPart{State: Sending, Interrupted: p.Interrupted}); !ok {
			return v, false
		}
	}
	return l.transmit(work, i)
}

// wasCutOff deals with a part that was found as sending. Settled means that
// there is nothing more to be done for it.
func (l *letter) wasCutOff(ctx, work context.Context, i int) (v verdict, settled, ok bool) {
	p := l.send.Parts[i]
	if v, ok := l.wait(ctx); !ok {
		return v, false, false
	}
	if v, ok := l.held(work); !ok {
		return v, false, false
	}
	if r, can := reconciler(l.Channel); can {
		asked, cancel := context.WithTimeout(work, l.delivery.Timeout)
		id, sent, err := r.FindSent(asked, l.to, l.platformPart(i))
		cancel()
		switch fault := faultOf(err); {
		case err == nil && sent:
			v, ok := l.mark(work, i, SentPart{State: Sent, PlatformID: id, Interrupted: p.Interrupted})
			return v, true, ok
		case err == nil: // certainly not sent: it goes out as if for the first time
			return v, false, true
		case fault.Fault == Retry && !l.givenUp(l.out, l.attempts):
			return l.again(work, fault), false, false
		}
	}
	p.Interrupted++
	if l.delivery.OnUnknown == drop || l.givenUp(l.out, l.attempts) {
		l.Log.Warn("nobody can tell whether a message was sent", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Int("part", i))
		v, ok := l.mark(work, i, SentPart{State: Unsure, Interrupted: p.Interrupted})
		return v, true, ok
	}
	v, ok = l.mark(work, i, SentPart{State: Sending, Interrupted: p.Interrupted})
	return v, false, ok
}

// transmit hands a part that is noted as sending to the platform.
func (l *letter) transmit(work context.Context, i int) (verdict, bool) {
	l.paced = false
	for moved := false; ; moved = true {
		if v, ok := l.held(work); !ok {
			return v, false
		}
		l.point("send:held")
		l.typing.silence(l.to, l.out.Turn)
		began := time.Now()
		sending, cancel := context.WithTimeout(work, l.delivery.Timeout)
		id, err := l.Channel.Send(sending, l.to, l.platformPart(i))
		cancel()
		took := time.Since(began)
		l.point("send:sent")
		if err == nil {
			l.observe("sent", took)
			v, ok := l.arrived(work, i, id)
			l.point("send:marked")
			return v, ok
		}
		fault := faultOf(err)
		if fault.MovedTo != "" && !moved {
			l.Log.Info("chat has moved", slog.String("channel", l.Name), slog.String("from", l.to.Chat), slog.String("to", fault.MovedTo))
			l.moved.set(l.out.To.Chat, fault.MovedTo)
			l.to.Chat = fault.MovedTo
			continue
		}
		return l.faulted(work, i, fault, took), false
	}
}

// arrived notes that the platform has taken a part. If the lease was lost while
// it did, another may have dealt with the part meanwhile, and that stands.
func (l *letter) arrived(work context.Context, i int, id string) (verdict, bool) {
	ours := l.send.Parts[i].Interrupted
	select {
	case <-l.lease.Lost():
		known, err := l.Book.Lookup(context.WithoutCancel(work), l.send.ID)
		if err != nil || known.Parts[i].State != Sending || known.Parts[i].Interrupted != ours {
			return verdict{gone: true}, false
		}
	default:
	}
	return l.mark(work, i, SentPart{State: Sent, PlatformID: id, Interrupted: ours})
}

func (l *letter) platformPart(i int) Part {
	p := l.send.Parts[i]
	part := Part{Key: l.send.ID + "/" + strconv.Itoa(i), Text: p.Text, Plain: p.Plain}
	if i == 0 {
		part.ReplyTo = l.out.ReplyTo
	}
	return part
}

// faulted decides about a part that the platform did not take.
func (l *letter) faulted(work context.Context, i int, fault *SendError, took time.Duration) verdict {
	l.Log.Warn("send failed", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Int("part", i),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code), slog.Int("attempts", l.attempts))
	switch fault.Fault {
	case Rejected:
		l.observe("failed", took)
		return l.fail(work, i, fault.Code)
	case Retry:
		if !fault.Limited && l.givenUp(l.out, l.attempts) {
			l.observe("failed", took)
			return l.fail(work, i, "given_up")
		}
		if v, ok := l.unsent(work, i); !ok {
			return v
		}
		return l.again(work, fault)
	case Stop:
		v, ok := l.unsent(work, i)
		if ok {
			v = later(firstBackoff)
		}
		v.stop = fault
		return v
	}
	// Nobody can tell: it stays noted as sending, and is dealt with as what was
	// cut off when it is claimed again.
	l.observe("unknown", took)
	if work.Err() != nil {
		return later(0)
	}
	return verdict{after: backoff(l.attempts, unknownBackoff)}
}

// again gives the message back until the platform may take it.
func (l *letter) again(work context.Context, fault *SendError) verdict {
	if !fault.Limited {
		return verdict{after: max(fault.RetryAfter, backoff(l.attempts, longestBackoff))}
	}
	asked := max(fault.RetryAfter, firstBackoff)
	wait := asked + backoff(1, longestBackoff)
	until := time.Now().Add(asked)
	if !fault.Account {
		l.pace.blockChat(l.to.Chat, until)
		return later(wait)
	}
	l.pace.blockAccount(until)
	// The pace here already waits; the pause also tells whoever takes over.
	if err := l.Bus.Pause(work, bus.OutboundTopic(l.Name), asked); err != nil {
		l.Log.Warn("topic could not be paused", slog.String("channel", l.Name), slog.Any("error", err))
	}
	return later(wait)
}

// unsent notes that a part was certainly not sent; if the lease is lost by now,
// the part may be in another's hands and is left alone.
func (l *letter) unsent(work context.Context, i int) (verdict, bool) {
	if v, ok := l.held(work); !ok {
		return v, false
	}
	return l.mark(work, i, SentPart{State: Queued, Interrupted: l.send.Parts[i].Interrupted})
}

// fail gives a message up: the part and those behind it will not be sent, the
// session is told, and the message is buried.
func (l *letter) fail(work context.Context, from int, code string) verdict {
	if v, ok := l.held(work); !ok {
		return v
	}
	if code == "" {
		code = string(Rejected)
	}
	for i := from; i < len(l.send.Parts); i++ {
		if l.send.Parts[i].State == Failed {
			continue
		}
		if v, ok := l.mark(work, i, SentPart{State: Failed, Code: code, Interrupted: l.send.Parts[i].Interrupted}); !ok {
			return v
		}
	}
	if l.Notify != nil {
		out := l.out
		out.ID = l.send.ID
		if err := l.Notify(work, out, code); err != nil && !errors.Is(err, bus.ErrInvalid) {
			l.Log.Warn("session could not be told", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
			return later(outOfOrder)
		}
	}
	return verdict{bury: code}
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

// mark notes what became of a part. It outlasts ctx for a moment and tries
// again: what the platform has taken and the book does not know would be sent
// a second time.
func (l *letter) mark(work context.Context, i int, now SentPart) (verdict, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), l.delivery.Drain)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := l.Book.Mark(ctx, l.send.ID, i, now)
		if err == nil {
			now.Text, now.Plain = l.send.Parts[i].Text, l.send.Parts[i].Plain
			l.send.Parts[i] = now
			return verdict{}, true
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return l.bookFailed(err), false
		}
	}
}

func (l *letter) bookFailed(err error) verdict {
	l.Log.Error("book could not be written", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
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

// faultOf reads a channel's error; what is not a SendError is of unknown outcome.
func faultOf(err error) *SendError {
	if fault, ok := errors.AsType[*SendError](err); ok {
		return fault
	}
	return &SendError{Fault: Unknown, Err: err}
}
