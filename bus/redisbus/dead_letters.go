package redisbus

import (
	"cmp"
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
	from := ""
	if beyond != "" {
		place, err := ds.PlaceOf(ctx, topic, beyond)
		switch {
		case err == nil:
			from = "(" + strconv.FormatInt(place, 10)
		case !errors.Is(err, bus.ErrNotFound):
			return nil, err
		}
	}
	page, err := ds.page(ctx, topic, from, limit, newest)
	list := make([]bus.DeadLetter, len(page))
	for i, d := range page {
		list[i] = d.DeadLetter
	}
	return list, err
}

// A BuriedLetter is a dead letter with its place in the order of burial, in which a topic's dead letters are listed.
type BuriedLetter struct {
	bus.DeadLetter
	Place int64
}

// PlaceOf returns the place of a dead letter; bus.ErrNotFound if there is none with that id.
func (ds *deadLetters) PlaceOf(ctx context.Context, topic bus.Topic, id string) (int64, error) {
	k := ds.keys.topic(topic)
	score, err := ds.client.ZScore(ctx, k.graves, id).Result()
	if errors.Is(err, redis.Nil) {
		err = bus.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("list dead letters: %w", ds.closedOr(err))
	}
	return int64(score), nil
}

// BuriedFrom lists at most limit dead letters from a place on, or only those beyond it: the oldest first, or those from the
// place backwards.
func (ds *deadLetters) BuriedFrom(ctx context.Context, topic bus.Topic, place int64, beyond bool, limit int, newest bool) ([]BuriedLetter, error) {
	from := strconv.FormatInt(place, 10)
	if beyond {
		from = "(" + from
	}
	return ds.page(ctx, topic, from, limit, newest)
}

// page reads dead letters from a bound of Redis on; "" for the first page.
func (ds *deadLetters) page(ctx context.Context, topic bus.Topic, from string, limit int, newest bool) ([]BuriedLetter, error) {
	k := ds.keys.topic(topic)
	first, last := "-inf", "+inf"
	if newest {
		first, last = last, first
	}
	places, err := ds.client.ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: k.graves, Start: cmp.Or(from, first), Stop: last, ByScore: true, Rev: newest, Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", ds.closedOr(err))
	}
	if len(places) == 0 {
		return nil, nil
	}
	ids := make([]string, len(places))
	for i, z := range places {
		ids[i], _ = z.Member.(string)
	}
	texts, err := ds.client.HMGet(ctx, k.dead, ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", ds.closedOr(err))
	}
	list := make([]BuriedLetter, 0, len(texts))
	for i, text := range texts {
		if text == nil {
			continue // the dead letter was dropped meanwhile
		}
		d, _, err := readDead(reply{text}.text(), topic)
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		list = append(list, BuriedLetter{d, int64(places[i].Score)})
	}
	return list, nil
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
