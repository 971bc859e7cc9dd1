package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"parley/bus"
	"parley/bus/redisbus"
)

// Dead letters are listed by their places in their shards, which are times, and those with the same place by shard.

// A letterPlace is where a dead letter is.
type letterPlace struct {
	shard int
	place int64
}

func (g letterPlace) compare(other letterPlace) int {
	return cmp.Or(cmp.Compare(g.place, other.place), cmp.Compare(g.shard, other.shard))
}

// findDeadLetter returns the place of a dead letter, or bus.ErrNotFound if no shard has it.
func (b *Bus) findDeadLetter(ctx context.Context, topic bus.Topic, id string) (letterPlace, error) {
	found := letterPlace{shard: -1}
	places, err := collectFromShards(b, func(shard *redisbus.Bus) (int64, error) {
		place, err := shard.PlaceOf(ctx, topic, id)
		if errors.Is(err, bus.ErrNotFound) {
			return -1, nil
		}
		return place, err
	})
	if err != nil {
		return found, err
	}
	for i, place := range places {
		if place >= 0 {
			return letterPlace{i, place}, nil
		}
	}
	return found, bus.ErrNotFound
}

// DeadLetters implements bus.DeadLetters.
func (b *Bus) DeadLetters(ctx context.Context, topic bus.Topic, after string, limit int) ([]bus.DeadLetter, error) {
	return b.listDeadLetters(ctx, topic, after, limit, false)
}

// NewestDeadLetters implements bus.DeadLetters.
func (b *Bus) NewestDeadLetters(ctx context.Context, topic bus.Topic, before string, limit int) ([]bus.DeadLetter, error) {
	return b.listDeadLetters(ctx, topic, before, limit, true)
}

// maxPlace is greater than all places, and exact in Redis' numbers.
const maxPlace = 1 << 53

// listDeadLetters reads a page of dead letters that follow the one with the id beyond, or the first page if beyond is
// "". It reads a page from each shard and keeps the first letters.
func (b *Bus) listDeadLetters(ctx context.Context, topic bus.Topic, beyond string, limit int, newest bool) ([]bus.DeadLetter, error) {
	order, from := 1, letterPlace{shard: math.MinInt}
	if newest {
		order, from = -1, letterPlace{shard: math.MaxInt, place: maxPlace}
	}
	if beyond != "" {
		at, err := b.findDeadLetter(ctx, topic, beyond)
		switch {
		case err == nil:
			from = at
		case !errors.Is(err, bus.ErrNotFound):
			return nil, err
		}
	}
	type buried struct {
		letterPlace
		letter bus.DeadLetter
	}
	var all []buried
	pages := make([][]redisbus.BuriedLetter, len(b.all))
	err := b.forEachShard(func(i int, shard *redisbus.Bus) (err error) {
		passed := (letterPlace{i, from.place}).compare(from)*order <= 0 // already listed
		pages[i], err = shard.BuriedFrom(ctx, topic, from.place, passed, limit, newest)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, page := range pages {
		for _, d := range page {
			all = append(all, buried{letterPlace{i, d.Place}, d.DeadLetter})
		}
	}
	slices.SortFunc(all, func(a, c buried) int { return a.compare(c.letterPlace) * order })
	list := make([]bus.DeadLetter, 0, min(len(all), max(limit, 0)))
	for _, d := range all[:cap(list)] {
		list = append(list, d.letter)
	}
	return list, nil
}

// DeadLetter implements bus.DeadLetters.
func (b *Bus) DeadLetter(ctx context.Context, topic bus.Topic, id string) (bus.DeadLetter, error) {
	at, err := b.findDeadLetter(ctx, topic, id)
	if err != nil {
		return bus.DeadLetter{}, fmt.Errorf("read dead letter: %w", err)
	}
	return b.all[at.shard].DeadLetter(ctx, topic, id)
}

// Replay implements bus.DeadLetters.
func (b *Bus) Replay(ctx context.Context, topic bus.Topic, id string) (string, error) {
	at, err := b.findDeadLetter(ctx, topic, id)
	if err != nil {
		return "", fmt.Errorf("replay: %w", err)
	}
	return b.all[at.shard].Replay(ctx, topic, id)
}

// Drop implements bus.DeadLetters.
func (b *Bus) Drop(ctx context.Context, topic bus.Topic, id string) error {
	at, err := b.findDeadLetter(ctx, topic, id)
	if err != nil {
		return fmt.Errorf("drop dead letter: %w", err)
	}
	return b.all[at.shard].Drop(ctx, topic, id)
}
