package dispatch

import (
	"context"
	"errors"
	"time"

	"parley/channels"
	"parley/channels/drafts"
)

// withdrawals takes back drafts that messages should have replaced but can't.
type withdrawals struct {
	ledger      *ledger
	clearance   *clearance
	rendering   *rendering
	retryPolicy *retryPolicy
}

// withdraw changes the text of a draft that the message can't replace, so that no broken-off answer stays next to
// the message. A draft that can't be changed at all stays as it is; while nobody knows whether it can, the message
// waits, as long as it may wait for anything else.
func (w *withdrawals) withdraw(work context.Context, d *delivery, draft string) error {
	e, can := channels.AsEditor(w.rendering.channel)
	if !can {
		return nil
	}
	if err := w.clearance.checkLease(work, d); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(d.withLeaseCheck(work, time.Now()), w.retryPolicy.policy.Timeout)
	defer cancel()
	instead := w.rendering.render(textAnswerBelow)[0]
	err := e.Edit(ctx, d.to, draft, channels.Part{Key: channels.PartKey(d.record.ID, 0), Text: instead.Text, Plain: instead.Plain})
	if err == nil || channels.FaultOf(err).Fault == channels.Rejected || w.retryPolicy.triedLongEnough(d) {
		return nil
	}
	return w.retryPolicy.retryLater(work, d, channels.FaultOf(err))
}

// withdrawUnreplacedDraft withdraws the draft that the message should have replaced and did not, because nothing else
// would replace it. Repeating the edit does no harm.
func (w *withdrawals) withdrawUnreplacedDraft(work context.Context, d *delivery) error {
	first := d.record.Parts[0]
	if first.Edits == "" || first.PlatformID != "" || d.out.Turn == "" {
		return nil
	}
	draft, err := w.ledger.book.Lookup(work, drafts.ID(d.out.Turn))
	if errors.Is(err, channels.ErrNoSend) {
		return nil // it should have replaced an earlier message about its subject
	}
	if err != nil {
		return w.ledger.retryAfterError(d, err)
	}
	if draft.Parts[0].PlatformID != first.Edits {
		return nil
	}
	return w.withdraw(work, d, first.Edits)
}
