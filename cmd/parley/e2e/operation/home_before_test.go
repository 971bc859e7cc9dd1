package operation

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/bus/sqlitebus"
	"parley/channels/channelstest"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/hometest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
)

// newHomeBefore makes the home of a bot of the previous release, with separate files for the bus, the store and the
// book. The home contains conversations, pairings, a dead letter, and messages that nobody has answered yet.
func newHomeBefore(t *testing.T) *moving {
	t.Helper()
	m := &moving{World: parleytest.New(t, parleytest.EchoModel, "\n[agents.defaults]\nqueue = \"followup\"\n")}
	h := hometest.OpenBefore(t, m.Home)
	working, sending := h.RunWorker(nil), h.RunDispatcher(channelstest.NewMemoryChannel())
	for _, chat := range []string{"2", "3", "4", "5"} {
		h.Say("hello-"+chat, chat, chat, "hello")
	}
	h.WaitIdle()
	working()
	sending()
	m.fill(h)
	return m
}

// checkConverted checks that a home still contains everything, and that the waiting messages are answered once, in
// order.
func (m *moving) checkConverted(p *parleytest.Process) {
	m.T.Helper()
	for chat := int64(2); chat < 6; chat++ {
		m.WaitSaid(chat, 3)
	}
	m.WaitSaid(7, 1)
	p.Stop()
	for chat := int64(2); chat < 6; chat++ {
		if got, want := parleytest.Texts(m.Telegram.Sent(chat)), []string{"you said number 0", "you said number 1", "you said number 2"}; !slices.Equal(got, want) {
			m.T.Errorf("chat %d was told %q, want %q", chat, got, want)
		}
	}
	if got := parleytest.Texts(m.Telegram.Sent(7)); !slices.Equal(got, []string{"by the way"}) {
		m.T.Errorf("chat 7 was told %q", got)
	}
	if n := m.Count("sessions.db", "SELECT count(*) FROM dead WHERE id = 'hopeless' AND reason = 'it was in vain'"); n != 1 {
		m.T.Errorf("there are %d dead letters", n)
	}
	if left := m.filesBefore(); len(left) > 0 {
		m.T.Errorf("after a clean stop there are %q", left)
	}
	h := hometest.Open(m.T, m.Home)
	defer h.Close()
	if got, err := h.Book.Pairings(m.T.Context()); err != nil || !reflect.DeepEqual(got, m.pairings) || len(got) == 0 {
		m.T.Errorf("pairings are %+v, %v; want %+v", got, err, m.pairings)
	}
	now := readLogs(m.T, h.Store)
	for key, was := range m.log {
		if len(now[key]) < len(was) || !slices.EqualFunc(now[key][:len(was)], was, func(a, b sessions.Entry) bool { return reflect.DeepEqual(a, b) }) {
			m.T.Errorf("the log of %s is not the same: %d entries, and there were %d", key, len(now[key]), len(was))
		}
	}
}

// filesBefore returns the names of the previous release's files in the home, under their old names or set aside.
func (m *moving) filesBefore() (names []string) {
	m.T.Helper()
	entries, err := os.ReadDir(m.Home)
	if err != nil {
		m.T.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "bus.db.lock" && (strings.HasPrefix(name, homedb.BusFile) || strings.HasPrefix(name, homedb.BookFile)) {
			names = append(names, name)
		}
	}
	return names
}

// The server converts a home of the previous release at its start and loses nothing, even if the process is killed at
// any step, and even if that release has left new, empty files before it refused the home.
func TestHomeOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"nowhere", "takeover:begin", "takeover:copied", "takeover:aside bus.db", "takeover:aside book.db"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			m := newHomeBefore(t)
			if at != "nowhere" {
				m.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			}
			m.checkConverted(m.Serve())
			b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(m.Home, homedb.BusFile)})
			parleytest.Must(t, err)
			book, err := sqlbook.Open(t.Context(), filepath.Join(m.Home, homedb.BookFile))
			parleytest.Must(t, err)
			parleytest.Must(t, book.Close())
			parleytest.Must(t, b.Close())
			p := m.Serve()
			m.Telegram.Say(2, 2, "the last")
			if got := m.WaitSaid(2, 4)[3]; got != "you said the last" {
				t.Errorf("it says %q", got)
			}
			p.Stop()
			if left := m.filesBefore(); len(left) > 0 {
				t.Errorf("there are %q", left)
			}
		})
	}
}

// Forgetting also erases a person's words from the files that were set aside.
func TestForgetReachesWhatWasSetAside(t *testing.T) {
	t.Parallel()
	m := newHomeBefore(t)
	p := m.Serve()
	m.WaitSaid(2, 3)
	p.Kill()
	if aside := m.filesBefore(); !slices.Equal(aside, []string{"book.db.before-1000", "bus.db.before-1000"}) {
		t.Fatalf("there are %q", aside)
	}
	p = m.Serve()
	p.WaitServing()
	if out, errs, code := m.Run("forget", "--yes", "--user", "telegram:2"); code != parleytest.ExitDone {
		t.Fatalf("forget: %d %s%s", code, out, errs)
	}
	if left := m.filesBefore(); len(left) > 0 {
		t.Errorf("there are %q", left)
	}
	m.WaitSaid(5, 3)
	p.Stop()
}

// A command that only looks at a home of the previous release changes nothing there. A command that needs the home's
// data converts the home.
func TestCommandsOnAHomeOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	m := newHomeBefore(t)
	wantUntouched := func(command string) {
		t.Helper()
		logs := func(name string) bool { return strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm") }
		if left := slices.DeleteFunc(m.filesBefore(), logs); !slices.Equal(left, []string{"book.db", "bus.db"}) {
			t.Errorf("%s has left %q", command, left)
		}
	}
	out, errs, _ := m.Run("doctor")
	if strings.Count(out, "whole") != 3 || !strings.Contains(out, "bus.db") || !strings.Contains(out, "book.db") {
		t.Errorf("doctor says %s%s", out, errs)
	}
	wantUntouched("doctor")
	file := filepath.Join(t.TempDir(), "backup")
	if out, errs, code := m.Run("backup", file); code != parleytest.ExitDone {
		t.Errorf("backup: %d %s%s", code, out, errs)
	}
	wantUntouched("backup")
	if out, errs, code := m.Run("sessions"); code != parleytest.ExitDone || !strings.Contains(out, "main:telegram:5") {
		t.Errorf("sessions: %d %s%s", code, out, errs)
	}
	if left := m.filesBefore(); len(left) > 0 {
		t.Errorf("after a command there are %q", left)
	}
	if out, errs, _ := m.Run("doctor"); strings.Count(out, "whole") != 1 || !strings.Contains(out, "sessions.db") {
		t.Errorf("then doctor says %s%s", out, errs)
	}
	if _, errs, code := m.Run("restore", "--yes", file); code != parleytest.ExitDone {
		t.Fatalf("restore: %d %s", code, errs)
	}
	m.checkConverted(m.Serve())
}
