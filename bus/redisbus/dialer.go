package redisbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/sentinel"
)

// A dialer connects to the server: to the one at an address, or to the master that Sentinels name.
type dialer struct {
	options        *redis.Options
	finder         *sentinel.Finder // nil without Sentinels
	replicasNeeded int              // how many replicas have to confirm what is written

	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	hungUp <-chan struct{} // closed when nothing may be dialed anymore; may be nil

	mu        sync.Mutex
	open      map[*trackedConn]bool
	master    string    // the one that was dialed last, if there are Sentinels
	closedAll time.Time // when all connections were last closed
}

// newDialer parses the address in c. Its errors do not repeat the address, which may contain
// passwords.
func newDialer(c Config) (*dialer, error) {
	d := &dialer{hungUp: c.hungUp, open: map[*trackedConn]bool{}}
	plain, named, isNamed := c.URL, sentinel.Address{}, sentinel.Is(c.URL)
	scheme, _, _ := strings.Cut(c.URL, "://")
	switch {
	case strings.HasSuffix(scheme, "+cluster"):
		return nil, fmt.Errorf("%w: %s", ErrUnfit, textCluster)
	case isNamed:
		var err error
		if named, err = sentinel.Parse(c.URL); err != nil {
			return nil, fmt.Errorf("address of redis: %w", err)
		}
		plain = named.Redis
	}
	o, err := redis.ParseURL(plain)
	if err != nil {
		if malformed, ok := errors.AsType[*url.Error](err); ok {
			err = malformed.Err
		}
		return nil, fmt.Errorf("address of redis: %w", err)
	}
	setOptions(o)
	if o.TLSConfig != nil && isNamed {
		o.TLSConfig.ServerName = named.ServerName // if it is "", the name must be that of the host that is dialed
	}
	d.dial = c.dial
	if d.dial == nil {
		d.dial = redis.NewDialer(o)
	}
	d.options = o
	if isNamed {
		asking := *o
		asking.Dialer = d.dial
		d.finder, d.replicasNeeded = sentinel.NewFinder(named, &asking), named.Copies
		o.OnConnect = checkMaster
	}
	o.Dialer = d.dialRetrying
	return d, nil
}

// setOptions sets the options of the client that the bus does not leave open. The client must not retry:
// only the bus knows which script may run twice.
func setOptions(o *redis.Options) {
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = dialTimeout
	o.ReadTimeout = callTimeout
	o.WriteTimeout = callTimeout
	o.ContextTimeoutEnabled = true
	o.PoolSize = poolSize
	o.PipelinePoolSize = -1 // one pool is enough
}

// close closes the connections to the Sentinels.
func (d *dialer) close() error {
	if d.finder == nil {
		return nil
	}
	return d.finder.Close()
}

// checkMaster refuses a server that has become a replica, although the Sentinels still name it.
func checkMaster(ctx context.Context, c *redis.Conn) error {
	role, err := c.Do(ctx, "role").Slice()
	if err != nil && !isServerAnswer(err) {
		return err
	}
	if name := (reply{role}).at(0).text(); name != "" && name != "master" { // "": this user may not ask
		return errNotMaster
	}
	return nil
}

var errNotMaster = errors.New("the server that the Sentinels name is not the master yet")

// dialRetrying dials until it succeeds or dialTimeout is over, so that a restarted server, or
// another master, is found as soon as it listens. It sets the deadline itself, because the client's
// background dials have none.
func (d *dialer) dialRetrying(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var retry backoff
	for {
		conn, err := d.dialOnce(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(min(retry.next(), dialRetry)):
		case <-ctx.Done():
			return nil, err
		case <-d.hungUp:
			return nil, err
		}
	}
}

// dialOnce dials the server, or asks the Sentinels for it first.
func (d *dialer) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	if d.finder != nil {
		view, err := d.finder.View(ctx)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err} // nothing was sent; see mayHaveRun
		}
		address = view.Master
		d.switchMaster(address)
	}
	conn, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return d.track(conn, address), nil
}

// A trackedConn is an open connection that the dialer can close.
type trackedConn struct {
	net.Conn
	dialer  *dialer
	address string
}

// Close closes the connection.
func (c *trackedConn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// A trackedSocket is a trackedConn that lets the client see whether the server has closed it.
type trackedSocket struct {
	*trackedConn
	syscall.Conn
}

func (d *dialer) track(conn net.Conn, address string) net.Conn {
	tracked := &trackedConn{Conn: conn, dialer: d, address: address}
	d.mu.Lock()
	d.open[tracked] = true
	d.mu.Unlock()
	if socket, ok := conn.(syscall.Conn); ok {
		return trackedSocket{tracked, socket}
	}
	return tracked
}

// switchMaster records which server is the master, and closes the connections to all others. It returns true if
// the master has changed.
func (d *dialer) switchMaster(master string) (changed bool) {
	d.mu.Lock()
	changed, d.master = d.master != master, master
	d.mu.Unlock()
	d.hangUpWhere(func(address string) bool { return address != master })
	return changed
}

// closeAllEvery is how often all connections may be closed because the server accepts no writes.
const closeAllEvery = time.Second

// leaveReplica closes all connections after the server said that it is a replica: new ones may reach the
// master at the same address, or at the one that the Sentinels name. It does this at most once in
// closeAllEvery.
func (d *dialer) leaveReplica() {
	d.mu.Lock()
	soon := time.Since(d.closedAll) < closeAllEvery
	if !soon {
		d.closedAll = time.Now()
	}
	d.mu.Unlock()
	if !soon {
		d.hangUpWhere(func(string) bool { return true })
	}
}

// hangUpWhere closes the connections to the addresses for which match returns true.
func (d *dialer) hangUpWhere(match func(address string) bool) {
	d.mu.Lock()
	var those []*trackedConn
	for c := range d.open {
		if match(c.address) {
			those = append(those, c)
		}
	}
	d.mu.Unlock()
	for _, c := range those {
		_ = c.Close() // whoever uses the connection gets the error
	}
}
