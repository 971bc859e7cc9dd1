package shards

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
)

const (
	// askNextAfter is how long a waiting caller waits for the shards that were asked before one more is asked. So if
	// all shards have mail, a process takes from one after another, and not more than it wants from all at once.
	askNextAfter = 500 * time.Microsecond
	// keepAskingFor is how long shards are still asked after the last caller got its leases, because most callers come
	// back at once.
	keepAskingFor = 10 * time.Millisecond
)

// claims holds this process's callers of Claim. For each topic that some wait for, collect asks the shards.
type claims struct {
	shards   []*redisbus.Bus
	counting *counting

	mu     sync.Mutex // guards all fields below, except work
	topics map[bus.Topic]*topicClaims
	ended  bool
	work   sync.WaitGroup
}

// topicClaims are the callers that wait for mail of one topic. claims.mu guards it.
type topicClaims struct {
	topic      bus.Topic
	waiters    []*waiter
	spare      []bus.Lease   // leases that came when nobody waited anymore
	collecting bool          // whether collect runs
	changed    chan struct{} // has a value when a caller has come or left
	next       int           // the shard to ask next
}

// A waiter is a caller who waits for leases.
type waiter struct {
	granted   chan []bus.Lease // gets its leases once, or is closed with the bus
	maxLeases int
}

func newClaims(shards []*redisbus.Bus, counting *counting) *claims {
	return &claims{shards: shards, counting: counting, topics: map[bus.Topic]*topicClaims{}}
}

// Claim implements bus.Bus.
func (c *claims) Claim(ctx context.Context, topic bus.Topic) (bus.Lease, error) {
	leases, err := c.ClaimUpTo(ctx, topic, 1)
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// ClaimUpTo implements bus.GroupClaimer. All leases come from one shard, or from the few that had mail at the same moment.
func (c *claims) ClaimUpTo(ctx context.Context, topic bus.Topic, most int) ([]bus.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{granted: make(chan []bus.Lease, 1), maxLeases: max(1, most)}
	t := c.join(topic, w)
	if t == nil {
		return nil, bus.ErrClosed
	}
	select {
	case leases, open := <-w.granted:
		if !open {
			return nil, bus.ErrClosed
		}
		return leases, nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	t.waiters = slices.DeleteFunc(t.waiters, func(x *waiter) bool { return x == w })
	t.signal()
	c.mu.Unlock()
	select {
	case leases := <-w.granted: // they came before this caller left
		giveBack(leases)
	default:
	}
	return nil, ctx.Err()
}

// join adds a caller; it returns nil if the bus is closed.
func (c *claims) join(topic bus.Topic, w *waiter) *topicClaims {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	t := c.topics[topic]
	if t == nil {
		t = &topicClaims{topic: topic, changed: make(chan struct{}, 1)}
		c.topics[topic] = t
	}
	t.waiters = append(t.waiters, w)
	t.grant(nil)
	if !t.collecting {
		t.collecting = true
		c.work.Go(func() { c.collect(t) })
	}
	t.signal()
	return t
}

// signal makes collect check the callers again.
func (t *topicClaims) signal() {
	select {
	case t.changed <- struct{}{}:
	default: // collect will check them anyway
	}
}

// grant gives leases, and spare ones, to the waiting callers, and keeps the rest. The caller holds claims.mu.
func (t *topicClaims) grant(leases []bus.Lease) {
	t.spare = append(t.spare, leases...)
	for len(t.waiters) > 0 && len(t.spare) > 0 {
		w := t.waiters[0]
		n := min(w.maxLeases, len(t.spare))
		w.granted <- t.spare[:n:n]
		t.waiters, t.spare = t.waiters[1:], t.spare[n:]
	}
	if len(t.spare) == 0 {
		t.spare = nil
	}
}

// wanted returns how many leases the waiting callers want.
func (c *claims) wanted(t *topicClaims) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range t.waiters {
		n += w.maxLeases
	}
	return n
}

// A shardAnswer contains the leases that one shard has granted.
type shardAnswer struct {
	shard  int
	leases []bus.Lease
	err    error
}

// collect asks shards for leases while callers wait, and a moment longer.
func (c *claims) collect(t *topicClaims) {
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { cancel() }()
	asked, answers := map[int]bool{}, make(chan shardAnswer, len(c.shards))
	next, idle := time.NewTimer(0), time.NewTimer(keepAskingFor)
	defer next.Stop()
	defer idle.Stop()
	for waited := true; ; {
		wanted := c.wanted(t)
		var due, over <-chan time.Time
		switch {
		case wanted == 0:
			if waited {
				idle.Reset(keepAskingFor)
			}
			over = idle.C
		case len(asked) < len(c.shards):
			due = next.C
		}
		waited = wanted > 0
		select {
		case <-due:
			c.askNextShard(ctx, t, asked, wanted, answers)
			next.Reset(askNextAfter)
		case a := <-answers:
			delete(asked, a.shard)
			if errors.Is(a.err, bus.ErrClosed) {
				cancel()
				c.endTopic(t, answers, len(asked))
				return
			}
			c.passOn(t, a)
		case <-t.changed:
		case <-over:
			cancel()
			if c.finish(t, answers, len(asked)) {
				return
			}
			ctx, cancel = context.WithCancel(context.Background())
			waited = true
			clear(asked)
			next.Reset(0)
		}
	}
}

// askNextShard asks the next shard that is not being asked.
func (c *claims) askNextShard(ctx context.Context, t *topicClaims, asked map[int]bool, wanted int, answers chan<- shardAnswer) {
	for asked[t.next] {
		t.next = (t.next + 1) % len(c.shards)
	}
	i := t.next
	t.next = (t.next + 1) % len(c.shards)
	asked[i] = true
	c.work.Go(func() {
		leases, err := c.shards[i].ClaimUpTo(ctx, t.topic, wanted)
		answers <- shardAnswer{i, leases, err}
	})
}

// passOn passes the leases that a shard has granted to the waiting callers.
func (c *claims) passOn(t *topicClaims, a shardAnswer) {
	leases := make([]bus.Lease, len(a.leases))
	for i, l := range a.leases {
		leases[i] = &lease{Lease: l, counting: c.counting}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.grant(leases)
}

// finish waits for the shards that were told to stop, and gives back leases that nobody waits for. It returns false
// if a caller has come meanwhile.
func (c *claims) finish(t *topicClaims, answers <-chan shardAnswer, asked int) bool {
	for range asked {
		if a := <-answers; a.err == nil {
			c.passOn(t, a)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(t.waiters) > 0 && !c.ended {
		return false
	}
	giveBack(t.spare)
	t.spare, t.collecting = nil, false
	return true
}

// endTopic ends the claims of a topic once the bus is closed.
func (c *claims) endTopic(t *topicClaims, answers <-chan shardAnswer, asked int) {
	for range asked {
		<-answers
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.endWaiters()
	giveBack(t.spare)
	t.spare, t.collecting = nil, false
}

// endWaiters tells the callers that the bus is closed. The caller holds claims.mu.
func (t *topicClaims) endWaiters() {
	for _, w := range t.waiters {
		close(w.granted)
	}
	t.waiters = nil
}

// giveBack gives back leases that nobody has taken.
func giveBack(leases []bus.Lease) {
	for _, l := range leases {
		l.(*lease).giveBack()
	}
}

// close makes all callers return bus.ErrClosed, and waits until no shard is asked.
func (c *claims) close() {
	c.mu.Lock()
	c.ended = true
	for _, t := range c.topics {
		t.endWaiters()
		t.signal()
	}
	c.mu.Unlock()
	c.work.Wait()
}
