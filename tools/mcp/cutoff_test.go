package mcp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"parley/tools"
	"parley/tools/mcp"
)

// If a service has begun a call and its answer is lost on the way, the call doesn't count as refused: the model is not
// told to make it again.
func TestACallThatMayHaveBegunIsUnknown(t *testing.T) {
	var status, effects atomic.Int32
	inner := serveHTTP("on the network")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"tools/call"`)) {
			inner.ServeHTTP(w, r)
			return
		}
		effects.Add(1)
		if code := int(status.Load()); code != 0 {
			http.Error(w, "no", code)
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close() // the answer is lost
		}
	}))
	t.Cleanup(web.Close)
	cases := []struct {
		name   string
		status int32 // 0 is a connection that ends
		code   tools.Code
		word   string
	}{
		{"bad", http.StatusBadRequest, tools.ExecutionFailed, "Call again"}, {"cut", 0, tools.OutcomeUnknown, "Inspect"},
		{"busy", http.StatusTooManyRequests, tools.ExecutionFailed, "Call again"}, {"down", http.StatusServiceUnavailable, tools.ExecutionFailed, "Call again"},
		{"broken", http.StatusInternalServerError, tools.OutcomeUnknown, "Inspect"}, {"gateway", http.StatusBadGateway, tools.OutcomeUnknown, "Inspect"},
		{"late", http.StatusGatewayTimeout, tools.OutcomeUnknown, "Inspect"},
	}
	var servers []mcp.Server // one for each, because a connection that fails is not tried again at once
	for _, c := range cases {
		servers = append(servers, mcp.Server{Name: c.name, URL: web.URL + "/mcp", Headers: map[string]string{"X-Key": "sesame"}})
	}
	s := newFixture(t, nil, servers...)
	for _, c := range cases {
		status.Store(c.status)
		before := effects.Load()
		s.wantFailure("s1", c.name+"__echo", `{"text":"x"}`, c.code, c.word)
		if n := effects.Load() - before; n != 1 {
			t.Errorf("%s was called %d times", c.name, n)
		}
	}
}

// A service that refuses a call with the status 400 still knows the connection: the connection is used again, and the
// call is not repeated. A 400 without a JSON-RPC error may come from a service that was restarted: a new connection is
// made.
func TestABadRequestLosesNoConnection(t *testing.T) {
	var refusal atomic.Value
	refusal.Store("")
	var connections, calls atomic.Int32
	inner := serveHTTP("on the network")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"method":"initialize"`)) {
			connections.Add(1)
		}
		if said := refusal.Load().(string); said != "" && bytes.Contains(body, []byte(`"tools/call"`)) {
			calls.Add(1)
			http.Error(w, said, http.StatusBadRequest)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s := newFixture(t, nil, mcp.Server{Name: "web", URL: web.URL + "/mcp", Headers: map[string]string{"X-Key": "sesame"}})
	s.call("s1", "web__echo", `{"text":"x"}`)
	if connections.Load() == 0 {
		t.Fatal("the service was not connected to")
	}
	for _, c := range []struct {
		said, word   string
		anew, called int32
	}{
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the text is too long"}}`, "the text is too long", 0, 1},
		{"the text is too long", "Call again", 1, 2},
	} {
		before, called := connections.Load(), calls.Load()
		refusal.Store(c.said)
		s.wantFailure("s1", "web__echo", `{"text":"x"}`, tools.ExecutionFailed, c.word)
		if n, made := connections.Load()-before, calls.Load()-called; n != c.anew || made != c.called {
			t.Errorf("after %q it was connected to %d times more, want %d, and called %d times, want %d", c.said, n, c.anew, made, c.called)
		}
		refusal.Store("")
		if got := s.call("s1", "web__echo", `{"text":"on"}`); got != "on" {
			t.Errorf("after %q echo gave %q", c.said, got)
		}
	}
}
