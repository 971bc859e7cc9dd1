package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent/agenttest"
)

// doctor really asks the model, and tells a wrong key, a wrong name, an empty
// account and a server that is not reached from each other.
func TestDoctorAsksTheModel(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String() + "/v1"
	closed.Close()
	fail := func(status int, body string) agenttest.Script { return agenttest.Always(agenttest.Fail(status, body)) }
	for _, c := range []struct {
		what   string
		script agenttest.Script
		url    string
		wants  []string
		code   int
	}{
		{"a good answer", agenttest.Always(agenttest.Reply("ok")), "", []string{"ok     model: scripted at http://127.0.0.1", "answers in"}, exitDone},
		{"a wrong key", fail(401, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}`), "",
			[]string{"wrong  model:", "Incorrect API key provided.", "model.api_key (", "bot.toml:4"}, exitFailed},
		{"no such model", fail(404, `{"error":{"message":"The model 'scripted' does not exist","type":"invalid_request_error","code":"model_not_found"}}`), "",
			[]string{"wrong  model:", "does not exist", "model.name (", "bot.toml:2"}, exitFailed},
		{"an empty account", fail(429, `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","code":"insufficient_quota"}}`), "",
			[]string{"wrong  model:", "You exceeded your current quota.", "pay into the account", "bot.toml:4"}, exitFailed},
		{"a page instead of a server", fail(404, `<html><title>404 Not Found</title></html>`), "",
			[]string{"wrong  model:", "model.base_url (", "/v1", "bot.toml:3"}, exitFailed},
		{"a busy one", fail(503, `{"error":{"message":"Overloaded, try later."}}`), "", []string{"wrong  model:", "Overloaded, try later.", "try again"}, exitFailed},
		{"one that takes no tools", func(q agenttest.Request) agenttest.Response {
			if len(q.Tools()) > 0 {
				return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"scripted does not support tools"}}`)
			}
			return agenttest.Reply("ok")
		}, "", []string{"wrong  model:", "does not support tools", "model.name ("}, exitFailed},
		{"nobody there", nil, nobody, []string{"wrong  model:", "connection refused", "model.base_url ("}, exitFailed},
		{"no such host", nil, "http://no-such-host.invalid/v1", []string{"wrong  model:", "no-such-host.invalid", "DNS", "model.base_url ("}, exitFailed},
	} {
		url := c.url
		if url == "" {
			url = agenttest.New(c.script).Start(t)
		}
		file := filepath.Join(n.cwd, "bot.toml")
		text := fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\napi_key = \"sk-of-the-test-0123456789\"\n", url)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := n.run("--config", file, "doctor")
		if code != c.code || strings.Contains(out+errs, "sk-of-the-test") {
			t.Errorf("%s: exit code %d, %s%s", c.what, code, out, errs)
		}
		for _, want := range c.wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: it says %q, want %q", c.what, out, want)
			}
		}
	}
}
