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

// deliver sends one message, beginning with the first part that is not known to be sent. It returns
// nil once nothing more is to be done for the message, and else a *deliveryError.
func (r *run) deliver(ctx, work context.Context, lease bus.Lease, m bus.Message, attempts int) error {
	d, err := r.newDelivery(lease, m, attempts)
	if err != nil {
		return err
	}
	err = d.recovering(func() error { return d.send(ctx, work) })
	if how, failed := errors.AsType[*deliveryError](err); failed && how.bury == panicked {
		err = d.recovering(func() error { return d.giveUp(work, panicked) })
	}
	return d.finish(work, err)
}

// newDelivery reads a message that is to be sent. It returns a *deliveryError if the message can never
// be sent, or not by this release.
func (r *run) newDelivery(lease bus.Lease, m bus.Message, attempts int) (*delivery, error) {
	d := &delivery{run: r, lease: lease, attempts: attempts}
	var err error
	if d.out, err = bus.DecodeOutbound(m.Body); err != nil || d.out.To.Chat == "" {
		r.Log.Error("message cannot be read and is buried", slog.String("channel", r.Name), slog.String("id", m.ID), slog.Int("bytes", len(m.Body)))
		return nil, &deliveryError{bury: undecodable}
	}
	if !bus.IsClean(d.out.To.String()) {
		r.Log.Error("message is for no address and is buried", slog.String("channel", r.Name), slog.String("id", m.ID))
		return nil, &deliveryError{bury: badAddress}
	}
	if need, ok := unknownNeed(d.out.Needs); ok {
		r.Log.Warn("message needs what this release does not know and is left to another", slog.String("channel", r.Name),
			slog.String("id", m.ID), slog.String("need", markup.Verbatim(need)))
		return nil, giveBackFor(unknownNeedWait)
	}
	d.to, d.record, d.enclosures = d.out.To, recordOf(m.ID, &d.out), enclosure.FilesOf(d.out)
	d.to.Chat = r.moved.current(d.out.To.Chat)
	return d, nil
}

// finish does what is due after a message was sent, or has failed with an error, and returns what
// deliver returns.
func (d *delivery) finish(work context.Context, err error) error {
	how, failed := errors.AsType[*deliveryError](err)
	if !failed || how.discarded || how.bury != "" {
		d.drafts.noteFinished(work, d.out)
		d.releaseFiles()
	}
	if failed && how.discarded {
		return nil
	}
	if !failed && d.hasArrived() {
		d.reactions.Answered(d.out)
	}
	return err
}

// recordOf returns what the book is to have of a message, without its parts.
func recordOf(id string, out *bus.Outbound) channels.Send {
	record := channels.Send{ID: id, To: out.To}
	if out.IsReply() {
		record.Session = out.Session
	} else {
		record.Writer = out.Session
	}
	return record
}

// recovering calls work, and turns a panic into an error: the message is then tried again as after
// any other failure, and given up after leastAttempts.
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

// send sends the message's parts in their order, each as far as the platform lets it.
func (d *delivery) send(ctx, work context.Context) error {
	fresh, err := d.begin(ctx, work)
	if err != nil {
		return err
	}
	if parts := d.record.Parts; len(parts) > 0 && parts[0].Edits != "" {
		// From here on this message owns the draft, whoever continues it: if it were still
		// a draft after the edit, the turn's next message would replace it again.
		d.drafts.releaseDraft(work, d.out, parts[0].Edits)
	}
	for i := range d.record.Parts {
		if i > 0 && ctx.Err() != nil {
			return giveBackFor(0)
		}
		// A part that the platform refuses in one form may be sent in another.
		for !d.isSettled(i) {
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
	if err := d.notifyReplySession(work); err != nil {
		return err
	}
	return nil
}

// begin records the message and its parts in the book, unless the book knows them. fresh reports
// that this call has just recorded the first part as sending.
func (d *delivery) begin(ctx, work context.Context) (fresh bool, err error) {
	// Begin records the first part as sending, so this waits for the pace before.
	if !d.hasExpired() {
		if err := d.waitForPace(ctx); err != nil {
			return false, err
		}
	}
	parts, err := d.planParts(work)
	if err != nil {
		return false, d.errFromBook(err)
	}
	if d.hasExpired() {
		for i := range parts {
			parts[i] = channels.SentPart{State: channels.Failed, Code: expired, File: parts[i].File}
		}
	}
	d.record.Parts = parts
	known, fresh, err := d.Book.Begin(work, d.record)
	if err != nil {
		return false, d.errFromBook(err)
	}
	d.record = known
	d.crashPoint("send:begun")
	return fresh, nil
}

// partExpired reports whether a part must not be sent any more because the message has
// expired. A message of which a part has arrived is sent whole, however late.
func (d *delivery) partExpired(i int) bool {
	if !d.hasExpired() {
		return false
	}
	for _, p := range d.record.Parts[:i] {
		if p.State == channels.Sent {
			return false
		}
	}
	return true
}

// sendPart does for one part what its state demands: it sends the part, finds out whether it
// arrived, or leaves it. inHand says that this process has just recorded the part as sending.
func (d *delivery) sendPart(ctx, work context.Context, i int, inHand bool) error {
	switch p := d.record.Parts[i]; p.State {
	case channels.Failed: // giving the message up was cut off
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
		if err := d.waitAndCheckLease(ctx, work); err != nil { // without the lease this could overwrite what another process recorded
			return err
		}
		p.State = channels.Sending
		if err := d.mark(work, i, p); err != nil {
			return err
		}
	}
	return d.transmit(work, i)
}

// resolveCutOff handles a part that the book has as sending although nobody sends it: an earlier
// attempt was cut off. settled reports that nothing more is to be done for the part.
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
		case err == nil: // certainly not sent: send it as if for the first time
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

const unknownNeedWait = 30 * time.Second // how long a message waits that only another release can send

// unknownNeed returns the first of a message's needs (see bus.Outbound) that this release does not
// know, and whether there is one.
func unknownNeed(needs []string) (string, bool) {
	known := []string{bus.NeedFiles}
	for _, need := range needs {
		if !slices.Contains(known, need) {
			return need, true
		}
	}
	return "", false
}
