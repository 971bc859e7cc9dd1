package dispatch

import (
	"context"
	"log/slog"

	"parley/channels"
)

// An abandoner gives up on messages that can't be sent, and on parts whose outcome nobody will find out.
type abandoner struct {
	ledger      *ledger
	clearance   *clearance
	withdrawals *withdrawals
	notices     *notices
	fallbacks   *fallbacks
	point       func(string)
	log         *slog.Logger
}

// abandon gives up on a message: it marks the unsent parts as failed, tells the session, sends the message to its
// fallback, and makes it a dead letter. A message that has expired or is empty is neither sent elsewhere nor kept
// as a dead letter: nobody wants it, so there is nothing to look into or to replay. A message with Ahead set is
// only marked.
func (s *abandoner) abandon(work context.Context, d *delivery, code string) error {
	if err := s.clearance.checkLease(work, d); err != nil {
		return err
	}
	if code == "" {
		code = string(channels.Rejected)
	}
	for i, p := range d.record.Parts {
		if p.State == channels.Failed || d.isSettled(i) {
			continue
		}
		p.State, p.Code = channels.Failed, code
		if err := s.ledger.mark(work, d, i, p); err != nil {
			return err
		}
	}
	s.point("send:failed")
	if code == codeExpired {
		if err := s.withdrawals.withdrawUnreplacedDraft(work, d); err != nil {
			return err
		}
	}
	if d.out.Ahead { // the message after it will say that this one has not arrived
		s.log.Warn("message that goes ahead of another was given up", slog.String("id", d.record.ID), slog.String("code", code))
		return &deliveryError{discarded: true}
	}
	if err := s.notices.tellSessionUndelivered(work, d, code); err != nil {
		return err
	}
	if err := s.notices.tellChatRefused(work, d, code); err != nil {
		return err
	}
	switch code {
	case codeExpired:
		s.log.Info("message has expired", slog.String("id", d.record.ID))
		return &deliveryError{discarded: true}
	case codeEmpty:
		s.log.Warn("message has nothing to see in it", slog.String("id", d.record.ID))
		return &deliveryError{discarded: true}
	}
	if err := s.fallbacks.sendToFallbacks(work, d, code); err != nil {
		return err
	}
	s.point("send:elsewhere")
	return &deliveryError{deadLetterReason: code}
}

// leaveUnknown records that nobody will find out whether a part has arrived. Before that, it sends the message to its
// fallback.
func (s *abandoner) leaveUnknown(work context.Context, d *delivery, i int) error {
	s.log.Warn("nobody can tell whether a message was sent", slog.String("id", d.record.ID), slog.Int("part", i))
	// Nobody handles a part again once it is recorded as unknown, so the fallback comes first.
	if err := s.fallbacks.sendToFallbacks(work, d, codeUnknownOutcome); err != nil {
		return err
	}
	p := d.record.Parts[i]
	p.State = channels.OutcomeUnknown
	p.Interrupted++
	return s.ledger.mark(work, d, i, p)
}
