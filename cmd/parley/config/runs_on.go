package config

import (
	"fmt"
	"strings"
)

// onNode is what runs_on begins with if an agent works on a node.
const onNode = "node:"

// Node returns the node on which the agent works; "" if it works in its sessions' workspaces.
func (a Agent) Node() string {
	node, _ := strings.CutPrefix(a.RunsOn, onNode)
	return node
}

// checkRunsOn reports agents that are to work where none can.
func checkRunsOn(l *loader) {
	for _, table := range agentTables(l) {
		path := table + ".runs_on"
		if !l.Mentioned(path) || l.Text(path) == "" {
			continue
		}
		node, isNode := strings.CutPrefix(l.Text(path), onNode)
		if !isNode {
			l.Report(l.At(path), path, fmt.Sprintf("an agent can't work on %q", l.Text(path)), `write "node:" and the name of a node, or leave it out`)
		} else if f := refuseNode(l, node); f != nil {
			l.Report(l.At(path), path, f.Wrong, f.Remedy)
		}
	}
}
