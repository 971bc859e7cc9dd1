package dispatch

import (
	"context"

	"parley/channels"
)

// A sending is the stage that sends the message's parts in order, until the platform stops accepting them.
type sending struct {
	ledger           *ledger
	clearance        *clearance
	interruptedSends *interruptedSends
	transmission     *transmission
	abandoner        *abandoner
	subjects         *subjects
}

func (s *sending) run(ctx, work context.Context, d *delivery) error {
	for i := range d.record.Parts {
		if i > 0 && ctx.Err() != nil {
			return giveBackFor(0)
		}
		// If the platform refuses a part in one form, the next round may send it in another.
		for !d.isSettled(i) {
			if err := s.sendPart(ctx, work, d, i); err != nil {
				return err
			}
			d.justRecorded = false
		}
		if i > 0 {
			continue
		}
		if err := s.subjects.bind(work, d); err != nil {
			return err
		}
	}
	return nil
}

// sendPart does what a part's state demands: it sends the part, finds out whether it arrived, or leaves it alone.
func (s *sending) sendPart(ctx, work context.Context, d *delivery, i int) error {
	switch p := d.record.Parts[i]; p.State {
	case channels.Failed: // an earlier attempt to give up the message was cut off
		return s.abandoner.abandon(work, d, p.Code)
	case channels.Sending:
		if d.justRecorded {
			return s.transmission.send(work, d, i)
		}
		if settled, err := s.interruptedSends.resolve(ctx, work, d, i); settled || err != nil {
			return err
		}
		if d.partExpired(i) {
			return s.abandoner.abandon(work, d, codeExpired)
		}
	default:
		if d.partExpired(i) {
			return s.abandoner.abandon(work, d, codeExpired)
		}
		if err := s.clearance.awaitPaceAndLease(ctx, work, d); err != nil { // without the lease, this could overwrite what another process has recorded
			return err
		}
		p.State = channels.Sending
		if err := s.ledger.mark(work, d, i, p); err != nil {
			return err
		}
	}
	return s.transmission.send(work, d, i)
}
