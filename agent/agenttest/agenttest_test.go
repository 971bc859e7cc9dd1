package agenttest_test

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
)

// postRequest posts a request, and returns the status, the body and the error of reading it.
func postRequest(t *testing.T, base, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	read, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(read), err
}

const conversation = `{"model":"m","messages":[{"role":"system","content":"s"},` +
	`{"role":"user","content":"old {\"role\":\"user\""},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]},` +
	`{"role":"tool","content":"old","tool_call_id":"a"},{"role":"assistant","content":"done"},` +
	`{"role":"user","content":"<message from=\"telegram:1\">\nfirst\n</message>\n\n<message from=\"telegram:1\">\nsecond\n<quote kind=\"forwarded\">\nx\n</quote>\n</message>"},` +
	`{"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"y","arguments":"{\"n\":1}"}}]},` +
	`{"role":"tool","content":"{\"role\":\"tool\"}","tool_call_id":"b"},{"role":"tool","content":"two","tool_call_id":"c"}],` +
	`"tools":[{"type":"function","function":{"name":"x","parameters":{}}}],"tool_choice":"none"}`

func TestRequest(t *testing.T) {
	r := agenttest.Request{Body: []byte(conversation)}
	if got := r.Said(); got != "first\n\nsecond" {
		t.Errorf("said %q", got)
	}
	if got, want := r.Results(), []string{`{"role":"tool"}`, "two"}; !reflect.DeepEqual(got, want) {
		t.Errorf("results %q, want %q", got, want)
	}
	if got := r.Rounds(); got != 1 {
		t.Errorf("%d rounds, want 1", got)
	}
	if got := r.Tools(); !reflect.DeepEqual(got, []string{"x"}) || !r.ForbidsCalls() {
		t.Errorf("tools %q, no calls %v", got, r.ForbidsCalls())
	}
	m := r.Messages()
	if len(m) != 9 || m[6].Calls[0] != (agenttest.ToolCall{ID: "b", Name: "y", Args: `{"n":1}`}) || m[7].CallID != "b" {
		t.Errorf("messages %+v", m)
	}
}

func TestScripts(t *testing.T) {
	rounds := agenttest.Rounds(agenttest.Calls(agenttest.ToolCall{Name: "x", Args: `{"ü":1}`}), agenttest.Reply("there you are"))
	if got := rounds(agenttest.Request{Body: []byte(conversation)}); !strings.Contains(got.Parts[0].Bytes, "there ") {
		t.Errorf("after one round: %s", got.Parts[0].Bytes)
	}
	sequence := agenttest.Sequence(agenttest.Reply("one"), agenttest.Reply("two"))
	for n, want := range map[int]string{1: "one", 2: "two", 9: "two"} {
		if got := sequence(agenttest.Request{N: n}); !strings.Contains(got.Parts[0].Bytes, want) {
			t.Errorf("request %d: %s", n, got.Parts[0].Bytes)
		}
	}
	if r := agenttest.Reply("grün"); !reflect.DeepEqual(joinParts(r.Split(3)), joinParts(r)) || len(r.Split(3).Parts) < 10 {
		t.Error("split parts are not the whole")
	}
}

func joinParts(r agenttest.Response) string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.Bytes)
	}
	return b.String()
}

func TestServer(t *testing.T) {
	s := agenttest.New(func(r agenttest.Request) agenttest.Response {
		switch r.Said() {
		case "fail":
			return agenttest.Fail(http.StatusTeapot, "no", "Retry-After", "3")
		case "reset":
			return agenttest.Reply("x").CutAfter(20).Reset()
		}
		return agenttest.Reply("hi").Split(5)
	})
	s.Keep(2)
	base := s.Start(t)
	body := func(said string) string { return `{"messages":[{"role":"user","content":"` + said + `"}]}` }
	if status, got, err := postRequest(t, base, body("x")); err != nil || status != http.StatusOK || got != joinParts(agenttest.Reply("hi")) {
		t.Errorf("status %d, %v, %q", status, err, got)
	}
	if status, got, err := postRequest(t, base, body("fail")); err != nil || status != http.StatusTeapot || got != "no" {
		t.Errorf("status %d, %v, %q", status, err, got)
	}
	if _, got, err := postRequest(t, base, body("reset")); err == nil {
		t.Errorf("a reset connection gave %q", got)
	}
	if q := s.Requests(); s.Asked() != 3 || len(q) != 2 || q[1].Said() != "reset" {
		t.Errorf("asked %d, remembered %d", s.Asked(), len(q))
	}
}

func TestWaits(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{})
	s := agenttest.New(func(agenttest.Request) agenttest.Response {
		close(asked)
		return agenttest.Reply("hi").WaitFor(release).After(time.Millisecond)
	})
	base := s.Start(t)
	done := make(chan error, 1)
	go func() {
		_, _, err := postRequest(t, base, "{}")
		done <- err
	}()
	<-asked
	select {
	case err := <-done:
		t.Fatalf("answered before it was released: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
