package shards

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
)

// A lease is a lease of one shard. The shard of its group, which may be another one, counts it for the group. That
// shard can't see whether the lease is still held, so the holder has to report it again and again.
type lease struct {
	bus.Lease
	counting *counting

	mu    sync.Mutex
	group string // for which it is counted; "" for none
}

var _ bus.CountedLease = (*lease)(nil)

// name returns the name that distinguishes the lease within its group.
func (l *lease) name() string {
	c := l.Claim()
	return string(c.Topic) + " " + strconv.FormatInt(c.Fence, 10) + " " + c.Key
}

// Begin implements bus.CountedLease.
func (l *lease) Begin(ctx context.Context, q bus.Quota) error {
	if err := l.Held(ctx); err != nil {
		return err
	}
	if err := l.leaveOtherGroup(ctx, q.Group); err != nil {
		return err
	}
	// From here on the lease counts, even if the answer is lost.
	l.counting.add(l, q.Group)
	err := l.counting.shardOf(q.Group).Count(ctx, q, l.name())
	if over := (*bus.QuotaError)(nil); errors.Is(err, bus.ErrBusy) || errors.As(err, &over) {
		l.counting.remove(l)
		l.swapGroup("")
	}
	return err
}

// Resume implements bus.CountedLease.
func (l *lease) Resume(ctx context.Context, group string) error {
	return l.Begin(ctx, bus.Quota{Group: group})
}

// Leave implements bus.CountedLease.
func (l *lease) Leave(ctx context.Context) error { return l.leaveOtherGroup(ctx, "") }

// leaveOtherGroup records the group for which the lease is to be counted, and stops counting it for another.
func (l *lease) leaveOtherGroup(ctx context.Context, group string) error {
	last := l.swapGroup(group)
	if last == "" || last == group {
		return nil
	}
	l.counting.remove(l)
	return l.counting.shardOf(last).StopCounting(ctx, redisbus.Counted{Group: last, Name: l.name()})
}

func (l *lease) swapGroup(group string) (last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, l.group = l.group, group
	return last
}

// Settle implements bus.Lease. It also stops counting the lease; if that fails, the lease soon stops counting by
// itself.
func (l *lease) Settle(ctx context.Context, end bus.End) error {
	var leaving sync.WaitGroup
	leaving.Go(func() { _ = l.Leave(ctx) })
	defer leaving.Wait()
	return l.Lease.Settle(ctx, end)
}

// giveBack ends the lease before any work was done under it.
func (l *lease) giveBack() {
	if shard, ok := l.Lease.(interface{ GiveBack() }); ok {
		shard.GiveBack()
	}
}

// counting keeps those leases of this process counted that work for groups.
type counting struct {
	all     []*redisbus.Bus
	stop    context.CancelFunc
	stopped chan struct{}

	mu     sync.Mutex
	groups map[*lease]string // the group for which each lease is counted
}

func startCounting(ctx context.Context, all []*redisbus.Bus) *counting {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &counting{all: all, stop: stop, stopped: make(chan struct{}), groups: map[*lease]string{}}
	go c.keepCounted(ctx)
	return c
}

// close ends the counting. Leases that are still counted soon stop counting.
func (c *counting) close() {
	c.stop()
	<-c.stopped
}

func (c *counting) shardOf(group string) *redisbus.Bus { return c.all[shardIndex(group, len(c.all))] }

func (c *counting) add(l *lease, group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[l] = group
}

func (c *counting) remove(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, l)
}

// keepCounted keeps the leases counted until ctx is done.
func (c *counting) keepCounted(ctx context.Context) {
	defer close(c.stopped)
	tick := time.NewTicker(c.all[0].KeepEvery())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c.keepOnce(ctx)
	}
}

// keepOnce keeps the leases counted. A shard that does not answer in time is left until the next round, so that those of
// the other shards go on counting.
func (c *counting) keepOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.all[0].KeepEvery())
	defer cancel()
	var calls sync.WaitGroup
	for shard, leases := range c.countedByShard() {
		// If this fails again and again, the leases stop counting too early, and more work may begin.
		calls.Go(func() { _ = shard.KeepCounted(ctx, leases) })
	}
	calls.Wait()
}

// countedByShard returns the counted leases by the shards of their groups, without those that are lost.
func (c *counting) countedByShard() map[*redisbus.Bus][]redisbus.Counted {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.groups, func(l *lease, _ string) bool {
		select {
		case <-l.Lost():
			return true
		default:
			return false
		}
	})
	shards := map[*redisbus.Bus][]redisbus.Counted{}
	for l, group := range c.groups {
		shards[c.shardOf(group)] = append(shards[c.shardOf(group)], redisbus.Counted{Group: group, Name: l.name()})
	}
	return shards
}
