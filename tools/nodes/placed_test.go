package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/files"
	"parley/tools/guard"
	"parley/tools/nodes"
	"parley/tools/shell"
)

// A recordingBackend remembers its calls.
type recordingBackend struct{ given []string }

func (s *recordingBackend) Nodes(context.Context, tools.Call) ([]nodes.NodeStatus, error) {
	return nil, nil
}

func (s *recordingBackend) Call(_ context.Context, node, tool string, args json.RawMessage, _ tools.Call) (nodes.Outcome, error) {
	s.given = append(s.given, node+" "+tool+" "+string(args))
	return nodes.Outcome{Status: nodes.Done, Content: json.RawMessage(`"done"`), Node: node}, nil
}

// recordingStart is a starter that returns its arguments.
func recordingStart(_ context.Context, node string, _ tools.Call, command string, limit time.Duration) (any, error) {
	return fmt.Sprintf("%s: %s for %s", node, command, limit), nil
}

// toolsOnPi returns the tools of an agent that works on the node pi, which has some of the agent's own tools.
func toolsOnPi(t *testing.T, b nodes.Backend, pure bool, offered ...string) *tools.Set {
	t.Helper()
	nowhere := func(context.Context, tools.Call) (files.Dir, error) { return nil, errors.ErrUnsupported }
	own := tools.NewSet(append(files.New(nowhere, nil), shell.New(shell.Config{})...)...)
	var accepted []nodes.Tool
	for _, name := range offered {
		n := nodes.Tool{Name: name, Description: "Do it.", Schema: json.RawMessage(`{"type":"object"}`), Pure: pure}
		if tool, has := own.Lookup(name); has {
			n.Schema = tool.Spec().Schema
		}
		accepted = append(accepted, n)
	}
	return tools.NewSet(nodes.ToolsOnNode(b, nodes.Device{Name: "pi"}, own.Specs(), accepted, recordingStart)...)
}

// newCall returns a tool of a set and a call of it.
func newCall(t *testing.T, set *tools.Set, name, args string) (tools.Tool, tools.Call) {
	t.Helper()
	tool, has := set.Lookup(name)
	if !has {
		t.Fatalf("there is no %s", name)
	}
	return tool, tools.Call{Name: name, Args: json.RawMessage(args), Touches: tool.Spec().Touches}
}

// The node's tools replace the agent's own tools of the same names, and only those.
func TestToolsOnANodeReplaceOwnTools(t *testing.T) {
	b := &recordingBackend{}
	set := toolsOnPi(t, b, false, "exec_shell", "read_file", "write_file", "snap")
	var names []string
	for _, spec := range set.Specs() {
		names = append(names, spec.Name)
		if !strings.HasPrefix(spec.Description, "On the node pi: Do it.") || !strings.HasSuffix(spec.Description, "can't be undone.") {
			t.Errorf("%s is described as %q", spec.Name, spec.Description)
		}
	}
	if want := []string{"exec_shell", "read_file", "write_file"}; !slices.Equal(names, want) {
		t.Fatalf("there are %v, want %v", names, want)
	}
	tool, call := newCall(t, set, "exec_shell", `{"command":"uptime"}`)
	if result, err := tool.Run(t.Context(), call); err != nil || string(result.Content) != `"done"` || !result.Untrusted {
		t.Errorf("it gave %+v, %v", result, err)
	}
	if want := []string{`pi exec_shell {"command":"uptime"}`}; !slices.Equal(b.given, want) {
		t.Errorf("the node was given %v, want %v", b.given, want)
	}
	if tool.Spec().Permission != tools.Shell {
		t.Errorf("it needs %q", tool.Spec().Permission)
	}
}

// A tool of the same name with other arguments, which rules can't check, doesn't replace the agent's own.
func TestAnotherToolOfTheSameName(t *testing.T) {
	own := tools.NewSet(shell.New(shell.Config{})...).Specs()
	for schema, want := range map[string]int{
		`{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}`: 0,
		`{"type":"object"}`: 0,
		`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`: 1,
	} {
		offered := []nodes.Tool{{Name: "exec_shell", Schema: json.RawMessage(schema)}}
		if got := nodes.ToolsOnNode(&recordingBackend{}, nodes.Device{Name: "pi"}, own, offered, recordingStart); len(got) != want {
			t.Errorf("%s: there are %d tools, want %d", schema, len(got), want)
		}
	}
}

// Except for rules, a call touches nothing of the workspace, and it acts on the outside unless both the agent's tool
// and the node's say that it changes nothing.
func TestTouchOfCallsOnANode(t *testing.T) {
	set := toolsOnPi(t, &recordingBackend{}, true, "exec_shell", "read_file", "write_file", "apply_patch", "glob")
	for name, c := range map[string]struct {
		args    string
		outward tools.Outward
	}{
		"exec_shell": {`{"command":"rm x"}`, tools.OutwardEffect("run on the node pi")},
		"write_file": {`{"path":"x","content":"y"}`, tools.OutwardEffect("run on the node pi")},
		"read_file":  {`{"path":"x"}`, tools.NothingOutward{}},
		"glob":       {`{"pattern":"*"}`, tools.NothingOutward{}},
	} {
		tool, call := newCall(t, set, name, c.args)
		touch := call.Touch()
		if touch.Reads != (tools.NoFiles{}) || touch.MayWrite() || touch.Outward != c.outward || len(touch.Passes) > 0 {
			t.Errorf("%s touches %+v", name, touch)
		}
		if pure := tools.EffectOf(tool, call) == tools.Pure; pure != (c.outward == tools.Outward(tools.NothingOutward{})) {
			t.Errorf("%s is pure: %v", name, pure)
		}
		if !guard.ReadsOnlyNamed(call) {
			t.Errorf("%s is compared with the workspace", name)
		}
	}
}

// Rules by path and by command match as in the workspace.
func TestRulesForCallsOnANode(t *testing.T) {
	g, err := guard.New(guard.Config{ReadingCall: files.Reading, AllAgents: guard.Policy{
		Deny: []string{"read_file(secrets/*)", "apply_patch(secrets/*)", "exec_shell(rm *)"}, Ask: []string{"write_file(etc/*)"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	set := toolsOnPi(t, &recordingBackend{}, true, "exec_shell", "read_file", "write_file", "apply_patch")
	for _, c := range []struct {
		tool, args string
		want       tools.Decision
	}{
		{"read_file", `{"path":"secrets/key"}`, tools.Deny},
		{"read_file", `{"path":"./a/../secrets//key"}`, tools.Deny},
		{"read_file", `{"path":"/workspace/secrets/key"}`, tools.Deny},
		{"read_file", `{"path":"notes"}`, ""},
		{"apply_patch", `{"patch":"--- a/secrets/x\n+++ b/secrets/x\n@@ -1 +1 @@\n-a\n+b\n"}`, tools.Deny},
		{"write_file", `{"path":"etc/hosts","content":""}`, tools.Ask},
		{"exec_shell", `{"command":"cd x && sudo rm -rf y"}`, tools.Deny},
		{"exec_shell", `{"command":"uptime"}`, ""},
	} {
		_, call := newCall(t, set, c.tool, c.args)
		if got := g.Decide(t.Context(), call); got.Decision != c.want {
			t.Errorf("%s %s: %+v, want %q", c.tool, c.args, got, c.want)
		}
	}
}

// A path is refused if the server can't know which file it names, so that no call evades the rules.
func TestPathsThatRulesCannotMatch(t *testing.T) {
	b := &recordingBackend{}
	set := toolsOnPi(t, b, true, "read_file", "list_directory", "apply_patch")
	for _, c := range []struct {
		tool, args string
		runs       bool
	}{
		{"read_file", `{"path":"/home/pi/.parley/workspace/secrets/key"}`, false},
		{"read_file", `{"path":"../secrets"}`, false},
		{"read_file", `{"path":"/workspace/../etc/passwd"}`, false},
		{"apply_patch", `{"patch":"--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n+b\n"}`, false},
		{"read_file", `{"path":"/workspace/a"}`, true},
		{"list_directory", `{"path":""}`, true},
		{"list_directory", `{"path":"/workspace"}`, true},
	} {
		tool, call := newCall(t, set, c.tool, c.args)
		b.given = nil
		_, err := tool.Run(t.Context(), call)
		refused, _ := errors.AsType[*tools.Error](err)
		if ran := len(b.given) == 1; ran != c.runs || !ran && (refused == nil || refused.Code != tools.InvalidPath) {
			t.Errorf("%s %s: %v, %v", c.tool, c.args, b.given, err)
		}
	}
}

// People who approve a call see its command line, or the text that it would write.
func TestShowingOfCallsOnANode(t *testing.T) {
	set := toolsOnPi(t, &recordingBackend{}, false, "exec_shell", "write_file")
	for name, c := range map[string][2]string{
		"exec_shell": {`{"command":"reboot now"}`, "reboot now"},
		"write_file": {`{"path":"a","content":"new"}`, "a, all of it:\n\nnew"},
	} {
		tool, call := newCall(t, set, name, c[0])
		if got := tools.ShowingOf(t.Context(), tool, call); got.Text != c[1] {
			t.Errorf("of %s they see %q", name, got.Text)
		}
	}
}

// Approvals contain the version of a tool: one for a call on a node is not valid on another node that has the same
// tool, or on another device that has joined under the name.
func TestVersionsNameTheDevice(t *testing.T) {
	offered := []nodes.Tool{{Name: "exec_shell", Schema: json.RawMessage(`{"type":"object"}`)}}
	versions, ofAll := map[string]bool{}, map[string]bool{}
	for _, d := range []nodes.Device{{"pi", []byte("a")}, {"prod", []byte("a")}, {"pi", []byte("b")}, {"pi", []byte("a")}} {
		v, err := nodes.ToolsOf(nil, d, offered)[0].Spec().Version()
		if err != nil {
			t.Fatal(err)
		}
		versions[v], ofAll[d.Version(offered)] = true, true
	}
	if len(versions) != 3 || len(ofAll) != 3 {
		t.Errorf("the versions of a tool on three devices are %v, and of all their tools %v", versions, ofAll)
	}
}

// A background command is started as a job on the node. Arguments that are only for that never reach the node.
func TestACommandInTheBackground(t *testing.T) {
	b := &recordingBackend{}
	tool, call := newCall(t, toolsOnPi(t, b, false, "exec_shell"), "exec_shell", `{"command":"make","timeout":90,"background":true}`)
	if result, err := tool.Run(t.Context(), call); err != nil || string(result.Content) != `"pi: make for 1m30s"` || len(b.given) > 0 {
		t.Errorf("it gave %s, %v, and the node was given %v", result.Content, err, b.given)
	}
	call.Args = json.RawMessage(`{"command":"make","background":false}`)
	if _, err := tool.Run(t.Context(), call); err != nil || !slices.Equal(b.given, []string{`pi exec_shell {"command":"make"}`}) {
		t.Errorf("the node was given %v, %v", b.given, err)
	}
	if !strings.Contains(string(tool.Spec().Schema), `"background"`) {
		t.Errorf("its arguments are %s", tool.Spec().Schema)
	}
}
