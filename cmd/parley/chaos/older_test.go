package chaos

import (
	"database/sql"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// While a worker runs whose release does not know that turns can wait, people are not asked: a call that needs approval
// is denied, people are told so, and files that they send are not fetched. Once that worker is gone, people are asked
// and files are fetched.
func TestFleetBesideAReleaseThatCannotPark(t *testing.T) {
	f := newFleet(t, func(r agenttest.Request) agenttest.Response {
		if strings.HasSuffix(r.Said(), "read it") {
			return agenttest.Reply("fine")
		}
		if results := r.Results(); r.Rounds() > 0 {
			return agenttest.Reply("then: " + results[len(results)-1])
		}
		return agenttest.Calls(agenttest.ToolCall{Name: "ring", Args: `{"n":-1}`})
	})
	older := f.join("older", worker)
	db, err := sql.Open("pgx", f.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // the server may be gone
	// A worker of an earlier release does not say what it understands.
	if _, err := db.ExecContext(t.Context(), "DELETE FROM processes"); err != nil {
		t.Fatal(err)
	}
	f.join("front", gateway)
	f.join("newer", worker)
	f.Telegram.Say(7, 7, "ring")
	if got := f.WaitSaid(7, 1)[0]; !strings.Contains(got, "permission_denied") || !strings.Contains(got, "older release is still running") {
		t.Errorf("beside an older release it said %q", got)
	}
	read := func(n int) string {
		f.Telegram.Attach(8, 8, "document", "a.txt", []byte("what it says"), map[string]any{"caption": "read it"})
		return f.WaitSaid(8, n)[n-1]
	}
	if got := read(1); !strings.Contains(got, "I didn't get a.txt: a process of an older release is still running") {
		t.Errorf("beside an older release a file is answered %q", got)
	}
	older.end(syscall.SIGTERM)
	parleytest.WaitFor(t, "people to be asked", func() bool {
		said := parleytest.Texts(f.Telegram.Sent(7))
		last := said[len(said)-1]
		if strings.Contains(last, "needs approval") {
			return true
		}
		if strings.HasPrefix(last, "then: ") {
			f.Telegram.Say(7, 7, "ring")
			f.WaitSaid(7, len(said)+1)
		}
		return false
	})
	parleytest.WaitFor(t, "files to be fetched", func() bool {
		found, err := filepath.Glob(filepath.Join(f.root, "main", "telegram:8", "attachments", "*-a.txt"))
		if err != nil || len(found) > 0 {
			return true
		}
		read(len(f.Telegram.Sent(8)) + 1)
		return false
	})
	f.endAll()
}
