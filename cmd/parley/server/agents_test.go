package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/demo"
	"parley/agent/failover"
	"parley/cmd/parley/config"
	"parley/cmd/parley/home"
	"parley/cmd/parley/models"
	"parley/tools/sandbox"
)

// newTestServer makes a server of a configuration. It does not serve.
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
	return newServer(h, Config{Settings: cfg, Models: models.Lists{"main": answering, "ops": answering}, Role: Both, Log: slog.New(slog.DiscardHandler)}, nil, unwalled)
}

// The agent of a session is the one that its key names, with that one's settings.
func TestAgentOfASession(t *testing.T) {
	s := newTestServer(t, "[agents.main]\nmax_tool_iterations = 3\n[agents.ops]\nmax_tool_iterations = 7\n[agents.mute]\n")
	for session, want := range map[string]int{"main:console:default": 3, "ops:slack:C1/17.5": 7} {
		if a, err := s.agentOf(t.Context(), session); err != nil || a.MaxIterations != want || a.Name != agentName(session) {
			t.Errorf("%s: %s with %d iterations, %v; want %d", session, a.Name, a.MaxIterations, err, want)
		}
	}
	if _, err := s.agentOf(t.Context(), "mute:console:default"); err == nil || !strings.Contains(err.Error(), "agents.mute.model") {
		t.Errorf("an agent for which no model answers: %v", err)
	}
	if a, err := s.agentOf(t.Context(), "gone:console:default"); err == nil || !strings.Contains(err.Error(), `"gone"`) {
		t.Errorf("an agent that there is not: %+v, %v", a, err)
	}
}

// A turn does not begin before it is known how much its model reads at once, or known that its
// server does not say.
func TestATurnWaitsForTheWindowOfItsModel(t *testing.T) {
	model := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	model.Models, model.Window = []string{"m"}, 8192
	s := newTestServer(t, "[model]\nname = \"m\"\nbase_url = \""+model.Start(t)+"\"\n")
	lists, err := models.New(t.Context(), s.settings.Load(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.lists, s.models = lists, models.Chains(lists, s.home.Book, s.metrics, slog.New(slog.DiscardHandler))
	if a, err := s.agentOf(t.Context(), "main:console:default"); err != nil || a.ContextTokens != 8192 {
		t.Errorf("the agent begins with a window of %d, %v; want 8192", a.ContextTokens, err)
	}
}

// unwalled finds no sandbox.
func unwalled() (sandbox.Sandbox, error) { return nil, nil }

// What people are told of where their words go names the models of all agents with whom they
// may talk on the channel.
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
		if got := strings.Join(s.modelPlaces(c.agents), " "); got != c.want {
			t.Errorf("%v: %q, want %q", c.agents, got, c.want)
		}
	}
	routed := config.Channel{Agent: "main", Routes: []config.AgentRoute{{Mention: "ops", Agent: "ops"}, {Chat: "1", Agent: "main"}}}
	if got := strings.Join(agentsOf(routed), " "); got != "main ops" {
		t.Errorf("the agents of the channel are %q", got)
	}
}
