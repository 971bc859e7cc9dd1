package asks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
)

const (
	timersAtOnce = 16
	settleTry    = 30 * time.Second
	leaveTo      = 30 * time.Second // wait where a newer release knows what a timer is for
	timerRetry   = 5 * time.Second  // wait after a failure of the book's or the bus's
	sweepEvery   = time.Minute
	// sweepAge is how long whoever decides has to tell the session, before it is
	// told by the sweep.
	sweepAge = 15 * time.Second
	// renewEvery is how often each open ask gets its timer again, which a bus that
	// has lost its data has lost too.
	renewEvery = time.Hour
)

// Run lets asks expire whose time has come, and tells sessions what they should have
// been told, until ctx is done. Any number of processes may do so at a time.
func (d *Desk) Run(ctx context.Context) error {
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	sweeping.Go(func() { d.sweepAll(inner) })
	wait, err := bus.ClaimEach(ctx, d.Bus, bus.TimersTopic, timersAtOnce, func(lease bus.Lease) {
		work := context.WithoutCancel(ctx)
		bus.RetrySettle(work, lease, d.fire(work, lease), settleTry, func(err error) {
			d.Log.Warn("a timer cannot be settled; trying again", slog.Any("error", err))
		})
	})
	wait()
	if err != nil {
		return fmt.Errorf("claim a timer: %w", err)
	}
	return nil
}

// fire does what the timers of a mailbox are for, and says how to settle it.
func (d *Desk) fire(ctx context.Context, lease bus.Lease) (end bus.End) {
	ctx, cancel := context.WithTimeout(ctx, settleTry)
	defer cancel()
	mail, err := lease.Mail(ctx, 0)
	if err != nil {
		return bus.End{Uncounted: true, After: timerRetry}
	}
	for _, m := range mail {
		t, err := bus.DecodeTimer(m.Body)
		if err != nil {
			end.Dead, end.Reason = m.Seq, "it cannot be read"
			return end
		}
		if t.Kind != bus.AskTimer {
			end.Uncounted, end.After = true, leaveTo
			return end
		}
		ask, err := d.expire(ctx, t.ID)
		switch {
		case err != nil:
			d.Log.Warn("an ask could not expire; trying again", slog.String("ask", t.ID), slog.Any("error", err))
			end.Uncounted, end.After = true, timerRetry
			return end
		case ask.State == bus.AskOpen: // the clocks differ
			end.Uncounted, end.After = true, max(time.Until(ask.Expires), time.Second)
			return end
		}
		end.Done = m.Seq
	}
	return end
}

// expire ends an ask whose time has come, and tells its session how it has ended.
func (d *Desk) expire(ctx context.Context, id string) (bus.Ask, error) {
	ask, err := d.end(ctx, id, bus.AskExpired)
	if errors.Is(err, bus.ErrNoAsk) { // it was forgotten
		return bus.Ask{State: bus.AskWithdrawn}, nil
	}
	if err != nil {
		return ask, err
	}
	return ask, d.tell(ctx, ask)
}

// sweepAll heals, again and again, what was cut off or lost.
func (d *Desk) sweepAll(ctx context.Context) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	renewed := time.Time{}
	for {
		renew := time.Since(renewed) >= renewEvery
		if err := d.sweep(ctx, renew); err != nil {
			if ctx.Err() == nil {
				d.Log.Warn("asks could not be looked through; trying again", slog.Any("error", err))
			}
		} else if renew {
			renewed = time.Now()
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweep tells sessions what they were not told, lets expire what has no timer any
// more, and with renew gives every open ask its timer again.
func (d *Desk) sweep(ctx context.Context, renew bool) error {
	late := time.Now().Add(-sweepAge)
	untold, err := d.Book.UntoldAsks(ctx, late)
	if err != nil {
		return err
	}
	for _, ask := range untold {
		if err := d.tell(ctx, ask); err != nil {
			return err
		}
	}
	open, err := d.Book.OpenAsks(ctx)
	if err != nil {
		return err
	}
	for _, ask := range open {
		switch {
		case ask.Expires.Before(late):
			if _, err := d.expire(ctx, ask.ID); err != nil {
				return err
			}
		case renew:
			if err := d.setTimer(ctx, ask); err != nil {
				return err
			}
		}
	}
	return nil
}
