package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/channels"
)

// sendErrors decides what to do about parts that the platform did not accept.
type sendErrors struct {
	ledger      *ledger
	clearance   *clearance
	retryPolicy *retryPolicy
	withdrawals *withdrawals
	files       *fileSending
	abandoner   *abandoner
	observe     func(result string, took time.Duration)
	log         *slog.Logger
}

// handle decides what to do about a part that the platform did not accept. It returns nil if nothing more has to be
// done for the part, or if the part is to be tried at once in another form.
func (f *sendErrors) handle(work context.Context, d *delivery, i int, fault *channels.SendError, took time.Duration) error {
	f.log.Warn("send failed", slog.String("id", d.record.ID), slog.Int("part", i),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code), slog.Int("attempts", d.attempts))
	edit := d.record.Parts[i].Edits != ""
	switch {
	case fault.Fault == channels.Rejected:
		f.retryPolicy.notePlatformAnswered(d)
		if can, err := f.prepareNextBest(work, d, i); can {
			return err
		}
		f.observe("failed", took)
		if f.files.mayLeaveOut(d, i, fault.Code) {
			return f.files.leaveOut(work, d, i, fault.Code)
		}
		return f.abandoner.abandon(work, d, fault.Code)
	case fault.Fault == channels.Stop:
		how := giveBackFor(firstBackoff)
		if failed, ok := errors.AsType[*deliveryError](f.ledger.markUnsent(work, d, i)); ok {
			how = failed
		}
		how.refusal = fault
		return how
	case fault.Fault == channels.Retry, edit && work.Err() == nil: // even if the edit was made, it may be repeated
		f.retryPolicy.noteFailure(d, fault)
		if !fault.RateLimited && f.retryPolicy.shouldGiveUp(d) {
			f.observe("failed", took)
			return f.abandoner.abandon(work, d, codeGivenUp)
		}
		if err := f.ledger.markUnsent(work, d, i); err != nil {
			return err
		}
		return f.retryPolicy.retryLater(work, d, fault)
	}
	// Nobody can tell whether it was sent: it stays recorded as sending, and interruptedSends handles it when the
	// mailbox is claimed again.
	f.observe("unknown", took)
	if work.Err() != nil {
		return giveBackFor(0)
	}
	if f.retryPolicy.noteFailure(d, fault); f.retryPolicy.shouldGiveUp(d) {
		if err := f.clearance.checkLease(work, d); err != nil {
			return err
		}
		return f.abandoner.leaveUnknown(work, d, i)
	}
	return f.retryPolicy.retryUnknown(d)
}

// prepareNextBest changes a part that the platform has refused into the next best form: an edit becomes a message
// under the earlier one and, if that is refused too, a message of its own. An edit of a draft becomes a message of
// its own immediately. can reports whether there was such a form.
func (f *sendErrors) prepareNextBest(work context.Context, d *delivery, i int) (can bool, err error) {
	p := d.record.Parts[i]
	switch {
	case p.Edits != "":
		if d.out.Subject != "" {
			p.Under = p.Edits
		} else if err := f.withdrawals.withdraw(work, d, p.Edits); err != nil {
			if failed, ok := errors.AsType[*deliveryError](f.ledger.markUnsent(work, d, i)); ok {
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
	if err := f.clearance.checkLease(work, d); err != nil {
		return true, err
	}
	p.State = channels.Queued
	return true, f.ledger.mark(work, d, i, p)
}
