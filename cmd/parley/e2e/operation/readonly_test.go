package operation

import (
	"fmt"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// The bot treats a PostgreSQL that accepts no writes, as after a failover to a standby, as unavailable. Messages wait
// meanwhile and none is given up. The bot answers them soon after the database accepts writes again.
func TestStoreThatTakesNoWritesIsWaitedFor(t *testing.T) {
	t.Parallel()
	pg := sqldbtest.Start(t)
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[store]\nurl = %q\n[workspace]\nroot = %q\n", pg.URL(), t.TempDir()))
	o := parleytest.ListenHTTP(w)
	p := w.Serve()
	o.Ready(t)
	o.WaitReadiness(200, `"store":"ok"`)
	w.Telegram.Say(2, 2, "one")
	w.WaitSaid(2, 1)
	readOnly := func(now string) {
		t.Helper()
		for _, do := range []string{"ALTER SYSTEM SET default_transaction_read_only = " + now, "SELECT pg_reload_conf()"} {
			sqldbtest.Query(t, "pgx", pg.URL(), do)
		}
		parleytest.WaitFor(t, "the server to be set", func() bool {
			return sqldbtest.Query(t, "pgx", pg.URL(), "SHOW default_transaction_read_only")[0] == now
		})
	}
	readOnly("on")
	o.WaitReadiness(503, `"store":"doesn't accept writes"`)
	w.Telegram.Say(2, 2, "two")
	parleytest.WaitFor(t, "the session to fail", func() bool { return strings.Contains(p.Stderr.String(), "read-only transaction") })
	parleytest.WaitFor(t, "the session to wait", func() bool {
		if strings.Contains(p.Stderr.String(), "session failed") {
			t.Fatal("it is counted, as if the session were to blame")
		}
		return strings.Contains(p.Stderr.String(), "session waits until its store is back")
	})
	readOnly("off")
	o.WaitReadiness(200, `"store":"ok"`)
	if said := w.WaitSaid(2, 2); !strings.Contains(said[1], "two") {
		t.Errorf("it was answered %q", said)
	}
}
