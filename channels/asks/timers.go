package asks

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
)

const (
	sweepEvery = time.Minute
	// sweepAge is how long whoever decides has to tell the session, before it is
	// told by the sweep.
	sweepAge = 15 * time.Second
	// renewEvery is how often each open ask gets its timer again, which a bus that
	// has lost its data has lost too.
	renewEvery = time.Hour
)

// Run tells sessions what they should have been told, until ctx is done, and gives asks
// their timers again. Any number of processes may do so at a time.
func (d *Desk) Run(ctx context.Context) error {
	d.sweepAll(ctx)
	return nil
}

// Fire is what a timer of the kind bus.AskTimer is for: it lets an ask expire whose time
// has come. If it has not, it says how long that takes.
func (d *Desk) Fire(ctx context.Context, t bus.Timer) (again time.Duration, err error) {
	ask, err := d.expire(ctx, t.ID)
	if err == nil && ask.State == bus.AskOpen { // the clocks differ
		again = max(time.Until(ask.Expires), time.Second)
	}
	return again, err
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
