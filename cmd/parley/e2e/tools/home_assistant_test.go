package tools

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

const homeToken = "long-lived-token-of-the-home"

// newHomeAssistant starts a fake Home Assistant with a kitchen light. It returns the server's address and the state of
// the light.
func newHomeAssistant(t *testing.T) (url string, on *atomic.Bool) {
	t.Helper()
	on = &atomic.Bool{}
	on.Store(true)
	server := mcp.NewServer(&mcp.Implementation{Name: "home-assistant", Version: "1"}, nil)
	add := func(name string, do func() string) {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: do()}}}, nil, nil
		})
	}
	add("GetLiveContext", func() string {
		if on.Load() {
			return "Kitchen: on"
		}
		return "Kitchen: off"
	})
	add("HassTurnOff", func() string { on.Store(false); return "done" })
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/api/mcp":
			http.NotFound(w, r)
		case r.Header.Get("Authorization") != "Bearer "+homeToken:
			http.Error(w, "401: Unauthorized", http.StatusUnauthorized)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return web.URL, on
}

// A person who follows the page about Home Assistant can ask which lights are on, and can switch a light once somebody
// has approved the call.
func TestTheHomeAssistantOfThePage(t *testing.T) {
	t.Parallel()
	url, on := newHomeAssistant(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "nodes.md"))
	parleytest.Must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Home Assistant\n")
	block := regexp.MustCompile("(?s)   ```toml server parley.toml\n(.*?)   ```").FindStringSubmatch(section)
	if block == nil || !strings.Contains(block[1], "http://homeassistant.local:8123") {
		t.Fatal("the page has no settings for Home Assistant")
	}
	settings := strings.NewReplacer("\n   ", "\n", "http://homeassistant.local:8123", url).Replace("\n" + block[1])
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		switch got := r.Results(); len(got) {
		case 0:
			return agenttest.Calls(agenttest.Call("home__GetLiveContext", `{}`))
		case 1:
			return agenttest.Calls(agenttest.Call("home__HassTurnOff", `{}`))
		default:
			return agenttest.Reply("it was " + strings.Join(got, ", then "))
		}
	}, settings)
	w.Env = []string{"HOME_ASSISTANT_TOKEN=" + homeToken}
	out, errs, code := w.Run("mcp", "test", "home")
	if code != parleytest.ExitDone || !strings.Contains(out, "GetLiveContext") {
		t.Fatalf("mcp test ended with %d: %s%s", code, out, errs)
	}
	w.Serve().WaitServing()
	awaitTools(t, w)
	w.Telegram.Say(1, 1, "is a light on in the kitchen? Turn it off.")
	ask := parleytest.Requested(t, w.WaitSaid(1, 1)[0])
	if !on.Load() {
		t.Error("it was switched before anybody agreed")
	}
	if _, errs, code := w.Run("approvals", "approve", ask); code != parleytest.ExitDone {
		t.Fatalf("approve ended with %d: %s", code, errs)
	}
	said := w.WaitSaid(1, 2)
	parleytest.Wants(t, said[len(said)-1], "Kitchen: on", "done")
	if on.Load() {
		t.Error("the light is still on")
	}
}
