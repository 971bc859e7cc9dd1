package redisbus

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

// An inspector reads the state of the bus.
type inspector struct{ *connection }

// Topics implements bus.Inspector: it reads the list of topics in Redis.
func (i *inspector) Topics(ctx context.Context) ([]bus.Topic, error) {
	names, err := i.client.ZRange(ctx, i.keys.topics(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", i.closedOr(err))
	}
	slices.Sort(names)
	topics := make([]bus.Topic, len(names))
	for n, name := range names {
		topics[n] = bus.Topic(name)
	}
	return topics, nil
}

// scanAtOnce is about how many mailboxes one page of mailboxPages has.
const scanAtOnce = 500

// Depth implements bus.Inspector: it reads every mailbox that contains mail, some at a time, so its
// figures are not from the same moment. Mail also counts as waiting if the lease of its mailbox has run out, of at most
// scanAtOnce mailboxes.
func (i *inspector) Depth(ctx context.Context, topic bus.Topic) (d bus.Depth, err error) {
	k := i.keys.topic(topic)
	now, err := i.now(ctx)
	if err != nil {
		return d, fmt.Errorf("count mail: %w", i.closedOr(err))
	}
	pipe, at := i.client.Pipeline(), strconv.FormatInt(now, 10)
	held, dead, delayed := pipe.ZCount(ctx, k.leased, "("+at, "+inf"), pipe.ZCard(ctx, k.graves), pipe.ZCount(ctx, k.due, "("+at, "+inf")
	over := pipe.ZRangeByScore(ctx, k.leased, &redis.ZRangeBy{Min: "-inf", Max: at, Count: scanAtOnce})
	if _, err := pipe.Exec(ctx); err != nil {
		return d, fmt.Errorf("count mail: %w", i.closedOr(err))
	}
	d.Leased, d.Dead, d.Delayed, d.LeasedBy = int(held.Val()), int(dead.Val()), int(delayed.Val()), map[string]int{}
	var oldest int64
	for page, err := range i.mailboxPages(ctx, &k) {
		if err != nil {
			return d, fmt.Errorf("count mail: %w", i.closedOr(err))
		}
		for pair := range slices.Chunk(page, 2) {
			holder, count, since, err := readBox(pair[1])
			if err != nil {
				continue // the repair will handle this mailbox
			}
			if holder == "" || slices.Contains(over.Val(), pair[0]) {
				d.Waiting += count
			} else {
				d.LeasedBy[holder]++
			}
			if oldest == 0 || since < oldest {
				oldest = since
			}
		}
	}
	if oldest != 0 {
		d.Oldest = max(0, time.Duration(now-oldest)*time.Microsecond)
	}
	return d, nil
}

// HasMail implements bus.Inspector: it looks for the mailbox's state.
func (i *inspector) HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error) {
	k := i.keys.topic(topic)
	has, err := i.client.HExists(ctx, k.state, key).Result()
	if err != nil {
		return false, fmt.Errorf("look for mail: %w", i.closedOr(err))
	}
	return has, nil
}

// Mailboxes implements bus.Inspector: from the sorted sets it takes the leases that end first and the
// mailboxes that are due first, and then it reads their states. A mailbox counts as waiting if its lease
// has run out, though the lease is removed only when a process claims mail.
func (i *inspector) Mailboxes(ctx context.Context, topic bus.Topic, limit int) (list bus.MailboxList, err error) {
	if limit <= 0 {
		return list, nil
	}
	k := i.keys.topic(topic)
	now, err := i.now(ctx)
	if err != nil {
		return list, fmt.Errorf("list mailboxes: %w", i.closedOr(err))
	}
	pipe, at := i.client.Pipeline(), strconv.FormatInt(now, 10)
	heldCount, overCount, dueCount := pipe.ZCount(ctx, k.leased, "("+at, "+inf"), pipe.ZCount(ctx, k.leased, "-inf", at), pipe.ZCard(ctx, k.due)
	held := pipe.ZRangeByScore(ctx, k.leased, &redis.ZRangeBy{Min: "(" + at, Max: "+inf", Count: int64(limit)})
	over := pipe.ZRangeByScore(ctx, k.leased, &redis.ZRangeBy{Min: "-inf", Max: at, Count: int64(limit)})
	due := pipe.ZRangeWithScores(ctx, k.due, 0, int64(limit)-1)
	if _, err := pipe.Exec(ctx); err != nil {
		return list, fmt.Errorf("list mailboxes: %w", i.closedOr(err))
	}
	list.LeasedCount, list.WaitingCount = int(heldCount.Val()), int(overCount.Val()+dueCount.Val())
	dues := map[string]time.Time{}
	waiting := over.Val()
	for _, z := range due.Val() {
		key, _ := z.Member.(string)
		waiting = append(waiting, key)
		if next := int64(z.Score); next > now {
			dues[key] = fromMicro(next)
		}
	}
	if list.Leased, err = i.readMailboxes(ctx, &k, held.Val(), nil, limit); err == nil {
		list.Waiting, err = i.readMailboxes(ctx, &k, waiting, dues, limit)
	}
	if err != nil {
		return bus.MailboxList{}, fmt.Errorf("list mailboxes: %w", i.closedOr(err))
	}
	return list, nil
}

// readMailboxes reads the states of mailboxes, and returns at most limit of those that still have mail.
func (i *inspector) readMailboxes(ctx context.Context, k *topicKeys, keys []string, dues map[string]time.Time, limit int) (list []bus.Mailbox, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	states, err := i.client.HMGet(ctx, k.state, keys...).Result()
	if err != nil {
		return nil, err
	}
	for n, state := range states {
		packed, _ := state.(string)
		if holder, count, since, err := readBox(packed); err == nil {
			list = append(list, bus.Mailbox{Key: keys[n], Messages: count, Since: fromMicro(since), Due: dues[keys[n]], Holder: holder})
		}
	}
	slices.SortFunc(list, bus.OlderMailbox)
	return list[:min(len(list), limit)], nil
}

// mailboxPages reads the mailboxes of a topic, in pages of key, state, key, state, … While many
// come and go, one may appear twice.
func (i *inspector) mailboxPages(ctx context.Context, k *topicKeys) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			var page []string
			var err error
			page, cursor, err = i.client.HScan(ctx, k.state, cursor, "", scanAtOnce).Result()
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// Pause implements bus.Pauser: a key with an expiry is the pause.
func (i *inspector) Pause(ctx context.Context, topic bus.Topic, d time.Duration) error {
	k := i.keys.topic(topic)
	var err error
	if d > 0 {
		err = i.client.Set(ctx, k.pause, "1", max(d, time.Millisecond)).Err()
	} else {
		_, err = i.batcher.run(ctx, unpauseScript, []string{k.pause, k.due, k.wake})
	}
	if err != nil {
		return fmt.Errorf("pause: %w", i.closedOr(err))
	}
	return nil
}

// Writable returns an error if Redis accepts no writes. It writes a key that expires at once,
// because reading would prove nothing: a replica and a server without memory can be read.
func (i *inspector) Writable(ctx context.Context) error {
	if err := i.client.Set(ctx, i.keys.topic("").pause, "1", time.Millisecond).Err(); err != nil {
		return fmt.Errorf("write to the bus: %w", i.closedOr(err))
	}
	return nil
}
