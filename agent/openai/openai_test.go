package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	wireread "parley/agent/openai/wire"
	"parley/tools"
)

const testKey = "sk-sentinel-0123456789"

// scriptedModel returns a Model over a scripted server.
func scriptedModel(t testing.TB, s *agenttest.Server, change ...func(*openai.Config)) *openai.Model {
	t.Helper()
	cfg := openai.Config{BaseURL: s.Start(t), APIKey: testKey, Name: "m"}
	for _, c := range change {
		c(&cfg)
	}
	m, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// askOnce asks once, and checks that the emitted text is the answer's.
func askOnce(t testing.TB, m llm.Model, r *llm.Request) (*llm.Answer, error) {
	t.Helper()
	streamed := map[int]llm.Block{}
	a, err := m.Generate(t.Context(), r, func(d llm.Delta) {
		if d.Void {
			clear(streamed)
			return
		}
		b := streamed[d.Block]
		b.Kind = d.Kind
		b.Text += d.Text
		b.Name += d.Name
		streamed[d.Block] = b
	})
	if err != nil {
		return a, err
	}
	for i, b := range a.Blocks {
		s := streamed[i]
		if b.Kind == llm.BlockToolUse {
			args := wireread.ReadArgs(s.Text)
			begun := !json.Valid([]byte(s.Text)) && strings.HasPrefix(string(b.Args), s.Text) // a later block has come before the rest
			if s.Text != "" && string(args) != string(b.Args) && !begun {
				t.Errorf("the arguments of block %d were streamed as %s, answered as %s", i, s.Text, b.Args)
			}
			s.Text = ""
		}
		if s.Text != b.Text || s.Name != b.Name || s.Kind != b.Kind && b.Text+b.Name != "" {
			t.Errorf("block %d was streamed as %+v, answered as %+v", i, s, b)
		}
	}
	return a, nil
}

// answerOf asks a server that always gives the same response.
func answerOf(t testing.TB, r agenttest.Response) *llm.Answer {
	t.Helper()
	a, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(r))), helloRequest())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func helloRequest() *llm.Request {
	return &llm.Request{Messages: []llm.Message{newMessage(llm.RoleUser, textBlock("hello"))}}
}

func newMessage(role llm.Role, blocks ...llm.Block) llm.Message {
	return llm.Message{Role: role, Blocks: blocks}
}

func textBlock(s string) llm.Block { return llm.Block{Kind: llm.BlockText, Text: s} }

// sentBody returns the body of the n-th request.
func sentBody(t testing.TB, s *agenttest.Server, n int) map[string]any {
	t.Helper()
	var body map[string]any
	requests := s.Requests()
	if len(requests) < n {
		t.Fatalf("%d requests were made, want %d", len(requests), n)
	}
	if err := requests[n-1].Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

func wantJSON(t testing.TB, got any, want string) {
	t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want is no JSON: %v", err)
	}
	if !reflect.DeepEqual(got, w) {
		raw, _ := json.Marshal(got)
		t.Errorf("got  %s\nwant %s", raw, want)
	}
}

func TestAnswersWithText(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("Hello to you, Ann <3")))
	m := scriptedModel(t, s)
	a, err := askOnce(t, m, helloRequest())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Blocks) != 1 || a.Blocks[0].Text != "Hello to you, Ann <3" {
		t.Errorf("blocks %+v", a.Blocks)
	}
	if want := (llm.Usage{Input: 100, Output: 10}); a.Usage != want {
		t.Errorf("usage %+v, want %+v", a.Usage, want)
	}
	if got := s.Requests()[0].Header.Get("Authorization"); got != "Bearer "+testKey {
		t.Errorf("authorization %q", got)
	}
	if info := m.Info(); info.Name != "m" {
		t.Errorf("info %+v", info)
	}
}

func TestNoKeyNoHeader(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("x")))
	if _, err := askOnce(t, scriptedModel(t, s, func(c *openai.Config) { c.APIKey = "" }), helloRequest()); err != nil {
		t.Fatal(err)
	}
	if got, ok := s.Requests()[0].Header["Authorization"]; ok {
		t.Errorf("authorization %q without a key", got)
	}
}

func TestRequest(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("x")))
	m := scriptedModel(t, s)
	use := llm.Block{Kind: llm.BlockToolUse, Call: "c1", Name: "read_file", Args: json.RawMessage(`{"path": "a"}`), ProviderID: "call_9"}
	ours := llm.Block{Kind: llm.BlockToolUse, Call: "turn 1/2", Name: "glob"}
	_, err := askOnce(t, m, &llm.Request{
		System: "You are <b>Parley</b>.",
		Tools:  []tools.Spec{{Name: "glob"}, {Name: "read_file", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","required":["path"]}`)}},
		Messages: []llm.Message{
			newMessage(llm.RoleUser, textBlock("[header]"), textBlock("read a")),
			newMessage(llm.RoleUser, textBlock("please")),
			newMessage(llm.RoleAssistant, llm.Block{Kind: llm.BlockThinking, Text: "hm"}, textBlock("Reading."), use, ours),
			newMessage(llm.RoleUser, textBlock("steered"),
				llm.Block{Kind: llm.BlockToolResult, Call: "c1", Content: json.RawMessage(`{"content":"x"}`)},
				llm.Block{Kind: llm.BlockToolResult, Call: "turn 1/2", Content: json.RawMessage(`[]`)}),
			newMessage(llm.RoleAssistant, llm.Block{Kind: llm.BlockThinking, Text: "only thought"}),
		},
		NoCalls:   true,
		MaxTokens: 50,
	})
	if err != nil {
		t.Fatal(err)
	}
	body := sentBody(t, s, 1)
	messages := body["messages"].([]any)
	made := messages[2].(map[string]any)["tool_calls"].([]any)[1].(map[string]any)["id"].(string)
	if strings.ContainsAny(made, " /") || len(made) > 40 {
		t.Errorf("made up the id %q", made)
	}
	wantJSON(t, body["messages"], `[
		{"role":"system","content":"You are <b>Parley</b>."},
		{"role":"user","content":"[header]\n\nread a\n\nplease"},
		{"role":"assistant","content":"Reading.","tool_calls":[
			{"id":"call_9","type":"function","function":{"name":"read_file","arguments":"{\"path\": \"a\"}"}},
			{"id":"`+made+`","type":"function","function":{"name":"glob","arguments":"{}"}}]},
		{"role":"tool","content":"{\"content\":\"x\"}","tool_call_id":"call_9"},
		{"role":"tool","content":"[]","tool_call_id":"`+made+`"},
		{"role":"user","content":"steered"}]`)
	wantJSON(t, body["tools"], `[
		{"type":"function","function":{"name":"glob","parameters":{"type":"object","properties":{}}}},
		{"type":"function","function":{"name":"read_file","description":"Reads.","parameters":{"type":"object","required":["path"]}}}]`)
	delete(body, "messages")
	delete(body, "tools")
	wantJSON(t, body, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tool_choice":"none","max_tokens":50}`)
}

func TestRequestBytesAreStable(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("x")))
	m := scriptedModel(t, s)
	r := helloRequest()
	r.Tools = []tools.Spec{{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)}}
	for range 2 {
		if _, err := askOnce(t, m, r); err != nil {
			t.Fatal(err)
		}
	}
	if q := s.Requests(); string(q[0].Body) != string(q[1].Body) {
		t.Errorf("the same request became\n%s\n%s", q[0].Body, q[1].Body)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	late := agenttest.Reply("x") // the body's end comes after the answer's
	late.Parts = append(late.Parts, agenttest.Part{Delay: 10 * time.Millisecond, Bytes: "\n"})
	s := agenttest.New(agenttest.Always(late))
	seen := map[string]bool{}
	m := modelAtHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.RemoteAddr] = true
		s.ServeHTTP(w, r)
	}))
	for range 5 {
		if _, err := askOnce(t, m, helloRequest()); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 1 {
		t.Errorf("5 requests took %d connections, want 1", len(seen))
	}
}

func TestConfig(t *testing.T) {
	bad := map[string]openai.Config{
		"no name":   {BaseURL: "http://127.0.0.1:1/v1"},
		"scheme":    {BaseURL: "ftp://x/v1", Name: "m"},
		"no scheme": {BaseURL: "localhost:11434", Name: "m"},
		"password":  {BaseURL: "http://u:" + testKey + "@127.0.0.1/v1", Name: "m"},
		"query":     {BaseURL: "http://127.0.0.1/v1?key=" + testKey, Name: "m"},
		"no URL":    {BaseURL: "http://127.0.0.1:port" + testKey, Name: "m"},
		"newline":   {APIKey: testKey + "\nX: y", Name: "m"},
	}
	for name, cfg := range bad {
		if _, err := openai.New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), testKey) {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

func TestBaseURLAsWritten(t *testing.T) {
	for _, suffix := range []string{"", "/", "/v1", "/v1/", "/openai/v1//"} {
		var path string
		s := agenttest.New(agenttest.Always(agenttest.Reply("x")))
		m := modelAtHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; s.ServeHTTP(w, r) }), suffix)
		if _, err := askOnce(t, m, helloRequest()); err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimRight(suffix, "/") + "/chat/completions"; path != want {
			t.Errorf("base %q asked at %q, want %q", suffix, path, want)
		}
	}
}

func TestFirstModel(t *testing.T) {
	s := agenttest.New(nil)
	base := s.Start(t)
	s.Models = []string{"llama3.1", "other"}
	name, err := openai.FirstModel(t.Context(), openai.Config{BaseURL: base + "/"})
	if err != nil || name != "llama3.1" {
		t.Errorf("first model %q, %v", name, err)
	}
	if name, err = openai.FirstModel(t.Context(), openai.Config{}); err != nil || name != "gpt-5-mini" {
		t.Errorf("at the default URL %q, %v", name, err)
	}
	s.Models = nil
	if _, err = openai.FirstModel(t.Context(), openai.Config{BaseURL: base}); wantFault(t, err).Fault != llm.Refused {
		t.Errorf("no models: %v", err)
	}
	nothing := httptest.NewServer(http.NotFoundHandler())
	defer nothing.Close()
	if _, err = openai.FirstModel(t.Context(), openai.Config{BaseURL: nothing.URL}); wantFault(t, err).Status != http.StatusNotFound {
		t.Errorf("no such path: %v", err)
	}
}
