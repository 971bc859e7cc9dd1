package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/agent/demo"
	"parley/agent/openai"
	"parley/agent/prompt"
	"parley/bus"
	"parley/cmd/parley/config"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/memory"
	"parley/tools/message"
)

// newModel makes the configured model. With nothing configured it is the demo.
func newModel(ctx context.Context, c *config.Config, log *slog.Logger) (agent.Model, error) {
	if c.Model.Demo || !c.Model.Configured {
		return demo.New(), nil
	}
	oc := openai.Config{Name: c.Model.Name, BaseURL: c.Model.BaseURL, APIKey: string(c.Model.APIKey), Log: log}
	if oc.Name == "" {
		oc.Name = defaultModel
		if oc.BaseURL != "" {
			name, err := openai.FirstModel(ctx, oc)
			if busy, ok := errors.AsType[*agent.ModelError](err); ok && busy.Fault == agent.ModelBusy {
				return nil, fmt.Errorf("model.name: not set, and the server cannot be asked for one now: %w: start it, or name one", err)
			}
			if refused, ok := errors.AsType[*agent.ModelError](err); ok {
				return nil, &settingError{key: "model.name", remedy: "not set, and the server does not list its models: name one. " + refused.Told()}
			}
			if err != nil {
				return nil, &settingError{key: "model.name", remedy: fmt.Sprintf("not set, and the server's list of models cannot be read (%v): name one", err)}
			}
			oc.Name = name
		}
	}
	m, err := openai.New(oc)
	if err != nil {
		return nil, fmt.Errorf("set up the model: %w", err)
	}
	return m, nil
}

// defaultModel is what the default provider is asked for where nothing is named.
const defaultModel = "gpt-5-mini"

// agent is an agent as it is configured now.
func (s *server) agent(name string) (agent.Agent, bool) {
	a, ok := s.settings.Load().Agents[name]
	if !ok {
		return agent.Agent{}, false
	}
	return agent.Agent{
		Name: name, Model: s.model, Known: s.tools, Tools: s.granted(a.Capabilities),
		Prompt: s.prompt, Keep: s.keep,
		MaxIterations: a.MaxToolIterations, ErrorLimit: a.ToolErrorLimit,
		MaxParallelTools: a.MaxParallelTools, ContextTokens: s.window(a.ContextTokens), Steer: a.Queue == "steer",
	}, true
}

// granted is the set of tools that capabilities allow, one for all turns.
func (s *server) granted(capabilities []tools.Permission) *tools.Set {
	key := fmt.Sprint(capabilities)
	if set, ok := s.grants.Load(key); ok {
		return set.(*tools.Set)
	}
	set, _ := s.grants.LoadOrStore(key, s.tools.Granted(capabilities))
	return set.(*tools.Set)
}

// window is how much of the context may be used: what is configured, or what
// the model has, the lesser.
func (s *server) window(configured int) int {
	if has := s.model.Info().ContextTokens; has > 0 {
		return min(configured, has)
	}
	return configured
}

func (s *server) newTools() *tools.Set {
	all := files.New(func(ctx context.Context, call tools.Call) (files.Dir, error) { return s.openUntil(ctx, call) })
	all = append(all, memory.New(func(ctx context.Context, call tools.Call) (memory.Dir, error) { return s.openUntil(ctx, call) })...)
	all = append(all, message.New(s.deliver))
	return tools.NewSet(append(all, trials()...)...)
}

// mostWriting is how long after the lease was asked for a tool's write may take
// effect in a fleet. It is less than what is left of a lease that is held.
const mostWriting = 3 * time.Second

// openUntil opens a session's directory for one call. In a fleet others may have
// the session by the time that a paused process goes on, so a write ends before
// the lease and the call's deadline.
func (s *server) openUntil(ctx context.Context, call tools.Call) (*workspace.Dir, error) {
	if call.Held.IsZero() {
		call.Held = time.Now()
	}
	until := call.Held.Add(mostWriting)
	dir, err := s.home.workspace(call.Session)
	if err != nil {
		return nil, err
	}
	dir = dir.Within(ctx)
	if s.settings.Load().Bus.URL == "" {
		return dir, nil
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	return dir.Until(until), nil
}

// keep stores a result that is too long for the model in the session's workspace.
func (s *server) keep(ctx context.Context, call tools.Call, content json.RawMessage) (string, error) {
	dir, err := s.openUntil(ctx, call)
	if err != nil {
		return "", err
	}
	path := ".agent/out/" + call.ID + ".json"
	return path, dir.Write(path, content)
}

// deliver is the message tool's way out. It reaches the conversation itself,
// the chats of those who were paired, and what the agent's may_message lists.
func (s *server) deliver(ctx context.Context, l message.Letter) error {
	to, failed := s.addresses(l)
	if failed != nil {
		return failed
	}
	var reach []string
	err := insist(ctx, func() (err error) {
		reach, err = s.reach(ctx, l)
		return err
	})
	if err != nil {
		return err
	}
	for _, a := range to {
		if !slices.Contains(reach, a.String()) {
			return tools.Errorf(tools.PermissionDenied, "%s may not be messaged from here. These may be: %s.", a, strings.Join(reach, ", "))
		}
	}
	for i, a := range to {
		id := l.ID
		if i > 0 {
			id = fmt.Sprintf("%s/%d", l.ID, i)
		}
		body, err := bus.Outbound{ID: id, To: a, Text: l.Content, Session: l.Session, Turn: l.Turn, At: time.Now()}.Encode()
		if err != nil {
			return fmt.Errorf("encode message: %w", err)
		}
		err = insist(ctx, func() error {
			return s.home.bus.Publish(ctx, bus.OutboundTopic(a.Channel), bus.Message{ID: id, Key: a.String(), Body: body})
		})
		if refusal(err) {
			return fmt.Errorf("%s cannot be messaged now: %w", a, err)
		}
		if err != nil { // the bus may have it
			return tools.Errorf(tools.OutcomeUnknown, "OUTCOME UNKNOWN: the message to %s may or may not be on its way. Do not send it again unless you know that it did not arrive.", a)
		}
	}
	return nil
}

// addresses resolves what the model named: a target, or a channel and a chat.
func (s *server) addresses(l message.Letter) ([]bus.Address, *tools.Error) {
	c := s.settings.Load()
	if to, ok := c.Targets[l.Channel]; ok {
		return to, nil
	}
	var names []string
	named := l.Channel
	if l.Chat != "" {
		named += ":" + l.Chat
	}
	a, err := bus.ParseAddress(named)
	for _, known := range s.channels {
		if known.name != l.Channel && known.name != a.Channel {
			names = append(names, known.name)
			continue
		}
		if err != nil {
			return nil, tools.Errorf(tools.InvalidArgs, "chat_id is missing: name the chat on %s.", l.Channel)
		}
		return []bus.Address{a}, nil
	}
	for name := range c.Targets {
		names = append(names, name)
	}
	slices.Sort(names)
	return nil, tools.Errorf(tools.InvalidArgs, "there is no channel or target %q. There are: %s.", l.Channel, strings.Join(names, ", "))
}

// reach lists the addresses that a turn may send to, its own first.
func (s *server) reach(ctx context.Context, l message.Letter) ([]string, error) {
	reach := []string{l.From}
	c := s.settings.Load()
	for _, entry := range c.Agents[agentName(l.Session)].MayMessage {
		if to, ok := c.Targets[entry]; ok {
			for _, a := range to {
				reach = append(reach, a.String())
			}
			continue
		}
		reach = append(reach, entry)
	}
	pairings, err := s.home.book.Pairings(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up who is paired: %w", err)
	}
	for _, p := range pairings {
		if p.Approved && p.Chat != "" {
			reach = append(reach, p.Chat)
		}
	}
	slices.Sort(reach[1:])
	return slices.Compact(reach), nil
}

// prompt is the prefix of a session's prompt: what the operator has written in
// the home, what stands in the session's workspace, and its memory.
func (s *server) prompt(ctx context.Context, session string) (string, error) {
	home := os.DirFS(s.settings.Load().Home)
	made, err := prompt.Builder{Sources: []prompt.Source{
		func(context.Context, string) ([]prompt.File, error) {
			return prompt.Read(opener(home), "home", "AGENTS.md", "SOUL.md"), nil
		},
		func(_ context.Context, session string) ([]prompt.File, error) {
			dir, err := s.home.workspace(session)
			if err != nil {
				return nil, unusable(s.home.root, err)
			}
			return prompt.Read(opener(dir), "workspace", "AGENTS.md", "MEMORY.md"), nil
		},
	}}.Build(ctx, session)
	if err != nil {
		return "", err
	}
	// Most sessions have the same: thousands of turns in flight then share it.
	if last := s.lastPrompt.Load(); last != nil && *last == made {
		return *last, nil
	}
	s.lastPrompt.Store(&made)
	return made, nil
}

func opener(files fs.FS) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) { return files.Open(name) }
}

// agentName is the agent in a session's key.
func agentName(session string) string {
	name, _, _ := strings.Cut(session, ":")
	return name
}

func channelOf(person string) string {
	name, _, _ := strings.Cut(person, ":")
	return name
}
