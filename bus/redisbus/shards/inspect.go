package shards

import (
	"context"
	"errors"
	"slices"
	"sync"

	"parley/bus"
	"parley/bus/redisbus"
)

// forEachShard calls f for all shards at the same time, and returns their errors.
func (b *Bus) forEachShard(f func(i int, shard *redisbus.Bus) error) error {
	errs := make([]error, len(b.all))
	var calls sync.WaitGroup
	for i, shard := range b.all {
		calls.Go(func() { errs[i] = f(i, shard) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// collectFromShards calls f for all shards at the same time, and returns what they return, by shard.
func collectFromShards[T any](b *Bus, f func(shard *redisbus.Bus) (T, error)) ([]T, error) {
	results := make([]T, len(b.all))
	err := b.forEachShard(func(i int, shard *redisbus.Bus) (err error) {
		results[i], err = f(shard)
		return err
	})
	return results, err
}

// Topics implements bus.Inspector.
func (b *Bus) Topics(ctx context.Context) ([]bus.Topic, error) {
	lists, err := collectFromShards(b, func(shard *redisbus.Bus) ([]bus.Topic, error) { return shard.Topics(ctx) })
	if err != nil {
		return nil, err
	}
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Depth implements bus.Inspector.
func (b *Bus) Depth(ctx context.Context, topic bus.Topic) (sum bus.Depth, err error) {
	parts, err := collectFromShards(b, func(shard *redisbus.Bus) (bus.Depth, error) { return shard.Depth(ctx, topic) })
	if err != nil {
		return sum, err
	}
	sum.LeasedBy = map[string]int{}
	for _, d := range parts {
		sum.Waiting += d.Waiting
		sum.Leased += d.Leased
		sum.Delayed += d.Delayed
		sum.Dead += d.Dead
		sum.Oldest = max(sum.Oldest, d.Oldest)
		for holder, n := range d.LeasedBy {
			sum.LeasedBy[holder] += n
		}
	}
	return sum, nil
}

// HasMail implements bus.Inspector.
func (b *Bus) HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error) {
	return b.shardOf(key).HasMail(ctx, topic, key)
}

// Mailboxes implements bus.Inspector.
func (b *Bus) Mailboxes(ctx context.Context, topic bus.Topic, limit int) (all bus.MailboxList, err error) {
	parts, err := collectFromShards(b, func(shard *redisbus.Bus) (bus.MailboxList, error) { return shard.Mailboxes(ctx, topic, limit) })
	if err != nil {
		return all, err
	}
	for _, part := range parts {
		all.LeasedCount += part.LeasedCount
		all.WaitingCount += part.WaitingCount
		all.Leased, all.Waiting = append(all.Leased, part.Leased...), append(all.Waiting, part.Waiting...)
	}
	for _, list := range []*[]bus.Mailbox{&all.Leased, &all.Waiting} {
		slices.SortFunc(*list, bus.OlderMailbox)
		*list = (*list)[:min(len(*list), max(limit, 0))]
	}
	return all, nil
}
