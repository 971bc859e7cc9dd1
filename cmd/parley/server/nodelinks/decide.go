package nodelinks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/sessions"
	"parley/tools"
	"parley/tools/guard"
	toolnodes "parley/tools/nodes"
)

// Decide returns the decision about a call. A call of a node's tool through the tool nodes must also pass as a call
// of NODE__TOOL, because otherwise it would evade rules that name that tool. The strictest decision counts. If a
// model has to judge the call under that name, people decide instead, because the model sees only the original call.
func (n *Nodes) Decide(call tools.Call, judges func(tools.Call) bool, decide func(tools.Call) tools.Verdict) tools.Verdict {
	if n.isRoundabout(call) {
		return tools.Verdict{Decision: tools.Deny, Reason: textRoundabout}
	}
	v := decide(call)
	for _, as := range n.directCalls(call) {
		other := decide(as)
		if isAllowed(other) && judges(as) {
			other = tools.Verdict{Decision: tools.Ask, Reason: textJudged}
		}
		if other.Decision == tools.Deny && v.Decision != tools.Deny || !isAllowed(other) && isAllowed(v) {
			v = other
		}
	}
	if isAllowed(v) {
		if node := n.askingNode(call); node != "" {
			v.Decision, v.Reason = tools.Ask, fmt.Sprintf(textNodeAsks, node)
		}
	}
	return v
}

// askingNode returns the name of a node that a call may reach and that runs it only after an approval, or "" if there
// is none. The node checks each call itself, so a call that askingNode overlooks doesn't run there.
func (n *Nodes) askingNode(call tools.Call) string {
	home := n.cfg.Settings().Agents[sessions.AgentOf(call.Session)].Node()
	node, tool, args, invokes := toolnodes.InvokedCall(call)
	all, _ := n.View()
	for _, one := range all {
		there := call
		switch {
		case len(one.Offer.Ask) == 0:
			continue
		case invokes && slices.Contains(n.reachedNodes(node), one.Name):
			there.Name, there.Args = tool, args
		case home == one.Name && n.isPlaced(call.Name):
		default:
			i := slices.IndexFunc(one.Tools, func(t toolnodes.Tool) bool { return toolnodes.Alias(one.Name, t.Name) == call.Name })
			if i < 0 {
				continue
			}
			there.Name = one.Tools[i].Name
		}
		if n.asksAbout(one.Offer.Ask, there) {
			return one.Name
		}
	}
	return ""
}

// asksAbout reports whether a node's rules require an approval for a call, under the node's own name for the tool. If
// the rules are of a newer release and can't be parsed, every call needs one.
func (n *Nodes) asksAbout(rules []string, call tools.Call) bool {
	g, err := guard.New(guard.Config{AllAgents: guard.Policy{Ask: rules}, Path: func(_ tools.Call, path string) string { return toolnodes.PathOnNode(path) }})
	if err != nil {
		return true
	}
	call.Touches = nil // for a tool that only the node knows, rules match the arguments
	if i := slices.IndexFunc(n.cfg.Placed, func(spec tools.Spec) bool { return spec.Name == call.Name }); i >= 0 {
		call.Touches = n.cfg.Placed[i].Touches
	}
	return g.Decide(context.Background(), call).Decision == tools.Ask
}

func isAllowed(v tools.Verdict) bool { return v.Decision != tools.Deny && v.Decision != tools.Ask }

// ToolNames returns the names of the tools that a call uses: its own and, if it goes through the tool nodes, the name
// of the node's tool.
func (n *Nodes) ToolNames(call tools.Call) []string {
	names := []string{call.Name}
	for _, as := range n.directCalls(call) {
		names = append(names, as.Name)
	}
	return names
}

// directCalls returns a call through the tool nodes as direct calls of the node's tool, under the name that agents
// know. It returns several calls if the call is for any node that has a capability, and none if the call is of
// another tool.
func (n *Nodes) directCalls(call tools.Call) (calls []tools.Call) {
	node, tool, args, invokes := toolnodes.InvokedCall(call)
	if !invokes {
		return nil
	}
	for _, name := range n.reachedNodes(node) {
		as := call
		as.Name, as.Args, as.Touches = toolnodes.Alias(name, tool), args, tools.TouchesAlways(call.Touch())
		calls = append(calls, as)
	}
	return calls
}

// Approvers returns the people, besides owners, who may approve a call of a node's tool, or nil if the node's table
// names none or the call reaches no node. If several nodes may get the call, they are the people whom all of the
// nodes' lists name.
func (n *Nodes) Approvers(call tools.Call) (who []string) {
	settings := n.cfg.Settings()
	home := settings.Agents[sessions.AgentOf(call.Session)].Node()
	node, _, _, invokes := toolnodes.InvokedCall(call)
	reached := n.reachedNodes(node)
	for name, one := range settings.Nodes {
		isIts := strings.HasPrefix(call.Name, toolnodes.Alias(name, "")) || invokes && slices.Contains(reached, name) || home == name && n.isPlaced(call.Name)
		list := one.Approvers
		switch {
		case !isIts:
		case list == nil:
		case who == nil:
			who = append([]string{}, list...)
		default:
			who = slices.DeleteFunc(who, func(one string) bool { return !slices.Contains(list, one) })
		}
	}
	return who
}

// reachedNodes returns the names of the nodes that a call may reach: node itself or, if node stands for any node with
// a capability, all nodes that have it.
func (n *Nodes) reachedNodes(node string) []string {
	names := []string{node}
	if capability, isAny := strings.CutPrefix(node, toolnodes.AnyPrefix); isAny {
		all, _ := n.View()
		for _, one := range all {
			if slices.Contains(one.Offer.Capabilities, capability) {
				names = append(names, one.Name)
			}
		}
	}
	return names
}
