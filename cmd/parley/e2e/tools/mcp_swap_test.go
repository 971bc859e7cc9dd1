package tools

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// A changing is an MCP service whose tools change: the tool hold waits and stays, old disappears, and new appears.
type changing struct {
	*mcp.Server
	handler http.Handler
	url     string
	held    chan struct{} // gets a value when a call of hold has begun
	release chan struct{}
}

func newChanging(t *testing.T) *changing {
	t.Helper()
	c := &changing{Server: mcp.NewServer(&mcp.Implementation{Name: "changing", Version: "1"}, nil), held: make(chan struct{}, 10), release: make(chan struct{})}
	c.add("hold", func(ctx context.Context) string {
		c.held <- struct{}{}
		select {
		case <-c.release:
		case <-ctx.Done():
		}
		return "held"
	})
	c.add("old", func(context.Context) string { return "the old one" })
	c.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return c.Server }, nil)
	web := httptest.NewServer(c.handler)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(sync.OnceFunc(func() { close(c.release) }))
	c.url = web.URL
	return c
}

func (c *changing) add(name string, do func(context.Context) string) { c.describe(name, "", do) }

func (c *changing) describe(name, description string, do func(context.Context) string) {
	mcp.AddTool(c.Server, &mcp.Tool{Name: name, Description: description}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: do(ctx)}}}, nil, nil
	})
}

// swap replaces the tool old by new, and accepts the tools as an owner.
func (c *changing) swap(w *parleytest.World) {
	w.T.Helper()
	c.RemoveTools("old")
	c.add("new", func(context.Context) string { return "the new one" })
	for _, args := range [][]string{{"mcp", "test", "web"}, {"mcp", "accept", "web"}} {
		if out, errs, code := w.Run(args...); code != parleytest.ExitDone || !strings.Contains(out, "new") {
			w.T.Errorf("%s ended with %d: %s%s", args, code, out, errs)
		}
	}
}

// shown returns the names of the service's tools that a model is shown.
func shown(r agenttest.Request) string {
	return strings.Join(slices.DeleteFunc(r.Tools(), func(name string) bool { return !strings.HasPrefix(name, "web__") }), " ")
}

// swapModel plays a model that calls hold and then old, and answers with the tools that it was shown.
func swapModel(r agenttest.Request) agenttest.Response {
	switch got := r.Results(); {
	case strings.Contains(r.Said(), "again"):
		return agenttest.Reply("next: " + shown(r))
	case len(got) == 0:
		return agenttest.Calls(agenttest.Call("web__hold", `{}`))
	case len(got) == 1 && slices.Contains(r.Tools(), "web__old"):
		return agenttest.Calls(agenttest.Call("web__old", `{}`))
	default:
		return agenttest.Reply(fmt.Sprintf("now: %s; %s", shown(r), strings.Join(got, " ")))
	}
}

func swapSettings(c *changing) string {
	return fmt.Sprintf("\n[mcp.web]\nurl = %q\nagents = [\"main\"]\n[tools]\nuntrusted = \"allow\"\n", c.url)
}

// awaitTools waits until a server's tools are known and accepted.
func awaitTools(t *testing.T, w *parleytest.World) {
	t.Helper()
	parleytest.WaitFor(t, "the server's tools to be known", func() bool {
		out, _, _ := w.Run("mcp", "list")
		return strings.Contains(out, "accepted")
	})
}

// If the tools of a server change during a turn, the turn keeps the tools that it began with, and the next turn has the
// new ones. If the model calls a tool that no longer exists, it is told so.
func TestMCPToolsChangeWhileATurnRuns(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	w := parleytest.New(t, swapModel, swapSettings(c))
	p := w.Serve()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "go")
	<-c.held
	c.swap(w)
	c.release <- struct{}{}
	said := w.WaitSaid(2, 1)[0]
	parleytest.Wants(t, said, "now: web__hold web__old;", "held", "error")
	if strings.Contains(said, "the old one") {
		t.Errorf("what is gone was called: %s", said)
	}
	w.Telegram.Say(2, 2, "again")
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "next: web__hold web__new")
	p.Stop()
}

// A turn that was interrupted in the middle of a call continues with the tools that exist then. The model is told that
// the outcome of the call is unknown, not that the call was not made.
func TestMCPToolsChangeWhileATurnIsCutOff(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	w := parleytest.New(t, swapModel, swapSettings(c))
	p := w.Serve()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "go")
	<-c.held
	p.Kill()
	c.RemoveTools("hold")
	c.swap(w)
	p = w.Serve()
	said := w.WaitSaid(2, 1)[0]
	parleytest.Wants(t, said, "web__new", "outcome_unknown")
	if strings.Contains(said, "the old one") {
		t.Errorf("what is gone was called: %s", said)
	}
	p.Stop()
}
