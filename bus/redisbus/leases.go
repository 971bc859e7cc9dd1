package redisbus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

// leases holds the leases of this process, by their fences.
type leases struct {
	*connection
	emitter     *emitter // announces new dead letters
	length      time.Duration
	maxHold     time.Duration
	extendAsked chan struct{}                     // has a value when somebody cannot wait for the next regular extension
	onOffer     func(topic bus.Topic, key string) // is called when settling has offered a mailbox to this process again

	mu         sync.Mutex // taken before a lease's own mu
	held       map[int64]*lease
	heldCounts map[*topicKeys]int // how many are held, by topic
	claiming   int                // how many runs of the claim script are under way
	earlyNotes map[int64]int64    // by fence: the numbers from notes about leases that this process did not know yet
}

func newLeases(c *connection, m *emitter, length, maxHold time.Duration) *leases {
	return &leases{
		connection: c, emitter: m, length: length, maxHold: maxHold, extendAsked: make(chan struct{}, 1), held: map[int64]*lease{}, heldCounts: map[*topicKeys]int{}, earlyNotes: map[int64]int64{},
	}
}

// beginClaim must be called before the claim script runs. Until endClaim is called, it keeps notes about leases that
// are not known yet.
func (s *leases) beginClaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claiming++
}

// endClaim must be called with the leases that a run of the claim script has granted. It registers them, and passes
// on the notes that came before.
func (s *leases) endClaim(granted []*lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range granted {
		s.held[l.claim.Fence] = l
		s.heldCounts[l.keys]++
		l.recordMessage(s.earlyNotes[l.claim.Fence])
	}
	if s.claiming--; s.claiming == 0 {
		clear(s.earlyNotes)
	}
}

// handleNote handles what a script has published about a lease: the number of a new message,
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
		l.recordMessage(last)
	} else if s.claiming > 0 {
		s.earlyNotes[fence] = max(s.earlyNotes[fence], last)
	}
}

// endLease ends a lease. why is the error that its methods return from then on. It returns false
// if the lease was over already.
func (s *leases) endLease(l *lease, why error) bool {
	s.remove(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endReason != nil {
		return false
	}
	l.endReason = why
	l.cached.page = nil
	l.wakeWaiters()
	return true
}

// remove removes a lease from the held ones, if it is one of them.
func (s *leases) remove(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[l.claim.Fence] == l {
		delete(s.held, l.claim.Fence)
		s.heldCounts[l.keys]--
	}
}

// countOf returns how many leases this process holds of a topic's mailboxes.
func (s *leases) countOf(k *topicKeys) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heldCounts[k]
}

// lose ends a lease and tells its holder by closing Lost.
func (s *leases) lose(l *lease, why error) {
	if s.endLease(l, why) {
		close(l.lost)
	}
}

// extendNow starts the next round of extending at once.
func (s *leases) extendNow() {
	select {
	case s.extendAsked <- struct{}{}:
	default: // an extension is already requested, and has not begun
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

// newLease reads one granted lease from the claim script's answer.
func (s *leases) newLease(k *topicKeys, r reply, sent time.Time) *lease {
	c := bus.Claim{Topic: k.name, Key: r.at(0).text(), Fence: r.at(1).number(), Attempts: int(r.at(2).number())}
	first, count := r.at(3).number(), r.at(4).number()
	l := &lease{
		leases: s, keys: k, claim: c, maxHoldEnd: sent.Add(s.maxHold),
		lost: make(chan struct{}), settling: make(chan struct{}, 1),
		term:   grantedTime{sent, min(s.length, s.maxHold)},
		cached: cachedMailbox{lastSeq: first + count - 1},
	}
	// A page that cannot be read is dropped: Mail reads it again and returns the error.
	l.cached.page, _ = r.at(5).messages(c.Key, first)
	return l
}

// nextTerm returns for how long l should be extended by a request that was sent at that time:
// for the lease time, but not beyond MaxHold.
func (s *leases) nextTerm(l *lease, sent time.Time) grantedTime {
	return grantedTime{sent, max(0, min(s.length, l.maxHoldEnd.Sub(sent)))}
}

// giveBack returns to the server leases on which nobody works. These claims do not count as
// attempts.
func (s *leases) giveBack(k *topicKeys, leases []*lease) {
	for _, l := range leases {
		s.endLease(l, bus.ErrFenced)
	}
	s.returnLeases(context.Background(), k, false, leases)
}

// returnLeases returns leases to the server, so that their mailboxes can be claimed at once. counted reports whether
// the claims count as attempts. If the call fails, the leases run out by themselves.
func (s *leases) returnLeases(ctx context.Context, k *topicKeys, counted bool, leases []*lease) {
	args := make([]any, 0, 1+2*len(leases))
	args = append(args, boolArg(counted))
	for _, l := range leases {
		args = append(args, l.claim.Key, l.claim.Fence)
	}
	// The batcher has logged the error.
	_, _ = s.batcher.run(ctx, givebackScript, []string{k.state, k.due, k.leased, k.wake}, args...)
}

// returnAllLeases returns all leases while the bus is being closed. These claims count as
// attempts, because their holders may have begun to work.
func (s *leases) returnAllLeases() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for k, held := range s.byTopic() {
		for _, l := range held {
			s.lose(l, fmt.Errorf("%w: %w", bus.ErrFenced, bus.ErrClosed))
		}
		for some := range slices.Chunk(held, extendAtOnce) {
			s.returnLeases(ctx, k, true, some)
		}
	}
}

// extendAtOnce is how many leases one run of the extend script extends at most.
const extendAtOnce = 200
