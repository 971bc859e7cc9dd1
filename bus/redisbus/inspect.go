package redisbus

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"parley/bus"
)

// Topics implements bus.Inspector.
func (b *Bus) Topics(ctx context.Context) ([]bus.Topic, error) {
	names, err := b.client.ZRange(ctx, b.keys.topics(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", b.over(err))
	}
	slices.Sort(names)
	topics := make([]bus.Topic, len(names))
	for i, name := range names {
		topics[i] = bus.Topic(name)
	}
	return topics, nil
}

// now is the time as the scripts have it, in microseconds.
func (b *Bus) now(ctx context.Context) (int64, error) {
	pipe := b.client.Pipeline()
	servers, clock := pipe.Time(ctx), pipe.MGet(ctx, b.keys.clock())
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	return max(servers.Val().UnixMicro(), reply{clock.Val()[0]}.number()), nil
}

const scanAtOnce = 500

// Depth implements bus.Inspector. It looks at every mailbox that holds mail, a
// part at a time, so its figures are not of one moment.
func (b *Bus) Depth(ctx context.Context, topic bus.Topic) (d bus.Depth, err error) {
	k := b.keys.topic(topic)
	now, err := b.now(ctx)
	if err != nil {
		return d, fmt.Errorf("count mail: %w", b.over(err))
	}
	pipe := b.client.Pipeline()
	leased, dead := pipe.ZCard(ctx, k.leased), pipe.ZCard(ctx, k.graves)
	if _, err := pipe.Exec(ctx); err != nil {
		return d, fmt.Errorf("count mail: %w", b.over(err))
	}
	d.Leased, d.Dead = int(leased.Val()), int(dead.Val())
	later := "(" + strconv.FormatInt(now, 10)
	delayed, err := b.client.ZCount(ctx, k.due, later, "+inf").Result()
	if err != nil {
		return d, fmt.Errorf("count mail: %w", b.over(err))
	}
	d.Delayed = int(delayed)
	var oldest int64
	for page, err := range b.boxes(ctx, &k) {
		if err != nil {
			return d, fmt.Errorf("count mail: %w", b.over(err))
		}
		for pair := range slices.Chunk(page, 2) {
			leased, count, since, err := readBox(pair[1])
			if err != nil {
				continue // repair will see to it
			}
			if !leased {
				d.Waiting += count
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

// HasMail implements bus.Inspector.
func (b *Bus) HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error) {
	k := b.keys.topic(topic)
	has, err := b.client.HExists(ctx, k.state, key).Result()
	if err != nil {
		return false, fmt.Errorf("look for mail: %w", b.over(err))
	}
	return has, nil
}

// boxes reads what a topic's mailboxes are, in pages of key, state, key, state, …
// While many come and go one may be seen twice.
func (b *Bus) boxes(ctx context.Context, k *topicKeys) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			var page []string
			var err error
			page, cursor, err = b.client.HScan(ctx, k.state, cursor, "", scanAtOnce).Result()
			if !yield(page, err) || err != nil {
				return
			}
		}
	}
}

// Pause implements bus.Pauser.
func (b *Bus) Pause(ctx context.Context, topic bus.Topic, d time.Duration) error {
	k := b.keys.topic(topic)
	var err error
	if d > 0 {
		err = b.client.Set(ctx, k.pause, "1", max(d, time.Millisecond)).Err()
	} else {
		_, err = b.courier.run(ctx, unpauseScript, []string{k.pause, k.due, k.wake})
	}
	if err != nil {
		return fmt.Errorf("pause: %w", b.over(err))
	}
	return nil
}

// Writable writes what is gone a moment later, and says whether Redis took it. To
// read does not tell: a replica, and a server without room, can be read.
func (b *Bus) Writable(ctx context.Context) error {
	if err := b.client.Set(ctx, b.keys.topic("").pause, "1", time.Millisecond).Err(); err != nil {
		return fmt.Errorf("write to the bus: %w", b.over(err))
	}
	return nil
}
