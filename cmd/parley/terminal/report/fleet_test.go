package report_test

import (
	"bytes"
	"testing"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/terminal/report"
)

// The report has a line for each process of a fleet, even if little is known about one. It mentions the shards of the
// bus if there are several.
func TestFleet(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	began := now.Add(-90 * time.Minute)
	processes := []api.FleetProcess{
		{Name: "AAA", Role: "gateway", Release: "1.2.0", Host: "one", Started: &began, Holds: []string{"bus/repair", "dispatch/slack", "metrics", "receive/slack", "retention"}},
		{Name: "BBB", Role: "worker", Release: "1.2.0", Host: "two\x1b[2J", Started: &now, Sessions: 1234},
		{Name: "CCC", Sessions: 2},
	}
	const table = `PROCESS  ROLE     RELEASE  HOST    UP       SESSIONS  HOLDS
AAA      gateway  1.2.0    one     1h30m0s  0         dispatch/slack, metrics, receive/slack, upkeep (2)
BBB      worker   1.2.0    two[2J  0s       1,234     -
CCC      ?        ?        ?       ?        2         ?

`
	for _, c := range []struct {
		fleet *api.Fleet
		want  string
	}{
		{nil, ""},
		{&api.Fleet{Shards: 1, Processes: processes}, "processes of the fleet: 3\n" + table},
		{&api.Fleet{Shards: 8, Processes: processes}, "processes of the fleet: 3 (the bus has 8 shards)\n" + table},
	} {
		var out bytes.Buffer
		if err := (report.Status{Fleet: c.fleet}).PrintFleet(&out, now); err != nil || out.String() != c.want {
			t.Errorf("it prints %v:\n%s\nwant:\n%s", err, &out, c.want)
		}
	}
}
