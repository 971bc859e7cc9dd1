package subagents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/sessions"
	"parley/sessions/subagents"
	"parley/tools"
	subagenttools "parley/tools/subagents"
)

var _ subagenttools.Backend = (*Service)(nil)

const (
	maxListed   = 50
	maxEntries  = 100
	maxShown    = 2000     // characters of one entry
	maxHistory  = 40 << 10 // bytes of all entries together
	maxLookBack = 200      // how many of a session's newest entries are read to find out whether it is working or waiting
)

// maySeeAll reports whether a tool call may see all sessions: only a call that an owner has caused, in a chat
// that nobody else reads, and not a sub-agent's.
func maySeeAll(call tools.Call) bool { return call.Owner && call.Private && call.Parent == "" }

// find returns the newest task of a session, if the call may see that session: its own, those of its sub-agents or,
// if maySeeAll allows it, any. A session that is not a sub-agent's has no task; for it find returns the zero Task.
// If the call may not see the session, or there is none, the error tells the model so.
func (d *Service) find(ctx context.Context, call tools.Call, session string) (subagents.Task, error) {
	if session == call.Session {
		return subagents.Task{}, nil
	}
	t, err := d.cfg.Table.Newest(ctx, session)
	if err != nil && !errors.Is(err, subagents.ErrNone) {
		return t, fmt.Errorf("the session cannot be looked up now: %w", err)
	}
	if err == nil && t.Parent == call.Session {
		return t, nil
	}
	if maySeeAll(call) {
		switch _, err := d.cfg.Sessions.Info(ctx, session); {
		case err == nil:
			return subagents.Task{}, nil
		case !errors.Is(err, sessions.ErrNotFound) && !errors.Is(err, sessions.ErrInvalidKey):
			return t, fmt.Errorf("the session cannot be looked up now: %w", err)
		}
	}
	return t, tools.Errorf(tools.InvalidArgs, "there is no session %q here: sessions_list shows those that you may see", tools.Clip(session, 300))
}

// A sessionJSON describes a session to a model.
type sessionJSON struct {
	Session string `json:"session"`
	Is      string `json:"is,omitempty"` // "this one" or "sub-agent"
	Agent   string `json:"agent,omitempty"`
	Task    string `json:"task,omitempty"`
	State   string `json:"state,omitempty"`
	Since   string `json:"since,omitempty"`
	Updated string `json:"updated,omitempty"`
}

func describe(t subagents.Task) sessionJSON {
	return sessionJSON{Session: t.Session, Is: "sub-agent", Agent: t.Agent, Task: t.Title, State: t.State, Since: formatTime(t.Started)}
}

func formatTime(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// List implements subagenttools.Backend: it lists the sub-agents of the call's session or, if p.All is set and
// maySeeAll allows it, all sessions, a page at a time.
func (d *Service) List(ctx context.Context, call tools.Call, p subagenttools.ListArgs) (any, error) {
	if p.All {
		return d.listAll(ctx, call, p.After)
	}
	list, _, err := d.subAgents(ctx, call.Session)
	if err != nil {
		return nil, err
	}
	return map[string]any{"sessions": append([]sessionJSON{{Session: call.Session, Is: "this one", Agent: call.Agent, State: subagents.Running}}, list...)}, nil
}

// subAgents describes the sub-agents of a session, each by its newest task, and returns how many of their tasks
// are still open.
func (d *Service) subAgents(ctx context.Context, session string) (list []sessionJSON, open int, err error) {
	all, err := d.cfg.Table.Of(ctx, session, 4*maxListed)
	if err != nil {
		return nil, 0, fmt.Errorf("the sub-agents cannot be looked up now: %w", err)
	}
	for _, t := range all {
		if t.IsOpen() {
			open++
		}
		known := slices.ContainsFunc(list, func(l sessionJSON) bool { return l.Session == t.Session })
		if !known && len(list) < maxListed {
			list = append(list, describe(t))
		}
	}
	return list, open, nil
}

func (d *Service) listAll(ctx context.Context, call tools.Call, after string) (any, error) {
	if !maySeeAll(call) {
		return nil, tools.Errorf(tools.PermissionDenied, "only an owner may see all sessions, in a private chat: leave all out")
	}
	page, err := d.cfg.Sessions.List(ctx, after, maxListed+1)
	if err != nil {
		return nil, fmt.Errorf("the sessions cannot be listed now: %w", err)
	}
	result := map[string]any{}
	if len(page) > maxListed {
		page = page[:maxListed]
		result["after"] = page[maxListed-1].Key
	}
	list := []sessionJSON{}
	for _, one := range page {
		list = append(list, sessionJSON{Session: one.Key, Agent: sessions.AgentOf(one.Key), Updated: formatTime(one.Updated)})
	}
	result["sessions"] = list
	return tools.Untrusted{Value: result}, nil // people name their chats
}

// Status implements subagenttools.Backend: it says whether a session is working, waiting or idle, and what its
// newest task is. For the call's own session, which "" names too, it lists the sub-agents.
func (d *Service) Status(ctx context.Context, call tools.Call, session string) (any, error) {
	if session == "" || session == call.Session {
		list, open, err := d.subAgents(ctx, call.Session)
		return map[string]any{"session": call.Session, "agent": call.Agent, "state": subagents.Running, "sub_agents_working": open, "most": MaxOpen, "sub_agents": list}, err
	}
	t, err := d.find(ctx, call, session)
	if err != nil {
		return nil, err
	}
	state, updated, err := d.stateOf(ctx, session)
	if err != nil {
		return nil, err
	}
	s := sessionJSON{Session: session, State: state, Updated: updated}
	if t.ID != "" {
		s = describe(t)
		s.Updated = updated
		if t.State == subagents.Running && state == stateWaiting {
			s.State = state
		}
	}
	return s, nil
}

// What a session without a task is doing, in words for the model.
const (
	stateIdle    = "idle"
	stateWorking = "working"
	stateWaiting = "waiting for people, or for sub-agents"
)

// stateOf determines from a session's newest entries whether it is idle, working or waiting, and when the last
// of them was written.
func (d *Service) stateOf(ctx context.Context, session string) (state, updated string, err error) {
	info, err := d.cfg.Sessions.Info(ctx, session)
	if errors.Is(err, sessions.ErrNotFound) { // its task has not begun
		return stateIdle, "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("the session cannot be read now: %w", err)
	}
	open := map[string]bool{}
	parked := map[string]bool{}
	for e, err := range d.cfg.Sessions.Read(ctx, session, max(1, info.LastEntry-maxLookBack)) {
		if err != nil {
			return "", "", fmt.Errorf("the session cannot be read now: %w", err)
		}
		switch e.Kind {
		case sessions.KindTurnDone:
			delete(open, e.Turn)
			delete(parked, e.Turn)
		case sessions.KindTurnParked:
			parked[e.Turn] = true
		case sessions.KindTurnUnparked:
			delete(parked, e.Turn)
			open[e.Turn] = true
		case sessions.KindTurnStarted:
			open[e.Turn] = true
		}
	}
	switch {
	case len(parked) > 0:
		state = stateWaiting
	case len(open) > 0:
		state = stateWorking
	default:
		state = stateIdle
	}
	return state, formatTime(info.Updated), nil
}

// Agents implements subagenttools.Backend: it describes the calling agent, and the agents that it may hand
// tasks to.
func (d *Service) Agents(_ context.Context, call tools.Call) (any, error) {
	type agentJSON struct {
		Name         string             `json:"name"`
		Self         bool               `json:"is_this_one,omitempty"`
		Model        string             `json:"model,omitempty"`
		Capabilities []tools.Permission `json:"capabilities"`
		Can          []string           `json:"can,omitempty"`      // what calls may name in needs
		Away         []string           `json:"away_now,omitempty"` // those of them that take a node that is away
		Prompt       string             `json:"prompt,omitempty"`
	}
	list := []agentJSON{}
	for _, name := range d.cfg.MaySpawn(call.Agent) {
		about := d.cfg.Describe(name)
		one := agentJSON{Name: name, Self: name == call.Agent, Model: about.Model, Capabilities: about.Capabilities, Prompt: tools.Clip(about.Prompt, maxShown)}
		for _, ability := range d.cfg.Abilities(call, name) {
			one.Can = append(one.Can, ability.Name)
			if ability.Away {
				one.Away = append(one.Away, ability.Name)
			}
		}
		list = append(list, one)
	}
	return map[string]any{"agents": list}, nil
}
