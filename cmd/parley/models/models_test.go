package models_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/cmd/parley/config"
	"parley/cmd/parley/models"
)

// The model that the program makes asks for no compression, which holds back
// what is streamed, and logs what it learns of its server.
func TestTheModelStreamsAndLogsWhatItLearns(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if bytes.Contains(q.Body, []byte(`"stream_options"`)) {
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"Unrecognized request argument","param":"stream_options"}}`)
		}
		return agenttest.Reply("fine")
	})
	cfg := &config.Config{}
	cfg.Model.Configured, cfg.Model.Name, cfg.Model.BaseURL = true, "m", s.Start(t)
	var logged bytes.Buffer
	all, err := models.New(t.Context(), cfg, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r := llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
	if _, err := all[0].Model.Generate(t.Context(), r, func(llm.Delta) {}); err != nil {
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

// The start says how much the model reads and from where that is known, and what is configured
// beyond that does not hold.
func TestTheStartSaysHowLargeTheWindowIs(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	s.Models, s.Window = []string{"m"}, 8192
	for name, tc := range map[string]struct {
		configured int
		want       string
	}{
		"left out":      {0, `msg="the model's window is known" model=m tokens=8192 from="as the server's list of models says"`},
		"set too large": {64_000, `msg="the model's window is smaller than is configured" model=m tokens=8192`},
	} {
		cfg := &config.Config{}
		cfg.Model.Configured, cfg.Model.Name, cfg.Model.BaseURL, cfg.Model.Window = true, "m", s.Start(t), tc.configured
		var logged bytes.Buffer
		all, err := models.New(t.Context(), cfg, slog.New(slog.NewTextHandler(&logged, nil)))
		if err != nil {
			t.Fatal(err)
		}
		if got := all[0].Model.Info().ContextTokens; got != 8192 || !strings.Contains(logged.String(), tc.want) {
			t.Errorf("%s: it reads %d; the log says %q", name, got, &logged)
		}
	}
}
