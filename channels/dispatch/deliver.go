package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/enclosure"
	"parley/channels/markup"
)

// deliver sends one message, from the first part that is not known to be sent. Its
// error is nil once the message is through, and else a *deliveryError.
func (r *run) deliver(ctx, work context.Context, lease bus.Lease, m bus.Message, attempts int) error {
	out, err := bus.DecodeOutbound(m.Body)
	if err != nil || out.To.Chat == "" {
		r.Log.Error("message cannot be read and is buried", slog.String("channel", r.Name), slog.String("id", m.ID), slog.Int("bytes", len(m.Body)))
		return &deliveryError{bury: undecodable}
	}
	if !bus.IsClean(out.To.String()) {
		r.Log.Error("message is for no address and is buried", slog.String("channel", r.Name), slog.String("id", m.ID))
		return &deliveryError{bury: badAddress}
	}
	if need, ok := unknownNeed(out.Needs); ok {
		r.Log.Warn("message needs what this release does not know and is left to another", slog.String("channel", r.Name),
			slog.String("id", m.ID), slog.String("need", markup.Verbatim(need)))
		return later(unknownNeedWait)
	}
	d := &delivery{run: r, lease: lease, out: out, to: out.To, record: channels.Send{ID: m.ID, To: out.To}, attempts: attempts, enclosures: enclosure.Of(out)}
	if out.IsReply() {
		d.record.Session = out.Session
	}
	d.to.Chat = r.moved.current(out.To.Chat)
	err = d.recovering(func() error { return d.send(ctx, work) })
	if how, failed := errors.AsType[*deliveryError](err); failed && how.bury == panicked {
		err = d.recovering(func() error { return d.giveUp(work, panicked) })
	}
	how, failed := errors.AsType[*deliveryError](err)
	if !failed || how.discarded || how.bury != "" {
		r.drafts.passed(work, out)
		d.releaseFiles()
	}
	if failed && how.discarded {
		return nil
	}
	if !failed && d.arrived() {
		r.reactions.Answered(out)
	}
	return err
}

// recovering works on what may panic: that is tried again like anything else that
// goes wrong, and then given up.
func (d *delivery) recovering(work func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			channels.LogPanic(d.Log, "send", d.Name, d.record.ID, r)
			err = &deliveryError{after: backoff(d.attempts, longestBackoff)}
			if d.attempts >= leastAttempts {
				err = &deliveryError{bury: panicked}
			}
		}
	}()
	return work()
}

// send takes each part as far as it goes.
func (d *delivery) send(ctx, work context.Context) error {
	fresh, err := d.begin(ctx, work)
	if err != nil {
		return err
	}
	if parts := d.record.Parts; len(parts) > 0 && parts[0].Edits != "" {
		// From here on the draft is this message, whoever goes on: were it still
		// one after the edit, the turn's next message would replace it again.
		d.drafts.endFor(work, d.out, parts[0].Edits)
	}
	for i := range d.record.Parts {
		if i > 0 && ctx.Err() != nil {
			return later(0)
		}
		// A part that the platform refuses in one way may be tried in another.
		for !d.settled(i) {
			if err := d.sendPart(ctx, work, i, fresh); err != nil {
				return err
			}
			fresh = false
		}
		if i > 0 {
			continue
		}
		if err := d.bindSubject(work); err != nil {
			return err
		}
	}
	if err := d.noteInSession(work); err != nil {
		return err
	}
	return nil
}

// begin records the message and its parts, unless the book knows it. Fresh means
// that the first part was noted as sending just now, by us.
func (d *delivery) begin(ctx, work context.Context) (fresh bool, err error) {
	// The book notes the first part as sending, so the pace is waited for before.
	if !d.expired() {
		if err := d.waitForPace(ctx); err != nil {
			return false, err
		}
	}
	parts, err := d.planParts(work)
	if err != nil {
		return false, d.bookFailed(err)
	}
	if d.expired() {
		for i := range parts {
			parts[i] = channels.SentPart{State: channels.Failed, Code: expired, File: parts[i].File}
		}
	}
	d.record.Parts = parts
	known, fresh, err := d.Book.Begin(work, d.record)
	if err != nil {
		return false, d.bookFailed(err)
	}
	d.record = known
	d.point("send:begun")
	return fresh, nil
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

// sendPart does the next thing for one part. InHand says that it was noted as sending just now, by us.
func (d *delivery) sendPart(ctx, work context.Context, i int, inHand bool) error {
	switch p := d.record.Parts[i]; p.State {
	case channels.Failed: // cut off in the middle of giving up
		return d.giveUp(work, p.Code)
	case channels.Sending:
		if inHand {
			return d.transmit(work, i)
		}
		if settled, err := d.resolveCutOff(ctx, work, i); settled || err != nil {
			return err
		}
		if d.partExpired(i) {
			return d.giveUp(work, expired)
		}
	default:
		if d.partExpired(i) {
			return d.giveUp(work, expired)
		}
		if err := d.waitAndCheckLease(ctx, work); err != nil { // or the book's news might be another's
			return err
		}
		p.State = channels.Sending
		if err := d.mark(work, i, p); err != nil {
			return err
		}
	}
	return d.transmit(work, i)
}

// resolveCutOff deals with a part that was found as sending. Settled means that
// there is nothing more to be done for it.
func (d *delivery) resolveCutOff(ctx, work context.Context, i int) (settled bool, err error) {
	p := d.record.Parts[i]
	if p.Edits != "" && d.partExpired(i) {
		return false, nil
	}
	if err := d.waitAndCheckLease(ctx, work); err != nil {
		return false, err
	}
	if p.Edits != "" {
		return false, nil // an edit may be repeated
	}
	over := d.policy.OnUnknown == drop || d.triedLongEnough() || d.partExpired(i)
	if r, can := channels.AsReconciler(d.Channel); can {
		asked, cancel := context.WithTimeout(work, d.policy.Timeout)
		id, sent, err := r.FindSent(asked, d.to, d.platformPart(i))
		cancel()
		switch fault := channels.FaultOf(err); {
		case err == nil && sent:
			p.State, p.PlatformID = channels.Sent, id
			return true, d.mark(work, i, p)
		case err == nil: // certainly not sent: it goes out as if for the first time
			return false, nil
		case fault.Fault == channels.Retry:
			d.noteFailure(fault)
			if !d.shouldGiveUp() {
				return false, d.retryLater(work, fault)
			}
			over = true
		}
	}
	if over {
		return true, d.leaveUnknown(work, i)
	}
	p.Interrupted++
	return false, d.mark(work, i, p)
}

const unknownNeedWait = 30 * time.Second // wait where another release has to send

// unknownNeed is the first need that this release does not know.
func unknownNeed(needs []string) (string, bool) {
	known := []string{bus.NeedFiles}
	for _, need := range needs {
		if !slices.Contains(known, need) {
			return need, true
		}
	}
	return "", false
}
