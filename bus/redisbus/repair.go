package redisbus

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	repairName  = "bus/repair"
	repairEvery = time.Minute
	// topicKept is for how long a topic is listed after it last held mail.
	topicKept = 48 * time.Hour
)

// repair looks after the mailboxes of all topics, now and once a minute, in one
// process of the fleet.
func (b *Bus) repair(ctx context.Context) {
	for {
		held, release, err := b.Hold(ctx, repairName)
		if err != nil {
			return // it ends with ctx only
		}
		for held.Err() == nil {
			if n, err := b.repairAll(held); err == nil && n > 0 {
				b.log.Error("mailboxes were out of order and are repaired", slog.Int64("mailboxes", n))
			}
			select {
			case <-time.After(repairEvery):
			case <-held.Done():
			}
		}
		release()
	}
}

func (b *Bus) repairAll(ctx context.Context) (repaired int64, err error) {
	topics, err := b.Topics(ctx)
	if err != nil {
		return 0, err
	}
	for _, topic := range topics {
		k := b.keys.topic(topic)
		empty := true
		for page, err := range b.boxes(ctx, &k) {
			if err != nil {
				return repaired, err
			}
			if len(page) == 0 {
				continue
			}
			empty = false
			n, err := b.repairSome(ctx, &k, page)
			if err != nil {
				return repaired, err
			}
			repaired += n
		}
		if err := b.refreshTopic(ctx, &k, empty); err != nil {
			return repaired, err
		}
	}
	return repaired, b.forgetTopics(ctx)
}

// repairSome takes keys and states by turns.
func (b *Bus) repairSome(ctx context.Context, k *topicKeys, page []string) (int64, error) {
	keys := []string{b.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads}
	args := []any{b.leases.time.Microseconds()}
	for pair := range slices.Chunk(page, 2) {
		keys, args = append(keys, k.mail(pair[0])), append(args, pair[0])
	}
	r, err := b.courier.run(ctx, repairScript, keys, args...)
	return r.number(), err
}

// refreshTopic keeps a topic on the list that holds mail or dead letters.
func (b *Bus) refreshTopic(ctx context.Context, k *topicKeys, empty bool) error {
	if empty {
		n, err := b.client.ZCard(ctx, k.graves).Result()
		if err != nil || n == 0 {
			return err
		}
	}
	now, err := b.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	return b.client.ZAddXX(ctx, b.keys.topics(), redis.Z{Score: float64(now.UnixMicro()), Member: string(k.name)}).Err()
}

func (b *Bus) forgetTopics(ctx context.Context) error {
	now, err := b.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	before := strconv.FormatInt(now.Add(-topicKept).UnixMicro(), 10)
	return b.client.ZRemRangeByScore(ctx, b.keys.topics(), "-inf", before).Err()
}
