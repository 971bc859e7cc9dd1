package redisbus

import (
	"container/list"
	"context"
	"sync"
	"time"

	"parley/bus"
)

// How claims are asked for.
const (
	claimsAtOnce = 64
	pollMost     = time.Second // between looks at a topic that nothing is heard of
)

// claims is where this process waits for mail. Those who wait for a topic stand
// at its desk; while somebody does, the desk either has a call under way or is
// listened for by the one blocking call (see watch).
type claims struct {
	keys keys
	poll time.Duration

	mu     sync.Mutex
	desks  map[bus.Topic]*desk
	closed bool
	rouse  chan struct{} // has a value when watch, which waits for nothing, has something to wait for
	// What the blocking call listens for, until when, and whether it is about to
	// be broken off.
	listening []*desk
	until     time.Time
	nudged    bool

	fetches sync.WaitGroup
}

// A desk is one topic's. All of it is guarded by claims.mu.
type desk struct {
	keys     topicKeys
	waiters  list.List // of chan *lease, each with room for one
	fetching bool      // a call is under way, or about to be made
	again    bool      // there is reason for one more
	watched  bool      // the blocking call listens for it
	look     time.Time // when to look without being told to
	hints    []string  // the mailboxes that are likely to be next
}

func newClaims(k keys, lease time.Duration) *claims {
	return &claims{keys: k, poll: min(pollMost, lease/4), desks: map[bus.Topic]*desk{}, rouse: make(chan struct{}, 1)}
}

// Claim implements bus.Bus. A claim whose answer is lost with the connection
// leaves the mailbox leased to nobody until that lease runs out.
func (b *Bus) Claim(ctx context.Context, topic bus.Topic) (bus.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	grant := make(chan *lease, 1)
	d, place := b.join(topic, grant)
	if d == nil {
		return nil, bus.ErrClosed
	}
	select {
	case l := <-grant:
		if l == nil {
			return nil, bus.ErrClosed
		}
		if ctx.Err() == nil {
			return l, nil
		}
		b.decline(d, l)
	case <-ctx.Done():
		b.claims.mu.Lock()
		d.waiters.Remove(place)
		b.claims.mu.Unlock()
		select {
		case l := <-grant:
			if l != nil {
				b.decline(d, l)
			}
		default:
		}
	}
	return nil, ctx.Err()
}

// decline gives back a lease whose claimer has gone, which does not wait for that.
func (b *Bus) decline(d *desk, l *lease) {
	give := func() { b.giveBack(&d.keys, []*lease{l}) }
	if !b.spawn(give) {
		give() // the bus is being closed, and fails it soon
	}
}

// join lets somebody wait; the desk is nil if the bus is closed.
func (b *Bus) join(topic bus.Topic, grant chan *lease) (*desk, *list.Element) {
	c := b.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil
	}
	d := c.desks[topic]
	if d == nil {
		d = &desk{keys: c.keys.topic(topic)}
		c.desks[topic] = d
	}
	place := d.waiters.PushBack(grant)
	// Where the blocking call listens it hears of all that becomes due; but it
	// does not know of what is due by time before it ends.
	if !d.watched || d.look.Before(c.until) {
		b.fetchSoon(d, "")
	}
	return d, place
}

// fetchSoon sees to it that a call is made, which the mailbox named by hint is
// likely to be the first in. It is called with claims.mu held.
func (b *Bus) fetchSoon(d *desk, hint string) {
	d.again = true
	if hint != "" {
		d.hints = append([]string{hint}, d.hints...)
	}
	if !d.fetching && !b.claims.closed {
		d.fetching = true
		b.claims.fetches.Go(func() { b.fetch(d) })
	}
}

// fetch asks for mail while somebody waits and there is reason to.
func (b *Bus) fetch(d *desk) {
	var retry backoff
	for {
		n, hints := b.wanted(d)
		if n == 0 {
			return
		}
		answer, err := b.ask(d, n, hints)
		if err == nil {
			retry = 0
			b.hand(d, answer)
			continue
		}
		select {
		case <-time.After(retry.next()):
			b.claims.mu.Lock()
			d.again = true
			b.claims.mu.Unlock()
		case <-b.closed:
		}
	}
}

// wanted is how many leases to ask for. If none, the call is not made, and
// whoever still waits is listened for.
func (b *Bus) wanted(d *desk) (n int, hints []string) {
	c := b.claims
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(d.waiters.Len(), claimsAtOnce)
	if n == 0 || !d.again || c.closed {
		d.fetching = false
		if n > 0 && (!d.watched || d.look.Before(c.until)) {
			b.replan()
		}
		return 0, nil
	}
	d.again = false
	hints, d.hints = d.hints, nil
	return n, hints[:min(len(hints), n+1)]
}

// An answer is what a call of the script claim brought.
type answer struct {
	leases []*lease
	look   time.Time // when there is something to do; zero: nothing is waited for
	hints  []string
}

// ask calls the script claim, and enters what it grants among our leases.
func (b *Bus) ask(d *desk, n int, hints []string) (answer, error) {
	k := &d.keys
	keys := append(make([]string, 0, 8+len(hints)), b.keys.clock(), b.keys.contact(), k.pause, k.state, k.due, k.leased, k.wake, k.heads)
	args := append(make([]any, 0, 4+len(hints)), b.self, n, b.leases.time.Microseconds(), b.leases.maxHold.Microseconds())
	for _, key := range hints {
		keys, args = append(keys, k.mail(key)), append(args, key)
	}
	b.leases.expect()
	sent := time.Now()
	r, err := b.courier.run(context.Background(), claimScript, keys, args...)
	a := answer{}
	for _, v := range r.at(1).list() {
		a.leases = append(a.leases, b.newLease(d, reply{v}, sent))
	}
	b.leases.enter(a.leases)
	if err != nil {
		return a, err
	}
	if us := r.at(0).number(); us >= 0 {
		a.look = time.Now().Add(time.Duration(us) * time.Microsecond)
	}
	for _, v := range r.at(2).list() {
		a.hints = append(a.hints, reply{v}.text())
	}
	return a, nil
}

// hand gives leases to those who wait, in the order in which they came.
func (b *Bus) hand(d *desk, a answer) {
	if rest := b.claims.hand(d, a); len(rest) > 0 {
		b.giveBack(&d.keys, rest)
	}
}

func (c *claims) hand(d *desk, a answer) (rest []*lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d.waiters.Len() > 0 && len(a.leases) > 0 {
		d.waiters.Remove(d.waiters.Front()).(chan *lease) <- a.leases[0]
		a.leases = a.leases[1:]
	}
	now := time.Now()
	d.look = now.Add(c.poll)
	if !a.look.IsZero() && a.look.Before(d.look) {
		d.look = a.look
	}
	if !d.look.After(now) {
		d.again = true
	}
	if d.hints == nil {
		d.hints = a.hints
	}
	return a.leases
}

// giveBack returns leases that nobody works on, as if they had not been claimed.
func (b *Bus) giveBack(k *topicKeys, leases []*lease) {
	for _, l := range leases {
		b.leases.end(l, bus.ErrFenced)
	}
	b.tellReturned(context.Background(), k, false, leases)
}

// tellReturned tells the server. If that fails the leases run out by themselves.
func (b *Bus) tellReturned(ctx context.Context, k *topicKeys, counted bool, leases []*lease) {
	args := make([]any, 0, 1+2*len(leases))
	args = append(args, flag(counted))
	for _, l := range leases {
		args = append(args, l.claim.Key, l.claim.Fence)
	}
	// The courier has logged the error.
	_, _ = b.courier.run(ctx, givebackScript, []string{k.state, k.due, k.leased, k.wake}, args...)
}

func (c *claims) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, d := range c.desks {
		for w := d.waiters.Front(); w != nil; w = w.Next() {
			close(w.Value.(chan *lease))
		}
		d.waiters.Init()
	}
}
