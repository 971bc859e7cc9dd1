// Package subagents hands tasks to sub-agents, and delivers their reports.
//
// A task's row is written before anything else, with everything that is needed to hand the task out and to
// report its end. The ids of its message and of its report are made from the call's id, so whatever one process
// leaves undone, another does again, and it counts only once. Run does that for tasks that nothing else would
// finish.
//
// subagents.go hands out tasks, choose.go says to whom, and copy.go copies files for them; report.go delivers reports; stop.go ends
// tasks; sweep.go does what was left undone; parent.go says which session another one works for; sessions.go
// and history.go show sessions to models, and send.go says something in a session.
package subagents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/task"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/subagents"
	"parley/tools"
	"parley/tools/plainjson"
)

// MaxOpen is how many sub-agents may work for one session at the same time.
const MaxOpen = 5

// A Bus carries tasks and reports, gives out the hold of the process that sweeps, and tells watchers what state
// tasks are in.
type Bus interface {
	bus.Bus
	bus.Holder
	bus.Emitter
}

// Config holds the parts that a Service works with.
type Config struct {
	Table subagents.Table
	Bus   Bus
	// Ready returns, for the model, why no task may be handed out now; "" if tasks may.
	Ready func(ctx context.Context) (why string, err error)
	// MaySpawn returns the names of the agents that an agent may hand tasks to.
	MaySpawn func(agent string) []string
	// Abilities returns what an agent can do in a task that a call hands out.
	Abilities func(call tools.Call, agent string) []Ability
	// Copy copies files from the workspace of the session that made a tool call into the workspace of session
	// to.
	Copy func(ctx context.Context, call tools.Call, to string, files []string) error
	// Admit decides whether the person for whom a task was handed out may still talk to the
	// bot.
	Admit bus.Admit
	// Sessions reads the logs of sessions.
	Sessions sessions.Reader
	// Describe returns what models are told about the agent with this name.
	Describe func(agent string) AgentInfo
	// AnswersAt reports whether an agent answers people at an address.
	AnswersAt func(at bus.Address) bool
	// Erase erases sessions and everything that belongs to them. It returns which ones were erased, even along
	// with an error.
	Erase func(ctx context.Context, sessions []string) (erased []string, err error)
	// CountEnded, if set, is called when a task has ended, with its final state, for metrics.
	CountEnded func(state string)
	// Point, if set, is called at each step after which a test may kill the process.
	Point func(name string)
	Log   *slog.Logger
}

// AgentInfo is what models are told about an agent that they may hand tasks to.
type AgentInfo struct {
	Model        string // the name of its model; "" if it is the same as all agents'
	Capabilities []tools.Permission
	Prompt       string // the operator's instructions for the agent
}

// A Service hands out tasks (work that one agent gives to another), and delivers the reports.
type Service struct {
	cfg         Config
	sweepNow    chan struct{} // wakes the sweep
	parents     sync.Map      // maps the key of a sub-agent's session to the parent's
	parentCount atomic.Int64  // the number of entries in parents
}

var _ task.SubAgents = (*Service)(nil)

// New makes a Service.
func New(cfg Config) *Service {
	if cfg.Point == nil {
		cfg.Point = func(string) {}
	}
	if cfg.CountEnded == nil {
		cfg.CountEnded = func(string) {}
	}
	return &Service{cfg: cfg, sweepNow: make(chan struct{}, 1)}
}

// A route says where the report of a task goes, and on whose behalf the task runs. The store keeps it with the
// task as JSON.
type route struct {
	At   bus.Address `json:"at"`
	Name string      `json:"name,omitempty"`
}

// Prepare implements task.SubAgents: it records a task whose report the turn will wait for, and copies its
// files, but doesn't hand it out yet.
func (d *Service) Prepare(ctx context.Context, call tools.Call, what tools.Task) (sessions.Delegated, error) {
	t, err := d.prepare(ctx, call, what, "")
	return sessions.Delegated{ID: t.ID, Agent: t.Agent, Session: t.Session}, err
}

// SpawnedTask is what the model is told about a task that it has handed out without waiting: the report comes
// later, as a message.
type SpawnedTask struct {
	Session string `json:"session"`
	Agent   string `json:"agent"`
	State   string `json:"state"`
	Message string `json:"message"`
}

// Spawn hands out a task without making the turn wait: the sub-agent's report comes later, as a message.
func (d *Service) Spawn(ctx context.Context, call tools.Call, what tools.Task) (any, error) {
	return d.spawn(ctx, call, what, newSession)
}

// newSession is passed instead of a session's key to ask for a new session for a task whose report comes as a
// message.
const newSession = "new"

// spawn does what Spawn does. session is an existing session of a sub-agent, or newSession.
func (d *Service) spawn(ctx context.Context, call tools.Call, what tools.Task, session string) (any, error) {
	t, err := d.prepare(ctx, call, what, session)
	if err != nil {
		return nil, err
	}
	d.cfg.Point("spawn:prepared")
	if err := ctx.Err(); err != nil {
		// If the turn is stopped, that ends the task; if the lease was lost, the session's next holder repeats
		// the call; if the call has taken too long, a sweep ends the task and reports it.
		return nil, err
	}
	if err := d.Start(ctx, t.ID); err != nil {
		return nil, fmt.Errorf("it is not known whether the task is handed out; its report, or that it was never begun, is told here by itself: %w", err)
	}
	d.cfg.Point("spawn:handed")
	return SpawnedTask{t.Session, t.Agent, subagents.Running, "It works beside this turn, and its report is told here by itself: there is no need to wait for it."}, nil
}

// prepare records a task and copies its files, or returns the task that an earlier attempt of the same call
// recorded. session is as for spawn, or "" for a task that the turn waits for, which also gets a new session.
func (d *Service) prepare(ctx context.Context, call tools.Call, what tools.Task, session string) (subagents.Task, error) {
	t, err := d.newTask(ctx, call, what, session)
	if err != nil {
		return subagents.Task{}, err
	}
	err = d.cfg.Table.Prepare(ctx, t, MaxOpen)
	limit, full := errors.AsType[*subagents.LimitError](err)
	switch {
	case full:
		return t, tools.Errorf(tools.ExecutionFailed, "%v: wait for a report, or do it yourself", limit)
	case errors.Is(err, sessions.ErrNotFound):
		return t, tools.Errorf(tools.ExecutionFailed, "this conversation was forgotten meanwhile, so nothing was handed out")
	case errors.Is(err, subagents.ErrKnown):
		t, err = d.cfg.Table.Get(ctx, t.ID)
		if err == nil && t.State == subagents.Cancelled && t.Report == "" {
			err = tools.Errorf(tools.Cancelled, "it was stopped before it had begun")
		}
		if err != nil || t.State != subagents.Prepared {
			return t, err
		}
	case err != nil:
		return t, err
	}
	d.cfg.Point("task:recorded")
	d.tellWatchers(t)
	if len(what.Files) == 0 {
		return t, nil
	}
	err = d.cfg.Copy(ctx, call, t.Session, what.Files)
	if _, refused := errors.AsType[*tools.Error](err); refused && ctx.Err() == nil { // otherwise the call is made again
		if failed := d.cfg.Table.Discard(ctx, t.ID); failed != nil {
			return t, failed
		}
		d.cfg.Bus.Emit(tasksErased(t.Parent))
		d.wakeSweep()
	}
	return t, err
}

// newTask returns the task that a call asks for. Its error tells the model why the task can't be handed out.
func (d *Service) newTask(ctx context.Context, call tools.Call, what tools.Task, session string) (subagents.Task, error) {
	if call.Parent != "" {
		return subagents.Task{}, tools.Errorf(tools.PermissionDenied, "a sub-agent has no sub-agents: do it yourself, or say in the report what is missing")
	}
	why, err := d.cfg.Ready(ctx)
	if err != nil {
		return subagents.Task{}, err
	}
	if why != "" {
		return subagents.Task{}, tools.Errorf(tools.ExecutionFailed, "nothing can be handed to sub-agents now: %s. Do it yourself, or try again later", why)
	}
	name, err := d.choose(ctx, call, what)
	if err != nil {
		return subagents.Task{}, err
	}
	at, err := bus.ParseAddress(call.Address)
	if err != nil {
		return subagents.Task{}, tools.Errorf(tools.ExecutionFailed, "nothing can be handed out from here, because its report would reach nobody: %v", err)
	}
	id := subagents.ID(call.Session, call.Key)
	key := session
	if session == "" || session == newSession {
		if key, err = subagents.Key(name, call.Session, id); err != nil {
			return subagents.Task{}, err
		}
	}
	t := subagents.Task{
		ID: id, Parent: call.Session, Session: key, Agent: name, Person: call.Person, Turn: call.Turn, Call: call.ID,
		Title: title(what.Prompt), Awaited: session == "", Started: time.Now(), State: subagents.Prepared,
	}
	if t.Route, err = plainjson.Marshal(route{At: at, Name: call.PersonName}); err != nil {
		return t, fmt.Errorf("encode a route: %w", err)
	}
	text := what.Prompt
	if len(what.Files) > 0 {
		text += "\n\nIn your workspace: " + strings.Join(what.Files, ", ")
	}
	t.Mail, err = plainjson.Marshal(bus.Inbound{
		ID: subagents.MailID(id), Kind: bus.Tasked, From: bus.Person{ID: call.Person, Name: call.PersonName, Owner: call.Owner},
		At: address(t), Private: call.Private, Group: !call.Private, Mentioned: true, Text: text, SentAt: t.Started,
		Task: &bus.Task{ID: id, Agent: call.Agent, Session: call.Session, Asked: at, Untrusted: call.Untrusted},
	})
	if err != nil {
		return t, fmt.Errorf("encode a task: %w", err)
	}
	return t, nil
}

// address returns the address of the session that a sub-agent works in. It isn't a chat: no person reads or
// writes there.
func address(t subagents.Task) bus.Address {
	key, _ := sessions.ParseKey(t.Session) // subagents.Key made it, so it is valid
	return bus.Address{Channel: bus.SubAgents, Chat: key.Chat, Thread: key.Thread}
}

// maxTitle is how many characters of a task's text a list of tasks shows.
const maxTitle = 80

// title returns the beginning of a task's text on one line, for lists.
func title(prompt string) string {
	words := []rune(strings.Join(strings.Fields(prompt), " "))
	if len(words) > maxTitle {
		return string(words[:maxTitle]) + "…"
	}
	return string(words)
}

// Start implements task.SubAgents: it hands out the task with this id, which Prepare has recorded. It does nothing
// if the task was erased or stopped. If a task for which the turn waits has ended, it publishes the report again.
func (d *Service) Start(ctx context.Context, id string) error {
	t, err := d.cfg.Table.Get(ctx, id)
	if errors.Is(err, subagents.ErrNone) {
		return nil // the task was erased
	}
	if err == nil && !t.IsOpen() && t.Awaited {
		return d.publishReport(ctx, t) // the turn waits from now on, so an earlier report doesn't count
	}
	if err != nil || !t.IsOpen() || t.Stop != "" {
		return err
	}
	if err := d.cfg.Table.Start(ctx, id); err != nil {
		return err
	}
	d.cfg.Point("task:running")
	t.State = subagents.Running
	d.tellWatchers(t)
	return d.publish(ctx, t)
}

// publish publishes a task as a message to its sub-agent's session. If no bus would accept that, it reports the task
// as failed.
func (d *Service) publish(ctx context.Context, t subagents.Task) error {
	var in bus.Inbound
	if err := json.Unmarshal(t.Mail, &in); err != nil {
		return fmt.Errorf("decode task %s: %w", t.ID, err)
	}
	err := bus.PublishInbound(ctx, d.cfg.Bus, t.Session, in, true)
	if errors.Is(err, bus.ErrInvalid) {
		return d.Report(ctx, task.Report{ID: t.ID, State: subagents.Failed, Text: "The task is too long for any message."})
	}
	return err
}

// Begin implements task.SubAgents: it reports whether the task is still wanted, according to its row in the
// table. A stopped task is not.
func (d *Service) Begin(ctx context.Context, id string) (wanted bool, err error) {
	t, err := d.cfg.Table.Get(ctx, id)
	if errors.Is(err, subagents.ErrNone) {
		return false, nil
	}
	return t.IsOpen() && t.Stop == "", err
}

// Count implements task.SubAgents: it counts the tasks of a session that have not ended.
func (d *Service) Count(ctx context.Context, session string) (int, error) {
	open, err := d.cfg.Table.OpenOf(ctx, session)
	return len(open), err
}
