package nodelinks

import (
	"fmt"
	"slices"

	"parley/agent/nodes"
	"parley/sessions"
	stored "parley/sessions/nodes"
	"parley/tools"
	toolnodes "parley/tools/nodes"
)

// InPlace returns the tools base for an agent that works on a node. Calls of Config.Placed run there; tools that the
// node doesn't have or that nobody has accepted are left out, and so are those in Config.Left. For an agent that
// works in its workspace, it returns base.
func (n *Nodes) InPlace(base *tools.Set, agent string) *tools.Set {
	set := n.cfg.Settings().Agents[agent]
	home := set.Node()
	if home == "" {
		return base
	}
	_, isTarget := set.Target()
	all, version := n.View()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cachedSet(fmt.Sprintf("%p in %s %t", base, home, isTarget), version, base, func() *tools.Set {
		device := toolnodes.Device{Name: home}
		var accepted []toolnodes.Tool
		if i := slices.IndexFunc(all, func(one nodes.Node) bool {
			// A device that joined under the name of a target is not the target.
			return one.Name == home && one.State == stored.Accepted && (!isTarget || one.IsTarget())
		}); i >= 0 {
			device.Key, accepted = all[i].Key, all[i].Tools
		}
		var own []tools.Spec
		unfit := slices.Clone(n.cfg.Left)
		for _, spec := range n.cfg.Placed {
			unfit = append(unfit, spec.Name)
			if _, has := base.Lookup(spec.Name); has {
				own = append(own, spec)
			}
		}
		return base.Without(unfit...).With(toolnodes.ToolsOnNode(n, device, own, accepted, n.StartJob)...)
	})
}

// cachedSet returns the set that was made for base under a key. If there is none for this version of the nodes, it
// makes one. The caller holds mu.
func (n *Nodes) cachedSet(key string, version int64, base *tools.Set, makeSet func() *tools.Set) *tools.Set {
	if made, ok := n.sets[key]; ok && made.version == version && made.base == base {
		return made.all
	}
	if len(n.sets) >= maxSets {
		clear(n.sets)
	}
	n.sets[key] = cachedTools{version, base, makeSet()}
	return n.sets[key].all
}

// isPlaced reports whether an agent that works on a node has the node's tool under the tool's own name, or not at
// all.
func (n *Nodes) isPlaced(tool string) bool {
	return slices.ContainsFunc(n.cfg.Placed, func(spec tools.Spec) bool { return spec.Name == tool })
}

// isRoundabout reports whether a call through the tool nodes reaches a tool that the agent has under its own name,
// because the agent works on that node. Such a call would evade the rules about that name, and the agent's
// capabilities.
func (n *Nodes) isRoundabout(call tools.Call) bool {
	home := n.cfg.Settings().Agents[sessions.AgentOf(call.Session)].Node()
	node, tool, _, invokes := toolnodes.InvokedCall(call)
	return invokes && home != "" && n.isPlaced(tool) && slices.Contains(n.reachedNodes(node), home)
}
