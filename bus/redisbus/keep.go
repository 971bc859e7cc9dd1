package redisbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

const extendAtOnce = 200

// leases holds the leases of this process, by their fences.
type leases struct {
	time    time.Duration
	maxHold time.Duration
	hurried chan struct{} // has a value when Held or Mail waits for the next round

	mu     sync.Mutex // taken before a lease's own mu
	held   map[int64]*lease
	coming int             // runs of the claim script that are under way
	early  map[int64]int64 // by fence: notes that came before their lease did
}

func newLeases(length, maxHold time.Duration) *leases {
	return &leases{
		time: length, maxHold: maxHold, hurried: make(chan struct{}, 1), held: map[int64]*lease{}, early: map[int64]int64{},
	}
}

// expect is called before the claim script runs, and enter with what it granted. In
// between, notes about unknown leases are kept.
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

// note handles a note of the server: a new letter in a leased mailbox, or, with -1,
// that the lease was taken away by forget.
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

// end ends a lease that its holder is done with. It reports false if it was over.
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

// lose ends a lease and tells its holder by closing Lost.
func (s *leases) lose(l *lease, why error) {
	if s.end(l, why) {
		close(l.lost)
	}
}

// hurry starts the next round of extending at once.
func (s *leases) hurry() {
	select {
	case s.hurried <- struct{}{}:
	default: // asked for already
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

// keep extends the leases and holds of this process in rounds. A failed round is
// retried soon, before they run out.
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

// extendLeases extends all leases and returns when the next round is due, a third
// of the lease time on. A failure in one topic does not keep others from it. A
// lease at the end of MaxHold is lost.
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
	r, err := b.batcher.run(ctx, extendScript, []string{b.keys.clock(), b.keys.contact(), k.state, k.leased}, args...)
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

// term is the term to ask for: the lease time, but not beyond MaxHold.
func (s *leases) term(l *lease, sent time.Time) term {
	return term{sent, max(0, min(s.time, l.until.Sub(sent)))}
}

// returnAllLeases returns all leases as the bus is closed. These claims count: their
// holders may have begun to work.
func (b *Bus) returnAllLeases() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for k, held := range b.leases.byTopic() {
		for _, l := range held {
			b.leases.lose(l, fmt.Errorf("%w: %w", bus.ErrFenced, bus.ErrClosed))
		}
		for some := range slices.Chunk(held, extendAtOnce) {
			b.returnLeases(ctx, k, true, some)
		}
	}
}

const (
	repairName  = "bus/repair"
	repairEvery = time.Minute
	// topicKept is for how long a topic is listed after it last held mail.
	topicKept = 48 * time.Hour
)

// repair looks after the mailboxes of all topics, now and once a minute, in one
// process of the fleet.
func (b *Bus) repair(ctx context.Context) {
	for {
		held, release, err := b.Hold(ctx, repairName)
		if err != nil {
			return // it ends with ctx only
		}
		for held.Err() == nil {
			if n, err := b.repairAll(held); err == nil && n > 0 {
				b.log.Error("mailboxes were out of order and are repaired", slog.Int64("mailboxes", n))
			}
			select {
			case <-time.After(repairEvery):
			case <-held.Done():
			}
		}
		release()
	}
}

func (b *Bus) repairAll(ctx context.Context) (repaired int64, err error) {
	topics, err := b.Topics(ctx)
	if err != nil {
		return 0, err
	}
	for _, topic := range topics {
		k := b.keys.topic(topic)
		empty := true
		for page, err := range b.boxes(ctx, &k) {
			if err != nil {
				return repaired, err
			}
			if len(page) == 0 {
				continue
			}
			empty = false
			n, err := b.repairSome(ctx, &k, page)
			if err != nil {
				return repaired, err
			}
			repaired += n
		}
		if err := b.refreshTopic(ctx, &k, empty); err != nil {
			return repaired, err
		}
	}
	return repaired, b.forgetTopics(ctx)
}

// repairSome takes keys and states by turns.
func (b *Bus) repairSome(ctx context.Context, k *topicKeys, page []string) (int64, error) {
	keys := []string{b.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads}
	args := []any{b.leases.time.Microseconds()}
	for pair := range slices.Chunk(page, 2) {
		keys, args = append(keys, k.mail(pair[0])), append(args, pair[0])
	}
	r, err := b.batcher.run(ctx, repairScript, keys, args...)
	return r.number(), err
}

// refreshTopic keeps a topic on the list that holds mail or dead letters.
func (b *Bus) refreshTopic(ctx context.Context, k *topicKeys, empty bool) error {
	if empty {
		n, err := b.client.ZCard(ctx, k.graves).Result()
		if err != nil || n == 0 {
			return err
		}
	}
	now, err := b.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	return b.client.ZAddXX(ctx, b.keys.topics(), redis.Z{Score: float64(now.UnixMicro()), Member: string(k.name)}).Err()
}

func (b *Bus) forgetTopics(ctx context.Context) error {
	now, err := b.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	before := strconv.FormatInt(now.Add(-topicKept).UnixMicro(), 10)
	return b.client.ZRemRangeByScore(ctx, b.keys.topics(), "-inf", before).Err()
}
