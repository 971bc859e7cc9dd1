package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools"
)

// ollamaModel returns a model at an Ollama server whose largest window has that many tokens, and its log.
func ollamaModel(t *testing.T, most int, s *agenttest.Server, change ...func(*openai.Config)) (*openai.Model, *bytes.Buffer) {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/ps":
			_, _ = io.WriteString(w, `{"models":[]}`) // nobody waits for the answer longer than the test
		case "/api/show":
			_, _ = fmt.Fprintf(w, `{"model_info":{"qwen.context_length":%d}}`, most)
		default:
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	var logged bytes.Buffer
	cfg := openai.Config{BaseURL: h.URL + "/v1", Name: "m", Window: 32_768, Log: slog.New(slog.NewTextHandler(&logged, nil))}
	for _, c := range change {
		c(&cfg)
	}
	m, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.LookUpWindow(t.Context())
	return m, &logged
}

// ollamaStream returns a stream of Ollama's own protocol.
func ollamaStream(events ...string) agenttest.Response {
	return agenttest.Raw(strings.Join(events, "\n") + "\n")
}

const (
	nativeThought = `{"model":"m","message":{"role":"assistant","content":"","thinking":"Let me see."},"done":false}`
	nativeSaid    = `{"model":"m","message":{"role":"assistant","content":"I look."},"done":false}`
	nativeCalls   = `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"read","arguments":{"p":1}}}]},"done":false}` + "\n" +
		`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"index":1,"name":"list","arguments":{}}}]},"done":false}`
	nativeEnd = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":5}`
)

// Ollama loads a model with the configured window if the client uses Ollama's own protocol. The answer gives the same
// blocks.
func TestOllamaIsAskedForTheWindow(t *testing.T) {
	s := agenttest.New(agenttest.Sequence(ollamaStream(nativeThought, nativeSaid, nativeCalls, nativeEnd), ollamaStream(nativeSaid, nativeEnd)))
	m, logged := ollamaModel(t, 131_072, s, func(c *openai.Config) { c.Effort, c.Body = "low", json.RawMessage(`{"top_p":0.9}`) })
	if info := m.Info(); info.ContextTokens != 32_768 || !strings.Contains(info.ContextFrom, "num_ctx") || !strings.Contains(logged.String(), "tokens=32768") {
		t.Errorf("it reads %d tokens %s; the log says %s", info.ContextTokens, info.ContextFrom, logged)
	}
	r := &llm.Request{System: "You are Parley.", MaxTokens: 100, Tools: []tools.Spec{{Name: "list"}}}
	r.Messages = []llm.Message{newMessage(llm.RoleUser, textBlock("hello"), llm.Block{Kind: llm.BlockPicture, Picture: &llm.Picture{Path: "a.png", Type: "image/png", Data: []byte("png")}})}
	a, err := askOnce(t, m, r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range a.Blocks {
		got = append(got, fmt.Sprintf("%s %s%s%s%s", b.Kind, b.Text, b.Name, b.Args, b.ProviderID))
	}
	if want := `thinking Let me see.|text I look.|tool_use read{"p":1}|tool_use list{}`; strings.Join(got, "|") != want || a.Stop != llm.StopWhole {
		t.Errorf("blocks %q, ended by %q; want %q", strings.Join(got, "|"), a.Stop, want)
	}
	if want := (llm.Usage{Input: 9, Output: 5}); a.Usage != want {
		t.Errorf("usage %+v", a.Usage)
	}
	blocks := a.Blocks
	blocks[2].Call, blocks[3].Call = "c1", "c2"
	r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, blocks...), newMessage(llm.RoleUser,
		llm.Block{Kind: llm.BlockToolResult, Call: "c1", Content: json.RawMessage(`{"text":"x"}`)}, llm.Block{Kind: llm.BlockToolResult, Call: "c2", Content: json.RawMessage(`[]`)}))
	if _, err := askOnce(t, m, r); err != nil {
		t.Fatal(err)
	}
	if path := s.Requests()[1].Path; path != "/api/chat" {
		t.Errorf("asked at %s", path)
	}
	wantJSON(t, sentBody(t, s, 2), `{"model":"m","stream":true,"think":"low","truncate":false,"shift":false,"options":{"num_ctx":32768,"num_predict":100,"top_p":0.9},
		"tools":[{"type":"function","function":{"name":"list","parameters":{"type":"object","properties":{}}}}],
		"messages":[{"role":"system","content":"You are Parley."},
			{"role":"user","content":"hello\n\n[picture a.png:]","images":["cG5n"]},
			{"role":"assistant","content":"I look.","thinking":"Let me see.","tool_calls":[{"id":"c1","function":{"name":"read","arguments":{"p":1}}},{"id":"c2","function":{"name":"list","arguments":{}}}]},
			{"role":"tool","content":"{\"text\":\"x\"}","tool_call_id":"c1","tool_name":"read"},{"role":"tool","content":"[]","tool_call_id":"c2","tool_name":"list"}]}`)
}

// Ollama's own protocol is used only if a window is configured, and asks for no larger window than the model supports.
func TestWhichWindowOllamaServes(t *testing.T) {
	cases := map[string]struct {
		window, most int
		api          openai.API
		path         string
		reads        int
		log          string
	}{
		"none configured":           {0, 131_072, "", "/v1/chat/completions", 4096, "set window beside the model's name"},
		"configured":                {32_768, 131_072, "", "/api/chat", 32_768, "num_ctx"},
		"more than the model has":   {32_768, 8192, "", "/api/chat", 8192, "smaller than is configured"},
		"configured, and only chat": {32_768, 131_072, openai.APIChat, "/v1/chat/completions", 4096, "Ollama reads little"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := agenttest.New(func(q agenttest.Request) agenttest.Response {
				if q.Path == "/api/chat" {
					return ollamaStream(nativeSaid, nativeEnd)
				}
				return agenttest.Reply("I look.")
			})
			m, logged := ollamaModel(t, tc.most, s, func(c *openai.Config) { c.Window, c.API = tc.window, tc.api })
			if a, err := askOnce(t, m, helloRequest()); err != nil || a.Blocks[0].Text != "I look." {
				t.Fatalf("answer %+v, %v", a, err)
			}
			if q := s.Requests()[0]; q.Path != tc.path || q.Path == "/api/chat" && !bytes.Contains(q.Body, fmt.Appendf(nil, `"num_ctx":%d`, tc.reads)) {
				t.Errorf("asked at %s: %s", q.Path, q.Body)
			}
			if reads := m.Info().ContextTokens; reads != tc.reads || !strings.Contains(logged.String(), tc.log) {
				t.Errorf("it reads %d; the log says %s", reads, logged)
			}
		})
	}
}

// A server that only resembles Ollama is asked through chat completions.
func TestServersThatResembleOllama(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if q.Path == "/api/chat" {
			return agenttest.Fail(http.StatusNotFound, "404 page not found")
		}
		return agenttest.Reply("I look.")
	})
	m, _ := ollamaModel(t, 131_072, s)
	for range 2 {
		if a, err := askOnce(t, m, helloRequest()); err != nil || a.Blocks[0].Text != "I look." {
			t.Fatalf("answer %+v, %v", a, err)
		}
	}
	if s.Asked() != 3 {
		t.Errorf("asked %d times, want one refusal", s.Asked())
	}
}

func TestOllamaEnds(t *testing.T) {
	end := func(reason string) string { return strings.Replace(nativeEnd, `"stop"`, `"`+reason+`"`, 1) }
	cases := map[string]struct {
		answer agenttest.Response
		stop   llm.Stop
		fault  llm.Fault
	}{
		"too long":          {ollamaStream(nativeSaid, end("length")), llm.StopLength, ""},
		"no reason":         {ollamaStream(nativeSaid, end("")), llm.StopWhole, ""},
		"an error":          {ollamaStream(nativeSaid, `{"error":"the runner has died"}`), "", llm.Busy},
		"cut off":           {ollamaStream(nativeSaid), "", llm.Busy},
		"cut in mid-line":   {ollamaStream(nativeSaid, nativeEnd).CutAfter(len(nativeSaid) + 40), "", llm.Busy},
		"garbled":           {ollamaStream(nativeSaid, `{"message":7}`), "", llm.Busy},
		"beyond the window": {agenttest.Fail(http.StatusBadRequest, `{"error":"the input length exceeds the context length"}`), "", llm.Overflow},
		"no such model":     {agenttest.Fail(http.StatusNotFound, `{"error":"model 'm' not found"}`), "", llm.Refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, _ := ollamaModel(t, 131_072, agenttest.New(agenttest.Always(tc.answer)))
			a, err := askOnce(t, m, helloRequest())
			switch {
			case tc.fault != "" && wantFault(t, err).Fault != tc.fault:
				t.Errorf("error %v, want %s", err, tc.fault)
			case tc.fault == "" && (err != nil || a.Stop != tc.stop || a.Blocks[0].Text != "I look."):
				t.Errorf("answer %+v, %v", a, err)
			}
		})
	}
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if bytes.Contains(q.Body, []byte(`"think"`)) {
			return agenttest.Fail(http.StatusBadRequest, `{"error":"\"m\" does not support thinking"}`)
		}
		return ollamaStream(nativeSaid, nativeEnd)
	})
	m, _ := ollamaModel(t, 131_072, s, func(c *openai.Config) { c.Effort = "high" })
	for range 2 {
		if _, err := askOnce(t, m, helloRequest()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Asked() != 3 {
		t.Errorf("asked %d times, want one refusal", s.Asked())
	}
}
