package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
)

// maxBackoff is the longest wait before the next attempt to connect to a server, after failed attempts or lost
// connections.
const maxBackoff = time.Minute

// A connectionKey identifies a connection by its server and its session. The session is "" if all sessions
// share the connection.
type connectionKey struct{ server, session string }

// A failureStreak records how many times in a row connecting to a server has failed, or the
// connection was lost, and when the next attempt may be made.
type failureStreak struct {
	count      int
	retryAfter time.Time
}

// A pool keeps the connections to servers, one for each key, and closes those that are idle.
type pool struct {
	*Servers

	mu       sync.Mutex
	open     map[connectionKey]*connection
	opening  map[connectionKey]chan struct{} // closed once the attempt to connect has ended
	failing  map[connectionKey]failureStreak
	closing  bool
	leaving  sync.WaitGroup // connections that are being opened or closed
	programs int            // how many programs are running or being started
	services int
}

func newPool(s *Servers) *pool {
	return &pool{Servers: s, open: map[connectionKey]*connection{}, opening: map[connectionKey]chan struct{}{}, failing: map[connectionKey]failureStreak{}}
}

// keyOf returns the key of the connection that a call uses.
func keyOf(one *server, call tools.Call) connectionKey {
	if one.Shared {
		return connectionKey{one.Name, ""}
	}
	return connectionKey{one.Name, call.Session}
}

// acquire returns the connection for a call, and opens one if there is none. The caller returns it
// with release.
func (p *pool) acquire(ctx context.Context, one *server, call tools.Call) (*connection, error) {
	k := keyOf(one, call)
	for {
		c, wait, err := p.reserve(one, k)
		if c != nil || err != nil {
			return c, err
		}
		if wait == nil {
			return p.openNew(ctx, one, k, call)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reserve returns the existing connection, or a channel to wait for while another caller connects.
// If it returns neither, the caller has to connect.
func (p *pool) reserve(one *server, k connectionKey) (*connection, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.open[k]; c != nil {
		if !c.isDead() {
			c.calls++
			if c.idle != nil {
				c.idle.Stop()
			}
			return c, nil, nil
		}
		p.drop(k, c)
		p.recordFailure(k)
	}
	if wait := p.opening[k]; wait != nil {
		return nil, wait, nil
	}
	if p.closing {
		return nil, nil, errClosing
	}
	if f := p.failing[k]; time.Now().Before(f.retryAfter) {
		return nil, nil, fmt.Errorf("it failed %d times in a row, and is tried again in %s", f.count, time.Until(f.retryAfter).Round(100*time.Millisecond))
	}
	if err := p.makeRoom(one); err != nil {
		return nil, nil, err
	}
	p.opening[k] = make(chan struct{})
	*p.counter(one) += 1
	p.leaving.Add(1)
	return nil, nil, nil
}

// counter returns a pointer to the number of connections of the server's kind: programs or
// services.
func (p *pool) counter(one *server) *int {
	if one.Web() {
		return &p.services
	}
	return &p.programs
}

// makeRoom makes room for one more connection: if the limit is reached, it closes the connection of
// the same kind that has been idle the longest. It returns an error if none is idle.
func (p *pool) makeRoom(one *server) error {
	most, what := p.cfg.Limits.Programs, "programs"
	if one.Web() {
		most, what = p.cfg.Limits.Services, "connections"
	}
	if *p.counter(one) < most {
		return nil
	}
	var oldest connectionKey
	var found *connection
	for k, c := range p.open {
		if c.calls == 0 && c.server.Web() == one.Web() && (found == nil || c.idleSince.Before(found.idleSince)) {
			oldest, found = k, c
		}
	}
	if found == nil {
		return fmt.Errorf("%d %s of MCP servers are at work here, the most there may be: try again later", most, what)
	}
	p.drop(oldest, found)
	return nil
}

// openNew connects for a call and adds the connection to the pool.
func (p *pool) openNew(ctx context.Context, one *server, k connectionKey, call tools.Call) (*connection, error) {
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
		*p.counter(one)--
		if ctx.Err() == nil {
			p.recordFailure(k)
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

// connectFor connects to a server in the place where the commands of the call's session run, and
// records whether that worked.
func (p *pool) connectFor(ctx context.Context, one *server, call tools.Call) (*connection, error) {
	var place sandbox.Place
	if !one.Web() && !one.Shared {
		var err error
		if place, err = p.cfg.Place(ctx, call); err != nil {
			return nil, err
		}
	}
	c, err := p.connect(ctx, one, place, call.HeldAt)
	if ctx.Err() != nil {
		return c, err
	}
	p.recordOutcome(ctx, one, err)
	if err != nil {
		one.requestLook() // watchTools tries the server until it is back
	}
	return c, err
}

// A callEnd says in which state a call has left its connection.
type callEnd int

const (
	connectionUsable    callEnd = iota
	connectionBroken            // it isn't used again, and for a while calls fail without an attempt to connect
	connectionForgotten         // it isn't used again, and the next call connects at once
)

// release returns a connection after a call.
func (p *pool) release(c *connection, call tools.Call, end callEnd) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := keyOf(c.server, call)
	c.calls--
	c.idleSince = time.Now()
	switch {
	case p.open[k] != c: // already dropped
		p.endUnused(c)
	case end == connectionForgotten:
		p.drop(k, c)
	case end == connectionBroken || c.isDead():
		p.drop(k, c)
		p.recordFailure(k)
	default:
		delete(p.failing, k)
		if c.calls == 0 {
			c.idle = time.AfterFunc(p.cfg.Limits.Idle, func() { p.expire(k, c) })
		}
	}
}

// expire closes a connection that has been idle for Limits.Idle.
func (p *pool) expire(k connectionKey, c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[k] == c && c.calls == 0 && time.Since(c.idleSince) >= p.cfg.Limits.Idle {
		p.drop(k, c)
	}
}

// drop takes a connection out of the pool, so that no further call uses it. Calls that are already
// using it continue.
func (p *pool) drop(k connectionKey, c *connection) {
	delete(p.open, k)
	p.endUnused(c)
}

// endUnused closes a dropped connection once no call uses it.
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
		*p.counter(c.server)--
	})
}

// recordFailure counts a failure to connect, or a lost connection, and sets a time before which no
// further attempt is made.
func (p *pool) recordFailure(k connectionKey) {
	for old, f := range p.failing { // drop entries of sessions that are gone
		if time.Since(f.retryAfter) > 10*maxBackoff {
			delete(p.failing, old)
		}
	}
	f := p.failing[k]
	f.retryAfter = time.Now().Add(min(p.cfg.Limits.Backoff<<min(f.count, 20), maxBackoff))
	f.count++
	p.failing[k] = f
}

// clearFailures lets the next call try a server at once, no matter how often it has failed.
func (p *pool) clearFailures(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.failing {
		if k.server == server {
			delete(p.failing, k)
		}
	}
}

// closeAll closes all connections, and waits until nothing is left of them.
func (p *pool) closeAll() {
	p.mu.Lock()
	p.closing = true
	for k, c := range p.open {
		c.calls = 0 // calls that are still running are cut off
		p.drop(k, c)
	}
	p.mu.Unlock()
	p.leaving.Wait()
}
