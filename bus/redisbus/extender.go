package redisbus

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/bus"
)

// An extender extends the leases and holds of this process, so that they do not run out.
type extender struct {
	leases *leases
	holds  *holds
}

// extendAll extends the leases and holds of this process in rounds until ctx is done. A
// failed round is retried soon, before they run out.
func (u *extender) extendAll(ctx context.Context) {
	var retry backoff
	for {
		wait, err := u.leases.extendLeases(ctx)
		if err = errors.Join(err, u.holds.extendHolds(ctx)); err != nil {
			wait = retry.next()
		} else {
			retry = 0
		}
		select {
		case <-time.After(wait):
		case <-u.leases.extendAsked:
		case <-ctx.Done():
			return
		}
	}
}

// extendLeases extends all leases and returns how long to wait for the next round: a third of
// the lease time, or less if a lease reaches the end of MaxHold earlier, at which it is lost. A failure in one topic does
// not stop the others.
func (s *leases) extendLeases(ctx context.Context) (next time.Duration, err error) {
	next = s.length / 3
	for k, held := range s.byTopic() {
		held = slices.DeleteFunc(held, func(l *lease) bool {
			left := time.Until(l.maxHoldEnd)
			if left <= 0 {
				s.lose(l, bus.ErrFenced)
			} else {
				next = min(next, left)
			}
			return left <= 0
		})
		for some := range slices.Chunk(held, extendAtOnce) {
			err = errors.Join(err, s.extendSome(ctx, k, some))
		}
	}
	return next, err
}

// extendSome extends some leases of one topic with one run of the script. A lease that the
// server refuses is lost.
func (s *leases) extendSome(ctx context.Context, k *topicKeys, some []*lease) error {
	sent := time.Now()
	args := make([]any, 0, 1+3*len(some))
	args = append(args, s.length.Microseconds())
	for _, l := range some {
		args = append(args, l.claim.Key, l.claim.Fence, s.nextTerm(l, sent).length.Microseconds())
	}
	r, err := s.batcher.run(ctx, extendScript, []string{s.keys.clock(), s.keys.contact(), k.state, k.leased}, args...)
	if err != nil {
		return err
	}
	for i, l := range some {
		if last := r.at(i).number(); last < 0 {
			l.handleRefusal()
		} else {
			l.recordExtension(s.nextTerm(l, sent), last)
		}
	}
	return nil
}
