package redisbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

// deadLetters lists, replays and drops dead letters.
type deadLetters struct {
	*connection
	publisher *publisher
	emitter   *emitter
}

// DeadLetters implements bus.DeadLetters: it reads a page of the list in the order of burial. If
// the dead letter named by after no longer exists, the list starts again from the beginning.
func (ds *deadLetters) DeadLetters(ctx context.Context, topic bus.Topic, after string, limit int) ([]bus.DeadLetter, error) {
	return ds.list(ctx, topic, after, limit, false)
}

// NewestDeadLetters implements bus.DeadLetters: it reads a page as DeadLetters does, from the newest on.
func (ds *deadLetters) NewestDeadLetters(ctx context.Context, topic bus.Topic, before string, limit int) ([]bus.DeadLetter, error) {
	return ds.list(ctx, topic, before, limit, true)
}

// DeadLetter implements bus.DeadLetters: it reads one dead letter.
func (ds *deadLetters) DeadLetter(ctx context.Context, topic bus.Topic, id string) (bus.DeadLetter, error) {
	d, _, err := ds.read(ctx, topic, id)
	if err != nil {
		return bus.DeadLetter{}, fmt.Errorf("read dead letter: %w", err)
	}
	return d, nil
}

// read reads a dead letter, and how many times its message was replayed.
func (ds *deadLetters) read(ctx context.Context, topic bus.Topic, id string) (d bus.DeadLetter, replays int64, err error) {
	k := ds.keys.topic(topic)
	text, err := ds.client.HGet(ctx, k.dead, id).Result()
	if errors.Is(err, redis.Nil) {
		return d, 0, bus.ErrNotFound
	}
	if err != nil {
		return d, 0, ds.closedOr(err)
	}
	return readDead(text, topic)
}

// list reads a page of dead letters, the oldest first or the newest first, that follow the one with the id beyond; "" for
// the first page.
func (ds *deadLetters) list(ctx context.Context, topic bus.Topic, beyond string, limit int, newest bool) ([]bus.DeadLetter, error) {
	k := ds.keys.topic(topic)
	ids, err := ds.deadIDs(ctx, &k, beyond, limit, newest)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	texts, err := ds.client.HMGet(ctx, k.dead, ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", ds.closedOr(err))
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

// deadIDs returns the ids of a page of dead letters. If the one with the id beyond no longer exists, it is the first page.
func (ds *deadLetters) deadIDs(ctx context.Context, k *topicKeys, beyond string, limit int, newest bool) ([]string, error) {
	first, last := "-inf", "+inf"
	if newest {
		first, last = last, first
	}
	if beyond != "" {
		score, err := ds.client.ZScore(ctx, k.graves, beyond).Result()
		switch {
		case err == nil:
			first = "(" + strconv.FormatFloat(score, 'f', 0, 64)
		case !errors.Is(err, redis.Nil):
			return nil, fmt.Errorf("list dead letters: %w", ds.closedOr(err))
		}
	}
	ids, err := ds.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: k.graves, Start: first, Stop: last, ByScore: true, Rev: newest, Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", ds.closedOr(err))
	}
	return ids, nil
}

// Replay implements bus.DeadLetters: one script publishes the message and removes the dead letter. The message gets a new
// id, because the bus knows its old one: x becomes x~1 and, if that becomes a dead letter and is replayed too, x~2.
func (ds *deadLetters) Replay(ctx context.Context, topic bus.Topic, id string) (string, error) {
	k := ds.keys.topic(topic)
	message, n, err := ds.read(ctx, topic, id)
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	key, original := message.Message.Key, id
	if n > 0 {
		original = strings.TrimSuffix(id, "~"+strconv.FormatInt(n, 10))
	}
	count, size := ds.publisher.caps.Room(topic, message.Message)
	for {
		n++
		renewed := original + "~" + strconv.FormatInt(n, 10)
		answer, err := ds.publisher.accept(ctx, func(day int64) *call {
			keys := append(ds.publisher.acceptKeys(&k, key, renewed, day), k.dead, k.graves)
			return &call{script: replayScript, keys: keys, args: []any{
				string(topic), key, renewed, count, size, day, ds.keys.notes(""), n, id,
			}}
		})
		if err != nil {
			return "", fmt.Errorf("replay: %w", err)
		}
		if answer != answerKnown {
			ds.emitter.Emit(bus.NewDeadLetterEvent(topic, key, id, bus.StateReplayed))
			return renewed, nil
		}
	}
}

// Drop implements bus.DeadLetters: it removes one dead letter.
func (ds *deadLetters) Drop(ctx context.Context, topic bus.Topic, id string) error {
	k := ds.keys.topic(topic)
	r, err := ds.batcher.run(ctx, dropScript, []string{k.dead, k.graves}, id)
	if err == nil && r.number() == 0 {
		err = bus.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("drop dead letter: %w", ds.closedOr(err))
	}
	ds.emitter.Emit(bus.NewDeadLetterEvent(topic, "", id, bus.StateDropped))
	return nil
}
