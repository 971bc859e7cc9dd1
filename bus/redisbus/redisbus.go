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
//   - redisbus.go, config.go, lifecycle.go: the parts of which the bus consists, Open and Close
//   - server.go, dialer.go: what a server must be like, and how it is reached
//   - connection.go, keys.go, reply.go, decode.go: what each part needs of Redis: the keys, and how
//     messages and mailboxes are written
//   - batcher.go, replication.go, scripts.go, backoff.go: the scripts, running them in pipelines, and
//     waiting for replicas
//   - publish.go: storing a message
//   - claim.go, offers.go, listen.go: who waits for mail, mail that this process may claim first, and the call
//     that listens for mail
//   - lease.go, leases.go: working on a mailbox and settling it; all leases of this process
//   - hold.go: names that one process holds
//   - extender.go, repair.go: extending leases and holds; repairing mailboxes
//   - events.go, forget_events.go, emit.go, wire.go: subscribing to events, and sending them; package unsent
//     holds those that wait to be sent
//   - subscription.go: the connection on which this process hears of its leases, of holds and of events
//   - shards.go, counts.go: a bus that is split into shards, and counting its leases
//   - inspect.go, dead_letters.go, forget.go, roster.go, import.go: depth and dead letters; erasing;
//     the other processes; importing what another bus keeps
//   - scripts: each script says what it takes and returns; shared/box.lua describes the data
package redisbus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/redisbus/server"
	"parley/bus/redisbus/unsent"
)

// A Bus implements every interface of package bus. It consists of one part for each of its tasks.
type Bus struct {
	*connection

	*publisher
	*claims
	*holds
	*events
	*emitter
	*inspector
	*deadLetters
	*forgetter
	*roster
	*leaseCounts
	*resizer

	leases   *leases
	notes    *subscription
	extender *extender
	repairs  *repairs
}

var _ interface {
	bus.Bus
	bus.GroupClaimer
	bus.Events
	bus.History
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	bus.Holder
	bus.Roster
	bus.Forgetter
} = (*Bus)(nil)

// Open connects to the server and checks it: it returns ErrUnfit if mail would not be safe
// there. While the server loads its data Open waits.
func Open(ctx context.Context, c Config) (*Bus, error) {
	c = c.withDefaults()
	c.hungUp = make(chan struct{})
	if strings.ContainsAny(c.Prefix, "{}") {
		return nil, fmt.Errorf("open bus: prefix %q must not contain braces", c.Prefix)
	}
	d, err := server.NewDialer(server.Options{URL: c.URL, Tag: c.Tag, Cluster: c.cluster, Dial: c.Dial, HungUp: c.hungUp})
	if err != nil {
		return nil, fmt.Errorf("open bus: %w", err)
	}
	client := redis.NewClient(d.Options)
	s, err := d.Inspect(ctx, client)
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
		return nil, errors.Join(fmt.Errorf("open bus: %w", err), client.Close(), d.Close())
	}
	if !s.AOF {
		c.Log.Warn("redis keeps no append-only file: a restart of it loses mail; set appendonly yes")
	}
	b := newBus(c, d, client, scripts)
	b.batcher.replication.prepare(ctx)
	b.start(ctx)
	if err := b.checkWhole(ctx, c.shards); err != nil {
		return nil, errors.Join(fmt.Errorf("open bus: %w", err), b.Close())
	}
	return b, nil
}

// checkWhole returns ErrShards if the bus is opened as a whole but consists of shards.
func (b *Bus) checkWhole(ctx context.Context, shards int) error {
	if shards != 0 {
		return nil
	}
	return b.ConfirmShardCount(ctx, 1)
}

func newBus(c Config, d *server.Dialer, client *redis.Client, scripts scriptLibrary) *Bus {
	to := &connection{
		keys: newKeys(c.Prefix, c.Tag, client.Options().DB), self: c.self, client: client, log: c.Log, listens: make(chan struct{}),
		batcher:   newBatcher(client, scripts, &outageLog{log: c.Log}, newReplication(client, d, c.Log)),
		lifecycle: &lifecycle{closed: make(chan struct{})},
	}
	to.hangUp = sync.OnceFunc(func() {
		close(c.hungUp)
		_, _ = client.Close(), d.Close() // an error would only mean that the connection is gone
	})
	b := &Bus{
		connection: to,
		publisher:  newPublisher(to, c.Caps),
		holds:      newHolds(to, c.Lease),
		emitter:    &emitter{connection: to, buffer: unsent.New()},
		inspector:  &inspector{to},
		roster:     &roster{to},
	}
	b.leaseCounts, b.resizer = &leaseCounts{to, c.Lease, c.MaxHold + c.Lease}, &resizer{to, b.inspector}
	b.leases = newLeases(to, b.emitter, c.Lease, c.MaxHold)
	b.events = newEvents(to, b.emitter)
	b.claims = newClaims(to, b.leases, b.events.subscribe)
	b.leases.onOffer = b.claims.takeUp
	b.deadLetters = &deadLetters{connection: to, publisher: b.publisher, emitter: b.emitter}
	b.forgetter = &forgetter{connection: to, inspector: b.inspector, dead: b.deadLetters, events: b.events}
	b.notes = &subscription{confirmed: sync.OnceFunc(func() { close(to.listens) }), connection: to, claims: b.claims, leases: b.leases, holds: b.holds, events: b.events}
	b.extender = &extender{leases: b.leases, holds: b.holds}
	b.repairs = &repairs{connection: to, inspector: b.inspector, holds: b.holds, lease: c.Lease}
	return b
}

// start starts the goroutines that run until Close.
func (b *Bus) start(ctx context.Context) {
	ctx, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	b.batcher.start()
	for _, run := range []func(context.Context){
		b.claims.listenForMail, b.extender.extendAll, b.notes.listen, b.emitter.sendEvents, b.repairs.repair,
		b.batcher.replication.watch,
	} {
		b.spawn(func() { run(ctx) })
	}
}

// maxCloseTime bounds the total time that Close waits for the server.
const maxCloseTime = 3 * time.Second

// Close ends every claim, lease, hold and subscription, and gives back leases and holds:
// mail that was being worked on can be claimed at once, and the claim counts as an attempt.
// If the server does not answer, Close soon gives up on it.
func (b *Bus) Close() error {
	if !b.beginClose() {
		return nil
	}
	defer time.AfterFunc(maxCloseTime, b.hangUp).Stop()
	b.claims.close()
	b.claims.fetches.Wait()
	b.stop()
	b.emitter.sendLast()
	b.holds.releaseAllHolds()
	b.leases.returnAllLeases()
	b.events.close()
	b.batcher.stop()
	b.hangUp() // this also ends the blocking call
	b.work.Wait()
	return nil
}
