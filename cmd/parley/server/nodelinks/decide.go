package nodelinks

import (
	"slices"
	"strings"

	"parley/sessions"
	"parley/tools"
	toolnodes "parley/tools/nodes"
)

// Decide decides about a call. One that calls a node's tool through the tool nodes must pass as a call of NODE__TOOL, too:
// rules that name that tool would be worth nothing otherwise. Of all decisions the strictest counts. A call that a model
// has to judge under that name is left to people, because the model is only asked about the call itself.
func (n *Nodes) Decide(call tools.Call, judges func(tools.Call) bool, decide func(tools.Call) tools.Verdict) tools.Verdict {
	if n.isRoundabout(call) {
		return tools.Verdict{Decision: tools.Deny, Reason: textRoundabout}
	}
	v := decide(call)
	for _, as := range n.under(call) {
		other := decide(as)
		if isAllowed(other) && judges(as) {
			other = tools.Verdict{Decision: tools.Ask, Reason: textJudged}
		}
		if other.Decision == tools.Deny && v.Decision != tools.Deny || !isAllowed(other) && isAllowed(v) {
			v = other
		}
	}
	return v
}

func isAllowed(v tools.Verdict) bool { return v.Decision != tools.Deny && v.Decision != tools.Ask }

// Names returns the names of the tools that a call calls: its own and, if it calls a node's tool through the tool nodes,
// that of the other.
func (n *Nodes) Names(call tools.Call) []string {
	names := []string{call.Name}
	for _, as := range n.under(call) {
		names = append(names, as.Name)
	}
	return names
}

// under returns a call that calls a node's tool through the tool nodes under the name that agents know that tool by: several
// if it is for any node that has a capability.
func (n *Nodes) under(call tools.Call) (calls []tools.Call) {
	node, tool, args, invokes := toolnodes.Invoked(call)
	if !invokes {
		return nil
	}
	for _, name := range n.reached(node) {
		as := call
		as.Name, as.Args, as.Touches = toolnodes.Alias(name, tool), args, tools.TouchesAlways(call.Touch())
		calls = append(calls, as)
	}
	return calls
}

// Approvers returns the people, besides owners, who may approve a call of a node's tool; nil if the node's table names none, or
// the call reaches no node. If several nodes may get the call, they are those whom all of the lists name.
func (n *Nodes) Approvers(call tools.Call) (who []string) {
	settings := n.cfg.Settings()
	home := settings.Agents[sessions.AgentOf(call.Session)].Node()
	node, _, _, invokes := toolnodes.Invoked(call)
	reached := n.reached(node)
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

// reached returns the names of the nodes that a call may reach that names a node, or any that has a capability.
func (n *Nodes) reached(node string) []string {
	names := []string{node}
	if capability, isAny := strings.CutPrefix(node, toolnodes.Any); isAny {
		all, _ := n.View()
		for _, one := range all {
			if slices.Contains(one.Offer.Capabilities, capability) {
				names = append(names, one.Name)
			}
		}
	}
	return names
}
