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
	"strings"
	"time"

	"parley/agent"
	"parley/agent/demo"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/agent/prompt"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/memory"
	"parley/tools/message"
)

// newModel makes the configured model. With nothing configured it is the demo.
func newModel(ctx context.Context, c *config.Config, log *slog.Logger) (llm.Model, error) {
	if c.Model.Demo || !c.Model.Configured {
		return demo.New(), nil
	}
	oc := openai.Config{Name: c.Model.Name, BaseURL: c.Model.BaseURL, APIKey: string(c.Model.APIKey), Log: log}
	if oc.Name == "" {
		oc.Name = defaultModel
		if oc.BaseURL != "" {
			name, err := openai.FirstModel(ctx, oc)
			if busy, ok := errors.AsType[*llm.Error](err); ok && busy.Fault == llm.Busy {
				return nil, fmt.Errorf("model.name: not set, and the server cannot be asked for one now: %w: start it, or name one", err)
			}
			if refused, ok := errors.AsType[*llm.Error](err); ok {
				return nil, &home.SettingError{Key: "model.name", Remedy: "not set, and the server does not list its models: name one. " + refused.Explain()}
			}
			if err != nil {
				return nil, &home.SettingError{Key: "model.name", Remedy: fmt.Sprintf("not set, and the server's list of models cannot be read (%v): name one", err)}
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
	dir, err := s.home.Workspace(call.Session)
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

// prompt is the prefix of a session's prompt: what the operator has written in
// the home, what stands in the session's workspace, and its memory.
func (s *server) prompt(ctx context.Context, session string) (string, error) {
	files := os.DirFS(s.settings.Load().Home)
	made, err := prompt.Builder{Sources: []prompt.Source{
		func(context.Context, string) ([]prompt.File, error) {
			return prompt.Read(opener(files), "home", "AGENTS.md", "SOUL.md"), nil
		},
		func(_ context.Context, session string) ([]prompt.File, error) {
			dir, err := s.home.Workspace(session)
			if err != nil {
				return nil, home.Unusable(s.home.Root, err)
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
