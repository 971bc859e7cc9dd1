package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/terminal"
	"parley/sessions/nodes"
)

// maxAwayNamed is how many nodes that are away NodesLine names.
const maxAwayNamed = 5

// NodesLine prints one line about the nodes: how many there are, which are not connected, and what waits to be
// accepted. It prints nothing if there are no nodes.
func NodesLine(out io.Writer, all []nodelinks.Node, now time.Time) error {
	known, waiting, offering := 0, 0, 0
	var away []string
	for _, n := range all {
		if n.State == nodes.Revoked {
			continue
		}
		known++
		switch {
		case n.State == nodes.Waiting:
			waiting++
		case len(n.Aside) > 0:
			offering++
		}
		if n.State == nodes.Accepted && !n.Here {
			away = append(away, terminal.Cell(n.Name)+sinceOf(n, now))
		}
	}
	if known == 0 {
		return nil
	}
	line := fmt.Sprintf("Nodes: %d", known)
	if len(away) > 0 {
		names := strings.Join(away[:min(len(away), maxAwayNamed)], ", ")
		if more := len(away) - maxAwayNamed; more > 0 {
			names += fmt.Sprintf(", and %d more", more)
		}
		line += fmt.Sprintf(", %d away (%s)", len(away), names)
	}
	if waiting > 0 {
		line += fmt.Sprintf(", %d %s to be accepted", waiting, verb(waiting, "wait"))
	}
	if offering > 0 {
		line += fmt.Sprintf(", %d %s tools that aren't accepted", offering, verb(offering, "offer"))
	}
	return printLine(out, line)
}

// sinceOf returns in words since when a node is not connected, as the time of day if that was today.
func sinceOf(n nodelinks.Node, now time.Time) string {
	if n.Since == nil {
		return ""
	}
	at := n.Since.Local()
	if at.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return " since " + at.Format("15:04")
	}
	return " since " + moment(at)
}

// verb returns the form of a verb for a number: 1 waits, 2 wait.
func verb(n int, word string) string {
	if n == 1 {
		return word + "s"
	}
	return word
}
