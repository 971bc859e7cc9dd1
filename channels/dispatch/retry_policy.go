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
	// leastAttempts is how many times a message must have been tried before it is given up.
	leastAttempts = 10
	// leastBeforeFallback is how many sends in a row to an address must have failed before
	// its messages go to their fallbacks.
	leastBeforeFallback = 5
	// giveUpAhead is the age at which a message that only goes ahead of another is given up:
	// the other waits behind it.
	giveUpAhead = 5 * time.Minute
)

// A retryPolicy says whether a message that was not accepted is tried again, and when.
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

// shouldGiveUp reports whether a message that cannot be sent has been tried long enough. A
// message with a fallback is given up once sends to its address have failed for
// FallbackAfter. All sends to the address count, not only the message's own, so that
// messages behind it need not wait as long again.
func (p *retryPolicy) shouldGiveUp(d *delivery) bool {
	if len(d.out.Fallback) > 0 {
		since, tries := p.streaks.lookup(d.out.To)
		after := p.policy.FallbackAfter
		if tries >= leastBeforeFallback && time.Since(since) > after && time.Since(d.out.At) > after {
			return true
		}
	}
	if d.out.Ahead && d.attempts >= leastAttempts && time.Since(d.out.At) > giveUpAhead {
		return true
	}
	return p.triedLongEnough(d)
}

// triedLongEnough reports whether the message itself has been tried long enough. If it does
// not say when it was written, its age is estimated from the number of its attempts.
func (p *retryPolicy) triedLongEnough(d *delivery) bool {
	if d.attempts < leastAttempts {
		return false
	}
	if d.out.At.IsZero() {
		return time.Duration(d.attempts)*longestBackoff/2 > p.policy.GiveUp
	}
	return time.Since(d.out.At) > p.policy.GiveUp
}

// noteFailure counts that the platform did not accept something, unless a rate limit was
// the reason.
func (p *retryPolicy) noteFailure(d *delivery, fault *channels.SendError) {
	if !fault.Limited {
		p.streaks.add(d.out.To)
	}
}

// noteAnswer records that the platform works: it has accepted or refused something for the
// message's address.
func (p *retryPolicy) noteAnswer(d *delivery) {
	p.streaks.reset(d.out.To)
	p.retries.notePlatformWorks()
}

// retryLater returns an error that gives the message back to the bus until the platform may
// accept it.
func (p *retryPolicy) retryLater(work context.Context, d *delivery, fault *channels.SendError) error {
	if !fault.Limited {
		after := max(fault.RetryAfter, backoff(d.attempts, longestBackoff))
		if fault.RetryAfter == 0 {
			after = p.retries.add(d.lease.Claim().Key, after, true, !channels.Connected(p.channel))
		}
		return &deliveryError{after: after}
	}
	asked := p.pace.NoteLimit(d.to.Chat, fault)
	if fault.Account {
		// The pacer of this process already waits; pausing the topic also tells a process
		// that takes over.
		if err := p.bus.Pause(work, p.topic, asked); err != nil {
			p.log.Warn("topic could not be paused", slog.Any("error", err))
		}
	}
	return giveBackFor(asked + backoff(1, longestBackoff))
}

// retryUnknown returns an error that gives a message back of which nobody can tell whether it was
// sent, for a longer time, as the next send may be a repetition that people see.
func (p *retryPolicy) retryUnknown(d *delivery) error {
	return &deliveryError{after: p.retries.add(d.lease.Claim().Key, backoff(d.attempts, unknownBackoff), false, !channels.Connected(p.channel))}
}
