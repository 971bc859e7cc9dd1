package tools

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/server/mcpservers"
	"parley/sessions/sqldb/sqldbtest"
)

// bossHeader is the header of a token with all rights. A fleet needs one, because each process has an owner's token of
// its own.
var bossHeader = parleytest.Bearer("boss-token-of-the-test")

// serversOf returns the MCP servers that the API lists.
func serversOf(o *parleytest.HTTPWorld) []mcpservers.Server {
	o.T.Helper()
	var now struct{ Servers []mcpservers.Server }
	parleytest.Must(o.T, json.Unmarshal([]byte(o.Ask("GET", "/v1/mcp", "", bossHeader...).Body), &now))
	return now.Servers
}

// toolNames returns the names of the tools that the API lists.
func toolNames(o *parleytest.HTTPWorld) []string {
	o.T.Helper()
	var now struct {
		Tools []struct{ Name, Origin string }
	}
	parleytest.Must(o.T, json.Unmarshal([]byte(o.Ask("GET", "/v1/tools", "", bossHeader...).Body), &now))
	var names []string
	for _, t := range now.Tools {
		if t.Origin == "mcp" {
			names = append(names, t.Name)
		}
	}
	return names
}

// A gateway uses no MCP servers itself, but it lists the tools that the workers have from them, including tools that
// they found after the gateway started. It shows changed descriptions next to the accepted ones, and accepts only what
// a person has seen.
func TestAGatewayTellsTheToolsOfMCPServers(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	c := newChanging(t)
	w := parleytest.New(t, swapModel, swapSettings(c)+fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[tokens.boss]\ntoken = \"boss-token-of-the-test\"\nmay = [\"admin\"]\n", redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir()))
	o := parleytest.ListenHTTP(w)
	w.ServeAs("gateway")
	o.Ready(t)
	if has := toolNames(o); len(has) != 0 {
		t.Fatalf("before any worker has asked the server, there are %q", has)
	}
	w.ServeAs("worker").WaitServing()
	parleytest.WaitFor(t, "the gateway to tell what the worker has found", func() bool {
		return slices.Equal(toolNames(o), []string{"web__hold", "web__old"})
	})
	if now := serversOf(o); len(now) != 1 || now[0].State != "untried" || now[0].SignIn != true || len(now[0].Tools) != 2 || !slices.Equal(now[0].Agents, []string{"main"}) {
		t.Errorf("the gateway tells %+v", now)
	}
	c.RemoveTools("old")
	c.describe("old", "Now it says something else.", func(context.Context) string { return "other" })
	c.add("new", func(context.Context) string { return "the new one" })
	if a := o.Ask("POST", "/v1/mcp/web/test", "{}", bossHeader...); a.Status != 200 || !strings.Contains(a.Body, `"state":"up"`) {
		t.Fatalf("the server was tried with %d %s", a.Status, a.Body)
	}
	beside := serversOf(o)[0].Aside
	if len(beside) != 2 || beside[0].Name != "new" || beside[0].Was != nil || beside[1].Name != "old" || beside[1].Was == nil || beside[1].Was.Description != "" || beside[1].Description != "Now it says something else." {
		t.Fatalf("set aside are %+v", beside)
	}
	accept := func(body string) parleytest.Answer {
		return o.Ask("POST", "/v1/mcp/web/accept", body, bossHeader...)
	}
	if a := accept(fmt.Sprintf(`{"tool": "old", "digest": %q}`, beside[0].Digest)); a.Status != 409 || a.Code() != "changed" {
		t.Errorf("what was not seen is accepted: %d %s", a.Status, a.Body)
	}
	if a := accept(fmt.Sprintf(`{"digest": %q}`, beside[0].Digest)); a.Status != 422 {
		t.Errorf("a digest of no tool is answered with %d %s", a.Status, a.Body)
	}
	if a := accept(fmt.Sprintf(`{"tool": "old", "digest": %q}`, beside[1].Digest)); a.Status != 200 || a.Body != "{\"accepted\":[\"old\"]}\n" {
		t.Errorf("what was seen is answered with %d %s", a.Status, a.Body)
	}
	if has := toolNames(o); !slices.Equal(has, []string{"web__hold", "web__old"}) {
		t.Errorf("then there are %q", has)
	}
	if a := o.Ask("GET", "/v1/audit?kind=approval", "", bossHeader...); !strings.Contains(a.Body, `"tool":"old"`) {
		t.Errorf("the audit does not say which tool was accepted: %s", a.Body)
	}
}
