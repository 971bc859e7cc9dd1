// Package timers calls handlers at the times at which timers are due.
//
// A timer is a message in bus.TimersTopic, with a mailbox of its own, which can be claimed
// only once the timer is due. A timer's kind says what it is for, and each kind has a Handler.
package timers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
)

const (
	atOnce    = 16               // how many timers are handled at once
	fireTime  = 30 * time.Second // bounds the handling of the timers in one mailbox, and an attempt to settle it
	leaveTo   = 30 * time.Second // how long a timer of an unknown kind is left to a newer release
	afterFail = 5 * time.Second
)

// A Handler handles a due timer of one kind. It may be called again for the same timer. If the
// returned `again` is not 0, the timer becomes due once more after that time; after an error it
// becomes due again soon.
type Handler func(ctx context.Context, t bus.Timer) (again time.Duration, err error)

// A Runner calls the handlers of due timers.
type Runner struct {
	Bus      bus.Bus
	Handlers map[string]Handler // by bus.Timer.Kind
	Log      *slog.Logger
}

// Run handles due timers until ctx is done. Any number of processes may run it at a time.
func (r *Runner) Run(ctx context.Context) error {
	wait, err := bus.ClaimEach(ctx, r.Bus, bus.TimersTopic, atOnce, func(lease bus.Lease) {
		work := context.WithoutCancel(ctx)
		bus.RetrySettle(work, lease, r.fire(work, lease), fireTime, func(err error) {
			r.Log.Warn("a timer cannot be settled; trying again", slog.Any("error", err))
		})
	})
	wait()
	if err != nil {
		return fmt.Errorf("claim a timer: %w", err)
	}
	return nil
}

// fire calls the handlers for the timers of a mailbox, and returns how to settle the lease.
func (r *Runner) fire(ctx context.Context, lease bus.Lease) (end bus.End) {
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
		handle := r.Handlers[t.Kind]
		if handle == nil {
			end.Uncounted, end.After = true, leaveTo
			return end
		}
		again, err := handle(ctx, t)
		if err != nil {
			r.Log.Warn("what a timer is for could not be done; trying again", slog.String("kind", t.Kind), slog.String("id", t.ID), slog.Any("error", err))
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
