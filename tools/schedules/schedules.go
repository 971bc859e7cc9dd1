// Package schedules provides the tool with which an agent has itself reminded, once or repeatedly,
// of something to do later.
//
// The tool knows no clock and no store. The Backend passed to New stores the schedules, and sends
// their text to the agent when they are due.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/tools"
)

// Name is the name of the tool.
const Name = "schedule"

// maxText limits the text of a schedule, in bytes.
const maxText = 4000

// A Request says which text to send to the agent, and when.
type Request struct {
	When string
	Text string
	Zone string // the conversation's time zone from now on; "" leaves it as it is
}

// An Entry describes a schedule to a model.
type Entry struct {
	ID   string `json:"id"`
	When string `json:"when"`
	Text string `json:"text,omitempty"`
	// Next is when the schedule is due next, in its time zone; "" if it is over.
	Next string `json:"next,omitempty"`
	Zone string `json:"time_zone"`
	// Paused says that an owner has paused it, so it is not due until they resume it.
	Paused bool   `json:"paused,omitempty"`
	By     string `json:"by,omitempty"` // the person who made the schedule
}

// A Backend stores the schedules: it is the part of the program that the tool calls. Its error is a
// *tools.Error if the model can do something about the failure.
type Backend interface {
	// Add stores a schedule for the person and the conversation of a call. It may be called again
	// for the same call.
	Add(ctx context.Context, call tools.Call, w Request) (Entry, error)
	// Added returns the schedule that a call has added, even if that schedule is over; ok is false
	// if the call has added none.
	Added(ctx context.Context, call tools.Call) (e Entry, ok bool, err error)
	// List returns the schedules of the call's conversation.
	List(ctx context.Context, call tools.Call) ([]Entry, error)
	// Cancel ends a schedule of the conversation. If it returns no error, no schedule with that id
	// is left.
	Cancel(ctx context.Context, call tools.Call, id string) error
	// Known reports whether the conversation has a schedule of that id.
	Known(ctx context.Context, call tools.Call, id string) (bool, error)
}

type args struct {
	Action string `json:"action" enum:"add,list,cancel"`
	When   string `json:"when,omitempty" jsonschema:"of add: a time such as 2026-12-01 09:00 or 15:30, or in 2h, for once; every 2h; or a cron line of five fields such as 0 9 * * mon-fri. Times are those of the time zone"`
	Text   string `json:"text,omitempty" jsonschema:"of add: what is to be done then, whole, as the person would ask for it"`
	ID     string `json:"id,omitempty" jsonschema:"of cancel: the id that add or list gave"`
	Zone   string `json:"time_zone,omitempty" jsonschema:"of add: the time zone of this chat, such as Europe/Berlin, if the person has said where they are; it is remembered"`
}

// touch says what a call touches. Adding and canceling count as outward, because nobody may be
// watching when the agent does later what the call asked for.
func (a args) touch() tools.Touch {
	t := tools.Touch{Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: tools.OutwardEffect("have something done later")}
	if a.Action == "list" {
		t.Outward = tools.NothingOutward{}
	}
	return t
}

type list struct {
	Schedules []Entry `json:"schedules"`
}

// A cancelResult is what the model is told about a schedule that it has canceled.
type cancelResult struct {
	Cancelled string `json:"cancelled"`
}

// New makes the tool schedule.
func New(backend Backend) tools.Tool {
	t := scheduleTool{backend}
	return tools.New(tools.Spec{
		Name: Name, Effect: tools.Reconcilable, Timeout: 30 * time.Second, Touches: tools.Touches(args.touch),
		Description: "Have something done later in this chat, once or again and again: reminders, reports, looking after something. " +
			"At each time text is said to you here on behalf of the person who asks now, and your answer goes to this chat. " +
			"With action list you see the schedules of this chat, and cancel ends one. Tell the person when it is due next, as the result says it.",
	}, t.run, tools.Reconcile(t.reconcile), tools.EffectBy(func(a args) tools.Effect {
		if a.Action == "list" {
			return tools.Pure
		}
		return tools.Reconcilable
	}))
}

// A scheduleTool is the tool schedule with the backend that it calls.
type scheduleTool struct{ backend Backend }

func (t scheduleTool) run(ctx context.Context, call tools.Call, a args) (any, error) {
	switch a.Action {
	case "list":
		entries, err := t.backend.List(ctx, call)
		if err != nil {
			return nil, explain(err)
		}
		return list{append([]Entry{}, entries...)}, nil
	case "cancel":
		if strings.TrimSpace(a.ID) == "" {
			return nil, tools.Errorf(tools.InvalidArgs, "id is missing: action list shows the ids")
		}
		if err := t.backend.Cancel(ctx, call, strings.TrimSpace(a.ID)); err != nil {
			return nil, explain(err)
		}
		return cancelResult{strings.TrimSpace(a.ID)}, nil
	}
	return t.add(ctx, call, a)
}

func (t scheduleTool) add(ctx context.Context, call tools.Call, a args) (any, error) {
	text := strings.TrimSpace(a.Text)
	switch {
	case call.Scheduled:
		return nil, tools.Errorf(tools.PermissionDenied, "A schedule has begun this turn, and what a schedule begins makes no further schedules. Tell the person to ask for it.")
	case strings.TrimSpace(a.When) == "":
		return nil, tools.Errorf(tools.InvalidArgs, "when is missing: give a time, every and a length of time, or a cron line")
	case text == "":
		return nil, tools.Errorf(tools.InvalidArgs, "text is missing: write what is to be done then")
	case len(text) > maxText:
		return nil, tools.Errorf(tools.InvalidArgs, "text has %d bytes, at most %d are allowed: put what is long into a file, and name the file", len(text), maxText)
	}
	e, err := t.backend.Add(ctx, call, Request{When: a.When, Text: text, Zone: strings.TrimSpace(a.Zone)})
	if err != nil {
		return nil, explain(err)
	}
	return e, nil
}

// reconcile finds out whether a call that was cut off took effect.
func (t scheduleTool) reconcile(ctx context.Context, call tools.Call, a args) (any, bool, error) {
	if a.Action == "cancel" {
		there, err := t.backend.Known(ctx, call, strings.TrimSpace(a.ID))
		if err != nil || there {
			return nil, false, err
		}
		return cancelResult{strings.TrimSpace(a.ID)}, true, nil
	}
	e, ok, err := t.backend.Added(ctx, call)
	if err != nil || !ok {
		return nil, false, err
	}
	return e, true, nil
}

// explain wraps an error to say what failed, unless the error is already for the model.
func explain(err error) error {
	if failed, ok := errors.AsType[*tools.Error](err); ok {
		return failed
	}
	return fmt.Errorf("the schedules cannot be reached: %w", err)
}
