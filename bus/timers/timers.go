// Package timers does what is due at a time.
//
// A timer is mail of a topic of its own, which the bus gives out once it is due. What a
// timer is for says its kind, and for each kind there is a Handler.
package timers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
)

const (
	atOnce    = 16
	fireTime  = 30 * time.Second // bounds what is done for one mailbox, and a try to settle it
	leaveTo   = 30 * time.Second // wait where a newer release knows what a timer is for
	afterFail = 5 * time.Second
)

// A Handler does what a timer of one kind is for. It may be called again for the same
// one. If it says for how long, the timer is due again after that; after an error it is
// due again soon.
type Handler func(ctx context.Context, t bus.Timer) (again time.Duration, err error)

// A Clock does what timers are for.
type Clock struct {
	Bus      bus.Bus
	Handlers map[string]Handler // by bus.Timer.Kind
	Log      *slog.Logger
}

// Run does what is due until ctx is done. Any number of processes may do so at a time.
func (c *Clock) Run(ctx context.Context) error {
	wait, err := bus.ClaimEach(ctx, c.Bus, bus.TimersTopic, atOnce, func(lease bus.Lease) {
		work := context.WithoutCancel(ctx)
		bus.RetrySettle(work, lease, c.fire(work, lease), fireTime, func(err error) {
			c.Log.Warn("a timer cannot be settled; trying again", slog.Any("error", err))
		})
	})
	wait()
	if err != nil {
		return fmt.Errorf("claim a timer: %w", err)
	}
	return nil
}

// fire does what the timers of a mailbox are for, and says how to settle it.
func (c *Clock) fire(ctx context.Context, lease bus.Lease) (end bus.End) {
	ctx, cancel := context.WithTimeout(ctx, fireTime)
	defer cancel()
	mail, err := lease.Mail(ctx, 0)
	if err != nil {
		return bus.End{Uncounted: true, After: afterFail}
	}
	for _, m := range mail {
		t, err := bus.DecodeTimer(m.Body)
		if err != nil {
			end.Dead, end.Reason = m.Seq, "it cannot be read"
			return end
		}
		handle := c.Handlers[t.Kind]
		if handle == nil {
			end.Uncounted, end.After = true, leaveTo
			return end
		}
		again, err := handle(ctx, t)
		if err != nil {
			c.Log.Warn("what a timer is for could not be done; trying again", slog.String("kind", t.Kind), slog.String("id", t.ID), slog.Any("error", err))
			again = afterFail
		}
		if again > 0 {
			end.Uncounted, end.After = true, again
			return end
		}
		end.Done = m.Seq
	}
	return end
}
