package operation

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// A process that cannot get the home does not poll Telegram, because that would end the poll of the process that has
// the home.
func TestAProcessThatIsRefusedTheHomePollsNobody(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(agenttest.Request) agenttest.Response { return agenttest.Reply("here I am") }, "")
	first := w.Serve()
	parleytest.WaitFor(t, "it to receive", func() bool { return w.Telegram.Calls("getMyCommands") > 0 && w.Telegram.Calls("getUpdates") == 1 })
	second := w.Serve()
	if err := <-second.Ended; err == nil {
		t.Error("two processes have served one home")
	}
	if n := w.Telegram.Calls("getUpdates"); n != 1 {
		t.Errorf("the platform was polled %d times, want once", n)
	}
	w.Telegram.Say(2, 2, "are you there?")
	w.WaitSaid(2, 1)
	first.Stop()
}

func TestWhatAFailedStartHasFetchedIsAnsweredByTheNext(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(agenttest.Request) agenttest.Response { return agenttest.Reply("here I am") }, "")
	w.Serve().Stop() // makes the home
	layout := func(version int) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(w.Home, "sessions.db"))
		parleytest.Must(t, err)
		_, err = db.Exec(fmt.Sprint("PRAGMA user_version = ", version))
		parleytest.Must(t, err)
		parleytest.Must(t, db.Close())
	}
	known := w.Count("sessions.db", "PRAGMA user_version")
	w.Telegram.Say(2, 2, "are you there?")
	layout(known + 1) // the layout of a newer release
	failed := w.Serve()
	if err := <-failed.Ended; err == nil || !strings.Contains(failed.Stderr.String(), "use the newer release") {
		t.Errorf("a home of a newer release is served: %v", err)
	}
	if n := w.Telegram.Unconfirmed(); n != 1 {
		t.Fatalf("%d messages are left with the platform, want 1", n)
	}
	layout(known)
	p := w.Serve()
	w.WaitSaid(2, 1)
	p.Stop()
}
