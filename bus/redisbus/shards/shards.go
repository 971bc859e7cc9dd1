// Package shards makes one bus of several buses in Redis, among which the mailboxes are divided.
//
// All keys of a bus in Redis have one hash tag, so one server does all of its work. A bus in shards has a hash tag
// for each shard, and the nodes of a Redis Cluster share the shards. The hash of a mailbox's key determines its
// shard; the same is true of a held name and of a group of counted leases. Every promise about one of these is kept
// by the bus of its shard. A message's id is known in the shard of its mailbox: the same id in a mailbox of another
// shard is another message.
//
// The files, in reading order: shards.go divides; open.go checks the number of shards; claims.go waits for the mail
// of all shards; lease.go counts the leases of groups; events.go merges feeds; inspect.go and dead_letters.go merge
// what is read; import.go imports the content of another bus.
package shards

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
)

// A Bus implements every interface of package bus.
type Bus struct {
	*claims
	shards   *redisbus.Shards
	all      []*redisbus.Bus // all shards; the first also has what belongs to no mailbox
	counting *counting
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

// shardOf returns the shard that a key belongs to.
func (b *Bus) shardOf(key string) *redisbus.Bus { return b.all[shardIndex(key, len(b.all))] }

// shardIndex returns which of n shards a key belongs to.
func shardIndex(key string, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // Write never fails
	return int(h.Sum64() % uint64(n))
}

// Publish implements bus.Bus.
func (b *Bus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	return b.shardOf(m.Key).Publish(ctx, topic, m)
}

// Hold implements bus.Holder.
func (b *Bus) Hold(ctx context.Context, name string) (held context.Context, release func(), err error) {
	return b.shardOf(name).Hold(ctx, name)
}

// Processes implements bus.Roster. Each process has all shards open, under the same name.
func (b *Bus) Processes(ctx context.Context) ([]string, error) { return b.all[0].Processes(ctx) }

// Held implements bus.Roster.
func (b *Bus) Held() (names []string) {
	for _, shard := range b.all {
		names = append(names, shard.Held()...)
	}
	slices.Sort(names)
	return slices.Compact(names) // each shard holds its own name for repairs
}

// Pause implements bus.Pauser: it pauses the topic in all shards, though not at the same moment.
func (b *Bus) Pause(ctx context.Context, topic bus.Topic, d time.Duration) error {
	return b.forEachShard(func(_ int, shard *redisbus.Bus) error { return shard.Pause(ctx, topic, d) })
}

// Writable returns an error if a shard accepts no writes.
func (b *Bus) Writable(ctx context.Context) error {
	return b.forEachShard(func(_ int, shard *redisbus.Bus) error { return shard.Writable(ctx) })
}

// Forget implements bus.Forgetter. Each shard forgets the events of its own sessions, and the first shard those of
// all, because it has the server's feed.
func (b *Bus) Forget(ctx context.Context, match func(bus.Topic, bus.Message) bool, sessions ...string) (done bus.Forgotten, err error) {
	bySession := make([][]string, len(b.all))
	bySession[0] = sessions
	for _, key := range sessions {
		if i := shardIndex(key, len(b.all)); i > 0 {
			bySession[i] = append(bySession[i], key)
		}
	}
	for i, shard := range b.all { // one after another, because match is called from one goroutine at a time
		part, err := shard.Forget(ctx, match, bySession[i]...)
		done.Messages += part.Messages
		done.DeadLetters += part.DeadLetters
		done.Leases += part.Leases
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Close ends every claim, lease, hold and subscription, as each shard does.
func (b *Bus) Close() error {
	b.claims.close()
	b.counting.close()
	return b.shards.Close()
}

// sessionOf returns the session whose events a feed has; false for another feed.
func sessionOf(feed bus.Feed) (key string, ok bool) {
	return strings.CutPrefix(string(feed), string(bus.SessionFeed("")))
}
