package shards

import (
	"context"
	"iter"

	"parley/bus"
)

// Emit implements bus.Events: the event goes to the shard of its session, which forwards events for the server's
// feed.
func (b *Bus) Emit(e bus.Event) {
	if e.Session == "" {
		b.all[0].Emit(e)
		return
	}
	b.shardOf(e.Session).Emit(e)
}

// Dropped returns how many events this process has lost.
func (b *Bus) Dropped() (n uint64) {
	for _, shard := range b.all {
		n += shard.Dropped()
	}
	return n
}

// HeldEvents implements bus.History.
func (b *Bus) HeldEvents(ctx context.Context, feed bus.Feed) ([]bus.Event, error) {
	if key, ok := sessionOf(feed); ok {
		return b.shardOf(key).HeldEvents(ctx, feed)
	}
	return b.all[0].HeldEvents(ctx, feed)
}

// Subscribe implements bus.Events. A channel has turns in all shards, so its feed is merged from all of them.
func (b *Bus) Subscribe(ctx context.Context, feed bus.Feed, after uint64) (iter.Seq2[bus.Event, error], error) {
	key, ofSession := sessionOf(feed)
	switch {
	case ofSession:
		return b.shardOf(key).Subscribe(ctx, feed, after)
	case feed == bus.ServerFeed():
		return b.all[0].Subscribe(ctx, feed, after)
	case after != 0:
		return nil, bus.ErrGone // events of a channel are not stored
	}
	return b.shards.Subscribe(ctx, feed)
}
