package shards

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/bus/redisbus"
)

// Open opens a bus with n shards, at least two. Prepare must have been called for the same number.
func Open(ctx context.Context, c redisbus.Config, n int) (*Bus, error) {
	s, err := redisbus.OpenShards(ctx, c, n)
	if err != nil {
		return nil, err
	}
	if err := s.Buses[0].ConfirmShardCount(ctx, n); err != nil {
		return nil, errors.Join(fmt.Errorf("open bus: %w", err), s.Close())
	}
	counting := startCounting(ctx, s.Buses)
	return &Bus{claims: newClaims(s.Buses, counting), shards: s, all: s.Buses, counting: counting}, nil
}

// Prepare makes sure that the bus in Redis has n shards, before it is opened. A bus that was never used gets that
// number. A bus with another number is changed if it is drained and no process has it open; otherwise Prepare returns
// redisbus.ErrShards with what is in the way.
func Prepare(ctx context.Context, c redisbus.Config, n int) error {
	if n > maxShards {
		return fmt.Errorf("open bus: %d shards are too many, because each process has about three connections for each; the maximum is %d", n, maxShards)
	}
	was, err := redisbus.ReadShardCount(ctx, c)
	if err == nil && was == 0 && n > 1 {
		var recorded bool
		if recorded, err = redisbus.RecordShardCount(ctx, c, 0, n); err == nil && !recorded { // another process was faster
			was, err = redisbus.ReadShardCount(ctx, c)
		}
	}
	if err != nil {
		return fmt.Errorf("open bus: %w", err)
	}
	if was == 0 || was == n {
		return nil
	}
	return reshard(ctx, c, was, n)
}

// maxShards is the largest number of shards of a bus.
const maxShards = 256

// reshard changes the number of shards of a drained bus. It records the number last, so if it is interrupted, the next
// start repeats everything.
func reshard(ctx context.Context, c redisbus.Config, was, n int) (err error) {
	old, err := redisbus.OpenShards(ctx, c, was)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()
	others, err := old.Buses[0].AwaitOthersGone(ctx)
	if err != nil {
		return fmt.Errorf("open bus: %w", err)
	}
	if others > 0 {
		return refuseReshard(was, n, "first stop the %d other processes that have it open", others)
	}
	if err := checkDrained(ctx, old, n); err != nil {
		return err
	}
	fresh, err := redisbus.OpenShards(ctx, c, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	if err := carryOver(ctx, old, fresh); err != nil {
		return fmt.Errorf("split the bus into %d shards: %w", n, err)
	}
	recorded, err := redisbus.RecordShardCount(ctx, c, was, n)
	if err == nil && !recorded {
		err = fmt.Errorf("%w: another process has just changed it; start again", redisbus.ErrShards)
	}
	if err != nil {
		return err
	}
	// A process that began to listen before this reads the old number afterwards, or is seen here.
	names, err := fresh.Buses[0].Processes(ctx)
	if err != nil || len(names) > 2 {
		_, undone := redisbus.RecordShardCount(ctx, c, n, was)
		return errors.Join(refuseReshard(was, n, "first stop the process that has just opened it"), err, undone)
	}
	return nil
}

// refuseReshard returns an ErrShards that says why the number of shards can't be changed.
func refuseReshard(was, n int, format string, args ...any) error {
	return fmt.Errorf("%w: %d, not %d. To change it, "+format, append([]any{redisbus.ErrShards, was, n}, args...)...)
}

// checkDrained returns ErrShards if the bus contains anything that the new shards would not have.
func checkDrained(ctx context.Context, old *redisbus.Shards, n int) error {
	var mailboxes, deadLetters int64
	for _, shard := range old.Buses {
		with, dead, err := shard.CountContents(ctx)
		if err != nil {
			return err
		}
		mailboxes, deadLetters = mailboxes+with, deadLetters+dead
	}
	if mailboxes+deadLetters > 0 {
		was := len(old.Buses)
		return refuseReshard(was, n, "start with [bus] shards = %d until all mail is answered (mailboxes with mail: %d) and each dead letter is replayed or dropped (%d), and then stop all processes", was, mailboxes, deadLetters)
	}
	return nil
}

// carryOver copies what even a drained bus has to know: which messages were published lately, and the number above
// which all new ones must be. The new shard of a known id can't be determined, so all shards get all ids.
func carryOver(ctx context.Context, old, fresh *redisbus.Shards) error {
	var clock int64
	for _, shard := range old.Buses {
		at, err := shard.ReadClock(ctx)
		if err != nil {
			return err
		}
		clock = max(clock, at)
	}
	for _, to := range fresh.Buses {
		if err := to.RaiseClock(ctx, clock); err != nil {
			return err
		}
	}
	for _, shard := range old.Buses {
		for known, err := range shard.ReadKnownIDs(ctx) {
			if err != nil {
				return err
			}
			for some := range slices.Chunk(known.IDs, knownAtOnce) {
				for _, to := range fresh.Buses {
					if err := to.AddKnownIDs(ctx, redisbus.KnownIDs{Topic: known.Topic, Day: known.Day, IDs: some}); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// knownAtOnce is how many known ids are written in one call.
const knownAtOnce = 500
