package shards

import (
	"context"
	"iter"

	"parley/bus"
	"parley/bus/redisbus"
)

// An Importer copies the content of another bus into this one, as a redisbus.Importer does.
type Importer struct {
	bus *Bus
	all []*redisbus.Importer
}

// NewImporter checks whether b can receive the content of another bus in the migration with that id, and changes nothing.
func NewImporter(ctx context.Context, b *Bus, id string) (*Importer, error) {
	all, err := collectFromShards(b, func(shard *redisbus.Bus) (*redisbus.Importer, error) { return redisbus.NewImporter(ctx, shard, id) })
	if err != nil {
		return nil, err
	}
	return &Importer{b, all}, nil
}

// importerOf returns the importer of the shard that a key belongs to.
func (in *Importer) importerOf(key string) *redisbus.Importer {
	return in.all[shardIndex(key, len(in.all))]
}

// Begin stores the import's id in each shard, and raises all clocks.
func (in *Importer) Begin(ctx context.Context, highest int64) error {
	return in.bus.forEachShard(func(i int, _ *redisbus.Bus) error { return in.all[i].Begin(ctx, highest) })
}

// AddMessage puts a waiting message at the end of its mailbox.
func (in *Importer) AddMessage(ctx context.Context, m redisbus.StoredMessage) error {
	return in.importerOf(m.Message.Key).AddMessage(ctx, m)
}

// AddDead adds a dead letter.
func (in *Importer) AddDead(ctx context.Context, m redisbus.StoredMessage) error {
	return in.importerOf(m.Message.Key).AddDead(ctx, m)
}

// AddKnown records that messages with these ids were published on a day. Their mailboxes are not known, so each shard
// gets all ids.
func (in *Importer) AddKnown(ctx context.Context, topic bus.Topic, day int64, ids []string) error {
	return in.bus.forEachShard(func(i int, _ *redisbus.Bus) error { return in.all[i].AddKnown(ctx, topic, day, ids) })
}

// Messages reads the waiting messages of all mailboxes, one mailbox after the other, each in its order.
func (in *Importer) Messages(ctx context.Context) iter.Seq2[redisbus.StoredMessage, error] {
	return func(yield func(redisbus.StoredMessage, error) bool) {
		for _, shard := range in.all {
			for m, err := range shard.Messages(ctx) {
				if !yield(m, err) || err != nil {
					return
				}
			}
		}
	}
}

// AwaitDurable waits until all servers have their data on disk.
func (in *Importer) AwaitDurable(ctx context.Context) error {
	return in.bus.forEachShard(func(i int, _ *redisbus.Bus) error { return in.all[i].AwaitDurable(ctx) })
}
