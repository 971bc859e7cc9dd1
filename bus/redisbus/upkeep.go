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

// extendAtOnce is the most leases that one run of the extend script extends.
const extendAtOnce = 200

// leases holds the leases of this process, by their fences.
type leases struct {
	length      time.Duration
	maxHold     time.Duration
	extendAsked chan struct{} // has a value when somebody cannot wait for the next regular extension

	mu         sync.Mutex // taken before a lease's own mu
	held       map[int64]*lease
	claiming   int             // how many runs of the claim script are under way
	earlyNotes map[int64]int64 // by fence: the news of leases that this process did not know yet
}

func newLeases(length, maxHold time.Duration) *leases {
	return &leases{
		length: length, maxHold: maxHold, extendAsked: make(chan struct{}, 1), held: map[int64]*lease{}, earlyNotes: map[int64]int64{},
	}
}

// beginClaim is called before the claim script runs. Until endClaim is called, notes about
// leases that are not known yet are kept.
func (s *leases) beginClaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claiming++
}

// endClaim is called with the leases that a run of the claim script has granted. It registers
// them, and passes on the notes that came before.
func (s *leases) endClaim(granted []*lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range granted {
		s.held[l.claim.Fence] = l
		l.recordLetter(s.earlyNotes[l.claim.Fence])
	}
	if s.claiming--; s.claiming == 0 {
		clear(s.earlyNotes)
	}
}

// handleNote handles what a script has published about a lease: the number of a new letter,
// or -1 if the forget script has taken the lease away.
func (s *leases) handleNote(fence, last int64) {
	s.mu.Lock()
	if l := s.held[fence]; l != nil && last < 0 {
		s.mu.Unlock()
		l.handleRefusal()
		return
	}
	defer s.mu.Unlock()
	if l := s.held[fence]; l != nil {
		l.recordLetter(last)
	} else if s.claiming > 0 {
		s.earlyNotes[fence] = max(s.earlyNotes[fence], last)
	}
}

// end ends a lease that its holder has finished with, for the reason why. It returns false if the
// lease was over already.
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
	l.cached.page = nil
	l.wakeWaiters()
	return true
}

// lose ends a lease and tells its holder by closing Lost.
func (s *leases) lose(l *lease, why error) {
	if s.end(l, why) {
		close(l.lost)
	}
}

// extendNow starts the next round of extending at once.
func (s *leases) extendNow() {
	select {
	case s.extendAsked <- struct{}{}:
	default: // asked for already, and not begun
	}
}

// byTopic returns the leases of this process by the topics of their mailboxes.
func (s *leases) byTopic() map[*topicKeys][]*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	topics := map[*topicKeys][]*lease{}
	for _, l := range s.held {
		topics[l.keys] = append(topics[l.keys], l)
	}
	return topics
}

// extendAll extends the leases and holds of this process in rounds until ctx is done. A
// failed round is retried soon, before they run out.
func (b *Bus) extendAll(ctx context.Context) {
	var retry backoff
	for {
		wait, err := b.extendLeases(ctx)
		if err = errors.Join(err, b.extendHolds(ctx)); err != nil {
			wait = retry.next()
		} else {
			retry = 0
		}
		select {
		case <-time.After(wait):
		case <-b.leases.extendAsked:
		case <-ctx.Done():
			return
		}
	}
}

// extendLeases extends all leases and returns when the next round is due: after a third of
// the lease time. A failure in one topic does not stop the others. A lease at the end of
// MaxHold is lost.
func (b *Bus) extendLeases(ctx context.Context) (next time.Duration, err error) {
	next = b.leases.length / 3
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
			err = errors.Join(err, b.extendSome(ctx, k, some))
		}
	}
	return next, err
}

// extendSome extends some leases of one topic with one run of the script. A lease that the
// server refuses is lost.
func (b *Bus) extendSome(ctx context.Context, k *topicKeys, some []*lease) error {
	sent := time.Now()
	args := make([]any, 0, 1+3*len(some))
	args = append(args, b.leases.length.Microseconds())
	for _, l := range some {
		args = append(args, l.claim.Key, l.claim.Fence, b.leases.nextTerm(l, sent).length.Microseconds())
	}
	r, err := b.batcher.run(ctx, extendScript, []string{b.keys.clock(), b.keys.contact(), k.state, k.leased}, args...)
	if err != nil {
		return err
	}
	for i, l := range some {
		if last := r.at(i).number(); last < 0 {
			l.handleRefusal()
		} else {
			l.recordExtension(b.leases.nextTerm(l, sent), last)
		}
	}
	return nil
}

// nextTerm returns for how long l should be extended by a request that was sent at that time:
// for the lease time, but not beyond MaxHold.
func (s *leases) nextTerm(l *lease, sent time.Time) grantedTime {
	return grantedTime{sent, max(0, min(s.length, l.until.Sub(sent)))}
}

// returnAllLeases returns all leases while the bus is being closed. These claims count as
// attempts, because their holders may have begun to work.
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
	// topicKept is for how long a topic stays in the list after it last had mail.
	topicKept = 48 * time.Hour
)

// repair looks through the mailboxes of all topics, at once and then every minute, and repairs
// those whose entries in Redis do not fit together. One process of the fleet does so at a time: the
// one that holds repairName.
func (b *Bus) repair(ctx context.Context) {
	// Hold fails only when ctx or the bus has ended.
	_ = bus.WhileHeld(ctx, b, repairName, func(held context.Context) error {
		for held.Err() == nil {
			if n, err := b.repairAll(held); err == nil && n > 0 {
				b.log.Error("mailboxes were out of order and are repaired", slog.Int64("mailboxes", n))
			}
			select {
			case <-time.After(repairEvery):
			case <-held.Done():
			}
		}
		return nil
	})
}

// repairAll repairs the mailboxes of all topics once, and returns how many were out of order.
func (b *Bus) repairAll(ctx context.Context) (repaired int64, err error) {
	topics, err := b.Topics(ctx)
	if err != nil {
		return 0, err
	}
	for _, topic := range topics {
		k := b.keys.topic(topic)
		empty := true
		for page, err := range b.mailboxPages(ctx, &k) {
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

// repairSome repairs one page of mailboxes, in which keys and states alternate, as
// mailboxPages returns them. It returns how many were out of order.
func (b *Bus) repairSome(ctx context.Context, k *topicKeys, page []string) (int64, error) {
	keys := []string{b.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads}
	args := []any{b.leases.length.Microseconds()}
	for pair := range slices.Chunk(page, 2) {
		keys, args = append(keys, k.mail(pair[0])), append(args, pair[0])
	}
	r, err := b.batcher.run(ctx, repairScript, keys, args...)
	return r.number(), err
}

// refreshTopic updates the time that the list of topics has for a topic, and by which forgetTopics
// decides, unless the topic has neither mail (empty is true) nor dead letters.
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

// forgetTopics removes topics from the list that have been empty for topicKept.
func (b *Bus) forgetTopics(ctx context.Context) error {
	now, err := b.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	before := strconv.FormatInt(now.Add(-topicKept).UnixMicro(), 10)
	return b.client.ZRemRangeByScore(ctx, b.keys.topics(), "-inf", before).Err()
}
