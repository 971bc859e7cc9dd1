package nodelinks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"parley/cmd/parley/config"
	"parley/tools"
)

// ownTool returns a tool that works in the workspace.
func ownTool(name string, permission tools.Permission) tools.Tool {
	return tools.New(tools.Spec{Name: name, Permission: permission}, func(context.Context, tools.Call, struct{}) (any, error) { return nil, nil })
}

// onPi returns a configuration with agents that work on the node pi.
func onPi() *config.Config {
	return &config.Config{Agents: map[string]config.Agent{"main": {RunsOn: "node:pi"}, "other": {Nodes: []string{"pi"}}}}
}

// An agent that works on a node has the node's tools under their usual names, and no other tools that would work in
// its local workspace.
func TestToolsOfAnAgentThatWorksOnANode(t *testing.T) {
	s := newStage(t, onPi())
	all := tools.NewSet(ownTool("read_file", tools.FileRead), ownTool("exec_shell", tools.Shell), ownTool("spawn", tools.Shell), ownTool("git_status", tools.Git), ownTool("recall", ""))
	if got := names(s.With(all, "main", false)); !slices.Equal(got, []string{"recall"}) {
		t.Errorf("before the node has joined there are %v", got)
	}
	s.join("pi").offer(nil, "exec_shell", "read_file", "snap")
	if got := names(s.With(all, "main", false)); !slices.Equal(got, []string{"recall"}) {
		t.Errorf("before it is accepted there are %v", got)
	}
	s.accept("pi")
	got := s.With(all, "main", false)
	if want := []string{"exec_shell", "nodes", "pi__snap", "read_file", "recall"}; !slices.Equal(names(got), want) {
		t.Errorf("there are %v, want %v", names(got), want)
	}
	if one, _ := got.Lookup("exec_shell"); one == first(all.Lookup("exec_shell")) {
		t.Error("a command would run in the workspace")
	}
	if s.With(all, "main", false) != got {
		t.Error("the set is made twice")
	}
	if want := []string{"exec_shell", "git_status", "nodes", "pi__exec_shell", "pi__read_file", "pi__snap", "read_file", "recall", "spawn"}; !slices.Equal(names(s.With(all, "other", false)), want) {
		t.Errorf("an agent that only may use the node has %v", names(s.With(all, "other", false)))
	}
	if got := s.With(all, "other", false); first(got.Lookup("exec_shell")) != first(all.Lookup("exec_shell")) {
		t.Error("the command of another agent would run on the node")
	}
	if got, want := names(s.InPlace(all, "main")), []string{"exec_shell", "read_file", "recall"}; !slices.Equal(got, want) {
		t.Errorf("it knows %v, want %v", got, want)
	}
}

// An agent's capabilities limit what it may do on a node, too.
func TestCapabilitiesHoldOnANode(t *testing.T) {
	s := newStage(t, onPi())
	s.join("pi").offer(nil, "exec_shell", "read_file")
	s.accept("pi")
	reader := tools.NewSet(ownTool("read_file", tools.FileRead))
	if got, want := names(s.With(reader, "main", false)), []string{"nodes", "read_file"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// A call through the tool nodes follows the same rules as a direct call.
func TestNoWayRoundThroughTheToolNodes(t *testing.T) {
	s := newStage(t, onPi())
	s.join("pi").offer([]string{"exec", "camera"}, "exec_shell", "snap")
	s.accept("pi")
	for _, c := range []struct {
		agent, node, tool string
		want              tools.Decision
	}{
		{"main", "pi", "exec_shell", tools.Deny},
		{"main", "any:exec", "exec_shell", tools.Deny},
		{"main", "pi", "spawn", tools.Deny},
		{"main", "pi", "snap", ""},
		{"main", "lab", "exec_shell", ""},
		{"other", "pi", "exec_shell", ""},
	} {
		call := tools.Call{
			Name: "nodes", Session: c.agent + ":telegram:1", Agent: c.agent,
			Args: json.RawMessage(fmt.Sprintf(`{"action":"invoke","node":%q,"tool":%q,"args":{}}`, c.node, c.tool)),
		}
		got := s.Decide(call, func(tools.Call) bool { return false }, func(tools.Call) tools.Verdict { return tools.Verdict{} })
		if got.Decision != c.want {
			t.Errorf("%s of %s by %s: %+v, want %q", c.tool, c.node, c.agent, got, c.want)
		}
	}
}
