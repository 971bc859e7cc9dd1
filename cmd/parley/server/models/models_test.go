package models_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/failover"
	"parley/agent/llm"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
)

// The program's model requests no compression, because that would delay streaming, and logs what it learns about its
// server.
func TestTheModelStreamsAndLogsWhatItLearns(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if bytes.Contains(q.Body, []byte(`"stream_options"`)) {
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"Unrecognized request argument","param":"stream_options"}}`)
		}
		return agenttest.Reply("fine")
	})
	cfg := &config.Config{Agents: map[string]config.Agent{"main": {}}}
	cfg.Model.Configured, cfg.Model.Name, cfg.Model.BaseURL = true, "m", s.Start(t)
	var logged bytes.Buffer
	all, err := models.New(t.Context(), cfg, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r := &llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
	if _, err := all["main"][0].Model.Generate(t.Context(), r, func(llm.Delta) {}); err != nil {
		t.Fatal(err)
	}
	for _, q := range s.Requests() {
		if got := q.Header.Get("Accept-Encoding"); got != "" {
			t.Errorf("asked for the encoding %q", got)
		}
	}
	if !strings.Contains(logged.String(), "stream_options") {
		t.Errorf("what was learned is not logged: %q", &logged)
	}
}

// The start logs how large the context window is and where that number comes from. A larger configured window has no
// effect.
func TestTheStartSaysHowLargeTheWindowIs(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	s.Models, s.Window = []string{"m"}, 8192
	for name, tc := range map[string]struct {
		configured int
		want       string
	}{
		"left out":      {0, `msg="the model's window is known" model=m tokens=8192 from="according to the server's list of models"`},
		"set too large": {64_000, `msg="the model's window is smaller than is configured" model=m tokens=8192`},
	} {
		cfg := &config.Config{Agents: map[string]config.Agent{"main": {}}}
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			s.ServeHTTP(w, r)
		}))
		defer server.Close()
		cfg.Model.Configured, cfg.Model.Name, cfg.Model.BaseURL, cfg.Model.Window = true, "m", server.URL+"/v1", tc.configured
		var logged bytes.Buffer
		all, err := models.New(t.Context(), cfg, slog.New(slog.NewTextHandler(&logged, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if n := asked.Load(); n != 0 || strings.Contains(logged.String(), "window") {
			t.Errorf("%s: the start has waited for the server, which was asked %d times: %q", name, n, &logged)
		}
		all.LookUpWindows(t.Context())
		before := asked.Load()
		if all.LookUpWindowsOf(t.Context(), "main"); asked.Load() != before {
			t.Errorf("%s: the server is asked again", name)
		}
		if got := all["main"][0].Model.Info().ContextTokens; got != 8192 || !strings.Contains(logged.String(), tc.want) {
			t.Errorf("%s: it reads %d; the log says %q", name, got, &logged)
		}
	}
}

// Each agent asks the model in its settings, and then its own fallbacks: a model of [models], another model of
// [model]'s server, or the model of [model].
func TestEachAgentAsksItsOwnModels(t *testing.T) {
	answer := func(server string) func(agenttest.Request) agenttest.Response {
		return func(q agenttest.Request) agenttest.Response {
			if bytes.Contains(q.Body, []byte(`"gone"`)) {
				return agenttest.Fail(http.StatusNotFound, `{"error":{"message":"no such model","code":"model_not_found"}}`)
			}
			name := regexp.MustCompile(`"model":"([^"]*)"`).FindSubmatch(q.Body)[1]
			return agenttest.Reply(string(name) + " at " + server)
		}
	}
	one, other := agenttest.New(answer("one")), agenttest.New(answer("other"))
	url := one.Start(t)
	file := filepath.Join(t.TempDir(), "parley.toml")
	text := `[model]
name = "small"
base_url = "` + url + `"
window = 9000
fallback = ["big"]
[models.big]
name = "large"
base_url = "` + other.Start(t) + `"
[models.gone]
name = "gone"
base_url = "` + url + `"
[agents.table]
model = "big"
[agents.named]
model = "medium"
[agents.back]
model = "gone"
[agents.alone]
model = "gone"
fallback = []
[agents.shown]
model = "demo"
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{File: file, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	lists, err := models.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	chains := models.Chains(lists, book, noMeters{}, slog.New(slog.DiscardHandler))
	r := &llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
	for agent, want := range map[string]string{"main": "small at one", "table": "large at other", "named": "medium at one", "back": "large at other"} {
		a, err := chains[agent].Generate(t.Context(), r, func(llm.Delta) {})
		if err != nil || len(a.Blocks) != 1 || a.Blocks[0].Text != want {
			t.Errorf("%s: %+v, %v; want %q", agent, a.Blocks, err, want)
		}
	}
	if a, err := chains["alone"].Generate(t.Context(), r, func(llm.Delta) {}); err == nil {
		t.Errorf("an agent without fallbacks got %+v of another's model", a.Blocks)
	}
	if got := chains["main"].Info().ContextTokens; got != 9000 {
		t.Errorf("the window of [model] is %d", got)
	}
	if got := chains["named"].Info().ContextTokens; got == 9000 {
		t.Error("the window of [model] holds for another model too")
	}
	var each []string
	for _, m := range lists.All() {
		each = append(each, m.Named)
	}
	if want := "model.name models.big.name models.gone.name agents.named.model agents.shown.model"; strings.Join(each, " ") != want {
		t.Errorf("each model once: %q, want %q", each, want)
	}
}

// noMeters counts nothing.
type noMeters struct{}

func (noMeters) Model(failover.Try)      {}
func (noMeters) Failover(string, string) {}

// The model uses the protocol in the settings.
func TestTheConfiguredProtocolIsAsked(t *testing.T) {
	for setting, want := range map[string]string{`"auto"`: "/v1/chat/completions", `"chat"`: "/v1/chat/completions", `"responses"`: "/v1/responses"} {
		s := agenttest.New(func(q agenttest.Request) agenttest.Response {
			if strings.HasSuffix(q.Path, "/responses") {
				return agenttest.Stream(`{"type":"response.output_text.delta","delta":"fine"}`, `{"type":"response.completed","response":{"output":[]}}`)
			}
			return agenttest.Reply("fine")
		})
		file := filepath.Join(t.TempDir(), "parley.toml")
		if err := os.WriteFile(file, fmt.Appendf(nil, "[model]\nname = \"m\"\nbase_url = %q\napi = %s\n", s.Start(t), setting), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{File: file, Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		lists, err := models.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		r := &llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
		a, err := lists[config.MainAgent][0].Model.Generate(t.Context(), r, func(llm.Delta) {})
		if err != nil || a.Blocks[0].Text != "fine" || s.Requests()[0].Path != want {
			t.Errorf("api = %s: asked at %s, answered %+v, %v", setting, s.Requests()[0].Path, a.Blocks, err)
		}
	}
}

// When one process finds that a model refuses its key, all processes stop asking it, including one that starts later.
func TestAFleetLeavesAModelAlone(t *testing.T) {
	refuses := agenttest.New(agenttest.Always(agenttest.Fail(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)))
	answers := agenttest.New(agenttest.Always(agenttest.Reply("from the other")))
	cfg := &config.Config{Agents: map[string]config.Agent{config.MainAgent: {}}, Models: map[string]config.Model{"other": {Name: "m", BaseURL: answers.Start(t)}}}
	cfg.Model = config.Model{Configured: true, Name: "m", BaseURL: refuses.Start(t), Fallback: []string{"other"}}
	book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	r := &llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
	for process := range 3 {
		lists, err := models.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		a, err := models.Chains(lists, book, noMeters{}, slog.New(slog.DiscardHandler))[config.MainAgent].Generate(t.Context(), r, func(llm.Delta) {})
		if err != nil || a.Blocks[0].Text != "from the other" {
			t.Errorf("process %d: %+v, %v", process, a.Blocks, err)
		}
	}
	if refuses.Asked() != 1 || answers.Asked() != 3 {
		t.Errorf("the model that refuses was asked %d times, the other %d times", refuses.Asked(), answers.Asked())
	}
}

// A budget requires the price of each agent's model, and the error says where to write it.
func TestABudgetWantsThePriceOfAnAgentsModel(t *testing.T) {
	cfg := &config.Config{Agents: map[string]config.Agent{"main": {}, "ops": {Name: "ops", Model: "unheard-of"}}}
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	cfg.Model.Configured, cfg.Model.Name, cfg.Model.BaseURL = true, "gpt-5-mini", s.Start(t)
	cfg.Budget.Written = true
	cfg.Agents["main"] = config.Agent{Model: "gpt-5"}
	_, err := models.New(t.Context(), cfg, slog.New(slog.DiscardHandler))
	set, ok := errors.AsType[*config.SettingError](err)
	if !ok || !strings.HasSuffix(set.Key, ".model") || !strings.Contains(set.Remedy, "[models.NAME]") {
		t.Errorf("New = %v", err)
	}
}
