package operation

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"parley/cmd/parley/api"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// fleetStatus contains what parley --json status says about a fleet.
type fleetStatus struct {
	Fleet *api.Fleet `json:"fleet"`
	api.CurrentWork
}

// byRole returns the processes with a role.
func (s fleetStatus) byRole(role string) (found []api.FleetProcess) {
	for _, p := range s.Fleet.Processes {
		if p.Role == role {
			found = append(found, p)
		}
	}
	return found
}

func readFleetStatus(t *testing.T, w *parleytest.World) (now fleetStatus) {
	t.Helper()
	raw, errs, code := w.Run("--json", "status")
	if code != 0 {
		t.Fatalf("status: %d %q", code, errs)
	}
	parleytest.Must(t, json.Unmarshal([]byte(raw), &now))
	if now.Fleet == nil {
		t.Fatalf("it does not say of a fleet: %s", raw)
	}
	return now
}

// The status of a fleet lists its processes with their roles and with what each holds and works on. A killed process is
// not listed, and a process of a release without this report is listed by its name alone.
func TestProcessesOfAFleet(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	store := sqldbtest.New(t)
	w := parleytest.New(t, busyModel, fmt.Sprintf("[bus]\nurl = %q\nshards = 2\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n", redis, "test-"+rand.Text(), store, t.TempDir())+parleytest.WithShell)
	w.NeedsSandbox()
	gateway, workers := w.ServeAs("gateway"), []*parleytest.Process{w.ServeAs("worker"), w.ServeAs("worker")}
	for _, p := range append(workers, gateway) {
		p.WaitServing()
	}
	w.Telegram.Say(2, 2, "hang")
	var now fleetStatus
	parleytest.WaitFor(t, "all processes to say what they are, and the turn to run", func() bool {
		now = readFleetStatus(t, w) // run in a home of its own, in which no server runs
		gateways := now.byRole("gateway")
		return len(now.Fleet.Processes) == 3 && len(gateways) == 1 && len(now.byRole("worker")) == 2 && now.Turns.Count == 1 &&
			slices.Contains(gateways[0].Holds, "receive/telegram") && slices.Contains(gateways[0].Holds, "dispatch/telegram")
	})
	host, err := os.Hostname()
	parleytest.Must(t, err)
	sessions := map[string]int{}
	for _, p := range now.Fleet.Processes {
		sessions[p.Name] = p.Sessions
		if p.Release == "" || p.Host != host || p.Started == nil || time.Since(*p.Started) > 10*time.Minute {
			t.Errorf("of a process it says %+v", p)
		}
	}
	for _, p := range now.byRole("worker") {
		if slices.Contains(p.Holds, "receive/telegram") || slices.Contains(p.Holds, "dispatch/telegram") {
			t.Errorf("a worker holds %q", p.Holds)
		}
	}
	if at := now.Turns.List[0].Process; sessions[at] != 1 || len(sessions) != 3 {
		t.Errorf("the turn runs in %q, and the sessions are %v", at, sessions)
	}
	if now.Fleet.Shards != 2 {
		t.Errorf("the bus has %d shards", now.Fleet.Shards)
	}
	text, _, _ := w.Run("status")
	parleytest.Wants(t, text, "processes of the fleet: 3 (the bus has 2 shards)", "receive/telegram", "dispatch/telegram", host, "gateway", "worker", "PROCESS")

	workers[0].Kill()
	parleytest.WaitFor(t, "the process that was killed to be gone", func() bool {
		now = readFleetStatus(t, w)
		return len(now.Fleet.Processes) == 2 && len(now.byRole("worker")) == 1
	})
	w.Telegram.Say(3, 3, "hang")
	parleytest.WaitFor(t, "the other worker to have the next turn", func() bool {
		now = readFleetStatus(t, w)
		left := now.byRole("worker")[0]
		return left.Sessions > 0 && slices.ContainsFunc(now.Turns.List, func(r api.RunningTurn) bool { return r.Session == "main:telegram:3" && r.Process == left.Name })
	})
	older := now.byRole("worker")[0].Name
	parleytest.WaitFor(t, "a process that does not tell to be listed", func() bool {
		undescribe(t, store, older) // repeated, because the process describes itself again when it holds something else
		now = readFleetStatus(t, w)
		last := now.Fleet.Processes[len(now.Fleet.Processes)-1]
		return len(now.Fleet.Processes) == 2 && last.Name == older && last.Role == "" && last.Started == nil
	})
	parleytest.WaitFor(t, "what is not known of it to be a question", func() bool {
		undescribe(t, store, older)
		text, _, _ = w.Run("status")
		fields := strings.Fields(lineWith(text, older))
		return len(fields) == 7 && strings.Join(fields[1:5], " ") == "? ? ? ?" && fields[6] == "?"
	})
}

// undescribe makes a process look like one of a release that does not report what it is.
func undescribe(t *testing.T, store, name string) {
	t.Helper()
	db, err := sql.Open("pgx", store)
	parleytest.Must(t, err)
	defer db.Close()
	result, err := db.Exec("UPDATE processes SET about = '' WHERE name = $1", name)
	parleytest.Must(t, err)
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		t.Errorf("of %q there are %d records, %v", name, n, err)
	}
}

// lineWith returns the first line that begins with a word.
func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word) {
			return line
		}
	}
	return ""
}

// The status of a single server contains no fleet.
func TestOneServerIsNoFleet(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, busyModel, "")
	w.Serve().WaitServing()
	raw, _, code := w.Run("--json", "status")
	text, _, _ := w.Run("status")
	if code != 0 || strings.Contains(raw, `"fleet"`) || strings.Contains(text, "fleet") {
		t.Errorf("it says %d %s %s", code, raw, text)
	}
}
