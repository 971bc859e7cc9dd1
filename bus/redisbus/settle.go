package redisbus

import (
	"context"
	"fmt"
	"time"

	"parley/bus"
)

// Settle implements bus.Lease. It tries again until it knows the outcome or ctx
// ends. Where an answer was lost and the next attempt is fenced, it was settled.
// Where ctx ends first the lease is let go of: it runs out by itself.
func (l *lease) Settle(ctx context.Context, end bus.End) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.settling <- struct{}{}:
		defer func() { <-l.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	seen, err := l.beginSettle()
	if err != nil {
		return err
	}
	defer l.endSettle()
	k := l.keys
	keys := []string{
		l.bus.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads, k.mail(l.claim.Key), k.dead, k.graves,
	}
	args := []any{
		l.claim.Key, l.claim.Fence, end.Done, end.Dead, end.Reason, max(0, end.After.Microseconds()), flag(end.Uncounted), seen,
	}
	var retry backoff
	for unsure := false; ; {
		r, err := l.bus.courier.run(ctx, settleScript, keys, args...)
		if err == nil {
			if r.text() == "fenced" && !unsure {
				l.bus.leases.lose(l, bus.ErrFenced)
				return bus.ErrFenced
			}
			l.bus.leases.end(l, bus.ErrFenced)
			return nil
		}
		unsure = unsure || mayHaveRun(err)
		select {
		case <-time.After(retry.next()):
		case <-ctx.Done():
			// Its holder is done with it. A lease that nobody works under is not to
			// be prolonged: it runs out, and somebody claims the mailbox again.
			l.bus.leases.end(l, bus.ErrFenced)
			return fmt.Errorf("settle: %w", err)
		case <-l.bus.closed:
			return fmt.Errorf("settle: %w", bus.ErrClosed)
		}
	}
}

func (l *lease) beginSettle() (seen int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.busy = l.over == nil
	return l.known.seen, l.over
}

func (l *lease) endSettle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.busy = false
}
