package channels

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"parley/bus"
)

// heldPatience is less than what is left of a lease that is held.
const heldPatience = 2 * time.Second

// filePatience is how many times longer than a text a file may take.
const filePatience = 5

// transmit hands a part that is noted as sending to the platform.
func (l *letter) transmit(work context.Context, i int) (verdict, bool) {
	l.paced = false
	moved := false
	for {
		asked := time.Now()
		if v, ok := l.held(work); !ok {
			return v, false
		}
		l.point("send:held")
		if time.Since(asked) > heldPatience {
			continue // we stood still: it may be another's by now
		}
		l.typing.silence(l.to, l.out.Turn)
		began := time.Now()
		id, err := l.hand(under(work, right{asked, l.lease.Held}), i)
		took := time.Since(began)
		l.point("send:sent")
		if err == nil {
			l.observe("sent", took)
			l.trouble.over(l.out.To)
			l.waits.answered()
			v, ok := l.arrived(work, i, id)
			l.point("send:marked")
			return v, ok
		}
		fault := faultOf(err)
		if fault.MovedTo != "" && !moved {
			l.Log.Info("chat has moved", slog.String("channel", l.Name), slog.String("from", l.to.Chat), slog.String("to", fault.MovedTo))
			l.moved.set(l.out.To.Chat, fault.MovedTo)
			l.to.Chat, moved = fault.MovedTo, true
			continue
		}
		return l.faulted(work, i, fault, took)
	}
}

// hand calls the platform: to edit, to send a file, or to send a text.
func (l *letter) hand(work context.Context, i int) (id string, err error) {
	p, part := l.send.Parts[i], l.platformPart(i)
	timeout := l.delivery.Timeout
	if p.File {
		timeout *= filePatience
	}
	ctx, cancel := context.WithTimeout(work, timeout)
	defer cancel()
	switch {
	case p.Edits != "":
		// What was planned before a restart may not be possible after it.
		e, can := editor(l.Channel)
		if !can {
			return "", &SendError{Fault: Rejected, Code: "cannot_edit"}
		}
		return p.Edits, e.Edit(ctx, l.to, p.Edits, part)
	case p.File:
		s, can := fileSender(l.Channel)
		if !can || l.out.File == nil {
			return "", &SendError{Fault: Rejected, Code: "cannot_send_files"}
		}
		file := bus.File{Name: fileName(l.out.File.Name), Data: l.out.File.Data}
		return s.SendFile(ctx, l.to, file, part)
	}
	return l.Channel.Send(ctx, l.to, part)
}

func (l *letter) platformPart(i int) Part {
	p := l.send.Parts[i]
	part := Part{Key: l.send.ID + "/" + strconv.Itoa(i), Text: p.Text, Plain: p.Plain, Under: p.Under}
	if i == 0 {
		part.ReplyTo = l.out.ReplyTo
	}
	return part
}

// arrived notes that the platform has taken a part. If the lease was lost while
// it did, another may have dealt with the part meanwhile, and that stands.
func (l *letter) arrived(work context.Context, i int, id string) (verdict, bool) {
	p := l.send.Parts[i]
	select {
	case <-l.lease.Lost():
		known, err := l.Book.Lookup(context.WithoutCancel(work), l.send.ID)
		if err != nil || known.Parts[i].State != Sending || known.Parts[i].Interrupted != p.Interrupted {
			return verdict{gone: true}, false
		}
	default:
	}
	p.State, p.PlatformID = Sent, id
	return l.mark(work, i, p)
}

// faulted decides about a part that the platform did not take; true if it is to
// be tried in another way at once.
func (l *letter) faulted(work context.Context, i int, fault *SendError, took time.Duration) (verdict, bool) {
	l.Log.Warn("send failed", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Int("part", i),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code), slog.Int("attempts", l.attempts))
	edit := l.send.Parts[i].Edits != ""
	switch {
	case fault.Fault == Rejected:
		l.trouble.over(l.out.To)
		l.waits.answered()
		if v, ok, can := l.otherwise(work, i); can {
			return v, ok
		}
		l.observe("failed", took)
		return l.fail(work, fault.Code), false
	case fault.Fault == Stop:
		v, ok := l.unsent(work, i)
		if ok {
			v = later(firstBackoff)
		}
		v.stop = fault
		return v, false
	case fault.Fault == Retry, edit && work.Err() == nil: // whatever became of an edit, it may be repeated
		l.failing(fault)
		if !fault.Limited && l.givenUp() {
			l.observe("failed", took)
			return l.fail(work, gaveUp), false
		}
		if v, ok := l.unsent(work, i); !ok {
			return v, false
		}
		return l.again(work, fault), false
	}
	// Nobody can tell: it stays noted as sending, and is dealt with as what was
	// cut off when it is claimed again.
	l.observe("unknown", took)
	if work.Err() != nil {
		return later(0), false
	}
	if l.failing(fault); l.givenUp() {
		if v, ok := l.held(work); !ok {
			return v, false
		}
		return l.leave(work, i)
	}
	return verdict{after: l.waits.put(l.lease.Claim().Key, backoff(l.attempts, unknownBackoff), false, !Connected(l.Channel))}, false
}

// otherwise prepares a part that the platform has refused for the next best way
// of saying it: a message that cannot be edited is answered, and where it cannot
// even be answered, the part stands alone; a draft is not answered. Can is false
// if there is none.
func (l *letter) otherwise(work context.Context, i int) (v verdict, ok, can bool) {
	p := l.send.Parts[i]
	switch {
	case p.Edits != "":
		if l.out.Subject != "" {
			p.Under = p.Edits
		} else if v, ok := l.withdraw(work, i, p.Edits); !ok {
			return v, false, true
		}
		p.Edits = ""
	case p.Under != "":
		p.Under = ""
	default:
		return verdict{}, false, false
	}
	if v, ok := l.held(work); !ok {
		return v, false, true
	}
	p.State = Queued
	v, ok = l.mark(work, i, p)
	return v, ok, true
}

// withdrawn takes the place of a draft whose answer could not.
const withdrawn = "_(The answer is below.)_"

// withdraw ends a draft that the answer cannot replace, so that it does not stand
// beside it as a second one that breaks off. One that cannot be changed at all
// is left; while that is not known, the answer waits, for as long as any message does.
func (l *letter) withdraw(work context.Context, i int, draft string) (verdict, bool) {
	e, can := editor(l.Channel)
	if !can {
		return verdict{}, true
	}
	if v, ok := l.held(work); !ok {
		return v, false
	}
	ctx, cancel := context.WithTimeout(under(work, right{time.Now(), l.lease.Held}), l.delivery.Timeout)
	defer cancel()
	instead := l.render(withdrawn)[0]
	err := e.Edit(ctx, l.to, draft, Part{Key: l.send.ID + "/" + strconv.Itoa(i), Text: instead.Text, Plain: instead.Plain})
	if err == nil || faultOf(err).Fault == Rejected || l.worn() {
		return verdict{}, true
	}
	if v, ok := l.unsent(work, i); !ok {
		return v, false
	}
	return l.again(work, faultOf(err)), false
}

// again gives the message back until the platform may take it.
func (l *letter) again(work context.Context, fault *SendError) verdict {
	if !fault.Limited {
		after := max(fault.RetryAfter, backoff(l.attempts, longestBackoff))
		if fault.RetryAfter == 0 {
			after = l.waits.put(l.lease.Claim().Key, after, true, !Connected(l.Channel))
		}
		return verdict{after: after}
	}
	asked := l.pace.limited(l.to.Chat, fault)
	if fault.Account {
		// The pace here already waits; the pause also tells whoever takes over.
		if err := l.Bus.Pause(work, bus.OutboundTopic(l.Name), asked); err != nil {
			l.Log.Warn("topic could not be paused", slog.String("channel", l.Name), slog.Any("error", err))
		}
	}
	return later(asked + backoff(1, longestBackoff))
}

// unsent notes that a part was certainly not sent; if the lease is lost by now,
// the part may be in another's hands and is left alone.
func (l *letter) unsent(work context.Context, i int) (verdict, bool) {
	if v, ok := l.held(work); !ok {
		return v, false
	}
	p := l.send.Parts[i]
	p.State = Queued
	return l.mark(work, i, p)
}

// faultOf reads a channel's error; what is not a SendError is of unknown outcome.
func faultOf(err error) *SendError {
	if errors.Is(err, errLate) {
		return &SendError{Fault: Retry, Code: "late", Err: errLate}
	}
	if fault, ok := errors.AsType[*SendError](err); ok {
		return fault
	}
	return &SendError{Fault: Unknown, Err: err}
}
