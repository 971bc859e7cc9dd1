package nodelinks

import (
	"slices"

	"parley/sessions"
	stored "parley/sessions/nodes"
	"parley/tools"
)

// AbilitiesOf returns, by name, what an agent can do in a task that a call hands out: what its settings say that it
// is good at, the capabilities that both agents have, and those of accepted nodes that both may use. The value
// reports whether all these nodes are away.
func AbilitiesOf(n *Nodes, agent string, call tools.Call) (away map[string]bool) {
	settings := n.cfg.Settings()
	away = map[string]bool{}
	all, _ := n.View()
	for _, one := range all {
		if one.State != stored.Accepted || len(one.Tools) == 0 || !mayUseFor(n, agent, call.Session, one.Name) {
			continue
		}
		for _, capability := range one.Offer.Capabilities {
			others, known := away[capability]
			away[capability] = one.Process == "" && (!known || others)
		}
	}
	for _, permission := range settings.Agents[agent].Capabilities {
		if n.cfg.Terminal(call.Session) || slices.Contains(settings.Agents[call.Agent].Capabilities, permission) {
			away[string(permission)] = false
		}
	}
	for _, word := range settings.Agents[agent].GoodAt {
		away[word] = false
	}
	return away
}

// mayUseFor reports whether an agent may use a node while it works for a session. It may only if the agent of that
// session may, too.
func mayUseFor(n *Nodes, agent, parent, node string) bool {
	own := agent == sessions.AgentOf(parent) || n.cfg.Settings().MayUseNode(agent, node)
	return own && n.mayUseIn(parent, node)
}
