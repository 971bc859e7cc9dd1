package redisbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

const extendAtOnce = 200

// leases are those that this process holds, by their fences.
type leases struct {
	time    time.Duration
	maxHold time.Duration
	hurried chan struct{} // has a value when somebody cannot wait for the next round

	mu     sync.Mutex // taken before a lease's
	held   map[int64]*lease
	coming int             // claims that are under way
	early  map[int64]int64 // news for leases that they may bring
}

func newLeases(length, maxHold time.Duration) *leases {
	return &leases{
		time: length, maxHold: maxHold, hurried: make(chan struct{}, 1), held: map[int64]*lease{}, early: map[int64]int64{},
	}
}

// expect is called before a claim is sent, and enter when its answer has come.
func (s *leases) expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming++
}

func (s *leases) enter(granted []*lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range granted {
		s.held[l.claim.Fence] = l
		l.noted(s.early[l.claim.Fence])
	}
	if s.coming--; s.coming == 0 {
		clear(s.early)
	}
}

// note is told of a new letter in a leased mailbox, or, with -1, that the lease
// is taken away.
func (s *leases) note(fence, last int64) {
	s.mu.Lock()
	if l := s.held[fence]; l != nil && last < 0 {
		s.mu.Unlock()
		l.fenced()
		return
	}
	defer s.mu.Unlock()
	if l := s.held[fence]; l != nil {
		l.noted(last)
	} else if s.coming > 0 {
		s.early[fence] = max(s.early[fence], last)
	}
}

// end ends a lease, as its holder wishes; it reports whether it was not over.
func (s *leases) end(l *lease, why error) bool {
	s.mu.Lock()
	delete(s.held, l.claim.Fence)
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return false
	}
	l.over = why
	l.known.page = nil
	l.ring()
	return true
}

// lose ends a lease against the will of its holder.
func (s *leases) lose(l *lease, why error) {
	if s.end(l, why) {
		close(l.lost)
	}
}

// hurry has the next round begin at once.
func (s *leases) hurry() {
	select {
	case s.hurried <- struct{}{}:
	default: // it will
	}
}

func (s *leases) byTopic() map[*topicKeys][]*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	topics := map[*topicKeys][]*lease{}
	for _, l := range s.held {
		topics[l.keys] = append(topics[l.keys], l)
	}
	return topics
}

// keep prolongs what this process holds, in rounds. Rounds that fail are
// followed by another soon: what is held runs out.
func (b *Bus) keep(ctx context.Context) {
	var retry backoff
	for {
		wait, err := b.extendLeases(ctx)
		if err = errors.Join(err, b.keepHolds(ctx)); err != nil {
			wait = retry.next()
		} else {
			retry = 0
		}
		select {
		case <-time.After(wait):
		case <-b.leases.hurried:
		case <-ctx.Done():
			return
		}
	}
}

// extendLeases returns when the next round has to be. What fails in one topic
// keeps no other from being prolonged.
func (b *Bus) extendLeases(ctx context.Context) (next time.Duration, err error) {
	next = b.leases.time / 3
	for k, held := range b.leases.byTopic() {
		held = slices.DeleteFunc(held, func(l *lease) bool {
			left := time.Until(l.until)
			if left <= 0 {
				b.leases.lose(l, bus.ErrFenced)
			} else {
				next = min(next, left)
			}
			return left <= 0
		})
		for some := range slices.Chunk(held, extendAtOnce) {
			err = errors.Join(err, b.extend(ctx, k, some))
		}
	}
	return next, err
}

func (b *Bus) extend(ctx context.Context, k *topicKeys, some []*lease) error {
	sent := time.Now()
	args := make([]any, 0, 1+3*len(some))
	args = append(args, b.leases.time.Microseconds())
	for _, l := range some {
		args = append(args, l.claim.Key, l.claim.Fence, b.leases.term(l, sent).time.Microseconds())
	}
	r, err := b.courier.run(ctx, extendScript, []string{b.keys.clock(), b.keys.contact(), k.state, k.leased}, args...)
	if err != nil {
		return err
	}
	for i, l := range some {
		if last := r.at(i).number(); last < 0 {
			l.fenced()
		} else {
			l.extended(b.leases.term(l, sent), last)
		}
	}
	return nil
}

// term is what a lease can be given: not beyond the time for which it may be held.
func (s *leases) term(l *lease, sent time.Time) term {
	return term{sent, max(0, min(s.time, l.until.Sub(sent)))}
}

// returnAll gives back what is held as the bus is closed.
func (b *Bus) returnAll() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for k, held := range b.leases.byTopic() {
		for _, l := range held {
			b.leases.lose(l, fmt.Errorf("%w: %w", bus.ErrFenced, bus.ErrClosed))
		}
		for some := range slices.Chunk(held, extendAtOnce) {
			b.tellReturned(ctx, k, true, some)
		}
	}
}
