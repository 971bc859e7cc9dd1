package dispatch

import (
	"context"
	"log/slog"
	"time"

	"parley/channels"
)

// fileTimeoutFactor is how many times as long as a text a file may take to send.
const fileTimeoutFactor = 5

// A transmission sends parts to the platform and records the outcomes.
type transmission struct {
	rendering   *rendering
	ledger      *ledger
	clearance   *clearance
	retryPolicy *retryPolicy
	files       *fileSending
	sendErrors  *sendErrors
	moved       *movedChats
	typing      *typing // nil if the channel can't show this
	tracing     *tracing
	observe     func(result string, took time.Duration)
	point       func(string)
	log         *slog.Logger
}

// send sends a part that is recorded as sending to the platform, and records the outcome.
func (t *transmission) send(work context.Context, d *delivery, i int) error {
	d.sendReserved = false
	moved := false
	for {
		asked := time.Now()
		if err := t.clearance.checkLease(work, d); err != nil {
			return err
		}
		t.point("send:held")
		if time.Since(asked) > channels.LeasePatience {
			continue // this process was paused after the check: another one may hold the mailbox by now
		}
		t.typing.suppress(d.to, d.out.Turn)
		began := time.Now()
		id, err := t.callPlatform(d.withLeaseCheck(work, asked), d, i)
		took := time.Since(began)
		t.tracing.recordSend(d, i, began, took, err)
		t.point("send:sent")
		if err == nil {
			t.observe("sent", took)
			t.retryPolicy.notePlatformAnswered(d)
			err := t.markArrived(work, d, i, id)
			t.point("send:marked")
			return err
		}
		fault := channels.FaultOf(err)
		if fault.MovedTo != "" && !moved {
			t.log.Info("chat has moved", slog.String("from", d.to.Chat), slog.String("to", fault.MovedTo))
			t.moved.set(d.out.To.Chat, fault.MovedTo)
			d.to.Chat, moved = fault.MovedTo, true
			continue
		}
		return t.sendErrors.handle(work, d, i, fault, took)
	}
}

// callPlatform edits a message, sends a file, or sends a text, depending on the part.
func (t *transmission) callPlatform(work context.Context, d *delivery, i int) (id string, err error) {
	p, part := d.record.Parts[i], t.rendering.platformPart(d, i)
	timeout := t.retryPolicy.policy.Timeout
	if p.File {
		timeout *= fileTimeoutFactor
	}
	ctx, cancel := context.WithTimeout(work, timeout)
	defer cancel()
	switch {
	case p.Edits != "":
		// A part that was planned as an edit before a restart may not be possible now.
		e, can := channels.AsEditor(t.rendering.channel)
		if !can {
			return "", &channels.SendError{Fault: channels.Rejected, Code: "cannot_edit"}
		}
		return p.Edits, e.Edit(ctx, d.to, p.Edits, part)
	case p.File:
		return t.files.send(ctx, d, i, part)
	}
	return t.rendering.channel.Send(ctx, d.to, part)
}

// markArrived records that the platform has accepted a part. If the lease was lost during the call, the rest of the
// message belongs to another process; and if that process has handled the part in the meantime, its record stays.
func (t *transmission) markArrived(work context.Context, d *delivery, i int, id string) error {
	p := d.record.Parts[i]
	lost := false
	select {
	case <-d.lease.Lost():
		lost = true
		known, err := t.ledger.book.Lookup(context.WithoutCancel(work), d.record.ID)
		if err != nil || known.Parts[i].State != channels.Sending || known.Parts[i].Interrupted != p.Interrupted {
			return &deliveryError{leaseLost: true}
		}
	default:
	}
	p.State, p.PlatformID = channels.Sent, id
	if err := t.ledger.mark(work, d, i, p); err != nil || !lost {
		return err
	}
	return &deliveryError{leaseLost: true}
}
