package dispatch

import (
	"context"

	"parley/channels"
)

// interruptedSends handles parts that the book has recorded as sending although no process is sending them: an
// earlier attempt was cut off.
type interruptedSends struct {
	ledger      *ledger
	clearance   *clearance
	rendering   *rendering
	retryPolicy *retryPolicy
	abandoner   *abandoner
}

// resolve finds out whether such a part has arrived, or decides what to do if nobody can tell. settled reports that
// nothing more has to be done for the part; otherwise it is sent again.
func (c *interruptedSends) resolve(ctx, work context.Context, d *delivery, i int) (settled bool, err error) {
	p := d.record.Parts[i]
	if p.Edits != "" && d.partExpired(i) {
		return false, nil
	}
	if err := c.clearance.awaitPaceAndLease(ctx, work, d); err != nil {
		return false, err
	}
	if p.Edits != "" {
		return false, nil // an edit may be repeated
	}
	policy := c.retryPolicy.policy
	over := policy.OnUnknown == onUnknownDrop || c.retryPolicy.triedLongEnough(d) || d.partExpired(i)
	if r, can := channels.AsReconciler(c.rendering.channel); can {
		asked, cancel := context.WithTimeout(work, policy.Timeout)
		id, sent, err := r.FindSent(asked, d.to, c.rendering.platformPart(d, i))
		cancel()
		switch fault := channels.FaultOf(err); {
		case err == nil && sent:
			p.State, p.PlatformID = channels.Sent, id
			return true, c.ledger.mark(work, d, i, p)
		case err == nil: // certainly not sent: send it as if for the first time
			return false, nil
		case fault.Fault == channels.Retry:
			c.retryPolicy.noteFailure(d, fault)
			if !c.retryPolicy.shouldGiveUp(d) {
				return false, c.retryPolicy.retryLater(work, d, fault)
			}
			over = true
		}
	}
	if over {
		return true, c.abandoner.leaveUnknown(work, d, i)
	}
	p.Interrupted++
	return false, c.ledger.mark(work, d, i, p)
}
