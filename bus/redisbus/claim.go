package redisbus

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

const (
	claimsAtOnce = 64 // the most leases that one run of the claim script grants
	// maxPollInterval is the longest time between two runs of the claim script for a topic for which
	// somebody waits. It is needed because a wake-up token from Redis may be lost with a connection. What else
	// may be lost is not waited for any longer either.
	maxPollInterval = time.Second
)

// claims queues this process's callers of Claim, one queue for each topic. For a topic with
// waiting callers, either the claim script is being run (see fetch), or the blocking call to Redis
// listens for its mail (see listenForMail).
type claims struct {
	*connection
	leases    *leases
	poll      time.Duration
	subscribe func(channel string) // has this process listen to a channel

	mu         sync.Mutex // guards all fields below, except fetches
	queues     map[bus.Topic]*waitQueue
	ended      bool          // whether the bus is closed, so nobody may join a queue
	waiterCame chan struct{} // has a value when the first waiter comes and listenForMail has to begin

	listening    []*waitQueue // the queues that the blocking call listens for
	listensUntil time.Time    // when that blocking call ends by itself
	nudged       bool         // whether that blocking call was asked to end earlier

	fetches sync.WaitGroup // the goroutines that run fetch
}

// A waitQueue holds the waiting callers of one topic. claims.mu guards all of it.
type waitQueue struct {
	keys        topicKeys
	waiters     list.List // a list of *waiter
	wanted      int       // how many leases all waiters want in total
	fetching    bool      // whether a goroutine runs fetch
	mayHaveMail bool      // whether fetch has to run the script again, because there may be mail
	watched     bool      // whether the blocking call listens for the topic's mail
	nextLook    time.Time // when to run the script even if no token came; see listenForMail
	// hints are the mailboxes that the script will probably grant next. Redis demands that
	// every key is declared before a script runs, so the script can return the messages of a
	// mailbox only if its caller guessed that mailbox.
	hints []string

	offers    []offer // the mailboxes that are offered to this process, the oldest first
	declining bool    // whether declineIfBusy waits
	load      fleetLoad
}

// A waiter is a caller who waits for leases.
type waiter struct {
	granted   chan []*lease // gets its leases once; has room for them
	maxLeases int           // the most leases that it takes
	queued    bool          // whether it is in its topic's queue
}

func newClaims(c *connection, l *leases, subscribe func(channel string)) *claims {
	return &claims{connection: c, leases: l, subscribe: subscribe, poll: min(maxPollInterval, l.length/4), queues: map[bus.Topic]*waitQueue{}, waiterCame: make(chan struct{}, 1)}
}

// Claim implements bus.Bus: it joins the topic's queue, runs the claim script or has it run, and
// waits. A claim whose answer is lost with the connection leaves the mailbox leased to nobody until
// that lease runs out.
func (c *claims) Claim(ctx context.Context, topic bus.Topic) (bus.Lease, error) {
	leases, err := c.ClaimUpTo(ctx, topic, 1)
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// ClaimUpTo implements bus.GroupClaimer: it works like Claim, and returns at least one lease.
func (c *claims) ClaimUpTo(ctx context.Context, topic bus.Topic, most int) ([]bus.Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := &waiter{granted: make(chan []*lease, 1), maxLeases: max(1, most)}
	q, place := c.join(topic, w)
	if q == nil {
		return nil, bus.ErrClosed
	}
	select {
	case leases := <-w.granted:
		if leases == nil {
			return nil, bus.ErrClosed
		}
		if ctx.Err() == nil {
			given := make([]bus.Lease, len(leases))
			for i, l := range leases {
				given[i] = l
			}
			return given, nil
		}
		c.giveBack(q, leases)
	case <-ctx.Done():
		// Leases may have been granted before this caller left the queue.
		c.leave(q, place)
		select {
		case leases := <-w.granted:
			if leases != nil {
				c.giveBack(q, leases)
			}
		default:
		}
	}
	return nil, ctx.Err()
}

// giveBack returns leases to the server, in the background, if their caller no longer waits.
func (c *claims) giveBack(q *waitQueue, leases []*lease) {
	c.spawnOrRun(func() { c.leases.giveBack(&q.keys, leases) })
}

// join adds a caller to its topic's queue; the queue is nil if the bus is closed.
func (c *claims) join(topic bus.Topic, w *waiter) (*waitQueue, *list.Element) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, nil
	}
	q := c.queues[topic]
	if q == nil {
		q = &waitQueue{keys: c.keys.topic(topic)}
		c.queues[topic] = q
		c.listenAsClaimer(&q.keys)
	}
	place := q.waiters.PushBack(w)
	w.queued = true
	q.wanted += w.maxLeases
	// When mail comes, the blocking call gets a token. But a mailbox that becomes due by
	// time before that call ends brings no token, so the script must run.
	if !q.watched || q.nextLook.Before(c.listensUntil) || len(q.offers) > 0 {
		c.fetchSoon(q, "")
	}
	return q, place
}

// leave removes a caller from its topic's queue, if it is there still.
func (c *claims) leave(q *waitQueue, place *list.Element) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if place.Value.(*waiter).queued {
		q.take(place)
	}
}

// take removes a waiter from the queue. The caller holds claims.mu.
func (q *waitQueue) take(place *list.Element) *waiter {
	w := q.waiters.Remove(place).(*waiter)
	w.queued = false
	q.wanted -= w.maxLeases
	return w
}

// fetchSoon starts a run of the claim script. hint names the mailbox that it will probably
// grant, so that its messages can come with the answer. The caller holds claims.mu.
func (c *claims) fetchSoon(q *waitQueue, hint string) {
	q.mayHaveMail = true
	if hint != "" {
		q.hints = append([]string{hint}, q.hints...)
	}
	if !q.fetching && !c.ended {
		q.fetching = true
		c.fetches.Go(func() { c.fetch(q) })
	}
}

// fetch runs the claim script while callers wait and there may be mail.
func (c *claims) fetch(q *waitQueue) {
	var retry backoff
	for {
		n, offers, hints := c.neededLeases(q)
		if n == 0 {
			return
		}
		answer, err := c.runClaim(q, n, offers, hints)
		if err == nil {
			retry = 0
			c.distribute(q, answer)
			continue
		}
		select {
		case <-time.After(retry.next()):
			c.mu.Lock()
			q.keepOffers(offers, func(string) bool { return true })
			q.mayHaveMail = true
			c.mu.Unlock()
		case <-c.closed:
		}
	}
}

// neededLeases returns how many leases to ask for, for all callers, the offers and the hints. If it
// returns 0, fetch ends, and the blocking call listens for the callers that still wait.
func (c *claims) neededLeases(q *waitQueue) (n int, offers []offer, hints []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(q.wanted, claimsAtOnce)
	if n == 0 || !q.mayHaveMail || c.ended {
		q.fetching = false
		if n > 0 && (!q.watched || q.nextLook.Before(c.listensUntil)) {
			c.replan()
		}
		return 0, nil, nil
	}
	offers = q.takeOffers(n)
	q.mayHaveMail = len(q.offers) > 0
	hints, q.hints = q.hints, nil
	return n, offers, hints[:min(len(hints), n+1)]
}

// A claimResult is the result of a run of the claim script.
type claimResult struct {
	leases   []*lease
	nextLook time.Time // when the script should run again, because a mailbox becomes due or a lease ends; zero if neither will
	hints    []string  // the mailboxes that will be granted next
	offers   []offer   // the offers with which the script was called
	load     fleetLoad
}

// runClaim runs the claim script. It registers the granted leases in c.leases before any
// caller gets them, because a note about a lease may arrive before the script's answer.
func (c *claims) runClaim(q *waitQueue, n int, offers []offer, hints []string) (claimResult, error) {
	k := &q.keys
	named := make([]string, 0, len(offers)+len(hints))
	for _, o := range offers {
		named = append(named, o.key)
	}
	named = append(named, hints...)
	keys := append(make([]string, 0, 8+len(named)), c.keys.clock(), c.keys.contact(), k.pause, k.state, k.due, k.leased, k.wake, k.heads)
	args := append(make([]any, 0, 6+len(named)), c.self, n, c.leases.length.Microseconds(), c.leases.maxHold.Microseconds(), k.claimers(), len(offers))
	for _, key := range named {
		keys, args = append(keys, k.mail(key)), append(args, key)
	}
	c.leases.beginClaim()
	sent := time.Now() // the lease times are counted from here, because the server grants them later
	r, err := c.batcher.run(context.Background(), claimScript, keys, args...)
	a := claimResult{}
	for _, v := range r.at(1).list() {
		a.leases = append(a.leases, c.leases.newLease(&q.keys, reply{v}, sent))
	}
	c.leases.endClaim(a.leases)
	if err != nil {
		if len(a.leases) > 0 { // the leases may be lost with the master, so no caller should begin to work
			c.leases.giveBack(&q.keys, a.leases)
		}
		return a, err
	}
	if us := r.at(0).number(); us >= 0 {
		a.nextLook = time.Now().Add(time.Duration(us) * time.Microsecond)
	}
	for _, v := range r.at(2).list() {
		a.hints = append(a.hints, reply{v}.text())
	}
	a.offers = offers
	a.load = fleetLoad{leased: r.at(3).number(), processes: r.at(4).number()}
	return a, nil
}

// distribute gives leases to the waiting callers, in the order in which they came, and returns leases
// that nobody waits for anymore to the server.
func (c *claims) distribute(q *waitQueue, a claimResult) {
	if rest := c.grant(q, a); len(rest) > 0 {
		c.leases.giveBack(&q.keys, rest)
	}
}

// grant gives leases to the waiting callers, and returns the rest.
func (c *claims) grant(q *waitQueue, a claimResult) (rest []*lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for q.waiters.Len() > 0 && len(a.leases) > 0 {
		w := q.take(q.waiters.Front())
		n := min(w.maxLeases, len(a.leases))
		w.granted <- a.leases[:n:n]
		a.leases = a.leases[n:]
	}
	now := time.Now()
	q.nextLook = now.Add(c.poll)
	if !a.nextLook.IsZero() && a.nextLook.Before(q.nextLook) {
		q.nextLook = a.nextLook
	}
	if !q.nextLook.After(now) {
		q.mayHaveMail = true
	}
	isNext := func(key string) bool { return slices.Contains(a.hints, key) }
	q.keepOffers(a.offers, isNext)
	if q.hints == nil {
		q.hints = slices.DeleteFunc(a.hints, q.isOffered)
	}
	q.load = a.load
	return a.leases
}

// close makes all waiting callers of Claim return bus.ErrClosed, and declines what is offered to this process.
func (c *claims) close() {
	c.mu.Lock()
	c.ended = true
	offered := map[bus.Topic][]string{}
	for topic, q := range c.queues {
		offered[topic] = q.dropOffers()
		for q.waiters.Len() > 0 {
			close(q.take(q.waiters.Front()).granted)
		}
	}
	c.mu.Unlock()
	for topic, keys := range offered {
		c.decline(topic, keys...)
	}
}

// replan ends the blocking call early, so that planListening runs with the present waiters.
// It pushes a token on this process's own nudge list, to which the call listens too. The
// caller holds claims.mu.
func (c *claims) replan() {
	switch {
	case len(c.listening) == 0:
		select {
		case c.waiterCame <- struct{}{}:
		default: // listenForMail is already signalled
		}
	case !c.nudged:
		c.nudged = true
		c.spawn(func() {
			// If this fails, the call ends by itself within maxPollInterval.
			_, _ = c.batcher.run(context.Background(), nudgeScript, []string{c.keys.nudge(c.self)})
		})
	}
}
