package redisbus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

// Topics implements bus.Inspector: it reads the list of topics in Redis.
func (b *Bus) Topics(ctx context.Context) ([]bus.Topic, error) {
	names, err := b.client.ZRange(ctx, b.keys.topics(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", b.closedOr(err))
	}
	slices.Sort(names)
	topics := make([]bus.Topic, len(names))
	for i, name := range names {
		topics[i] = bus.Topic(name)
	}
	return topics, nil
}

// now returns the time of the clock that the scripts use, in microseconds.
func (b *Bus) now(ctx context.Context) (int64, error) {
	pipe := b.client.Pipeline()
	servers, clock := pipe.Time(ctx), pipe.MGet(ctx, b.keys.clock())
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	return max(servers.Val().UnixMicro(), reply{clock.Val()[0]}.number()), nil
}

const scanAtOnce = 500

// Depth implements bus.Inspector: it reads every mailbox that contains mail, some at a time, so its
// figures are not of the same moment.
func (b *Bus) Depth(ctx context.Context, topic bus.Topic) (d bus.Depth, err error) {
	k := b.keys.topic(topic)
	now, err := b.now(ctx)
	if err != nil {
		return d, fmt.Errorf("count mail: %w", b.closedOr(err))
	}
	pipe := b.client.Pipeline()
	leased, dead := pipe.ZCard(ctx, k.leased), pipe.ZCard(ctx, k.graves)
	if _, err := pipe.Exec(ctx); err != nil {
		return d, fmt.Errorf("count mail: %w", b.closedOr(err))
	}
	d.Leased, d.Dead = int(leased.Val()), int(dead.Val())
	later := "(" + strconv.FormatInt(now, 10)
	delayed, err := b.client.ZCount(ctx, k.due, later, "+inf").Result()
	if err != nil {
		return d, fmt.Errorf("count mail: %w", b.closedOr(err))
	}
	d.Delayed = int(delayed)
	var oldest int64
	for page, err := range b.mailboxPages(ctx, &k) {
		if err != nil {
			return d, fmt.Errorf("count mail: %w", b.closedOr(err))
		}
		for pair := range slices.Chunk(page, 2) {
			leased, count, since, err := readBox(pair[1])
			if err != nil {
				continue // the repair will handle it
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

// HasMail implements bus.Inspector: it looks for the mailbox's state.
func (b *Bus) HasMail(ctx context.Context, topic bus.Topic, key string) (bool, error) {
	k := b.keys.topic(topic)
	has, err := b.client.HExists(ctx, k.state, key).Result()
	if err != nil {
		return false, fmt.Errorf("look for mail: %w", b.closedOr(err))
	}
	return has, nil
}

// mailboxPages reads the mailboxes of a topic, in pages of key, state, key, state, … While many
// come and go, one may appear twice.
func (b *Bus) mailboxPages(ctx context.Context, k *topicKeys) iter.Seq2[[]string, error] {
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

// Pause implements bus.Pauser: a key with an expiry is the pause.
func (b *Bus) Pause(ctx context.Context, topic bus.Topic, d time.Duration) error {
	k := b.keys.topic(topic)
	var err error
	if d > 0 {
		err = b.client.Set(ctx, k.pause, "1", max(d, time.Millisecond)).Err()
	} else {
		_, err = b.batcher.run(ctx, unpauseScript, []string{k.pause, k.due, k.wake})
	}
	if err != nil {
		return fmt.Errorf("pause: %w", b.closedOr(err))
	}
	return nil
}

// Writable returns an error if Redis accepts no writes. It writes a key that expires at once,
// because reading would prove nothing: a replica and a server without memory can be read.
func (b *Bus) Writable(ctx context.Context) error {
	if err := b.client.Set(ctx, b.keys.topic("").pause, "1", time.Millisecond).Err(); err != nil {
		return fmt.Errorf("write to the bus: %w", b.closedOr(err))
	}
	return nil
}

// DeadLetters implements bus.DeadLetters: it reads a page of the list in the order of burial. If
// the dead letter named by after no longer exists, the list starts again from the beginning.
func (b *Bus) DeadLetters(ctx context.Context, topic bus.Topic, after string, limit int) ([]bus.DeadLetter, error) {
	k := b.keys.topic(topic)
	ids, err := b.deadIDs(ctx, &k, after, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	texts, err := b.client.HMGet(ctx, k.dead, ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", b.closedOr(err))
	}
	list := make([]bus.DeadLetter, 0, len(texts))
	for _, text := range texts {
		if text == nil {
			continue // it was dropped meanwhile
		}
		d, _, err := readDead(reply{text}.text(), topic)
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		list = append(list, d)
	}
	return list, nil
}

func (b *Bus) deadIDs(ctx context.Context, k *topicKeys, after string, limit int) ([]string, error) {
	first := "-inf"
	if after != "" {
		score, err := b.client.ZScore(ctx, k.graves, after).Result()
		switch {
		case err == nil:
			first = "(" + strconv.FormatFloat(score, 'f', 0, 64)
		case !errors.Is(err, redis.Nil):
			return nil, fmt.Errorf("list dead letters: %w", b.closedOr(err))
		}
	}
	ids, err := b.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: k.graves, Start: first, Stop: "+inf", ByScore: true, Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", b.closedOr(err))
	}
	return ids, nil
}

// Replay implements bus.DeadLetters: one script publishes the message and removes the dead letter.
// The number goes on for a message that was replayed and became a dead letter again: x, x~1, x~2.
func (b *Bus) Replay(ctx context.Context, topic bus.Topic, id string) (string, error) {
	k := b.keys.topic(topic)
	text, err := b.client.HGet(ctx, k.dead, id).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("replay: %w", bus.ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("replay: %w", b.closedOr(err))
	}
	letter, n, err := readDead(text, topic)
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	key, original := letter.Message.Key, id
	if n > 0 {
		original = strings.TrimSuffix(id, "~"+strconv.FormatInt(n, 10))
	}
	count, size := b.caps.Room(topic, letter.Message)
	for {
		n++
		renewed := original + "~" + strconv.FormatInt(n, 10)
		answer, err := b.accept(ctx, func(day int64) *call {
			keys := append(b.acceptKeys(&k, key, renewed, day), k.dead, k.graves)
			return &call{script: replayScript, keys: keys, args: []any{
				string(topic), key, renewed, count, size, day, b.keys.notes(""), n, id,
			}}
		})
		if err != nil {
			return "", fmt.Errorf("replay: %w", err)
		}
		if answer != answerKnown {
			return renewed, nil
		}
	}
}

// Drop implements bus.DeadLetters: it removes one dead letter.
func (b *Bus) Drop(ctx context.Context, topic bus.Topic, id string) error {
	k := b.keys.topic(topic)
	r, err := b.batcher.run(ctx, dropScript, []string{k.dead, k.graves}, id)
	if err == nil && r.number() == 0 {
		err = bus.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("drop dead letter: %w", b.closedOr(err))
	}
	return nil
}
