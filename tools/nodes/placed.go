package nodes

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/plainjson"
)

// folderOnNode is the path at which commands on a node see their working folder.
const folderOnNode = "/workspace"

// ToolsOnNode makes the tools of an agent that works on a node. Each has the name of one of the agent's own tools,
// which it replaces, and calls the node's tool of that name, if an owner has accepted it and it has the same arguments.
// The other own tools are left out.
//
// Rules match the same paths and command lines as for the own tool, and people see the same before they approve a call.
// In all other respects a call touches no file of the workspace. start starts commands in the background.
func ToolsOnNode(b Backend, d Device, own []tools.Spec, accepted []Tool, start Starter) (placed []tools.Tool) {
	of := map[string]Tool{}
	for _, t := range accepted {
		of[t.Name] = t
	}
	for _, spec := range own {
		t, has := of[spec.Name]
		if !has || !requires(t.Schema, spec.Schema) { // rules would look for arguments that another tool doesn't have
			continue
		}
		// The node's claim that a tool changes nothing is not enough, because nobody would be asked about its calls.
		t.Pure = t.Pure && spec.Effect == tools.Pure
		made := ToolsOf(b, d, []Tool{t})[0].Spec()
		made.Name = t.Name
		if t.Name == Shell {
			made.Schema, made.Description = spec.Schema, made.Description+textInBackground
		}
		if !t.Pure {
			made.Description += textNoUndo
		}
		made.Permission, made.Shows, made.Touches = spec.Permission, spec.Shows, placedTouch(d.Name, spec.Touches, t.Pure)
		placed = append(placed, &placedTool{nodeTool{b, d.Name, t.Name, made}, start})
	}
	return placed
}

// requires reports whether a schema requires all arguments that another one does.
func requires(schema, other json.RawMessage) bool {
	var has, wants struct{ Required []string }
	if json.Unmarshal(schema, &has) != nil || len(other) > 0 && json.Unmarshal(other, &wants) != nil {
		return false
	}
	return !slices.ContainsFunc(wants.Required, func(name string) bool { return !slices.Contains(has.Required, name) })
}

// placedTouch returns the function that says what a call touches, based on that of the own tool.
func placedTouch(node string, own func(tools.Call) tools.Touch, pure bool) func(tools.Call) tools.Touch {
	return func(call tools.Call) tools.Touch {
		t := touch(node, pure)
		if !pure {
			t.Outward = tools.OutwardEffect("run on the node " + node)
		}
		if own == nil {
			return t
		}
		t.Subject = own(call).Subject
		if paths, ok := t.Subject.(tools.Paths); ok {
			there := make(tools.Paths, len(paths))
			for i, p := range paths {
				there[i] = PathOnNode(p)
			}
			t.Subject = there
		}
		return t
	}
}

// PathOnNode returns the name that a path has in the node's folder: relative to the folder, if it is inside.
func PathOnNode(p string) string {
	if p == "" {
		return ""
	}
	name := path.Clean(p)
	if name == folderOnNode {
		return "."
	}
	return strings.TrimPrefix(name, folderOnNode+"/")
}

// A placedTool is a node's tool that replaces one of the agent's own.
type placedTool struct {
	nodeTool
	start Starter
}

// Run implements tools.Tool. It refuses an absolute path: the server can't know which file of the node's folder it
// names, so rules could not match it.
func (t *placedTool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	paths, _ := t.spec.Touches(call).Subject.(tools.Paths)
	for _, p := range paths {
		if p != "" && !filepath.IsLocal(p) {
			return tools.Result{}, tools.Errorf(tools.InvalidPath, textNotThere, tools.Clip(p, 120), t.node)
		}
	}
	if command, limit, is := backgroundCommand(call); is && t.tool == Shell {
		started, err := t.start(ctx, t.node, call, command, limit)
		if err != nil {
			return tools.Result{}, err
		}
		raw, err := plainjson.Marshal(started)
		return tools.Result{Content: raw}, err
	}
	call.Args = withoutBackground(call.Args)
	return t.nodeTool.Run(ctx, call)
}

// withoutBackground returns the arguments of a call without the argument that the node's tool doesn't have.
func withoutBackground(args json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil || all["background"] == nil {
		return args
	}
	delete(all, "background")
	raw, err := plainjson.Marshal(all)
	if err != nil {
		return args
	}
	return raw
}

// backgroundCommand returns the command that a call of Shell runs in the background, and its time limit; false if the
// call waits for the command.
func backgroundCommand(call tools.Call) (command string, limit time.Duration, is bool) {
	var args struct {
		Command    string
		Timeout    float64
		Background bool
	}
	if json.Unmarshal(call.Args, &args) != nil { // the node's error says what is wrong
		return "", 0, false
	}
	return args.Command, time.Duration(min(max(args.Timeout, 0), 1e6) * float64(time.Second)), args.Background
}
