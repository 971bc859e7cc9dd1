// Package cluster finds out which node of a Redis Cluster is the master of a slot.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/master"
)

const (
	askTimeout = time.Second // how long a node may take to answer
	// lateAnswerWait is how long the other nodes are waited for once most have answered.
	lateAnswerWait = 100 * time.Millisecond
	// answersLast is how long an answer is used again. The shards of a bus ask at about the same time.
	answersLast = time.Second
)

// A Cluster asks the nodes of a Redis Cluster. It is shared by the finders of all slots.
type Cluster struct {
	seeds   []string
	options *redis.Options
	asking  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	clients map[string]*redis.Client // by the address of the node
	latest  *round
}

// New returns a Cluster whose first nodes are at these addresses. It uses the options for dialing.
func New(seeds []string, o *redis.Options) *Cluster {
	return &Cluster{seeds: seeds, options: o, clients: map[string]*redis.Client{}}
}

// Close ends the connections to the nodes.
func (c *Cluster) Close() error {
	c.mu.Lock()
	var errs []error
	for _, client := range c.clients {
		if !c.closed {
			errs = append(errs, client.Close())
		}
	}
	c.closed = true
	c.mu.Unlock()
	c.asking.Wait()
	return errors.Join(errs...)
}

// A round holds the answers of the nodes when they were last asked.
type round struct {
	done    chan struct{} // closed when the fields below are set
	at      time.Time
	answers []answer
}

// An answer is the answer of one node.
type answer struct {
	from  string // the node's address
	runID string
	nodes []node
	err   error
}

// self returns the line of the answer about the node itself, or nil if there is none.
func (a *answer) self() *node {
	return a.findNode(func(n *node) bool { return n.hasFlag("myself") })
}

// ownerOf returns the master of a slot; nil if the answer names none.
func (a *answer) ownerOf(slot int) *node {
	return a.findNode(func(n *node) bool { return n.serves(slot) })
}

func (a *answer) findNode(is func(*node) bool) *node {
	for i := range a.nodes {
		if is(&a.nodes[i]) {
			return &a.nodes[i]
		}
	}
	return nil
}

// askNodes returns the answers of the nodes, which may be from a moment ago.
func (c *Cluster) askNodes(ctx context.Context) ([]answer, error) {
	c.mu.Lock()
	r := c.latest
	if c.closed {
		c.mu.Unlock()
		return nil, redis.ErrClosed
	}
	if r == nil || r.isOld() {
		addresses := c.addresses(r)
		r = &round{done: make(chan struct{})}
		c.latest = r
		c.asking.Go(func() { c.askEach(r, addresses) })
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.answers, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *round) isOld() bool {
	select {
	case <-r.done:
		return time.Since(r.at) > answersLast
	default:
		return false
	}
}

// addresses returns the addresses of all nodes that are known after a round. The caller holds c.mu.
func (c *Cluster) addresses(last *round) []string {
	all := slices.Clone(c.seeds)
	if last != nil {
		for _, a := range last.answers {
			for _, n := range a.nodes {
				if !n.hasFlag("noaddr") && !n.hasFlag("handshake") {
					all = append(all, n.address)
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// askEach asks the nodes at these addresses, and ends the round.
func (c *Cluster) askEach(r *round, addresses []string) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	answers := make(chan answer, len(addresses))
	for _, address := range addresses {
		c.asking.Go(func() { answers <- c.askOne(ctx, address) })
	}
	r.answers = collectAnswers(answers, len(addresses))
	r.at = time.Now()
	close(r.done)
}

// collectAnswers waits for n answers, but only a moment longer than for most of them.
func collectAnswers(answers <-chan answer, n int) (got []answer) {
	var enough <-chan time.Time
	for len(got) < n {
		select {
		case a := <-answers:
			got = append(got, a)
		case <-enough:
			return got
		}
		if enough == nil && len(got) > n/2 {
			enough = time.After(lateAnswerWait)
		}
	}
	return got
}

// askOne asks the node at an address.
func (c *Cluster) askOne(ctx context.Context, address string) answer {
	client := c.client(address)
	pipe := client.Pipeline()
	nodes, info := pipe.ClusterNodes(ctx), pipe.Info(ctx, "server")
	if _, err := pipe.Exec(ctx); err != nil {
		return answer{from: address, err: fmt.Errorf("%s: %w", address, err)}
	}
	a := answer{from: address, nodes: readNodes(nodes.Val(), address)}
	for line := range strings.Lines(info.Val()) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "run_id" {
			a.runID = value
		}
	}
	return a
}

// client returns the client of the node at an address.
func (c *Cluster) client(address string) *redis.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	client := c.clients[address]
	if client == nil {
		o := *c.options
		o.Addr, o.PoolSize, o.MaxIdleConns, o.DialTimeout, o.ReadTimeout, o.WriteTimeout = address, 4, 1, askTimeout, askTimeout, askTimeout
		client = redis.NewClient(&o)
		if c.closed {
			_ = client.Close() // its calls then fail
		}
		c.clients[address] = client
	}
	return client
}

// A Finder finds the master of one slot.
type Finder struct {
	cluster *Cluster
	slot    int

	mu     sync.Mutex
	newest int64 // the epoch of the view that was returned last
}

// Finder returns a finder of the master of a slot. Closing it does nothing.
func (c *Cluster) Finder(slot int) *Finder { return &Finder{cluster: c, slot: slot} }

// Close implements master.Finder. It does nothing, because all finders share the Cluster's connections.
func (*Finder) Close() error { return nil }

// View implements master.Finder. It returns the answer of the majority of the masters, because they decide on a
// promotion.
func (f *Finder) View(ctx context.Context) (v master.View, err error) {
	answers, err := f.cluster.askNodes(ctx)
	if err != nil {
		return v, fmt.Errorf("ask the Cluster: %w", err)
	}
	for _, a := range answers {
		if a.err != nil {
			v.Faults = append(v.Faults, a.err.Error())
		}
	}
	owner, by := f.newestOwner(answers)
	if owner == nil {
		return master.View{}, fmt.Errorf("no node of the Cluster says who serves slot %d: %s", f.slot, strings.Join(v.Faults, "; "))
	}
	agree, doubts := f.countVotes(owner, answers)
	most := by.countNodes((*node).isVoter)/2 + 1
	f.mu.Lock()
	defer f.mu.Unlock()
	if agree < most && owner.epoch < f.newest {
		return master.View{}, fmt.Errorf("too few nodes of the Cluster agree on who serves slot %d: %s", f.slot, strings.Join(v.Faults, "; "))
	}
	f.newest = owner.epoch
	v.Master, v.Asked, v.Stable = owner.address, len(answers), agree >= most && !doubts
	v.Replicas = by.countNodes(func(n *node) bool { return n.masterID == owner.id })
	for _, a := range answers {
		if self := a.self(); self != nil && self.id == owner.id {
			v.RunID = a.runID
		}
	}
	return v, nil
}

// newestOwner returns the master of the slot according to the newest answer, and that answer; nil if no answer names
// one.
func (f *Finder) newestOwner(answers []answer) (owner *node, by *answer) {
	for i := range answers {
		if named := answers[i].ownerOf(f.slot); named != nil && (owner == nil || named.epoch > owner.epoch) {
			owner, by = named, &answers[i]
		}
	}
	return owner, by
}

// countVotes returns how many of the masters name that node as the master of the slot, and whether one of them
// considers it down.
func (f *Finder) countVotes(owner *node, answers []answer) (votes int, doubts bool) {
	counted := map[string]bool{} // by node id, because a node may have several addresses
	for i := range answers {
		self, named := answers[i].self(), answers[i].ownerOf(f.slot)
		if self == nil || named == nil || !self.isVoter() || counted[self.id] || named.id != owner.id || named.epoch != owner.epoch {
			continue
		}
		counted[self.id] = true
		votes++
		doubts = doubts || named.hasFlag("fail") || named.hasFlag("fail?")
	}
	return votes, doubts
}

// isVoter reports whether the node is one of the masters that decide.
func (n *node) isVoter() bool { return n.hasFlag("master") && len(n.slots) > 0 }

// countNodes returns how many nodes of the answer match.
func (a *answer) countNodes(match func(*node) bool) (n int) {
	for i := range a.nodes {
		if match(&a.nodes[i]) {
			n++
		}
	}
	return n
}
