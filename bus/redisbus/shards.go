package redisbus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"parley/bus"
	"parley/bus/redisbus/cluster"
	"parley/bus/redisbus/server"
)

// A bus in shards consists of several buses, each with its own hash tag. Package shards makes one bus of them.

// ErrShards says that the bus in Redis has another number of shards.
var ErrShards = errors.New("the bus in Redis has another number of shards")

// Shards are the buses that make up a bus in shards.
type Shards struct {
	Buses   []*Bus // the first has the tag DefaultTag, and sends the events for the server's feed of all shards
	cluster *cluster.Cluster
}

// OpenShards opens n shards. It does not check the recorded number of shards.
func OpenShards(ctx context.Context, c Config, n int) (*Shards, error) {
	c = c.withDefaults() // this gives the process the same name in all shards
	s := &Shards{Buses: make([]*Bus, n)}
	var err error
	if s.cluster, err = server.NewCluster(server.Options{URL: c.URL, Dial: c.Dial}); err != nil {
		return nil, fmt.Errorf("open bus: %w", err)
	}
	var opening errgroup.Group
	for i, tag := range cluster.Tags(n) {
		each := c
		each.Tag, each.self, each.cluster, each.shards = tag, c.self, s.cluster, n
		opening.Go(func() (err error) {
			s.Buses[i], err = Open(ctx, each)
			return err
		})
	}
	if err := opening.Wait(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, b := range s.Buses[1:] {
		b.emitter.server = s.Buses[0].emitter
	}
	return s, nil
}

// Subscribe follows a feed of all shards, from now on, as bus.Events does.
func (s *Shards) Subscribe(ctx context.Context, name bus.Feed) (iter.Seq2[bus.Event, error], error) {
	w := &watcher{filled: make(chan struct{}, 1), joined: true}
	var abandon []func()
	for _, b := range s.Buses {
		leave, err := b.events.watch(ctx, name, w)
		if err != nil {
			for _, leave := range abandon {
				leave()
			}
			return nil, err
		}
		abandon = append(abandon, leave)
	}
	return s.Buses[0].events.follow(ctx, w, 0), nil
}

// Close closes all shards.
func (s *Shards) Close() error {
	errs := make([]error, len(s.Buses)+1)
	var closing sync.WaitGroup
	for i, b := range s.Buses {
		if b != nil {
			closing.Go(func() { errs[i] = b.Close() })
		}
	}
	closing.Wait()
	if s.cluster != nil {
		errs[len(s.Buses)] = s.cluster.Close()
	}
	return errors.Join(errs...)
}

// A resizer reads and changes the number of shards of the bus, which is stored in the first shard.
type resizer struct {
	*connection
	inspector *inspector
}

// ReadShardCount returns the number of shards of the bus that a Config describes, or 0 if the bus was never used.
func ReadShardCount(ctx context.Context, c Config) (n int, err error) {
	err = withClientOf(c, func(client *redis.Client, k keys, _ int) (err error) {
		n, err = readShardCount(ctx, client, k)
		return err
	})
	return n, err
}

func readShardCount(ctx context.Context, client *redis.Client, k keys) (int, error) {
	pipe := client.Pipeline()
	recorded, used := pipe.Get(ctx, k.shards()), pipe.Exists(ctx, k.clock())
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("read the number of shards: %w", err)
	}
	if n, err := strconv.Atoi(recorded.Val()); err == nil {
		return n, nil
	}
	return int(used.Val()), nil // a bus without a recorded number has one shard
}

// ConfirmShardCount waits until other processes can see this one, and then returns ErrShards if the bus has another
// number of shards. A process that changes the number checks afterwards whether there are other processes, so one of
// the two notices the other.
func (z *resizer) ConfirmShardCount(ctx context.Context, want int) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	select {
	case <-z.listens:
	case <-ctx.Done():
		return fmt.Errorf("listen to redis: %w", context.Cause(ctx))
	}
	n, err := readShardCount(ctx, z.client, z.keys)
	if err == nil && max(n, 1) != want {
		err = fmt.Errorf("%w: %d", ErrShards, n)
	}
	return err
}

// confirmTimeout limits the duration of ConfirmShardCount.
const confirmTimeout = 10 * time.Second

// RecordShardCount changes the recorded number of shards from before to now. It returns false if another process has
// just changed the number.
func RecordShardCount(ctx context.Context, c Config, before, now int) (recorded bool, err error) {
	source, err := scriptSource("record_shards")
	if err != nil {
		return false, err
	}
	err = withClientOf(c, func(client *redis.Client, k keys, replicas int) error {
		done, err := client.Eval(ctx, source, []string{k.shards()}, shardCountText(before), shardCountText(now)).Int()
		recorded = done == 1
		if replicas > 0 {
			_ = client.Wait(ctx, replicas, copyTimeout).Err() // if a replica takes over without it, the next start reports that
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("record the number of shards: %w", err)
	}
	return recorded, nil
}

// withClientOf calls f with a client of the server of a shard, and with the number of replicas that have to confirm
// its writes.
func withClientOf(c Config, f func(client *redis.Client, k keys, replicas int) error) error {
	c = c.withDefaults()
	d, err := server.NewDialer(server.Options{URL: c.URL, Tag: c.Tag, Dial: c.Dial})
	if err != nil {
		return err
	}
	client := redis.NewClient(d.Options)
	return errors.Join(f(client, newKeys(c.Prefix, c.Tag, client.Options().DB), d.ReplicasNeeded), client.Close(), d.Close())
}

// shardCountText returns the form in which Redis stores a number of shards. A bus with one shard has no number, as in
// releases without shards.
func shardCountText(n int) string {
	if n <= 1 {
		return ""
	}
	return strconv.Itoa(n)
}

// CountContents returns how many mailboxes of the shard have mail, and how many dead letters it has.
func (z *resizer) CountContents(ctx context.Context) (mailboxes, deadLetters int64, err error) {
	topics, err := z.inspector.Topics(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, topic := range topics {
		k := z.keys.topic(topic)
		pipe := z.client.Pipeline()
		with, dead := pipe.HLen(ctx, k.state), pipe.ZCard(ctx, k.graves)
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, 0, fmt.Errorf("count what is in a shard: %w", err)
		}
		mailboxes, deadLetters = mailboxes+with.Val(), deadLetters+dead.Val()
	}
	return mailboxes, deadLetters, nil
}

// KnownIDs are ids of messages that were published on a day, counted from 1970 in UTC.
type KnownIDs struct {
	Topic bus.Topic
	Day   int64
	IDs   []string
}

// ReadKnownIDs reads the ids of all recently published messages.
func (z *resizer) ReadKnownIDs(ctx context.Context) iter.Seq2[KnownIDs, error] {
	return func(yield func(KnownIDs, error) bool) {
		topics, err := z.inspector.Topics(ctx)
		if err != nil {
			yield(KnownIDs{}, err)
			return
		}
		today := time.Now().UnixMicro() / dayLength
		for _, topic := range topics {
			k := z.keys.topic(topic)
			for day := today - 2; day <= today+1; day++ { // the server's clock may be ahead
				for i := range seenSetCount {
					ids, err := z.client.SMembers(ctx, k.seenSet(day, i)).Result()
					if err != nil {
						yield(KnownIDs{}, fmt.Errorf("read known ids: %w", err))
						return
					}
					if len(ids) > 0 && !yield(KnownIDs{topic, day, ids}, nil) {
						return
					}
				}
			}
		}
	}
}

// AddKnownIDs records that messages with these ids were published.
func (z *resizer) AddKnownIDs(ctx context.Context, known KnownIDs) error {
	k := z.keys.topic(known.Topic)
	forget := time.UnixMicro((known.Day + 2) * dayLength).Add(time.Hour)
	pipe := z.client.Pipeline()
	for _, id := range known.IDs {
		seen := k.seenIDs(known.Day, id)
		pipe.SAdd(ctx, seen, id)
		pipe.PExpireAt(ctx, seen, forget)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("add known ids: %w", err)
	}
	return nil
}

// ReadClock returns the highest number that the shard may have given.
func (z *resizer) ReadClock(ctx context.Context) (int64, error) {
	now, err := z.now(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return now, nil
}

// RaiseClock makes all numbers that the shard gives from now on greater than this one.
func (z *resizer) RaiseClock(ctx context.Context, to int64) error {
	if _, err := z.batcher.run(ctx, raiseClockScript, []string{z.keys.clock()}, to); err != nil {
		return fmt.Errorf("raise the clock: %w", err)
	}
	return nil
}
