package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/terminal"
	"parley/sessions/bill"
)

// PrintFleet prints the processes of the fleet, if there is one.
func (s Status) PrintFleet(out io.Writer, now time.Time) error {
	if s.Fleet == nil {
		return nil
	}
	shards := ""
	if s.Fleet.Shards > 1 {
		shards = fmt.Sprintf(textShards, s.Fleet.Shards)
	}
	if _, err := fmt.Fprintf(out, textFleet, len(s.Fleet.Processes), shards); err != nil {
		return err
	}
	w := table(out, "PROCESS", "ROLE", "RELEASE", "HOST", "UP", "SESSIONS", "HOLDS")
	for _, p := range s.Fleet.Processes {
		up, holds := textUnknown, textUnknown
		if p.Started != nil {
			up, holds = max(0, now.Sub(*p.Started)).Round(time.Second).String(), shownHolds(p)
		}
		row := []string{p.Name, cmp.Or(p.Role, textUnknown), cmp.Or(p.Release, textUnknown), cmp.Or(p.Host, textUnknown), up, bill.Grouped(int64(p.Sessions)), holds}
		for i := range row {
			row[i] = terminal.Cell(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return printLine(out, "")
}

// shownHolds returns the names of a process's duties for the outside, and the number of the others, which keep the
// data in order.
func shownHolds(p api.FleetProcess) string {
	var shown []string
	rest := 0
	for _, name := range p.Holds {
		switch what, _, _ := strings.Cut(name, "/"); what {
		case "receive", "dispatch", "subscription", "nodes", "metrics":
			shown = append(shown, name)
		default:
			rest++
		}
	}
	if rest > 0 {
		shown = append(shown, fmt.Sprintf(textUpkeepHolds, rest))
	}
	return cmp.Or(strings.Join(shown, ", "), "-")
}
