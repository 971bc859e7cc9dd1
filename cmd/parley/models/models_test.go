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
