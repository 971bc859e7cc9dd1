package subagents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/task"
	"parley/bus"
	"parley/sessions/subagents"
	"parley/tools"
)

// maxReport is how many bytes of a sub-agent's report the agent that handed out the task gets.
const maxReport = 48 << 10

// Report implements task.SubAgents: it writes the report into the task's row, and publishes it to the parent's
// session. It does nothing if the task was erased.
func (d *Service) Report(ctx context.Context, r task.Report) error {
	t, err := d.cfg.Table.Get(ctx, r.ID)
	if errors.Is(err, subagents.ErrNone) {
		return nil // the task was erased
	}
	if err != nil {
		return err
	}
	t.Untrusted = r.Untrusted
	if t, err = d.end(ctx, t, r.State, tools.Clip(r.Text, maxReport)); err != nil {
		return err
	}
	d.cfg.Point("task:ended")
	return d.tell(ctx, t)
}

// end records how a task ended, unless it has already ended or was handed out after t was read, and returns
// the task as it is recorded then. It marks the task as reported if nobody needs to be told: if the turn that
// waits for the task has stopped it, or if the task was canceled without a report.
func (d *Service) end(ctx context.Context, t subagents.Task, state, report string) (subagents.Task, error) {
	was := t.State
	t.State, t.Report, t.Ended = state, report, time.Now()
	t.Told = t.Awaited && t.Stop != "" || state == subagents.Cancelled && report == ""
	ours, err := d.cfg.Table.End(ctx, t, was)
	if err != nil {
		return t, err
	}
	if ours {
		d.tellWatchers(t)
		d.cfg.CountEnded(state)
		d.cfg.Log.Info("a task has ended", slog.String("task", t.ID), slog.String("session", t.Session), slog.String("parent", t.Parent),
			slog.String("state", state), slog.Duration("took", t.Ended.Sub(t.Started)))
	}
	now, err := d.cfg.Table.Get(ctx, t.ID)
	if errors.Is(err, subagents.ErrNone) {
		return t, nil
	}
	return now, err
}

// tell publishes the report of a task to the session that handed it out, unless the task has not ended or the
// session already knows.
func (d *Service) tell(ctx context.Context, t subagents.Task) error {
	if t.Told || t.IsOpen() {
		return nil
	}
	return d.publishReport(ctx, t)
}

// publishReport publishes the report of an ended task to the parent's session. It may be called again: the
// report then has the same id, and is handled only once.
func (d *Service) publishReport(ctx context.Context, t subagents.Task) error {
	in, err := d.reportMail(ctx, t)
	if err != nil {
		return err
	}
	if err := bus.PublishInbound(ctx, d.cfg.Bus, t.Parent, in, true); err != nil && !errors.Is(err, bus.ErrInvalid) {
		return err
	}
	d.cfg.Point("task:told")
	if t.Awaited {
		return nil // the turn that waits for the report calls NoteTold
	}
	return d.cfg.Table.NoteTold(ctx, t.ID)
}

// reportMail returns the message that reports the end of a task. If no turn waits for the report, the message
// begins a turn, but only if the person may still talk to the bot and nobody has stopped the task.
func (d *Service) reportMail(ctx context.Context, t subagents.Task) (bus.Inbound, error) {
	var to route
	if err := json.Unmarshal(t.Route, &to); err != nil {
		return bus.Inbound{}, fmt.Errorf("decode the route of task %s: %w", t.ID, err)
	}
	who := bus.Person{ID: t.Person, Name: to.Name}
	in := bus.Inbound{
		ID: task.MailID(t.ID), Kind: bus.TaskEnded, From: who, At: to.At, SentAt: t.Ended, Text: t.Report,
		Task: &bus.Task{ID: t.ID, Agent: t.Agent, Session: t.Session, Untrusted: t.Untrusted, Awaited: t.Awaited, State: t.State},
	}
	switch {
	case t.State == subagents.Lost:
		in.Task.State, in.Text = subagents.Failed, "its session was erased before it had ended"
	case in.Text == "":
		in.Text = "(it said nothing)"
	}
	if t.Awaited {
		return in, nil
	}
	caller, admitted, err := d.cfg.Admit(ctx, who, to.At)
	if err != nil {
		return in, fmt.Errorf("judge for whom task %s was handed out: %w", t.ID, err)
	}
	if admitted && t.Stop == "" {
		return caller.Mail(in), nil
	}
	in.Kind, in.Task = bus.Notice, nil
	in.Text = fmt.Sprintf("The sub-agent %s (session %s) has ended: %s.", t.Agent, t.Session, t.State)
	return in, nil
}

// NoteTold implements task.SubAgents: it records in the task's row that the parent's session has the report.
func (d *Service) NoteTold(ctx context.Context, id string) error {
	return d.cfg.Table.NoteTold(ctx, id)
}

// tellWatchers tells those who watch the session that handed out a task what state the task is in.
func (d *Service) tellWatchers(t subagents.Task) {
	d.cfg.Bus.Emit(bus.Event{Type: bus.TaskMoved, Session: t.Parent, Turn: t.Turn, News: &bus.News{ID: t.ID, State: t.State}})
}

// tasksErased returns the event that tells those who watch a session that some of its tasks are about to be
// erased.
func tasksErased(parent string) bus.Event {
	return bus.Event{Type: bus.TaskMoved, Session: parent, News: &bus.News{State: bus.StateErased}}
}
