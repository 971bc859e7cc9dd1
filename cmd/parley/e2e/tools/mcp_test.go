//go:build linux

package tools

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// shellServer is a shell script that works as an MCP server. Its tool returns a file of the conversation's folder and
// the variable SERVER_KEY. The variable DESCRIBED contains the tool's description.
const shellServer = `
while read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	[ -n "$id" ] || continue
	say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
	case "$line" in
	*'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}' ;;
	*'"tools/list"'*) say '"result":{"tools":[{"name":"look","description":"'"$DESCRIBED"'","inputSchema":{"type":"object"}}]}' ;;
	*'"tools/call"'*) say '"result":{"content":[{"type":"text","text":"found '"$(cat note) $SERVER_KEY"'"}]}' ;;
	*) say '"error":{"code":-32601,"message":"no such method"}' ;;
	esac
done`

// mcpModel plays a model that writes a file and then has the server read it, if it has the server's tool.
func mcpModel(r agenttest.Request) agenttest.Response {
	last := r.Messages()[len(r.Messages())-1]
	switch {
	case last.Role == "tool" && strings.Contains(last.Content, "found"), last.Role == "tool" && strings.Contains(last.Content, "error"):
		return agenttest.Reply("it gave " + last.Content)
	case last.Role == "tool":
		return agenttest.Calls(agenttest.Call("notes__look", `{}`))
	}
	if slices.Contains(r.Tools(), "notes__look") {
		return agenttest.Calls(agenttest.Call("write_file", `{"path":"note","content":"the treasure"}`))
	}
	return agenttest.Reply("no such tool")
}

func mcpSettings(description, agents string) string {
	return fmt.Sprintf("\n[mcp.notes]\ncommand = \"sh\"\nargs = [\"-c\", '''%s''']\nenv = [\"DESCRIBED=%s\", \"SERVER_KEY=${SERVER_KEY}\"]\nagents = [%s]\n[agents.other]\n", shellServer, description, agents)
}

// An agent can use the tools of the MCP servers that name the agent. A tool whose description changes is disabled until
// an owner accepts it. Secrets appear nowhere.
func TestToolsOfAnMCPServer(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, mcpModel, mcpSettings("Looks.", `"main"`))
	w.Env = []string{"SERVER_KEY=s3cr3t-of-the-server"}
	w.NeedsSandbox()
	p := w.Serve()
	p.WaitServing()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "look")
	said := w.WaitSaid(2, 1)[0]
	parleytest.Wants(t, said, "found the treasure")
	if strings.Contains(said, "s3cr3t") {
		t.Errorf("a secret is said: %s", said)
	}
	out, errs, code := w.Run("mcp", "list")
	parleytest.Wants(t, out, "notes", "look", "accepted", "Looks.")
	if code != parleytest.ExitDone {
		t.Errorf("mcp list ended with %d: %s", code, errs)
	}
	if _, errs, code = w.Run("mcp", "accept", "notes"); code != parleytest.ExitFailed || !strings.Contains(errs, "has nothing waiting to be accepted") {
		t.Errorf("accepting what is accepted ended with %d: %s", code, errs)
	}
	p.Stop()

	raw, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(raw), "DESCRIBED=Looks.", "DESCRIBED=Looks, and tells me.", 1)), 0o600))
	p = w.Serve()
	p.WaitServing()
	parleytest.WaitFor(t, "the change to be seen", func() bool {
		out, _, _ := w.Run("mcp")
		return strings.Contains(out, "NOT ACCEPTED YET") && strings.Contains(out, "and tells me")
	})
	w.Telegram.Say(2, 2, "look")
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "no such tool")
	out, errs, code = w.Run("mcp", "accept", "notes__look")
	if code != parleytest.ExitDone || !strings.Contains(out, "look") {
		t.Errorf("mcp accept ended with %d: %s%s", code, out, errs)
	}
	if out, errs, _ = w.Run("--json", "logs", "--filter", "approval"); strings.Count(out, `"accepted"`) != 1 || !strings.Contains(out, `"notes"`) {
		t.Errorf("the audit has %s%s, want what was accepted, and not what was refused", out, errs)
	}
	w.Telegram.Say(2, 2, "look")
	parleytest.Wants(t, w.WaitSaid(2, 3)[2], "found the treasure")
	p.Stop()
}

// A model judges calls of a server's tools like any other calls.
func TestAToolOfAnMCPServerIsJudged(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		switch {
		case !strings.Contains(string(r.Body), `"model":"judge"`):
			return mcpModel(r)
		case !strings.Contains(string(r.Body), "notes__look"): // doctor's request to the model
			return agenttest.Reply(`{"verdict":"allow","reason":""}`)
		}
		parleytest.Wants(t, r.Messages()[1].Content, `<judged tool="notes__look" agent="main"`, "<message from=\"telegram:2\"")
		return agenttest.Reply(`{"verdict":"deny","reason":"notes are private"}`)
	}, mcpSettings("Looks.", `"main"`)+"[guard]\nmodel = \"judge\"\njudge = [\"notes__*\"]\n")
	w.Env = []string{"SERVER_KEY=x"}
	w.NeedsSandbox()
	p := w.Serve()
	p.WaitServing()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "look")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "notes__look was refused by the model that judges calls", "notes are private")
	p.Stop()
}

// An agent with its own list of MCP servers has the servers of that list, whichever agents the servers name. parley mcp
// test tries a server, and the metrics say whether it is up.
func TestAnAgentsOwnMCPServers(t *testing.T) {
	t.Parallel()
	settings := mcpSettings("Looks.", `"other"`) + "[agents.main]\nmcp = [\"notes\"]\n[mcp.gone]\ncommand = \"sh\"\nargs = [\"-c\", \"echo broken >&2; exit 3\"]\nagents = [\"other\"]\n"
	w := parleytest.New(t, mcpModel, settings)
	w.Env = []string{"SERVER_KEY=x"}
	w.NeedsSandbox()
	out, errs, code := w.Run("mcp", "test", "notes") // without a server
	if code != parleytest.ExitDone {
		t.Errorf("mcp test ended with %d: %s", code, errs)
	}
	parleytest.Wants(t, out, "Tools listed: 1", "the agents that have them: main, other", "look")
	if _, errs, code = w.Run("mcp", "test", "gone"); code != parleytest.ExitFailed || !strings.Contains(errs, "exit code 3") || !strings.Contains(errs, "broken") {
		t.Errorf("mcp test of what ends at once ended with %d: %s", code, errs)
	}
	p := w.Serve()
	p.WaitServing()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "look")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "found the treasure")
	if out, errs, code = w.Run("mcp", "test", "notes"); code != parleytest.ExitDone || !strings.Contains(out, "Tools listed: 1") {
		t.Errorf("beside the server it ended with %d: %s%s", code, out, errs)
	}
	if _, errs, code = w.Run("mcp", "test", "nots"); code != parleytest.ExitFailed || !strings.Contains(errs, "no server by that name") {
		t.Errorf("mcp test of what is not there ended with %d: %s", code, errs)
	}
	parleytest.WaitFor(t, "both to have been tried", func() bool {
		out, _, _ := w.Run("metrics")
		return strings.Contains(out, `parley_mcp_up{server="notes"} 1`) && strings.Contains(out, `parley_mcp_up{server="gone"} 0`)
	})
	out, _, _ = w.Run("doctor")
	parleytest.Wants(t, out, "ok     mcp notes: answers in ", "ms; tools: 1", "wrong  mcp gone:", "exit code 3", "mcp.gone.command")
	p.Stop()
}

// An agent that no MCP server names has no tools of these servers.
func TestAnAgentWithoutAnMCPServer(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, mcpModel, mcpSettings("Looks.", `"other"`))
	w.Env = []string{"SERVER_KEY=x"}
	w.NeedsSandbox()
	p := w.Serve()
	p.WaitServing()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "look")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "no such tool")
	p.Stop()
}

// If the model's server refuses a tool, the turn continues without that tool. The model is told that the tool is
// missing, and doctor says which tool it is and why.
func TestAToolThatTheModelsServerRefuses(t *testing.T) {
	t.Parallel()
	const words = `{"error":{"message":"Invalid schema for function '{name}'","type":"invalid_request_error","param":"tools[{index}].function.parameters","code":"invalid_function_parameters"}}`
	refuses := func(t agenttest.Tool) bool { return t.Name == "notes__look" }
	w := parleytest.New(t, agenttest.RefuseTools(400, words, refuses, mcpModel), mcpSettings("Looks.", `"main"`))
	w.Env = []string{"SERVER_KEY=x"}
	w.NeedsSandbox()
	p := w.Serve()
	p.WaitServing()
	awaitTools(t, w)
	w.Telegram.Say(2, 2, "look")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "no such tool")
	last := w.Model.Requests()[w.Model.Asked()-1]
	parleytest.Wants(t, last.Messages()[0].Content, "you do not have them now: notes__look.")
	out, _, _ := w.Run("doctor")
	parleytest.Wants(t, out, "note   tools of", "the model's server refuses it (invalid_function_parameters): agents don't have notes__look")
	if out, errs, code := w.Run("--json", "status"); code != parleytest.ExitDone || !strings.Contains(out, `"tool":"notes__look"`) {
		t.Errorf("status ended with %d: %s%s", code, out, errs)
	}
	p.Stop()
}
