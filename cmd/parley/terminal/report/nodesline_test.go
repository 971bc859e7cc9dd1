package report_test

import (
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/server/nodelinks"
	"parley/cmd/parley/terminal/report"
	"parley/sessions/nodes"
)

func TestNodesInALine(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 15, 4, 5, 0, time.Local)
	at := func(hour int) *time.Time { return new(time.Date(2026, 1, 31, hour, 2, 0, 0, time.Local)) }
	yesterday := new(time.Date(2026, 1, 30, 23, 2, 0, 0, time.Local))
	one := func(name string, state nodes.State, here bool, since *time.Time) nodelinks.Node {
		return nodelinks.Node{Name: name, State: state, Here: here, Since: since}
	}
	offers := one("cam", nodes.Accepted, true, at(9))
	offers.Aside = []nodelinks.Tool{{Name: "look"}}
	var away []nodelinks.Node
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		away = append(away, one(name, nodes.Accepted, false, nil))
	}
	for want, all := range map[string][]nodelinks.Node{
		"":           {one("old", nodes.Revoked, false, at(1))},
		"Nodes: 1\n": {one("pi", nodes.Accepted, true, at(9)), one("old", nodes.Revoked, false, at(1))},
		"Nodes: 3, 1 away (pi since 14:02), 1 waits to be accepted\n": {
			one("pi", nodes.Accepted, false, at(14)), one("cam", nodes.Waiting, false, nil), one("desk", nodes.Accepted, true, at(2)),
		},
		"Nodes: 1, 1 away (pi since 2026-01-30 23:02:00)\n":                      {one("pi", nodes.Accepted, false, yesterday)},
		"Nodes: 3, 2 wait to be accepted, 1 offers tools that aren't accepted\n": {one("x", nodes.Waiting, true, at(9)), one("y", nodes.Waiting, true, at(9)), offers},
		"Nodes: 7, 7 away (a, b, c, d, e, and 2 more)\n":                         away,
	} {
		var out strings.Builder
		if err := report.NodesLine(&out, all, now); err != nil || out.String() != want {
			t.Errorf("it prints %q, %v, want %q", &out, err, want)
		}
	}
}
