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

// DeadLetters implements bus.Morgue. Where the letter named by after has gone,
// the list begins anew.
func (b *Bus) DeadLetters(ctx context.Context, topic bus.Topic, after string, limit int) ([]bus.DeadLetter, error) {
	k := b.keys.topic(topic)
	ids, err := b.graves(ctx, &k, after, limit)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	texts, err := b.client.HMGet(ctx, k.dead, ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", b.over(err))
	}
	list := make([]bus.DeadLetter, 0, len(texts))
	for _, text := range texts {
		if text == nil {
			continue // it was dropped meanwhile
		}
		d, _, err := readGrave(reply{text}.text(), topic)
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		list = append(list, d)
	}
	return list, nil
}

func (b *Bus) graves(ctx context.Context, k *topicKeys, after string, limit int) ([]string, error) {
	first := "-inf"
	if after != "" {
		score, err := b.client.ZScore(ctx, k.graves, after).Result()
		switch {
		case err == nil:
			first = "(" + strconv.FormatFloat(score, 'f', 0, 64)
		case !errors.Is(err, redis.Nil):
			return nil, fmt.Errorf("list dead letters: %w", b.over(err))
		}
	}
	ids, err := b.client.ZRangeArgs(ctx, redis.ZRangeArgs{
		Key: k.graves, Start: first, Stop: "+inf", ByScore: true, Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", b.over(err))
	}
	return ids, nil
}

// Replay implements bus.Morgue. A letter that was replayed and buried again goes
// on counting: x, x~1, x~2.
func (b *Bus) Replay(ctx context.Context, topic bus.Topic, id string) (string, error) {
	k := b.keys.topic(topic)
	text, err := b.client.HGet(ctx, k.dead, id).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("replay: %w", bus.ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("replay: %w", b.over(err))
	}
	letter, n, err := readGrave(text, topic)
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

// Drop implements bus.Morgue.
func (b *Bus) Drop(ctx context.Context, topic bus.Topic, id string) error {
	k := b.keys.topic(topic)
	r, err := b.courier.run(ctx, dropScript, []string{k.dead, k.graves}, id)
	if err == nil && r.number() == 0 {
		err = bus.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("drop dead letter: %w", b.over(err))
	}
	return nil
}
