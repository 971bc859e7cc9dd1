package asks

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
)

const (
	sweepInterval = time.Minute
	// sweepAge is how long an ask must have ended, or be past its expiry, before the sweep handles it. Until then,
	// the process that ended the ask, or that its timer wakes, can finish that itself.
	sweepAge = 15 * time.Second
	// renewInterval is how often the timer of each open ask is published again, because a bus that lost its data has
	// lost the timers too.
	renewInterval = time.Hour
)

// Run makes up for what was interrupted or lost, until ctx is done: it tells sessions how their asks ended, ends
// asks that have expired, and publishes the timers of open asks again. Any number of processes may run it at the
// same time.
func (d *Service) Run(ctx context.Context) error {
	d.runSweeps(ctx)
	return nil
}

// Fire handles a timer of the kind bus.AskTimer: it ends the ask if the ask has expired. If the ask is still open,
// because the clocks differ, it returns the time after which the timer should fire again.
func (d *Service) Fire(ctx context.Context, t bus.Timer) (again time.Duration, err error) {
	ask, err := d.expire(ctx, t.ID)
	if err == nil && ask.State == bus.AskOpen { // the clocks differ
		again = max(time.Until(ask.Expires), time.Second)
	}
	return again, err
}

// expire ends an ask if it has expired. If the ask has ended, now or before, and its session waits for that, expire tells
// the session. An ask that was forgotten counts as withdrawn.
func (d *Service) expire(ctx context.Context, id string) (bus.Ask, error) {
	ask, err := d.endAsk(ctx, id, bus.AskExpired)
	if errors.Is(err, bus.ErrNoAsk) { // the ask was forgotten
		return bus.Ask{State: bus.AskWithdrawn}, nil
	}
	if err != nil {
		return ask, err
	}
	return ask, d.notifySession(ctx, ask)
}

// runSweeps sweeps once a minute until ctx is done.
func (d *Service) runSweeps(ctx context.Context) {
	ticks := time.NewTicker(sweepInterval)
	defer ticks.Stop()
	renewed := time.Time{}
	for {
		renew := time.Since(renewed) >= renewInterval
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

// sweep tells sessions about ended asks that their logs do not contain, and ends open asks that have expired; if
// renew is true, it also publishes the timer of every open ask again.
func (d *Service) sweep(ctx context.Context, renew bool) error {
	late := time.Now().Add(-sweepAge)
	untold, err := d.Book.UntoldAsks(ctx, late)
	if err != nil {
		return err
	}
	for _, ask := range untold {
		if err := d.notifySession(ctx, ask); err != nil {
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
