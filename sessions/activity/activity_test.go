package activity_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/activity"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

// fixedNoon returns a time at which no sweep is due.
func fixedNoon() time.Time { return time.Date(2099, 5, 6, 12, 10, 0, 0, time.UTC) }

// turnEntries returns the entries of a turn that ends at a time with done.
func turnEntries(t *testing.T, turn string, at time.Time, done sessions.TurnDone) []sessions.Entry {
	t.Helper()
	var all []sessions.Entry
	for _, one := range []struct {
		kind sessions.Kind
		data any
	}{
		{sessions.KindTurnStarted, sessions.TurnStarted{Agent: "main"}}, {sessions.KindUser, sessions.User{Text: "a secret"}}, {sessions.KindTurnDone, done},
	} {
		e, err := sessions.NewEntry(turn, one.kind, one.data)
		if err != nil {
			t.Fatal(err)
		}
		if e.At = at; one.kind == sessions.KindUser {
			e.Cause, e.Person = turn, "telegram:7"
		}
		all = append(all, e)
	}
	return all
}

// writeTurn writes a turn that ends at a time with done into a session.
func writeTurn(t *testing.T, s *sqlstore.Store, session, turn string, at time.Time, done sessions.TurnDone) {
	t.Helper()
	l, err := s.Open(t.Context(), "main:telegram:"+session, 1)
	if err == nil {
		err = l.Append(t.Context(), l.Next(), turnEntries(t, turn, at, done)...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func doneWith(took, first int64, calls ...sessions.CallsCount) sessions.TurnDone {
	return sessions.TurnDone{State: sessions.TurnCompleted, Figures: &sessions.TurnFigures{TookMS: took, FirstMS: first, Calls: calls}}
}

func summary(t *testing.T, s *sqlstore.Store, by activity.Period, since time.Time) activity.Summary {
	t.Helper()
	sum, err := s.Activity().Summary(t.Context(), by, since)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// The ends of turns in all processes are counted together, by hour and by day.
func TestTurnEndsAreCounted(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		shell := sessions.CallsCount{Tool: "shell", Outcome: sessions.CallOK, N: 3}
		denied := sessions.CallsCount{Tool: "shell", Outcome: sessions.CallDenied, N: 1}
		writeTurn(t, one, "s1", "t1", fixedNoon(), doneWith(4000, 900, shell, denied))
		writeTurn(t, other, "s2", "t2", fixedNoon().Add(time.Minute), doneWith(4000, 0, sessions.CallsCount{Tool: "fetch", Outcome: sessions.CallFailed, N: 2}))
		writeTurn(t, one, "s1", "t3", fixedNoon().Add(time.Hour), sessions.TurnDone{State: sessions.TurnFailed, Code: "model", Figures: &sessions.TurnFigures{TookMS: 70_000}})
		writeTurn(t, one, "s1", "t4", fixedNoon().Add(time.Hour), sessions.TurnDone{State: sessions.TurnFailed, Code: sessions.CodeGaveUp})
		writeTurn(t, one, "s1", "t5", fixedNoon().Add(time.Hour), sessions.TurnDone{State: sessions.TurnFailed, Code: "too_many_turns", Refused: true})
		writeTurn(t, one, "s1", "t6", fixedNoon().Add(2*time.Hour), sessions.TurnDone{State: sessions.TurnCancelled})
		writeTurn(t, one, "s1", "t7", fixedNoon().Add(2*time.Hour), sessions.TurnDone{State: sessions.TurnCompleted}) // without figures, as an older release wrote it
		task := doneWith(10, 10, shell)
		task.Figures.Task = true
		writeTurn(t, one, "s1", "t8", fixedNoon().Add(24*time.Hour), task)

		got := summary(t, other, activity.Hour, fixedNoon())
		at := fixedNoon().Truncate(time.Hour)
		tools := []activity.Tool{
			{Tool: "shell", Calls: 4, Outcomes: map[string]int64{"ok": 3, "denied": 1}}, {Tool: "fetch", Calls: 2, Outcomes: map[string]int64{"failed": 2}},
		}
		want := []activity.Sum{
			{At: at, Turns: activity.Turns{Done: 2}, First: activity.Latency{Count: 1, P50: 850, P95: 985}, Answer: activity.Latency{Count: 2, P50: 4000, P95: 4900}, Calls: 6, Failed: 3, Tools: tools},
			{At: at.Add(time.Hour), Turns: activity.Turns{Failed: 1, GivenUp: 1, Refused: 1}, Tools: []activity.Tool{}},
			{At: at.Add(2 * time.Hour), Turns: activity.Turns{Stopped: 1, Done: 1}, Tools: []activity.Tool{}},
			{At: at.Add(24 * time.Hour), Calls: 3, Tools: []activity.Tool{{Tool: "shell", Calls: 3, Outcomes: map[string]int64{"ok": 3}}}},
		}
		if !reflect.DeepEqual(got.Sums, want) {
			t.Errorf("by hour:\n%+v, want\n%+v", got.Sums, want)
		}
		if got := summary(t, one, activity.Hour, fixedNoon().Add(time.Hour)); len(got.Sums) != 3 || got.Total.Turns.Done != 1 {
			t.Errorf("since the next hour: %+v", got)
		}
		days := summary(t, one, activity.Day, fixedNoon())
		if len(days.Sums) != 2 || days.Sums[0].Turns != (activity.Turns{Done: 3, Failed: 1, GivenUp: 1, Stopped: 1, Refused: 1}) || !days.Sums[1].At.Equal(at.Add(12*time.Hour)) {
			t.Errorf("by day: %+v", days.Sums)
		}
		tools[0].Calls, tools[0].Outcomes["ok"] = 7, 6
		if all := days.Total; !reflect.DeepEqual(all.Tools, tools) || all.HasMoreTools || all.Calls != 9 || all.Failed != 3 {
			t.Errorf("in all: %+v", all)
		}
	})
}

// If a write is repeated or refused, its turn is counted exactly as often as the log contains it.
func TestEachTurnIsCountedOnce(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		l, err := one.Open(t.Context(), "main:telegram:s1", 1)
		if err != nil {
			t.Fatal(err)
		}
		// Two turns in one write, with the same counts.
		entries := append(turnEntries(t, "t1", fixedNoon(), doneWith(1, 1)), turnEntries(t, "t2", fixedNoon(), doneWith(1, 1))...)
		for i := range entries { // with the times that the first write has set
			entries[i].N = 0
		}
		for range 2 { // the second write is a retry, as if the answer to the first commit had been lost
			again := append([]sessions.Entry(nil), entries...)
			if err := l.Append(t.Context(), 1, again...); err != nil {
				t.Fatal(err)
			}
		}
		newer, err := other.Open(t.Context(), "main:telegram:s1", 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), l.Next(), turnEntries(t, "t3", fixedNoon(), doneWith(1, 1))...); err == nil {
			t.Error("a former holder could write")
		}
		if err := newer.Append(t.Context(), newer.Next(), turnEntries(t, "t1", fixedNoon(), doneWith(1, 1))...); err == nil {
			t.Error("a message was answered twice")
		}
		if got := summary(t, one, activity.Hour, fixedNoon()).Total; got.Turns.Done != 2 || got.First.Count != 2 || got.Answer.Count != 2 {
			t.Errorf("counted %+v", got)
		}
	})
}

// Many sessions in several processes end turns in the same hour, and every turn is counted.
func TestTurnsThatEndAtOnceAreAllCounted(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) {
		const each = 20
		var ends sync.WaitGroup
		for i, s := range []*sqlstore.Store{one, other} {
			for n := range each {
				ends.Go(func() {
					name := fmt.Sprint("s", i, ".", n)
					l, err := s.Open(t.Context(), "main:telegram:"+name, 1)
					if err == nil {
						err = l.Append(t.Context(), 1, turnEntries(t, name, fixedNoon(), doneWith(1, 1))...)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		ends.Wait()
		if got := summary(t, one, activity.Hour, fixedNoon()).Total; got.Turns.Done != 2*each || got.Answer.Count != 2*each {
			t.Errorf("counted %+v", got)
		}
	})
}

// When a person is forgotten, the counts stay. They contain only numbers, which say nothing about anybody.
func TestCountsContainNoNames(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, _ *sqlstore.Store) {
		writeTurn(t, one, "1", "t1", fixedNoon(), doneWith(1, 1, sessions.CallsCount{Tool: "shell", Outcome: sessions.CallOK, N: 1}))
		db, err := sqldb.OpenAt(t.Context(), at, sqlstore.Schema())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		rows := func() (all []string) {
			found, err := db.Read.QueryContext(t.Context(), "SELECT hour, what, n FROM activity ORDER BY hour, what")
			if err != nil {
				t.Fatal(err)
			}
			defer found.Close()
			for found.Next() {
				var hour, what string
				var n int64
				if err := found.Scan(&hour, &what, &n); err != nil {
					t.Fatal(err)
				}
				all = append(all, fmt.Sprint(hour, " ", what, " ", n))
			}
			return all
		}
		want := []string{"2099-05-06T12 first/100 1", "2099-05-06T12 took/100 1", "2099-05-06T12 tool/shell/ok 1", "2099-05-06T12 turn/done 1"}
		if got := rows(); !reflect.DeepEqual(got, want) {
			t.Errorf("the table has %q", got)
		}
		if _, err := one.ErasePerson(t.Context(), "telegram:7"); err != nil {
			t.Fatal(err)
		}
		if got := rows(); !reflect.DeepEqual(got, want) {
			t.Errorf("afterwards the table has %q", got)
		}
	})
}

// Counts older than 90 days are deleted, and the counts of several processes are added up, without changing the
// sums.
func TestOldCountsAreDeletedAndFolded(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
		now := fixedNoon().Add(activity.CountLifetime)
		for i, s := range []*sqlstore.Store{one, other, one} {
			for j, when := range []time.Time{fixedNoon().Add(-time.Hour), fixedNoon(), now.Add(-48 * time.Hour), now.Add(-time.Hour)} {
				writeTurn(t, s, "s1", fmt.Sprint("t", i, ".", j), when, doneWith(1, 0))
			}
		}
		before := summary(t, one, activity.Day, fixedNoon())
		for range 3 { // both processes
			var sweeps sync.WaitGroup
			for _, s := range []*sqlstore.Store{one, other} {
				sweeps.Go(func() {
					if err := s.Activity().SweepNow(t.Context(), now); err != nil {
						t.Error(err)
					}
				})
			}
			sweeps.Wait()
		}
		db, err := sqldb.OpenAt(t.Context(), at, sqlstore.Schema())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		count := func(condition string, args ...any) (n int) {
			if err := db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM activity WHERE "+condition, args...).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := count("hour < ?", "2099-05-06T12"); n != 0 {
			t.Errorf("%d rows are too old", n)
		}
		if n := count("hour = ? AND shard <> 0", now.Add(-48*time.Hour).Format(activity.HourLayout)); n != 0 {
			t.Errorf("%d rows of an hour long past are apart", n)
		}
		after := summary(t, one, activity.Day, fixedNoon())
		if after.Total.Turns.Done != 9 || before.Total.Turns.Done != 12 {
			t.Errorf("turns: %+v, before %+v", after.Total.Turns, before.Total.Turns)
		}
	})
}

// A turn adds only a limited number of counts, whatever its entries contain.
func TestCountsOfATurnAreLimited(t *testing.T) {
	done := doneWith(1, 1)
	for i := range 1000 {
		done.Figures.Calls = append(done.Figures.Calls, sessions.CallsCount{Tool: fmt.Sprint("tool", i), Outcome: sessions.CallOK, N: 1})
	}
	if got := activity.AddTurn(nil, done, "2099-05-06T12"); len(got) > 203 {
		t.Errorf("%d counts", len(got))
	}
}

// A percentile is somewhere between the bounds of the bucket that contains the measured value.
func TestLatency(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, _ *sqlstore.Store) {
		for i := range 100 { // 20 of 100 take 40 s
			took := int64(1200)
			if i >= 80 {
				took = 40_000
			}
			writeTurn(t, one, "s1", fmt.Sprint("t", i), fixedNoon(), doneWith(took, 0))
		}
		writeTurn(t, one, "s1", "long", fixedNoon().Add(time.Hour), doneWith(1e9, 0))
		sums := summary(t, one, activity.Hour, fixedNoon()).Sums
		if a := sums[0].Answer; a.P50 <= 1000 || a.P50 > 1500 || a.P95 <= 30_000 || a.P95 > 45_000 || a.Count != 100 {
			t.Errorf("latency: %+v", a)
		}
		if a := sums[1].Answer; a.P50 != 1_800_000 {
			t.Errorf("what took longer than the greatest bound: %+v", a)
		}
	})
}

// A summary of many hours reads the table by its key.
func TestSummaryUsesTheKey(t *testing.T) {
	db, err := sqldb.OpenAt(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlstore.Schema())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{
		"SELECT substr(hour, 1, 10), what, sum(n) FROM activity WHERE hour >= '2026' GROUP BY 1, 2",
		"DELETE FROM activity WHERE (hour, what, shard) IN (SELECT hour, what, shard FROM activity WHERE hour < '2026' ORDER BY hour LIMIT 1000)",
	} {
		found, err := db.Read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query)
		if err != nil {
			t.Fatal(err)
		}
		for found.Next() {
			var a, b, c any
			var step string
			if err := found.Scan(&a, &b, &c, &step); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(step, "SCAN activity") {
				t.Errorf("%s\nreads all: %s", query, step)
			}
		}
		found.Close()
	}
}
