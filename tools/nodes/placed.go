package nodes

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"parley/tools"
)

// seenAs is the path at which commands on a node see the folder that they work in.
const seenAs = "/workspace"

// Placed makes the tools of an agent that works on a node. Each has the name of one of the agent's own tools, which it
// replaces, and calls the node's tool of that name, if somebody has accepted it and it has the same arguments. The other own
// tools are left out.
//
// Rules match the same paths and command lines as those of the own tool, and people see the same before they approve a
// call. To all else a call touches no file of the workspace.
func Placed(b Backend, d Device, own []tools.Spec, accepted []Tool) (placed []tools.Tool) {
	of := map[string]Tool{}
	for _, t := range accepted {
		of[t.Name] = t
	}
	for _, spec := range own {
		t, has := of[spec.Name]
		if !has || !requires(t.Schema, spec.Schema) { // rules would look for arguments that another tool doesn't have
			continue
		}
		// The word of the node that a tool changes nothing is not enough: nobody would be asked about its calls.
		t.Pure = t.Pure && spec.Effect == tools.Pure
		made := Of(b, d, []Tool{t})[0].Spec()
		made.Name = t.Name
		if !t.Pure {
			made.Description += textNoUndo
		}
		made.Permission, made.Shows, made.Touches = spec.Permission, spec.Shows, placedTouch(d.Name, spec.Touches, t.Pure)
		placed = append(placed, &placedTool{nodeTool{b, d.Name, t.Name, made}})
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

// placedTouch makes the function that says what a call touches, from that of the own tool.
func placedTouch(node string, own func(tools.Call) tools.Touch, pure bool) func(tools.Call) tools.Touch {
	return func(call tools.Call) tools.Touch {
		t := touch(node, pure)
		if !pure {
			t.Outward = tools.Would("run on the node " + node)
		}
		if own == nil {
			return t
		}
		t.Subject = own(call).Subject
		if paths, ok := t.Subject.(tools.Paths); ok {
			there := make(tools.Paths, len(paths))
			for i, p := range paths {
				there[i] = PathThere(p)
			}
			t.Subject = there
		}
		return t
	}
}

// PathThere returns the name that a path has in the node's folder: relative to it, if it is within.
func PathThere(p string) string {
	if p == "" {
		return ""
	}
	name := path.Clean(p)
	if name == seenAs {
		return "."
	}
	return strings.TrimPrefix(name, seenAs+"/")
}

// A placedTool is a node's tool in the place of one of the agent's own.
type placedTool struct{ nodeTool }

// Run implements tools.Tool. The server can't know which file of the node's folder an absolute path names, so rules
// could not match it: it is refused.
func (t *placedTool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	paths, _ := t.spec.Touches(call).Subject.(tools.Paths)
	for _, p := range paths {
		if p != "" && !filepath.IsLocal(p) {
			return tools.Result{}, tools.Errorf(tools.InvalidPath, textNotThere, tools.Clip(p, 120), t.node)
		}
	}
	return t.nodeTool.Run(ctx, call)
}
