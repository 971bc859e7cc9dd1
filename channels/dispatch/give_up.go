package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"parley/bus"
	"parley/channels"
)

const (
	firstBackoff   = time.Second
	longestBackoff = 5 * time.Minute
	// After a send of unknown outcome the next may be a repetition, so they
	// come to be rarer.
	unknownBackoff = 15 * time.Minute
	leastAttempts  = 10
	// leastBeforeFallback is how often sends to an address must have failed.
	leastBeforeFallback = 5
)

// backoff is how long to wait after so many attempts: anything up to a bound
// that doubles, so that what failed together is not tried together again.
func backoff(attempts int, longest time.Duration) time.Duration {
	bound := longest
	if attempts < 20 {
		bound = min(longest, firstBackoff<<max(attempts-1, 0))
	}
	return 100*time.Millisecond + rand.N(bound)
}

// shouldGiveUp tells whether a message that cannot be sent has been tried for long
// enough. Where there is a fallback, it is used once the platform has
// failed for a while: not for the message's own failures alone, so that what
// waits behind it for the same address need not wait as long again.
func (d *delivery) shouldGiveUp() bool {
	if len(d.out.Fallback) > 0 {
		since, tries := d.streaks.of(d.out.To)
		after := d.policy.FallbackAfter
		if tries >= leastBeforeFallback && time.Since(since) > after && time.Since(d.out.At) > after {
			return true
		}
	}
	return d.triedLongEnough()
}

// triedLongEnough says so of a message for its own sake. One that does not say when it was
// said is judged by what its attempts must have taken.
func (d *delivery) triedLongEnough() bool {
	if d.attempts < leastAttempts {
		return false
	}
	if d.out.At.IsZero() {
		return time.Duration(d.attempts)*longestBackoff/2 > d.policy.GiveUp
	}
	return time.Since(d.out.At) > d.policy.GiveUp
}

// noteFailure notes that the platform has failed to take something, and not because
// it was asked too often.
func (d *delivery) noteFailure(fault *channels.SendError) {
	if !fault.Limited {
		d.streaks.add(d.out.To)
	}
}

// giveUp gives a message up: what was not sent of it will not be, the session is
// told, it goes to where it can be delivered, and is buried. What has expired
// or says nothing is not buried and goes nowhere: nobody wants it, so there is
// nothing to look into and nothing to be replayed.
func (d *delivery) giveUp(work context.Context, code string) error {
	if err := d.checkLease(work); err != nil {
		return err
	}
	if code == "" {
		code = string(channels.Rejected)
	}
	for i, p := range d.record.Parts {
		if p.State == channels.Failed || d.settled(i) {
			continue
		}
		p.State, p.Code = channels.Failed, code
		if err := d.mark(work, i, p); err != nil {
			return err
		}
	}
	d.point("send:failed")
	if err := d.notifySession(work, code); err != nil {
		return err
	}
	if err := d.explainRefusal(work, code); err != nil {
		return err
	}
	switch code {
	case expired:
		d.Log.Info("message has expired", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return &deliveryError{discarded: true}
	case empty:
		d.Log.Warn("message has nothing to see in it", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return &deliveryError{discarded: true}
	}
	if err := d.sendToFallback(work, code); err != nil {
		return err
	}
	d.point("send:elsewhere")
	return &deliveryError{bury: code}
}

// notifySession tells the session, where one has said it.
func (d *delivery) notifySession(work context.Context, code string) error {
	if d.Notify == nil {
		return nil
	}
	out := d.out
	out.ID = d.record.ID
	if err := d.Notify(work, out, code); err != nil && !errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("session could not be told", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return later(storageWait)
	}
	return nil
}
