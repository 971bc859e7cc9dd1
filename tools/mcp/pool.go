package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
)

// longestBackoff is the longest time for which nothing is tried after failures.
const longestBackoff = time.Minute

// A key names a connection: a server's, for a session or, with "", for all.
type key struct{ server, session string }

// A failing is how often connecting has failed, or the connection was lost.
type failing struct {
	times int
	until time.Time
}

// A pool keeps the connections: one for each key, ended when it is idle.
type pool struct {
	*Servers

	mu       sync.Mutex
	open     map[key]*connection
	opening  map[key]chan struct{} // closed once that is over
	failing  map[key]failing
	closing  bool
	leaving  sync.WaitGroup // what is being ended
	programs int            // that run or are being started
	services int
}

func newPool(s *Servers) *pool {
	return &pool{Servers: s, open: map[key]*connection{}, opening: map[key]chan struct{}{}, failing: map[key]failing{}}
}

func keyOf(one *server, call tools.Call) key {
	if one.Shared {
		return key{one.Name, ""}
	}
	return key{one.Name, call.Session}
}

// take gives a call its connection, which it makes if there is none. It is given back with
// give.
func (p *pool) take(ctx context.Context, one *server, call tools.Call) (*connection, error) {
	k := keyOf(one, call)
	for {
		c, wait, err := p.reserve(one, k)
		if c != nil || err != nil {
			return c, err
		}
		if wait == nil {
			return p.make(ctx, one, k, call)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reserve gives the connection that there is, or what to wait for; with neither it is the
// caller's to make.
func (p *pool) reserve(one *server, k key) (*connection, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.open[k]; c != nil {
		if !c.dead() {
			c.calls++
			if c.idle != nil {
				c.idle.Stop()
			}
			return c, nil, nil
		}
		p.drop(k, c)
		p.fail(k)
	}
	if wait := p.opening[k]; wait != nil {
		return nil, wait, nil
	}
	if p.closing {
		return nil, nil, errClosing
	}
	if f := p.failing[k]; time.Now().Before(f.until) {
		return nil, nil, fmt.Errorf("it failed %d times in a row, and is tried again in %s", f.times, time.Until(f.until).Round(100*time.Millisecond))
	}
	if err := p.room(one); err != nil {
		return nil, nil, err
	}
	p.opening[k] = make(chan struct{})
	*p.count(one) += 1
	p.leaving.Add(1)
	return nil, nil, nil
}

func (p *pool) count(one *server) *int {
	if one.Web() {
		return &p.services
	}
	return &p.programs
}

// room makes room for one more connection: it ends the one that is idle for longest.
func (p *pool) room(one *server) error {
	most, what := p.cfg.Limits.Programs, "programs"
	if one.Web() {
		most, what = p.cfg.Limits.Services, "connections"
	}
	if *p.count(one) < most {
		return nil
	}
	var oldest key
	var found *connection
	for k, c := range p.open {
		if c.calls == 0 && c.one.Web() == one.Web() && (found == nil || c.since.Before(found.since)) {
			oldest, found = k, c
		}
	}
	if found == nil {
		return fmt.Errorf("%d %s of MCP servers are at work here, the most there may be: try again later", most, what)
	}
	p.drop(oldest, found)
	return nil
}

// make connects for a call.
func (p *pool) make(ctx context.Context, one *server, k key, call tools.Call) (*connection, error) {
	defer p.leaving.Done()
	c, err := p.connectFor(ctx, one, call)
	if err == nil {
		if err = p.observe(ctx, one, c.tools); err != nil {
			c.close()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.opening[k])
	delete(p.opening, k)
	if err != nil {
		*p.count(one)--
		if ctx.Err() == nil {
			p.fail(k)
		}
		return nil, err
	}
	c.calls = 1
	p.open[k] = c
	if p.closing {
		p.drop(k, c)
		return nil, errClosing
	}
	return c, nil
}

func (p *pool) connectFor(ctx context.Context, one *server, call tools.Call) (*connection, error) {
	var place sandbox.Place
	if !one.Web() && !one.Shared {
		var err error
		if place, err = p.cfg.Place(ctx, call); err != nil {
			return nil, err
		}
	}
	c, err := p.connect(ctx, one, place, call.Held)
	if ctx.Err() != nil {
		return c, err
	}
	p.stand(ctx, one, err)
	if err != nil {
		one.lookAgain() // until it is back
	}
	return c, err
}

// give takes a connection back after a call. One that is broken is not used again.
func (p *pool) give(c *connection, call tools.Call, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := keyOf(c.one, call)
	c.calls--
	c.since = time.Now()
	switch {
	case p.open[k] != c: // dropped already
		p.endUnused(c)
	case broken || c.dead():
		p.drop(k, c)
		p.fail(k)
	default:
		delete(p.failing, k)
		if c.calls == 0 {
			c.idle = time.AfterFunc(p.cfg.Limits.Idle, func() { p.expire(k, c) })
		}
	}
}

// expire ends a connection that was idle for long.
func (p *pool) expire(k key, c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[k] == c && c.calls == 0 && time.Since(c.since) >= p.cfg.Limits.Idle {
		p.drop(k, c)
	}
}

// drop has a connection used by no further call. Calls that use it go on.
func (p *pool) drop(k key, c *connection) {
	delete(p.open, k)
	p.endUnused(c)
}

// endUnused ends a connection that was dropped, once no call uses it.
func (p *pool) endUnused(c *connection) {
	if c.calls > 0 || c.ending {
		return
	}
	c.ending = true
	if c.idle != nil {
		c.idle.Stop()
	}
	p.leaving.Go(func() {
		c.close()
		p.mu.Lock()
		defer p.mu.Unlock()
		*p.count(c.one)--
	})
}

// fail notes a failure: for a while, nothing is tried.
func (p *pool) fail(k key) {
	for old, f := range p.failing { // those of sessions that are gone
		if time.Since(f.until) > 10*longestBackoff {
			delete(p.failing, old)
		}
	}
	f := p.failing[k]
	f.until = time.Now().Add(min(p.cfg.Limits.Backoff<<min(f.times, 20), longestBackoff))
	f.times++
	p.failing[k] = f
}

// forgive has a server tried at once, however often it has failed.
func (p *pool) forgive(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.failing {
		if k.server == server {
			delete(p.failing, k)
		}
	}
}

// closeAll ends all connections, and waits until nothing is left of them.
func (p *pool) closeAll() {
	p.mu.Lock()
	p.closing = true
	for k, c := range p.open {
		c.calls = 0 // whoever still calls is cut off
		p.drop(k, c)
	}
	p.mu.Unlock()
	p.leaving.Wait()
}
