package dispatch

import (
	"context"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/pacing"
)

const (
	// minAttemptsToGiveUp is how many times a message without a fallback must have been tried before it may be
	// given up.
	minAttemptsToGiveUp = 10
	// minFailuresToFallBack is how many sends in a row to an address must have failed before its messages go to their
	// fallbacks.
	minFailuresToFallBack = 5
	// giveUpAheadAfter takes the place of Policy.GiveUp for a message with Ahead set, which only introduces another one:
	// it is short, because the other message is waiting for it.
	giveUpAheadAfter = 5 * time.Minute
)

// A retryPolicy decides whether a message that was not accepted is tried again, and when.
type retryPolicy struct {
	policy  Policy
	channel channels.Channel
	topic   bus.Topic
	bus     bus.Pauser
	pace    *pacing.Pacer
	streaks *failureStreaks
	retries *retrySchedule
	log     *slog.Logger
}

// shouldGiveUp reports whether a message that can't be sent has been tried long enough. A message with a fallback
// is given up once sends to its address have failed for FallbackAfter. All sends to the address count, not only
// those of this message, so that the messages behind it needn't wait as long again. A message with Ahead set is given
// up after giveUpAheadAfter.
func (p *retryPolicy) shouldGiveUp(d *delivery) bool {
	if len(d.out.Fallback) > 0 {
		since, tries := p.streaks.lookup(d.out.To)
		after := p.policy.FallbackAfter
		if tries >= minFailuresToFallBack && time.Since(since) > after && time.Since(d.out.At) > after {
			return true
		}
	}
	if d.out.Ahead && d.attempts >= minAttemptsToGiveUp && time.Since(d.out.At) > giveUpAheadAfter {
		return true
	}
	return p.triedLongEnough(d)
}

// triedLongEnough reports whether this message itself has been tried long enough. If the message does not say when
// it was written, its age is estimated from the number of attempts.
func (p *retryPolicy) triedLongEnough(d *delivery) bool {
	if d.attempts < minAttemptsToGiveUp {
		return false
	}
	if d.out.At.IsZero() {
		return time.Duration(d.attempts)*maxBackoff/2 > p.policy.GiveUp
	}
	return time.Since(d.out.At) > p.policy.GiveUp
}

// noteFailure counts a send that the platform did not accept, unless a rate limit was the reason.
func (p *retryPolicy) noteFailure(d *delivery, fault *channels.SendError) {
	if !fault.RateLimited {
		p.streaks.add(d.out.To)
	}
}

// notePlatformAnswered records that the platform works: it has accepted or refused a part for the message's
// address.
func (p *retryPolicy) notePlatformAnswered(d *delivery) {
	p.streaks.reset(d.out.To)
	p.retries.notePlatformWorks()
}

// retryLater returns an error that gives the message back to the bus until the platform may
// accept it.
func (p *retryPolicy) retryLater(work context.Context, d *delivery, fault *channels.SendError) error {
	if !fault.RateLimited {
		after := max(fault.RetryAfter, backoff(d.attempts, maxBackoff))
		if fault.RetryAfter == 0 {
			after = p.retries.add(d.lease.Claim().Key, after, true, !channels.Connected(p.channel))
		}
		return &deliveryError{retryAfter: after}
	}
	asked := p.pace.NoteLimit(d.to.Chat, fault)
	if fault.AccountWide {
		// The pacer of this process already waits; pausing the topic also tells the process that takes over next.
		if err := p.bus.Pause(work, p.topic, asked); err != nil {
			p.log.Warn("topic could not be paused", slog.Any("error", err))
		}
	}
	return giveBackFor(asked + backoff(1, maxBackoff))
}

// retryUnknown returns an error that gives back a message for which nobody can tell whether it was sent. The
// message then waits longer, because people may see the next send as a repetition.
func (p *retryPolicy) retryUnknown(d *delivery) error {
	return &deliveryError{retryAfter: p.retries.add(d.lease.Claim().Key, backoff(d.attempts, unknownBackoff), false, !channels.Connected(p.channel))}
}
