package server

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/agent"
	"parley/agent/agenttest"
	"parley/agent/demo"
	"parley/agent/failover"
	"parley/agent/metrics"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/models"
	"parley/sessions"
	"parley/tools"
	"parley/tools/nodes/placed"
)

// newTestServer returns a server with a configuration. It doesn't serve.
func newTestServer(t testing.TB, text string) *Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "parley.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{File: file, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(t.Context(), cfg, home.WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	answering := []models.Model{{Link: failover.Link{ID: "demo", Model: demo.New()}}}
	return assemble(t, h, Config{Settings: cfg, Models: models.Lists{"main": answering, "ops": answering}, Doctor: newTestDoctor})
}

// assemble returns a server with a configuration over an open home, without platforms and without a sandbox.
func assemble(t testing.TB, h *home.Home, c Config) *Server {
	t.Helper()
	c.Role, c.Log = Both, slog.New(slog.DiscardHandler)
	hidden, err := newSecrets(c.Settings)
	if err != nil {
		t.Fatal(err)
	}
	g := foundation{home: h, settings: newSettings(c.Settings), role: c.Role, log: c.Log, metrics: metrics.New(metrics.Config{Log: c.Log})}
	return newServer(g, c, hidden, nil, findSandbox(c, newStartup(t.Context()), nil))
}

// The key of a session names its agent, whose settings apply.
func TestAgentOfASession(t *testing.T) {
	s := newTestServer(t, "[agents.main]\nmax_tool_iterations = 3\n[agents.ops]\nmax_tool_iterations = 7\n[agents.mute]\n")
	for session, want := range map[string]int{"main:console:default": 3, "ops:slack:C1/17.5": 7} {
		if a, err := s.agents.answerer.agents.forSession(t.Context(), session); err != nil || a.MaxIterations != want || a.Name != sessions.AgentOf(session) {
			t.Errorf("%s: %s with %d iterations, %v; want %d", session, a.Name, a.MaxIterations, err, want)
		}
	}
	if _, err := s.agents.answerer.agents.forSession(t.Context(), "mute:console:default"); err == nil || !strings.Contains(err.Error(), "agents.mute.model") {
		t.Errorf("an agent for which no model answers: %v", err)
	}
	if a, err := s.agents.answerer.agents.forSession(t.Context(), "gone:console:default"); err == nil || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("an agent that there is not: %+v, %v", a, err)
	}
}

// A turn begins only after the server of its model has said how large the context window is, or has turned out not to
// say it.
func TestATurnWaitsForTheWindowOfItsModel(t *testing.T) {
	model := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	model.Models, model.Window = []string{"m"}, 8192
	s := newTestServer(t, "[model]\nname = \"m\"\nbase_url = \""+model.Start(t)+"\"\n")
	lists, err := models.New(t.Context(), s.settings.Load(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	*s.chats.chains = *newModelChains(s.foundation, lists)
	if a, err := s.agents.answerer.agents.forSession(t.Context(), "main:console:default"); err != nil || a.ContextTokens != 8192 {
		t.Errorf("the agent begins with a window of %d, %v; want 8192", a.ContextTokens, err)
	}
}

// The notice about where people's words go names the models of all agents that they can talk to on the channel.
func TestTheModelsOfAllAgentsOfAChannelAreNamed(t *testing.T) {
	s := newTestServer(t, `[model]
name = "demo"
[models.far]
name = "m"
base_url = "https://far.example/v1"
[agents.ops]
model = "far"
[agents.mute]
`)
	for _, c := range []struct {
		agents []string
		want   string
	}{{[]string{"main"}, "local"}, {[]string{"main", "mute"}, "local"}, {[]string{"main", "ops"}, "far.example"}, {[]string{"ops"}, "far.example"}} {
		if got := strings.Join(models.Places(s.settings.Load(), s.chats.chains.byAgent, c.agents), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.agents, got, c.want)
		}
	}
	routed := config.Channel{Agent: "main", Routes: []config.AgentRoute{{Mention: "ops", Agent: "ops"}, {Chat: "1", Agent: "main"}}}
	if got := strings.Join(routed.AllAgents(), " "); got != "main ops" {
		t.Errorf("the agents of the channel are %q", got)
	}
}

// A testDoctor stands for the examiner of package doctor, which imports this package.
type testDoctor struct{}

func newTestDoctor(func() *config.Config, func(string) string, *slog.Logger) any { return testDoctor{} }

func (testDoctor) Run(context.Context) error { return nil }

func (testDoctor) Routes() []exchange.Route {
	return []exchange.Route{{Pattern: "GET /v1/doctor", May: exchange.Caller.IsAdmin}}
}

// The tools of an agent that works on a node match the tools of other agents, so rules and displays apply to their
// calls in the same way.
func TestToolsThatRunOnANode(t *testing.T) {
	s := newTestServer(t, "[agents.main]\nruns_on = \"node:pi\"\n[agents.ops]\n")
	all := s.agents.toolbox.makeTools(&commandSandbox{})
	for _, spec := range placed.Tools() {
		if own, has := all.Lookup(spec.Name); !has || own.Spec().Permission != spec.Permission || spec.Touches == nil {
			t.Errorf("no agent has %s like that", spec.Name)
		}
	}
	for _, name := range placed.Left() {
		if _, has := all.Lookup(name); !has {
			t.Errorf("no agent has %s", name)
		}
	}
	on, err := s.agents.answerer.agents.forSession(t.Context(), "main:console:default")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range slices.Concat(on.Tools.Specs(), on.KnownTools.Specs()) {
		if slices.Contains(placed.Left(), spec.Name) || slices.ContainsFunc(placed.Tools(), func(p tools.Spec) bool { return p.Name == spec.Name }) {
			t.Errorf("there is no node, and yet it has %s", spec.Name)
		}
	}
	if _, has := on.Tools.Lookup("memory_write"); !has || on.StoreLongResult != nil {
		t.Error("it remembers nothing, or keeps results that it can't read")
	}
	if text, err := s.agents.answerer.agents.prompts.build(t.Context(), agent.Asker{Session: "main:console:default"}); err != nil || !strings.Contains(text, "the node `pi`") {
		t.Errorf("it is told %q, %v", text, err)
	}
	if text, err := s.agents.answerer.agents.prompts.build(t.Context(), agent.Asker{Session: "ops:console:default"}); err != nil || strings.Contains(text, "node `") {
		t.Errorf("another agent is told %q, %v", text, err)
	}
}
