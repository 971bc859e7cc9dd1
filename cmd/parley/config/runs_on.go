package config

import (
	"fmt"
	"strings"

	"parley/tools/nodes/ssh"
)

// nodePrefix begins a value of runs_on that names a node.
const nodePrefix = "node:"

const remedyRunsOn = `write "node:" and the name of a node, or "ssh://user@host" (with :port or the path of parley there behind it, if needed), or leave it out`

// Node returns the name of the node on which the agent works, for an ssh:// target the name that the target has as a
// node; "" if the agent works in its sessions' workspaces.
func (a Agent) Node() string {
	if t, ok := a.Target(); ok {
		return t.Name()
	}
	node, isNode := strings.CutPrefix(a.RunsOn, nodePrefix)
	if !isNode {
		return ""
	}
	return node
}

// Target returns the ssh:// target on which the agent works; false if it works elsewhere.
func (a Agent) Target() (ssh.Target, bool) {
	t, err := ssh.Parse(a.RunsOn)
	return t, err == nil
}

// SSHTargets returns the ssh:// targets on which agents work, by the names that they have as nodes.
func (c *Config) SSHTargets() map[string]ssh.Target {
	all := map[string]ssh.Target{}
	for _, a := range c.Agents {
		if t, ok := a.Target(); ok {
			all[t.Name()] = t
		}
	}
	return all
}

// checkRunsOn reports agents whose place of work is invalid.
func checkRunsOn(l *loader) {
	targets := map[string]ssh.Target{}
	for _, table := range agentTables(l) {
		path := table + ".runs_on"
		if !l.Mentioned(path) || l.Text(path) == "" {
			continue
		}
		node, isNode := strings.CutPrefix(l.Text(path), nodePrefix)
		target, err := ssh.Parse(l.Text(path))
		if err == nil {
			node = target.Name()
		}
		if other, has := targets[node]; has && err == nil && other != target {
			l.Report(l.At(path), path, fmt.Sprintf("the targets %s and %s would both be the node %s", other, target, node), "write the same text for the same place, or call one of the machines by another name or address")
		}
		if err == nil {
			targets[node] = target
		}
		if !isNode && err != nil {
			l.Report(l.At(path), path, fmt.Sprintf("an agent can't work on %q", l.Text(path)), remedyRunsOn)
		} else if f := refuseNode(l, node); f != nil {
			l.Report(l.At(path), path, f.Wrong, f.Remedy)
		}
	}
}
