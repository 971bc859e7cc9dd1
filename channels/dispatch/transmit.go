package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/channels"
	"parley/channels/enclosure"
)

// filePatience is how many times longer than a text a file may take to send.
const filePatience = 5

// transmit hands to the platform a part that is recorded as sending, and records the
// outcome.
func (d *delivery) transmit(work context.Context, i int) error {
	d.paced = false
	moved := false
	for {
		asked := time.Now()
		if err := d.checkLease(work); err != nil {
			return err
		}
		d.crashPoint("send:held")
		if time.Since(asked) > channels.LeasePatience {
			continue // this process was paused after the check: another may hold the mailbox by now
		}
		d.typing.suppress(d.to, d.out.Turn)
		began := time.Now()
		id, err := d.callPlatform(channels.WithLeaseCheck(work, channels.LeaseCheck{Asked: asked, Ask: d.lease.Held}), i)
		took := time.Since(began)
		d.crashPoint("send:sent")
		if err == nil {
			d.observe("sent", took)
			d.streaks.reset(d.out.To)
			d.retries.notePlatformWorks()
			err := d.markArrived(work, i, id)
			d.crashPoint("send:marked")
			return err
		}
		fault := channels.FaultOf(err)
		if fault.MovedTo != "" && !moved {
			d.Log.Info("chat has moved", slog.String("channel", d.Name), slog.String("from", d.to.Chat), slog.String("to", fault.MovedTo))
			d.moved.set(d.out.To.Chat, fault.MovedTo)
			d.to.Chat, moved = fault.MovedTo, true
			continue
		}
		return d.handleFault(work, i, fault, took)
	}
}

// callPlatform edits a message, sends a file, or sends a text, as the part demands.
func (d *delivery) callPlatform(work context.Context, i int) (id string, err error) {
	p, part := d.record.Parts[i], d.platformPart(i)
	timeout := d.policy.Timeout
	if p.File {
		timeout *= filePatience
	}
	ctx, cancel := context.WithTimeout(work, timeout)
	defer cancel()
	switch {
	case p.Edits != "":
		// A part planned as an edit before a restart may not be possible now.
		e, can := channels.AsEditor(d.Channel)
		if !can {
			return "", &channels.SendError{Fault: channels.Rejected, Code: "cannot_edit"}
		}
		return p.Edits, e.Edit(ctx, d.to, p.Edits, part)
	case p.File:
		return d.sendFile(ctx, i, part)
	}
	return d.Channel.Send(ctx, d.to, part)
}

// sendFile sends the file of a part. It bounds how many files are in memory at a time.
func (d *delivery) sendFile(ctx context.Context, i int, part channels.Part) (id string, err error) {
	s, can := channels.AsFileSender(d.Channel)
	e, has := d.enclosureOf(i)
	if !can || !has {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "cannot_send_files"}
	}
	select {
	case d.filesAtOnce <- struct{}{}:
		defer func() { <-d.filesAtOnce }()
	case <-ctx.Done():
		return "", &channels.SendError{Fault: channels.Retry, Code: "busy", Err: ctx.Err()}
	}
	file, err := e.Load(d.Files)
	switch {
	case errors.Is(err, enclosure.ErrMissing):
		return "", &channels.SendError{Fault: channels.Rejected, Code: fileMissing, Err: err}
	case err != nil:
		return "", &channels.SendError{Fault: channels.Retry, Code: "file_unreadable", Err: err}
	}
	return s.SendFile(ctx, d.to, file, part)
}

// markArrived records that the platform has accepted a part. If the lease was lost during
// the call, the rest of the message is another process's; and if that has handled the part
// meanwhile, its record stays.
func (d *delivery) markArrived(work context.Context, i int, id string) error {
	p := d.record.Parts[i]
	lost := false
	select {
	case <-d.lease.Lost():
		lost = true
		known, err := d.Book.Lookup(context.WithoutCancel(work), d.record.ID)
		if err != nil || known.Parts[i].State != channels.Sending || known.Parts[i].Interrupted != p.Interrupted {
			return &deliveryError{leaseLost: true}
		}
	default:
	}
	p.State, p.PlatformID = channels.Sent, id
	if err := d.mark(work, i, p); err != nil || !lost {
		return err
	}
	return &deliveryError{leaseLost: true}
}

// handleFault decides what to do about a part that the platform did not accept. It returns nil if
// nothing more is to be done for the part, or if it is to be tried at once in another form.
func (d *delivery) handleFault(work context.Context, i int, fault *channels.SendError, took time.Duration) error {
	d.Log.Warn("send failed", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Int("part", i),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code), slog.Int("attempts", d.attempts))
	edit := d.record.Parts[i].Edits != ""
	switch {
	case fault.Fault == channels.Rejected:
		d.streaks.reset(d.out.To)
		d.retries.notePlatformWorks()
		if can, err := d.prepareNextBest(work, i); can {
			return err
		}
		d.observe("failed", took)
		if d.mayLeaveOut(i, fault.Code) {
			return d.leaveOutFile(work, i, fault.Code)
		}
		return d.giveUp(work, fault.Code)
	case fault.Fault == channels.Stop:
		how := giveBackFor(firstBackoff)
		if failed, ok := errors.AsType[*deliveryError](d.markUnsent(work, i)); ok {
			how = failed
		}
		how.refused = fault
		return how
	case fault.Fault == channels.Retry, edit && work.Err() == nil: // whatever became of an edit, it may be repeated
		d.noteFailure(fault)
		if !fault.Limited && d.shouldGiveUp() {
			d.observe("failed", took)
			return d.giveUp(work, gaveUp)
		}
		if err := d.markUnsent(work, i); err != nil {
			return err
		}
		return d.retryLater(work, fault)
	}
	// Nobody can tell whether it was sent: it stays recorded as sending, and resolveCutOff
	// handles it when the mailbox is claimed again.
	d.observe("unknown", took)
	if work.Err() != nil {
		return giveBackFor(0)
	}
	if d.noteFailure(fault); d.shouldGiveUp() {
		if err := d.checkLease(work); err != nil {
			return err
		}
		return d.leaveUnknown(work, i)
	}
	return &deliveryError{after: d.retries.add(d.lease.Claim().Key, backoff(d.attempts, unknownBackoff), false, !channels.Connected(d.Channel))}
}

// prepareNextBest changes a part that the platform has refused to the next best form: instead of an
// edit, a message under the earlier one; where that is refused too, a message on its own. Instead
// of an edit of a draft it is a message on its own at once. can reports whether there was such a
// form.
func (d *delivery) prepareNextBest(work context.Context, i int) (can bool, err error) {
	p := d.record.Parts[i]
	switch {
	case p.Edits != "":
		if d.out.Subject != "" {
			p.Under = p.Edits
		} else if err := d.withdrawDraft(work, p.Edits); err != nil {
			if failed, ok := errors.AsType[*deliveryError](d.markUnsent(work, i)); ok {
				err = failed
			}
			return true, err
		}
		p.Edits = ""
	case p.Under != "":
		p.Under = ""
	default:
		return false, nil
	}
	if err := d.checkLease(work); err != nil {
		return true, err
	}
	p.State = channels.Queued
	return true, d.mark(work, i, p)
}

// withdrawn is the text that replaces a draft which the answer could not replace.
const withdrawn = "_(The answer is below.)_"

// withdrawDraft changes the text of a draft that the message cannot replace, so that no broken-off
// answer stays beside the message. A draft that cannot be changed at all stays; while nobody knows
// whether it can, the message waits, as long as any message does.
func (d *delivery) withdrawDraft(work context.Context, draft string) error {
	e, can := channels.AsEditor(d.Channel)
	if !can {
		return nil
	}
	if err := d.checkLease(work); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(channels.WithLeaseCheck(work, channels.LeaseCheck{Asked: time.Now(), Ask: d.lease.Held}), d.policy.Timeout)
	defer cancel()
	instead := d.render(withdrawn)[0]
	err := e.Edit(ctx, d.to, draft, channels.Part{Key: channels.PartKey(d.record.ID, 0), Text: instead.Text, Plain: instead.Plain})
	if err == nil || channels.FaultOf(err).Fault == channels.Rejected || d.triedLongEnough() {
		return nil
	}
	return d.retryLater(work, channels.FaultOf(err))
}
