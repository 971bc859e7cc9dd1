package doctor

import (
	"fmt"
	"maps"
	"slices"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/nodelinks"
	"parley/sessions/nodes"
)

// findAgentsWithoutTheirNode returns a finding for each agent that works on a node that nobody has accepted: it has no tools
// for files and commands.
func findAgentsWithoutTheirNode(cfg *config.Config, all []nodelinks.Node) (found []Finding) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		if _, isTarget := cfg.Agents[name].Target(); isTarget { // checkSSHTargets says what is wrong
			continue
		}
		node := cfg.Agents[name].Node()
		accepted := func(n nodelinks.Node) bool { return n.Name == node && n.State == nodes.Accepted }
		if node != "" && !slices.ContainsFunc(all, accepted) {
			found = append(found, Finding{Part: "agent " + name, State: note, Detail: fmt.Sprintf(textAgentWithoutNode, node), Remedy: textAgentWithoutNodeRemedy})
		}
	}
	return found
}

const (
	textAgentWithoutNode       = "it works on the node %s, which hasn't joined or isn't accepted, so it has no tools for files and commands"
	textAgentWithoutNodeRemedy = "have the device join (parley nodes invite) and accept it, or change the agent's runs_on"
)
