package redisbus

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

const (
	repairName  = "bus/repair" // held by the one process that repairs
	repairEvery = time.Minute  // the time between two rounds
	// topicKept is for how long a topic stays in the list after it last had mail.
	topicKept = 48 * time.Hour
)

// repairs repairs mailboxes.
type repairs struct {
	*connection
	inspector *inspector
	holds     *holds
	lease     time.Duration
}

// repair checks the mailboxes of all topics, at once and then every minute, and repairs those whose entries in Redis
// do not fit together. Only the process of the fleet that holds repairName does that.
func (rs *repairs) repair(ctx context.Context) {
	// Hold fails only when ctx or the bus has ended.
	_ = bus.WhileHeld(ctx, rs.holds, repairName, func(held context.Context) error {
		for held.Err() == nil {
			if n, err := rs.repairAll(held); err == nil && n > 0 {
				rs.log.Error("mailboxes were out of order and are repaired", slog.Int64("mailboxes", n))
			}
			select {
			case <-time.After(repairEvery):
			case <-held.Done():
			}
		}
		return nil
	})
}

// repairAll repairs the mailboxes of all topics once, and returns how many were out of order.
func (rs *repairs) repairAll(ctx context.Context) (repaired int64, err error) {
	topics, err := rs.inspector.Topics(ctx)
	if err != nil {
		return 0, err
	}
	for _, topic := range topics {
		k := rs.keys.topic(topic)
		empty := true
		for page, err := range rs.inspector.mailboxPages(ctx, &k) {
			if err != nil {
				return repaired, err
			}
			if len(page) == 0 {
				continue
			}
			empty = false
			n, err := rs.repairSome(ctx, &k, page)
			if err != nil {
				return repaired, err
			}
			repaired += n
		}
		if err := rs.refreshTopic(ctx, &k, empty); err != nil {
			return repaired, err
		}
	}
	return repaired, rs.forgetTopics(ctx)
}

// repairSome repairs one page of mailboxes, in which keys and states alternate, as
// mailboxPages returns them. It returns how many were out of order.
func (rs *repairs) repairSome(ctx context.Context, k *topicKeys, page []string) (int64, error) {
	keys := []string{rs.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads}
	args := []any{rs.lease.Microseconds()}
	for pair := range slices.Chunk(page, 2) {
		keys, args = append(keys, k.mail(pair[0])), append(args, pair[0])
	}
	r, err := rs.batcher.run(ctx, repairScript, keys, args...)
	return r.number(), err
}

// refreshTopic updates a topic's time in the list of topics, unless the topic has neither mail (empty is
// true) nor dead letters. forgetTopics removes topics by this time.
func (rs *repairs) refreshTopic(ctx context.Context, k *topicKeys, empty bool) error {
	if empty {
		n, err := rs.client.ZCard(ctx, k.graves).Result()
		if err != nil || n == 0 {
			return err
		}
	}
	now, err := rs.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	return rs.client.ZAddXX(ctx, rs.keys.topics(), redis.Z{Score: float64(now.UnixMicro()), Member: string(k.name)}).Err()
}

// forgetTopics removes topics from the list that have had neither mail nor dead letters for topicKept.
func (rs *repairs) forgetTopics(ctx context.Context) error {
	now, err := rs.client.Time(ctx).Result()
	if err != nil {
		return err
	}
	before := strconv.FormatInt(now.Add(-topicKept).UnixMicro(), 10)
	return rs.client.ZRemRangeByScore(ctx, rs.keys.topics(), "-inf", before).Err()
}
