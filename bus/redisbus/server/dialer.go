package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/cluster"
	"parley/bus/redisbus/master"
	"parley/bus/redisbus/sentinel"
)

// Options say which server a Dialer reaches, and how.
type Options struct {
	// URL is redis://, rediss:// or unix:// in the form that redis-cli takes, or an address with Sentinels
	// or of a Cluster (see sentinel.Parse and cluster.Parse).
	URL string
	// Tag is the hash tag of the keys that are wanted, which says which node of a Cluster has them. Cluster is that
	// Cluster, if several dialers share it; if it is nil, the Dialer makes its own.
	Tag     string
	Cluster *cluster.Cluster

	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // dials in place of the client; nil otherwise
	HungUp <-chan struct{}                                                      // closed when nothing may be dialed anymore; may be nil
}

// A Dialer connects to the server: to the one at an address, or to the master that a Finder names.
type Dialer struct {
	Options        *redis.Options
	Finder         master.Finder // nil if the address names one server
	ReplicasNeeded int           // how many replicas have to confirm what is written

	clustered  bool
	ownCluster *cluster.Cluster // set if this Dialer has to close it; nil if it is shared
	dial       func(ctx context.Context, network, address string) (net.Conn, error)
	hungUp     <-chan struct{}

	mu        sync.Mutex
	open      map[*trackedConn]bool
	master    string    // the master that was dialed last, if there is a Finder
	closedAll time.Time // when all connections were last closed
}

// NewDialer parses the address. Its errors do not repeat the address, which may contain passwords.
func NewDialer(from Options) (*Dialer, error) {
	redis.SetLogger(discardLogger{}) // its messages are returned as errors, too
	d := &Dialer{hungUp: from.HungUp, open: map[*trackedConn]bool{}}
	switch {
	case sentinel.Is(from.URL):
		a, err := sentinel.Parse(from.URL)
		if err != nil {
			return nil, wrapAddressError(err)
		}
		asking, err := d.prepareOptions(from, &a.Address)
		if err != nil {
			return nil, err
		}
		d.Finder = sentinel.NewFinder(a, asking)
	case cluster.Is(from.URL):
		of := from.Cluster
		a, err := cluster.Parse(from.URL)
		if err != nil {
			return nil, wrapAddressError(err)
		}
		asking, err := d.prepareOptions(from, &a)
		if err != nil {
			return nil, err
		}
		if of == nil {
			of = cluster.New(a.Hosts, asking)
			d.ownCluster = of
		}
		d.Finder, d.clustered = of.Finder(cluster.Slot(from.Tag)), true
	default:
		if _, err := d.prepareOptions(from, nil); err != nil {
			return nil, err
		}
	}
	d.Options.Dialer = d.dialRetrying
	return d, nil
}

// NewCluster returns the Cluster that an address names, for several dialers; nil if it names none.
func NewCluster(from Options) (*cluster.Cluster, error) {
	if !cluster.Is(from.URL) {
		return nil, nil
	}
	d, err := NewDialer(from)
	if err != nil {
		return nil, err
	}
	return d.ownCluster, nil
}

func wrapAddressError(err error) error { return fmt.Errorf("address of redis: %w", err) }

// prepareOptions sets the options, and what needs no Finder. named is nil if the address names one server. prepareOptions returns the
// options with which a Finder asks.
func (d *Dialer) prepareOptions(from Options, named *master.Address) (asking *redis.Options, err error) {
	plain := from.URL
	if named != nil {
		plain = named.Redis()
	}
	o, err := redis.ParseURL(plain)
	if err != nil {
		if malformed, ok := errors.AsType[*url.Error](err); ok {
			err = malformed.Err
		}
		return nil, wrapAddressError(err)
	}
	setOptions(o)
	if named != nil {
		d.ReplicasNeeded, o.OnConnect = named.Copies, checkMaster
		if o.TLSConfig != nil {
			o.TLSConfig.ServerName = named.ServerName // if it is "", the name must be that of the host that is dialed
		}
	}
	if d.dial = from.Dial; d.dial == nil {
		d.dial = redis.NewDialer(o)
	}
	d.Options = o
	with := *o
	with.Dialer, with.OnConnect = d.dial, nil
	return &with, nil
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

// Close closes the connections of the Finder.
func (d *Dialer) Close() error {
	var errs []error
	if d.Finder != nil {
		errs = append(errs, d.Finder.Close())
	}
	if d.ownCluster != nil {
		errs = append(errs, d.ownCluster.Close())
	}
	return errors.Join(errs...)
}

// IsAnswer reports whether err is an error with which the server has answered, rather than a failure to reach
// the server.
func IsAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// checkMaster refuses a server that has become a replica, although it is still named as the master.
func checkMaster(ctx context.Context, c *redis.Conn) error {
	role, err := c.Do(ctx, "role").Slice()
	if err != nil {
		if IsAnswer(err) { // this user may not ask for the role
			return nil
		}
		return err
	}
	if len(role) > 0 && role[0] != "master" {
		return errNotMaster
	}
	return nil
}

var errNotMaster = errors.New("the server that is named as the master is not it yet")

// dialRetrying dials until it succeeds or dialTimeout is over, so that a restarted server, or
// another master, is found as soon as it listens. It sets the deadline itself, because the client's
// background dials have none.
func (d *Dialer) dialRetrying(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for {
		conn, err := d.dialOnce(ctx, network, address)
		if err == nil {
			return conn, nil
		}
		select {
		case <-time.After(dialRetry/2 + rand.N(dialRetry/2)):
		case <-ctx.Done():
			return nil, err
		case <-d.hungUp:
			return nil, err
		}
	}
}

// dialOnce dials the server, or asks first where it is.
func (d *Dialer) dialOnce(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Finder != nil {
		view, err := d.Finder.View(ctx)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err} // nothing was sent; see mayHaveRun
		}
		address = view.Master
		d.SwitchMaster(address)
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
	dialer  *Dialer
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

func (d *Dialer) track(conn net.Conn, address string) net.Conn {
	tracked := &trackedConn{Conn: conn, dialer: d, address: address}
	d.mu.Lock()
	d.open[tracked] = true
	d.mu.Unlock()
	if socket, ok := conn.(syscall.Conn); ok {
		return trackedSocket{tracked, socket}
	}
	return tracked
}

// SwitchMaster records which server is the master, and closes the connections to all others. It returns true if
// the master has changed.
func (d *Dialer) SwitchMaster(master string) (changed bool) {
	d.mu.Lock()
	changed, d.master = d.master != master, master
	d.mu.Unlock()
	d.hangUpWhere(func(address string) bool { return address != master })
	return changed
}

// closeAllEvery is how often all connections may be closed because the server is not the master.
const closeAllEvery = time.Second

// LeaveReplica closes all connections after the server said that it is a replica, or does not have the keys: new
// connections may reach the master at the same address, or at the address that the Finder names. It does this at most
// once in closeAllEvery.
func (d *Dialer) LeaveReplica() {
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

// Master returns the master that was dialed last; "" if the address names one server.
func (d *Dialer) Master() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.master
}

// hangUpWhere closes the connections to the addresses for which match returns true.
func (d *Dialer) hangUpWhere(match func(address string) bool) {
	d.mu.Lock()
	var those []*trackedConn
	for c := range d.open {
		if match(c.address) {
			those = append(those, c)
		}
	}
	d.mu.Unlock()
	for _, c := range those {
		_ = c.Close() // the user of the connection gets the error
	}
}

// discardLogger keeps go-redis from writing to standard error.
type discardLogger struct{}

// Printf implements the client's logger: it drops the message.
func (discardLogger) Printf(context.Context, string, ...any) {}
