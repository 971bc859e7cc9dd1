package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// lockedDatabase keeps everybody else from writing to the home's database, until unlock is called.
func lockedDatabase(t *testing.T, w *parleytest.World) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.Home, "sessions.db")+"?_pragma=busy_timeout(5000)")
	must(t, err)
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.Exec("BEGIN IMMEDIATE")
	must(t, err)
	return func() {
		t.Helper()
		_, err := db.Exec("ROLLBACK")
		must(t, err)
	}
}

// The first poll does not wait for the home to be opened; but what it brings stays with the
// platform until it is stored, so that nothing is lost if the home cannot be opened.
func TestTheFirstPollDoesNotWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(agenttest.Request) agenttest.Response { return agenttest.Reply("here I am") }, "")
	w.Serve().Stop() // which makes the home
	unlock := lockedDatabase(t, w)
	w.Telegram.Say(2, 2, "are you there?")
	polled := func() func() bool {
		before := w.Telegram.Calls("getUpdates")
		return func() bool { return w.Telegram.Calls("getUpdates") > before }
	}
	begun := polled()
	killed := w.Serve()
	parleytest.WaitFor(t, "the first poll", begun)
	killed.Kill()
	if n := w.Telegram.Unconfirmed(); n != 1 {
		t.Fatalf("%d messages are left with the platform, want 1", n)
	}

	begun = polled()
	p := w.Serve()
	parleytest.WaitFor(t, "the first poll", begun)
	if n := w.Telegram.Unconfirmed(); n != 1 {
		t.Fatalf("%d messages are left with the platform before the home is open, want 1", n)
	}
	unlock()
	w.WaitSaid(2, 1)
	parleytest.WaitFor(t, "the message to be confirmed", func() bool { return w.Telegram.Unconfirmed() == 0 })
	p.Stop()
	if said := parleytest.Texts(w.Telegram.Sent(2)); len(said) != 1 || said[0] != "here I am" {
		t.Errorf("it was answered %q", said)
	}
}

// What begins before the home is open must not disturb the process that has it: Telegram ends a
// poll when another one begins.
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
	w.Serve().Stop() // which makes the home
	layout := func(version int) {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(w.Home, "sessions.db"))
		must(t, err)
		_, err = db.Exec(fmt.Sprint("PRAGMA user_version = ", version))
		must(t, err)
		must(t, db.Close())
	}
	known := w.Count("sessions.db", "PRAGMA user_version")
	w.Telegram.Say(2, 2, "are you there?")
	layout(known + 1) // a newer release's
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
