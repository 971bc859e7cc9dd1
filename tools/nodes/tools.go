package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/plainjson"
)

// Name is the name of the tool that lists nodes, and that calls tools which the model finds only by listing.
const Name = "nodes"

// The actions of that tool.
const (
	actList     = "list"
	actDescribe = "describe"
	actInvoke   = "invoke"
)

type arguments struct {
	Action string         `json:"action" enum:"list,describe,invoke" jsonschema:"list: which nodes there are and what they have; describe: the tools of a node with their arguments; invoke: call a tool of a node"`
	Node   string         `json:"node,omitempty" jsonschema:"for describe and invoke: the node's name; for invoke also any:CAPABILITY, which picks a node that is here and has it"`
	Tool   string         `json:"tool,omitempty" jsonschema:"for invoke: the tool's name"`
	Args   map[string]any `json:"args,omitempty" jsonschema:"for invoke: the tool's arguments"`
}

// callGrace is how much longer to wait for a call than the node may take: the backend ends the call before that.
const callGrace = 15 * time.Second

// New makes the tool nodes. An approval of one of its calls is valid only as long as version stays the same. version
// stands for all tools that it may call.
func New(b Backend, version string) tools.Tool {
	return &nodesTool{backend: b, Tool: tools.New(tools.Spec{
		Name: Name, Effect: tools.Idempotent, Timeout: MaxTimeout + callGrace, MaxTimeout: -1,
		Version:     func() (string, error) { return version, nil },
		Touches:     tools.Touches(arguments.touch),
		Description: "List the devices that run tools for you, show what they have, or call one of their tools. Those that you have as NODE__TOOL are called directly.",
	}, func(ctx context.Context, call tools.Call, args arguments) (any, error) {
		if args.Action == actDescribe {
			return describe(ctx, b, call, args.Node)
		}
		return list(ctx, b, call)
	}, tools.EffectBy(arguments.effect))}
}

// effect returns what repeating a call would do.
func (a arguments) effect() tools.Effect {
	if a.Action == actInvoke {
		return tools.Idempotent
	}
	return tools.Pure
}

// touch says what a call touches.
func (a arguments) touch() tools.Touch {
	if a.Action == actInvoke {
		return touch(a.Node, false)
	}
	return tools.Touch{Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
}

// touch says what a call of a node's tool touches: nothing in the workspace.
func touch(node string, pure bool) tools.Touch {
	t := tools.Touch{Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
	if !pure {
		t.Outward = tools.OutwardEffect("call a tool of the node " + tools.Clip(node, 64))
	}
	return t
}

// A nodesTool is the tool named nodes.
type nodesTool struct {
	tools.Tool // handles all actions except invoke
	backend    Backend
}

// EffectOf implements tools.Effecter.
func (a *nodesTool) EffectOf(call tools.Call) tools.Effect { return tools.EffectOf(a.Tool, call) }

// Run implements tools.Tool.
func (a *nodesTool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	node, tool, args, invokes := InvokedCall(call)
	if !invokes {
		return a.Tool.Run(ctx, call)
	}
	if node == "" || tool == "" {
		return tools.Result{}, tools.Errorf(tools.InvalidArgs, textWhichTool)
	}
	out, err := a.backend.Call(ctx, node, tool, args, call)
	result, err := resultOf(out, err)
	if err != nil {
		return result, err
	}
	raw, err := plainjson.Marshal(map[string]any{"node": out.Node, "result": result.Content})
	if err != nil {
		return tools.Result{}, err
	}
	result.Content = raw
	return result, nil
}

// InvokedCall returns the tool and the arguments of the node call that a call of the tool nodes makes; false if it
// makes none.
func InvokedCall(call tools.Call) (node, tool string, args json.RawMessage, invokes bool) {
	var given struct {
		Action, Node, Tool string
		Args               json.RawMessage
	}
	if call.Name != Name || json.Unmarshal(call.Args, &given) != nil || given.Action != actInvoke {
		return "", "", nil, false
	}
	if len(given.Args) == 0 || string(given.Args) == "null" {
		given.Args = json.RawMessage("{}")
	}
	return given.Node, given.Tool, given.Args, true
}

// A shownNode is a node in the result of list.
type shownNode struct {
	Name         string   `json:"name"`
	Here         bool     `json:"here"`
	Since        string   `json:"since,omitempty"`
	Platform     string   `json:"platform,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	Tools        []string `json:"tools"`
	Running      int      `json:"running,omitempty"`
}

// list returns the nodes that the caller may use. Of a node's own texts, only single words and accepted ones are shown,
// so the result may be trusted.
func list(ctx context.Context, b Backend, call tools.Call) (any, error) {
	all, err := b.Nodes(ctx, call)
	if err != nil {
		return nil, err
	}
	shown := make([]shownNode, len(all))
	for i, n := range all {
		shown[i] = shownNode{Name: n.Name, Here: n.IsHere, Platform: plainWord(n.Platform), Capabilities: n.Capabilities, Tools: []string{}, Running: n.Running}
		if !n.Since.IsZero() {
			shown[i].Since = n.Since.UTC().Format(time.RFC3339)
		}
		for _, t := range n.Tools {
			shown[i].Tools = append(shown[i].Tools, t.Name)
		}
	}
	return map[string]any{"nodes": shown}, nil
}

// plainWord returns a short text without characters that could form a sentence.
func plainWord(text string) string {
	return tools.Beginning(strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789/_.-", r) {
			return r
		}
		return -1
	}, text), 32)
}

// describe returns the accepted tools of a node.
func describe(ctx context.Context, b Backend, call tools.Call, node string) (any, error) {
	all, err := b.Nodes(ctx, call)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if n.Name == node {
			return map[string]any{"node": n.Name, "tools": n.Tools}, nil
		}
	}
	return nil, tools.Errorf(tools.NotFound, textNoNode, tools.Clip(node, 64))
}

// A nodeTool is a node's tool as an agent sees it.
type nodeTool struct {
	backend    Backend
	node, tool string
	spec       tools.Spec
}

// A Device is a node in the form that its tools need.
type Device struct {
	Name string
	Key  []byte // its public key; an edge agent has none
}

// version returns a text that changes whenever a call of one of the device's tools would run something else, or on
// another device: an approval for one device is not valid for another that has the same tool.
func (d Device) version(t Tool) string {
	return d.Name + " " + hex.EncodeToString(d.Key) + " " + t.Digest()
}

// Version returns a text that changes whenever one of the device's tools changes, or another device gets the name.
func (d Device) Version(all []Tool) string {
	sum := sha256.New()
	for _, t := range all {
		_, _ = io.WriteString(sum, d.version(t)+"\n") // writing to a hash never fails
	}
	return d.Name + " " + hex.EncodeToString(sum.Sum(nil)[:16])
}

// ToolsOf returns the tools of a node as an agent has them, given those that an owner has accepted.
func ToolsOf(b Backend, d Device, accepted []Tool) []tools.Tool {
	all := make([]tools.Tool, len(accepted))
	for i, t := range accepted {
		effect := tools.Idempotent // the node runs no call twice: see Backend.Call
		if t.Pure {
			effect = tools.Pure
		}
		all[i] = &nodeTool{b, d.Name, t.Name, tools.Spec{
			Name: Alias(d.Name, t.Name), Description: "On the node " + d.Name + ": " + t.Description, Schema: t.Schema, Effect: effect,
			Timeout: t.Limit() + callGrace, MaxTimeout: -1, Touches: tools.TouchesAlways(touch(d.Name, t.Pure)),
			Version: func() (string, error) { return d.version(t), nil },
		}}
	}
	return all
}

const maxAlias = 64 // the longest name of a tool that providers of models accept

// Alias returns the name under which agents have a node's tool: NODE__TOOL. If that is too long, its end is replaced by a
// hash.
func Alias(node, tool string) string {
	name := node + "__" + tool
	if len(name) <= maxAlias {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "_" + hex.EncodeToString(sum[:4])
	return name[:maxAlias-len(mark)] + mark
}

// Spec implements tools.Tool.
func (t *nodeTool) Spec() tools.Spec { return t.spec }

// Run implements tools.Tool.
func (t *nodeTool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	return resultOf(t.backend.Call(ctx, t.node, t.tool, call.Args, call))
}

// resultOf returns how a call ended as the result of a tool.
func resultOf(out Outcome, err error) (tools.Result, error) {
	switch {
	case err != nil:
		return tools.Result{}, err
	case out.Status == Done:
		return tools.Result{Content: out.Content, Untrusted: !out.Trusted}, nil
	case out.Error == nil:
		return tools.Result{}, errors.New(textNoError)
	}
	return tools.Result{Untrusted: !out.Trusted}, out.Error
}
