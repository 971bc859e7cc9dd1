package tools

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// An agent with the capability "network" can search with the operator's service, which may be on this machine, and
// cannot fetch pages from this machine. An agent without the capability has neither tool.
func TestWebTools(t *testing.T) {
	t.Parallel()
	var secrets, searches atomic.Int32
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/search" {
			secrets.Add(1)
			return
		}
		searches.Add(1)
		fmt.Fprintf(w, `{"results":[{"title":"Found","url":"http://%s/secret","content":"the snippet"}]}`, r.Host)
	}))
	t.Cleanup(local.Close)
	shown := make(chan []string, 4)
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		switch {
		case r.Rounds() == 0:
			shown <- r.Tools()
			return agenttest.Calls(agenttest.ToolCall{Name: "web_search", Args: `{"query":"parley"}`}, agenttest.ToolCall{Name: "web_fetch", Args: fmt.Sprintf(`{"url":%q}`, local.URL)})
		default:
			return agenttest.Reply(strings.Join(r.Results(), "\n"))
		}
	}, fmt.Sprintf("[web]\nsearch = \"searxng\"\nbase_url = %q\n[agents.main]\ncapabilities = [\"file_read\", \"network\"]\n", local.URL))
	out, errs, code := w.Run("chat", "-m", "look")
	if tools := <-shown; !slices.Contains(tools, "web_search") || !slices.Contains(tools, "web_fetch") {
		t.Errorf("the model is shown %v", tools)
	}
	if code != 0 || searches.Load() != 1 || !strings.Contains(out, "the snippet") || !strings.Contains(out, "permission_denied") || !strings.Contains(out, "loopback") {
		t.Errorf("%d %q %q after %d searches", code, out, errs, searches.Load())
	}

	// On a platform, the agent has only the capabilities that it was given.
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), `, "network"]`, "]", 1)), 0o600))
	w.Serve()
	w.Telegram.Say(2, 2, "look")
	said := w.WaitSaid(2, 1)[0]
	if tools := <-shown; slices.Contains(tools, "web_search") || slices.Contains(tools, "web_fetch") {
		t.Errorf("without the capability the model is shown %v", tools)
	}
	if searches.Load() != 1 || !strings.Contains(said, "network") {
		t.Errorf("without the capability: %q", said)
	}
	if secrets.Load() != 0 {
		t.Error("something of this machine was fetched")
	}
}
