package dispatch

import (
	"context"
	"time"

	"parley/channels"
)

// duplicates is the stage for a message whose Double is set: a repeated send has posted a second copy of the
// message that shows a subject, and this stage edits that copy. Nothing else is done for such a message. The edit
// can be repeated, so the book has no record of it; a copy that can't be edited stays as it is.
type duplicates struct {
	subjects    *subjects
	clearance   *clearance
	rendering   *rendering
	retryPolicy *retryPolicy
}

func (s *duplicates) run(ctx, work context.Context, d *delivery) error {
	if d.out.Double == "" {
		return nil
	}
	e, can := channels.AsEditor(s.rendering.channel)
	if s.subjects.shown == nil || !can {
		return &deliveryError{discarded: true}
	}
	shown, err := s.subjects.shown.BoundMessage(work, d.out.Origin, d.out.Subject, d.out.To)
	if err != nil {
		return s.subjects.ledger.retryAfterError(d, err)
	}
	parts := s.rendering.renderEdit(d.out.Text)
	if shown == d.out.Double || len(parts) == 0 {
		return &deliveryError{discarded: true}
	}
	if err := s.clearance.awaitPaceAndLease(ctx, work, d); err != nil {
		return err
	}
	d.sendReserved = false
	call, cancel := context.WithTimeout(d.withLeaseCheck(work, time.Now()), s.retryPolicy.policy.Timeout)
	defer cancel()
	err = e.Edit(call, d.to, d.out.Double, channels.Part{Key: channels.PartKey(d.record.ID, 0), Session: d.out.Session, Text: parts[0].Text, Plain: parts[0].Plain})
	fault := channels.FaultOf(err)
	if err == nil || fault.Fault == channels.Rejected || fault.Fault == channels.Stop || d.attempts >= minAttemptsToGiveUp {
		return &deliveryError{discarded: true}
	}
	return s.retryPolicy.retryLater(work, d, fault)
}
