package warm_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/journal"
	"parley/agent/warm"
	"parley/sessions"
	"parley/sessions/sqlstore"
)

// A rig is a store whose sessions are worked on with what is remembered of them.
type rig struct {
	t        *testing.T
	store    *sqlstore.Store
	journals *warm.Journals
	fence    int64
	read     bool // whether the last log was read
}

// Open notes that a log is read.
func (r *rig) Open(ctx context.Context, key string, fence int64) (sessions.Log, error) {
	r.read = true
	return r.store.Open(ctx, key, fence)
}

func newRig(t *testing.T, b warm.Bounds) *rig {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &rig{t: t, store: s, journals: warm.New(b)}
}

func key(n int) string { return fmt.Sprint("main:test:", n) }

// begin begins to work on a session.
func (r *rig) begin(n int) *warm.Run {
	r.t.Helper()
	r.fence, r.read = r.fence+1, false
	run, err := r.journals.Begin(r.t.Context(), r, key(n), r.fence, false, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// say works on a session, in which so many bytes are said, and reports whether its log
// was read.
func (r *rig) say(n, bytes int) (read bool) {
	r.t.Helper()
	run := r.begin(n)
	e := journal.NewEntry("t", sessions.KindText, sessions.Text{Text: strings.Repeat("x", bytes)})
	if err := run.Journal.Append(r.t.Context(), e); err != nil {
		r.t.Fatal(err)
	}
	run.End()
	return r.read
}

// reads fails the test unless the logs of exactly these sessions are read when all are
// opened once more.
func (r *rig) reads(of int, want ...int) {
	r.t.Helper()
	var got []int
	for n := range of {
		run := r.begin(n)
		if r.read {
			got = append(got, n)
		} else if run.Journal.Newest() != int64(len(run.Journal.Records())) {
			r.t.Errorf("session %d is remembered in part", n)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("the logs of %v were read, want %v", got, want)
	}
}

func TestOfManySessionsThoseOfLateAreKept(t *testing.T) {
	r := newRig(t, warm.Bounds{Sessions: 3})
	for _, n := range []int{0, 1, 2, 3, 1, 4} {
		r.say(n, 10)
	}
	if n, _ := r.journals.Size(); n != 3 {
		t.Errorf("%d are kept", n)
	}
	r.reads(5, 0, 2)
}

func TestLongSessionsTakeTheRoomOfOthers(t *testing.T) {
	r := newRig(t, warm.Bounds{Bytes: 100_000})
	for n := range 5 {
		r.say(n, 20_000)
	}
	r.say(5, 30_000) // more than a quarter of all
	if n, bytes := r.journals.Size(); n != 4 || bytes < 80_000 || bytes > 100_000 {
		t.Errorf("%d are kept with %d bytes", n, bytes)
	}
	r.reads(6, 0, 5)
}

func TestIdleSessionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, warm.Bounds{Idle: time.Minute, Age: 2 * time.Minute})
		r.say(0, 10)
		time.Sleep(40 * time.Second)
		r.say(1, 10)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n, _ := r.journals.Size(); n != 1 {
			t.Errorf("%d are kept", n)
		}
		for n, want := range []bool{false, false, true} { // what was read two minutes ago is read again
			if got := r.say(1, 10); got != want {
				t.Errorf("time %d: read %t", n, got)
			}
			time.Sleep(50 * time.Second)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n, bytes := r.journals.Size(); n != 0 || bytes != 0 {
			t.Errorf("%d are kept, with %d bytes", n, bytes)
		}
	})
}

func TestWhatIsErasedIsForgottenAtOnce(t *testing.T) {
	r := newRig(t, warm.Bounds{})
	r.say(0, 10)
	during := r.begin(1)
	r.journals.Clear()
	if n, bytes := r.journals.Size(); n != 0 || bytes != 0 {
		t.Errorf("%d are kept, with %d bytes", n, bytes)
	}
	during.End()
	if n, _ := r.journals.Size(); n != 0 {
		t.Error("what was worked on during the erasure is kept")
	}
	r.reads(2, 0, 1)
}

// A run that has lost its lease may end after the one that took the lease over.
func TestALateRunReplacesNoLaterOne(t *testing.T) {
	r := newRig(t, warm.Bounds{})
	late := r.begin(0)
	r.say(0, 10)
	late.End()
	r.reads(1)
}

// Of what a summary hides nothing is kept, but for turns that have not ended.
func TestWhatASummaryHidesIsNotKept(t *testing.T) {
	r := newRig(t, warm.Bounds{})
	run := r.begin(0)
	say := func(turn string, kind sessions.Kind, data any) {
		t.Helper()
		if err := run.Journal.Append(t.Context(), journal.NewEntry(turn, kind, data)); err != nil {
			t.Fatal(err)
		}
	}
	say("open", sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte("{}")})
	say("over", sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte("{}")})
	say("over", sessions.KindText, sessions.Text{Text: "kept"})
	say("over", sessions.KindText, sessions.Text{Text: "hidden"})
	say("over", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
	say("", sessions.KindSummary, sessions.Summary{Covers: 5, Keep: []int64{3}})
	run.End()
	for _, where := range []string{"in memory", "in the log"} {
		run := r.begin(0)
		var got []int64
		for _, rec := range run.Journal.Records() {
			got = append(got, rec.N)
		}
		if fmt.Sprint(got) != "[1 3 6]" || r.read != (where == "in the log") {
			t.Errorf("%s: entries %v", where, got)
		}
	}
}
