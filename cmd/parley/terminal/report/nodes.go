package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/terminal"
	"parley/sessions/nodes"
)

// Nodes prints the nodes, and whether they are connected.
func Nodes(out io.Writer, all []nodelinks.Node) error {
	if len(all) == 0 {
		return printLine(out, textNoNodes)
	}
	w := table(out, "NODE", "STATE", "LINK", "PLATFORM", "AGENTS", "TOOLS", "NOT ACCEPTED YET")
	for _, n := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", n.Name, stateOf(n), linkOf(n), cmp.Or(terminal.Cell(n.Platform), "-"),
			cmp.Or(strings.Join(n.Agents, ", "), "none"), toolNames(n.Tools), toolNames(n.Aside))
	}
	return w.Flush()
}

// stateOf returns a node's state in words.
func stateOf(n nodelinks.Node) string {
	if n.State == nodes.Waiting {
		return "NOT ACCEPTED YET"
	}
	return string(n.State)
}

// linkOf returns in words whether a node is connected, and since when.
func linkOf(n nodelinks.Node) string {
	switch {
	case n.State == nodes.Revoked:
		return "-"
	case n.Since == nil:
		return "never"
	case n.Here:
		return "here since " + moment(*n.Since)
	}
	return "away since " + moment(*n.Since)
}

// toolNames returns the names of tools.
func toolNames(all []nodelinks.Tool) string {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = terminal.Cell(t.Name)
	}
	return cmp.Or(strings.Join(names, ", "), "-")
}

// Node prints a node and what it offers.
func Node(out io.Writer, n nodelinks.Node) error {
	words := make([]string, len(n.Capabilities))
	for i, word := range n.Capabilities {
		words[i] = terminal.Cell(word)
	}
	trusted := "no"
	if n.Trusted {
		trusted = "yes"
	}
	if n.SSH {
		n.Fingerprint = fmt.Sprintf(textSSHKey, cmp.Or(terminal.Cell(n.Target), textSSHUnnamed))
	}
	if n.Edge { // an edge agent has no key
		n.Fingerprint, trusted = textEdgeKey, textEdgeTrusted
	}
	fmt.Fprintf(out, textNode, n.Name, stateOf(n), linkOf(n), cmp.Or(terminal.Cell(n.Platform), "-"), cmp.Or(terminal.Cell(n.Release), "-"),
		n.Fingerprint, cmp.Or(strings.Join(words, ", "), "none"), cmp.Or(strings.Join(n.Agents, ", "), "none"), trusted)
	if len(n.Tools)+len(n.Aside) == 0 {
		return printLine(out, textNoTools)
	}
	w := table(out, "TOOL", "STATE", "CHANGES", "DESCRIPTION")
	for _, list := range []struct {
		state string
		tools []nodelinks.Tool
	}{{"accepted", n.Tools}, {"NOT ACCEPTED YET", n.Aside}} {
		for _, t := range list.tools {
			changes := "maybe"
			if t.Pure {
				changes = "nothing, it says"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", terminal.Cell(t.Name), list.state, changes, terminal.Cell(t.Description))
		}
	}
	return w.Flush()
}
