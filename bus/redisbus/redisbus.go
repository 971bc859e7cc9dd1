// Package redisbus is the bus of a fleet: any number of processes share the mail that one
// Redis stores.
//
// Every transition is one Lua script, so the server does all of it or nothing. A
// lease is stored with the time at which it runs out, by the server's clock; each
// process extends its own leases in the background. A process keeps in memory only
// its leases and its waiting callers.
//
// Scripts of many callers are sent together in pipelines, which cost few round
// trips. If the outcome of a script is unknown, the caller gets an error, or the
// script runs again where that is safe.
//
// The files, in reading order:
//
//   - redisbus.go, server.go: Open and Close; what a server must be like
//   - keys.go, publish.go: the keys in Redis; storing a message, and how messages
//     and mailboxes are written
//   - batcher.go: the scripts, and running them in pipelines
//   - claim.go, listen.go: who waits for mail; the two connections that listen
//   - lease.go, upkeep.go: working on a mailbox and settling it; extending leases,
//     and repairing mailboxes
//   - hold.go: names that one process holds
//   - events.go, emit.go: subscribing to events, and sending them
//   - inspect.go, forget.go, intake.go: depth and dead letters; erasing; taking over
//     what another bus keeps
//   - scripts: each script says what it takes and returns; shared/box.lua
//     describes the data
package redisbus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

// The values that replace the zero values of a Config.
const (
	DefaultPrefix  = "parley"
	DefaultLease   = 5 * time.Second
	DefaultMaxHold = 35 * time.Minute // the longest turn and some grace
)

// Config says where the bus lives and what bounds it.
type Config struct {
	// URL is redis://, rediss:// or unix://, as redis-cli takes it.
	URL string
	// Prefix begins every key and channel; DefaultPrefix if empty. Processes with the same
	// prefix in the same database share one bus.
	Prefix string
	// Caps bounds the mailboxes; zero means no bound.
	Caps bus.Caps
	// Lease is how long a process may give no sign of life before others take over its mailboxes;
	// DefaultLease if zero. All processes have to use the same.
	Lease time.Duration
	// MaxHold bounds how long a lease may be held; DefaultMaxHold if zero.
	MaxHold time.Duration
	// Log gets what operators should know; nil means that nothing is logged.
	Log *slog.Logger

	dial   func(ctx context.Context, network, address string) (net.Conn, error) // replaces the dialling in tests; nil otherwise
	hungUp chan struct{}                                                        // closed when nothing should be dialled any more; may be nil
}

// A Bus implements every interface of package bus.
type Bus struct {
	caps    bus.Caps
	log     *slog.Logger
	keys    keys
	self    string // this process's name in the fleet
	client  *redis.Client
	batcher *scriptBatcher
	claims  *claimQueues
	leases  *leases
	holds   *holds
	events  *events

	lifecycle
}

// lifecycle is what Open starts and Close ends.
type lifecycle struct {
	day    atomic.Int64 // the day that this process takes for the server's (see accept)
	stop   context.CancelFunc
	hangUp func() // closes the connections, which ends every call
	closed chan struct{}
	mu     sync.Mutex // keeps spawn from adding to work once closed is closed
	work   sync.WaitGroup
}

// spawn runs f in a goroutine whose end Close awaits. It returns false, and does not run f, if
// Close has begun.
func (l *lifecycle) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed() {
		return false
	}
	l.work.Go(f)
	return true
}

// beginClose marks the bus as closed. It returns false if it already was.
func (l *lifecycle) beginClose() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed() {
		return false
	}
	close(l.closed)
	return true
}

func (l *lifecycle) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

var _ interface {
	bus.Bus
	bus.GroupClaimer
	bus.Events
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	bus.Holder
	bus.Roster
	bus.Forgetter
} = (*Bus)(nil)

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.MaxHold == 0 {
		c.MaxHold = DefaultMaxHold
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Open connects to the server and checks it: it returns ErrUnfit if mail would not be safe
// there. While the server loads its data Open waits.
func Open(ctx context.Context, c Config) (*Bus, error) {
	c = c.withDefaults()
	c.hungUp = make(chan struct{})
	if strings.ContainsAny(c.Prefix, "{}") {
		return nil, fmt.Errorf("open bus: prefix %q must not contain braces", c.Prefix)
	}
	options, err := parse(c)
	if err != nil {
		return nil, fmt.Errorf("open bus: %w", err)
	}
	redis.SetLogger(discardLogger{}) // its messages are returned as errors too, and health logs them once
	client := redis.NewClient(options)
	s, err := inspect(ctx, client)
	if err == nil {
		err = s.CheckFit()
	}
	var scripts scriptLibrary
	if err == nil {
		scripts, err = readScripts()
	}
	if err == nil {
		err = scripts.load(ctx, client)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open bus: %w", err), client.Close())
	}
	if !s.AOF {
		c.Log.Warn("redis keeps no append-only file: a restart of it loses mail; set appendonly yes")
	}
	b := newBus(c, client, scripts)
	b.start(ctx)
	return b, nil
}

func newBus(c Config, client *redis.Client, scripts scriptLibrary) *Bus {
	k := newKeys(c.Prefix, client.Options().DB)
	self := rand.Text()[:12]
	b := &Bus{
		caps: c.Caps, log: c.Log, keys: k, self: self, client: client,
		batcher:   newBatcher(client, scripts, &health{log: c.Log}),
		claims:    newClaims(k, c.Lease),
		leases:    newLeases(c.Lease, c.MaxHold),
		holds:     newHolds(),
		lifecycle: lifecycle{closed: make(chan struct{})},
	}
	b.hangUp = sync.OnceFunc(func() {
		close(c.hungUp)
		_ = client.Close() // an error would mean that the connection is gone anyway
	})
	b.day.Store(time.Now().UnixMicro() / dayLength)
	b.events = newEvents(client.Subscribe(context.Background(), k.notes(self), k.released(), k.forgotten()))
	return b
}

// start starts the goroutines that run until Close.
func (b *Bus) start(ctx context.Context) {
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	b.batcher.start()
	for _, run := range []func(context.Context){b.listenForMail, b.extendAll, b.listenForNotes, b.sendEvents, b.repair} {
		b.spawn(func() { run(ctx) })
	}
}

// closeMost bounds how long Close waits for the server in all.
const closeMost = 3 * time.Second

// Close ends every claim, lease, hold and subscription, and gives back leases and holds:
// mail that was being worked on can be claimed at once, and the claim counts as an attempt.
// If the server does not answer, Close soon gives up on it.
func (b *Bus) Close() error {
	if !b.beginClose() {
		return nil
	}
	defer time.AfterFunc(closeMost, b.hangUp).Stop()
	b.claims.close()
	b.claims.fetches.Wait()
	b.stop()
	b.sendLast()
	b.releaseAllHolds()
	b.returnAllLeases()
	b.events.close()
	b.batcher.stop()
	b.hangUp() // ends the blocking call too
	b.work.Wait()
	return nil
}

// closedOr returns bus.ErrClosed if the bus is closed, and err otherwise. Closing the bus breaks
// calls in many ways, and their callers should all get the same error.
func (b *Bus) closedOr(err error) error {
	if b.isClosed() {
		return bus.ErrClosed
	}
	return err
}

// discardLogger keeps go-redis from writing to standard error.
type discardLogger struct{}

// Printf implements the client's logger: it drops the message.
func (discardLogger) Printf(context.Context, string, ...any) {}
