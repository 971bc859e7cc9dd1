package dispatch

import (
	"context"
	"fmt"

	"parley/channels"
	"parley/channels/drafts"
)

// subjects connects messages about the same subject.
//
// The newest text about a subject replaces the one before, so that an alert turns into its resolution; if it can't,
// it is posted under that one. A text is replaced as a whole or not at all, and by a single message: a text that
// has to be split is posted under the earlier one too.
type subjects struct {
	shown     channels.Subjects // nil if the book does not remember subjects
	ledger    *ledger
	rendering *rendering
	drafts    *drafts.Drafts
	point     func(string)
}

// replaceEarlier changes the parts of a message about a subject so that they replace the earlier message about it,
// or replace a question's draft, or are posted under the earlier message.
func (s *subjects) replaceEarlier(ctx context.Context, d *delivery, parts []channels.SentPart) ([]channels.SentPart, error) {
	earlier, err := s.shown.BoundMessage(ctx, d.out.Origin, d.out.Subject, d.out.To)
	if err != nil {
		return nil, fmt.Errorf("look for what was said earlier: %w", err)
	}
	if earlier == "" { // a question replaces its turn's draft, just like an answer
		if earlier, err = s.drafts.ToReplace(ctx, d.out); err != nil {
			return nil, err
		}
		if s.rendering.canReplace(d, parts) {
			parts[0].Edits = earlier
		}
		return parts, nil
	}
	for i := range parts {
		parts[i].Under = earlier
	}
	if s.rendering.canReplace(d, parts) {
		parts[0].Edits, parts[0].Under = earlier, ""
	}
	return parts, nil
}

// bind records which of the platform's messages shows the subject from now on: the first one about it, then each
// one that replaces it, but not messages posted under it. Repeating the record does no harm.
func (s *subjects) bind(work context.Context, d *delivery) error {
	first := d.record.Parts[0]
	if s.shown == nil || d.out.Subject == "" || first.State != channels.Sent || first.PlatformID == "" {
		return nil
	}
	id := first.PlatformID
	// A text that could have replaced the earlier one but is posted under it was refused as an edit, so the earlier
	// one can no longer be edited.
	if first.Under != "" && !s.rendering.canReplace(d, d.record.Parts) {
		id = first.Under
	}
	err := s.ledger.write(work, d.lease.Lost(), func(ctx context.Context) error {
		return s.shown.BindMessage(ctx, d.out.Origin, d.out.Subject, d.out.To, id)
	})
	if err != nil {
		return s.ledger.retryAfterError(d, err)
	}
	s.point("send:tied")
	return nil
}
