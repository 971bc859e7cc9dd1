package subagents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions/subagents"
)

const (
	sweepName  = "tasks" // the hold of the one process in a fleet that sweeps
	sweepEvery = 5 * time.Second
	// sweepAge is how long the process that handed out or ended a task may take for the rest of the work before
	// the sweep does it.
	sweepAge = 15 * time.Second
	// republishEvery is how often the message of each task is published again: the bus may have been away and never
	// received it, or may have lost its data.
	republishEvery = time.Minute
)

// textNeverHandedOut is the report of a task that was recorded but never reached a sub-agent.
const textNeverHandedOut = "It was never begun: the server was cut off from its store, or ended, when it was to be handed out. Hand it out again if it is still wanted."

// Run does what processes have left undone, until ctx is done: it reports the ends of tasks, and erases the
// sessions that are marked for that. In a fleet, one process at a time does this.
func (d *Service) Run(ctx context.Context) error {
	err := bus.WhileHeld(ctx, d.cfg.Bus, sweepName, func(held context.Context) error {
		d.runSweeps(held)
		return nil
	})
	if err != nil {
		return fmt.Errorf("sweep the tasks: %w", err)
	}
	return nil
}

func (d *Service) runSweeps(held context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	renewed := time.Time{}
	for {
		renew := time.Since(renewed) >= republishEvery
		err := d.sweep(held, renew)
		switch {
		case err == nil && renew:
			renewed = time.Now()
		case err != nil && held.Err() == nil:
			d.cfg.Log.Warn("the tasks of sub-agents could not be looked through; trying again", slog.Any("error", err))
		}
		select {
		case <-tick.C:
		case <-d.sweepNow:
		case <-held.Done():
			return
		}
	}
}

// sweep ends the tasks that were never handed out, reports the ends that nobody has reported, sends the stop
// commands again, and erases the sessions that are marked for that. If renew is true, it also publishes each open
// task again.
func (d *Service) sweep(ctx context.Context, renew bool) error {
	untold, err := d.cfg.Table.Untold(ctx, time.Now().Add(-sweepAge))
	if err != nil {
		return err
	}
	var failed error
	for _, t := range untold {
		failed = errors.Join(failed, d.sweepTask(ctx, t, renew))
	}
	return errors.Join(failed, d.eraseDropped(ctx))
}

// eraseDropped erases the sessions that are marked to be erased.
func (d *Service) eraseDropped(ctx context.Context) error {
	dropped, err := d.cfg.Table.Dropped(ctx)
	if err != nil || len(dropped) == 0 {
		return err
	}
	erased, err := d.cfg.Erase(ctx, dropped)
	for _, key := range erased {
		err = errors.Join(err, d.cfg.Table.Forget(ctx, key))
	}
	return err
}

func (d *Service) sweepTask(ctx context.Context, t subagents.Task, renew bool) error {
	switch {
	case !t.IsOpen():
		return d.tell(ctx, t)
	case t.State == subagents.Prepared:
		state, report := subagents.Cancelled, ""
		if !t.Awaited && t.Stop == "" { // the call that hands it out failed, or nobody has repeated it after a crash
			state, report = subagents.Failed, textNeverHandedOut
		}
		t, err := d.end(ctx, t, state, report)
		if err != nil {
			return err
		}
		return d.tell(ctx, t)
	case t.Stop != "":
		// The process that handed it out may have died before the task was on the bus, and only the task's own
		// session can end it.
		return errors.Join(d.publish(ctx, t), d.publishStop(ctx, t))
	case renew:
		return d.publish(ctx, t)
	}
	return nil
}
