package dispatch

import (
	"context"

	"parley/channels"
	"parley/channels/drafts"
)

// A recording is the stage that records the message and its parts in the book, unless the book already has them. If
// the message replaces its turn's draft, the draft no longer belongs to the turn from then on.
type recording struct {
	plan      *plan
	ledger    *ledger
	clearance *clearance
	drafts    *drafts.Drafts
	point     func(string)
}

func (o *recording) run(ctx, work context.Context, d *delivery) error {
	// Begin records the first part as sending, so the wait for the rate limits comes first.
	if !d.hasExpired() {
		if err := o.clearance.awaitPace(ctx, d); err != nil {
			return err
		}
	}
	parts, err := o.plan.parts(work, d)
	if err != nil {
		return o.ledger.retryAfterError(d, err)
	}
	if d.hasExpired() {
		for i := range parts {
			parts[i] = channels.SentPart{State: channels.Failed, Code: codeExpired, File: parts[i].File}
		}
	}
	d.record.Parts = parts
	known, fresh, err := o.ledger.book.Begin(work, d.record)
	if err != nil {
		return o.ledger.retryAfterError(d, err)
	}
	d.record, d.justRecorded = known, fresh
	o.point("send:begun")
	if len(known.Parts) > 0 && known.Parts[0].Edits != "" {
		// From here on the draft belongs to this message, whoever continues it: if the draft stayed the turn's
		// after the edit, the turn's next message would replace it again.
		o.drafts.Release(work, d.out, known.Parts[0].Edits)
	}
	return nil
}
