package subagents

import (
	"context"
	"fmt"

	"parley/bus"
	"parley/sessions/subagents"
)

// causeTurn is the reason recorded for tasks that are stopped because the turn that handed them out has ended.
const causeTurn = "turn_ended"

// StopAll implements task.SubAgents: it marks the tasks that a session has handed out as stopped for a cause,
// asks their sessions to stop, and returns how many there were.
func (d *Service) StopAll(ctx context.Context, session, cause string) (int, error) {
	stopped, err := d.cfg.Table.Stop(ctx, session, "", "", cause)
	if err != nil {
		return 0, err
	}
	return len(stopped), d.stopEach(ctx, stopped)
}

// EndTurn implements task.SubAgents: it marks as stopped the tasks that a turn waits for and those that it has
// not handed out yet, and asks their sessions to stop.
func (d *Service) EndTurn(ctx context.Context, session, turn string) error {
	stopped, err := d.cfg.Table.Stop(ctx, session, "", turn, causeTurn)
	if err != nil {
		return err
	}
	return d.stopEach(ctx, stopped)
}

// Drop implements task.SubAgents: it marks the sessions of a session's sub-agents as to be erased. Run erases
// them.
func (d *Service) Drop(ctx context.Context, session, cause string) error {
	if err := d.cfg.Table.Drop(ctx, session, cause); err != nil {
		return err
	}
	d.cfg.Bus.Emit(tasksErased(session))
	d.wakeSweep()
	return nil
}

// wakeSweep makes Run check the tasks now, if it runs in this process.
func (d *Service) wakeSweep() {
	select {
	case d.sweepNow <- struct{}{}:
	default:
	}
}

// stopEach ends tasks that were marked as stopped: those that were not handed out yet, at once; the others, by
// a command to their sessions.
func (d *Service) stopEach(ctx context.Context, stopped []subagents.Task) error {
	for _, t := range stopped {
		var err error
		switch t.State {
		case subagents.Prepared:
			_, err = d.end(ctx, t, subagents.Cancelled, "")
		case subagents.Running:
			err = d.publishStop(ctx, t)
		}
		if err != nil {
			return fmt.Errorf("stop task %s: %w", t.ID, err)
		}
	}
	return nil
}

// publishStop publishes the stop command to the session that works on a task.
func (d *Service) publishStop(ctx context.Context, t subagents.Task) error {
	return bus.PublishInbound(ctx, d.cfg.Bus, t.Session, bus.Inbound{
		ID: "stop:" + t.ID, Kind: bus.Command, Text: "stop", From: bus.Person{ID: t.Person}, At: address(t), Mentioned: true,
	}, true)
}
