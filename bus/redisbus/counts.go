package redisbus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/bus"
)

// leaseCounts counts the leases that work for groups, whichever shard they belong to. A bus without shards counts its
// leases itself, where the scripts can see which leases still hold (see bus.CountedLease).
type leaseCounts struct {
	*connection
	lease       time.Duration
	setLifetime time.Duration // how long Redis keeps a set that nobody changes
}

// countedFor returns for how long a lease is counted after its holder last said so. A lease of a process that is gone stops
// counting before another process gets its mailbox, if the holder says so more often than it extends the lease.
func (c *leaseCounts) countedFor() time.Duration { return c.lease * 2 / 3 }

// KeepEvery returns how often KeepCounted has to be called.
func (c *leaseCounts) KeepEvery() time.Duration { return c.lease / 6 }

// A Counted is a lease that is counted for a group.
type Counted struct {
	Group string
	Name  string // the name that identifies the lease
}

// Count counts a lease, and what begins under it, as bus.CountedLease's Begin does. With an empty ID there is no bound.
// Unless KeepCounted is called every KeepEvery, the lease stops counting.
func (c *leaseCounts) Count(ctx context.Context, q bus.Quota, name string) error {
	keys := []string{c.keys.clock(), c.keys.contact(), c.keys.countedLeases(q.Group), c.keys.begunIDs(q.Group)}
	r, err := c.batcher.run(ctx, countScript, keys, c.lease.Microseconds(), c.countedFor().Microseconds(), name, q.ID, q.AtOnce, q.Hour, c.setLifetime.Milliseconds())
	if err != nil {
		return fmt.Errorf("count a lease: %w", c.closedOr(err))
	}
	switch r.at(0).text() {
	case "busy":
		return bus.ErrBusy
	case "over":
		return &bus.QuotaError{Opens: time.Duration(r.at(1).number()) * time.Microsecond}
	}
	return nil
}

// KeepCounted keeps leases counted for some time more.
func (c *leaseCounts) KeepCounted(ctx context.Context, leases []Counted) error {
	for some := range slices.Chunk(leases, extendAtOnce) {
		keys, args := []string{c.keys.clock(), c.keys.contact()}, []any{c.lease.Microseconds(), c.countedFor().Microseconds()}
		for _, l := range some {
			keys, args = append(keys, c.keys.countedLeases(l.Group)), append(args, l.Name)
		}
		if _, err := c.batcher.run(ctx, keepCountedScript, keys, args...); err != nil {
			return fmt.Errorf("keep leases counted: %w", c.closedOr(err))
		}
	}
	return nil
}

// StopCounting stops counting a lease. If it fails, the lease stops counting by itself.
func (c *leaseCounts) StopCounting(ctx context.Context, l Counted) error {
	if err := c.client.ZRem(ctx, c.keys.countedLeases(l.Group), l.Name).Err(); err != nil {
		return fmt.Errorf("stop counting a lease: %w", c.closedOr(err))
	}
	return nil
}
