package rates_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions/rates"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

const alex, berta = "slack:U1", "telegram:2"

// onEachDatabase runs a test on a database of each kind, with the tables of two processes.
func onEachDatabase(t *testing.T, test func(t *testing.T, one, other *sqlstore.Store)) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) { test(t, one, other) })
}

func hourly(tools string, most int) rates.Rate {
	return rates.Rate{Tools: tools, Limit: most, Window: time.Hour}
}

func mustCount(t *testing.T, s *sqlstore.Store, person, call string, all ...rates.Rate) {
	t.Helper()
	if err := s.Rates().Count(t.Context(), person, call, all...); err != nil {
		t.Errorf("call %s of %s: %v", call, person, err)
	}
}

// mustRefuse checks that a rate refuses a call, and returns the wait until there may be another.
func mustRefuse(t *testing.T, s *sqlstore.Store, person, call string, by rates.Rate, all ...rates.Rate) time.Duration {
	t.Helper()
	err := s.Rates().Count(t.Context(), person, call, all...)
	over, is := errors.AsType[*rates.OverError](err)
	if !is || over.Rate != by {
		t.Fatalf("call %s of %s: %v, want it over %+v", call, person, err, by)
	}
	return over.Wait
}

// A person's calls in all processes are counted together, those of other people separately, and each call once,
// even if another process repeats it.
func TestACallCountsOnceForItsPersonInAllProcesses(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		search := hourly("web_search", 2)
		mustCount(t, one, alex, "t1#a", search)
		mustCount(t, other, alex, "t1#a", search) // the same again, after a crash
		mustCount(t, other, alex, "t1#b", search)
		if opens := mustRefuse(t, one, alex, "t2#a", search, search); opens <= 59*time.Minute || opens > time.Hour {
			t.Errorf("the next call may be in %v", opens)
		}
		mustCount(t, one, alex, "t1#b", search) // counted before, so it may still run
		mustCount(t, one, berta, "t3#a", search)
		mustCount(t, one, alex, "t2#a", hourly("web_fetch", 2)) // other tools are counted separately
		mustCount(t, other, alex, "t2#b", hourly("web_search", 3))
	})
}

// A call that one of its rates refuses is not counted under any of them.
func TestACallCountsForAllRatesOrNone(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		all, search := hourly("web_*", 3), hourly("web_search", 1)
		mustCount(t, one, alex, "a", all, search)
		mustRefuse(t, other, alex, "b", search, all, search)
		mustCount(t, one, alex, "c", all)
		mustCount(t, one, alex, "d", all)
		mustRefuse(t, one, alex, "e", all, all)
	})
}

// If several rates are reached, the longest wait is returned. Once a rate's window has passed, calls are
// allowed again.
func TestARateAllowsCallsAgainAfterItsWindow(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, _ *sqlstore.Store) {
		soon := rates.Rate{Tools: "x", Limit: 1, Window: 50 * time.Millisecond}
		day := rates.Rate{Tools: "x", Limit: 2, Window: 24 * time.Hour}
		mustCount(t, one, alex, "a", soon, day)
		for { // the window passes
			err := one.Rates().Count(t.Context(), alex, "b", soon, day)
			if err == nil {
				break
			}
			over, is := errors.AsType[*rates.OverError](err)
			if !is || over.Rate != soon || over.Wait > soon.Window {
				t.Fatal(err)
			}
		}
		if opens := mustRefuse(t, one, alex, "c", day, soon, day); opens <= 23*time.Hour {
			t.Errorf("the next call may be in %v", opens)
		}
	})
}

// A rate is not exceeded, however many calls begin at the same moment.
func TestCallsAtOnceDoNotExceedARate(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		var calls sync.WaitGroup
		var counted atomic.Int32
		for i := range 20 {
			calls.Go(func() {
				s := one
				if i%2 == 1 {
					s = other
				}
				err := s.Rates().Count(t.Context(), alex, fmt.Sprint(i), hourly("x", 7))
				if err == nil {
					counted.Add(1)
				} else if _, over := errors.AsType[*rates.OverError](err); !over {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if counted.Load() != 7 {
			t.Errorf("%d calls were counted, want 7", counted.Load())
		}
	})
}

// Erasing a person erases the counts of their calls.
func TestCountsAreErasedWithThePerson(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other *sqlstore.Store) {
		mustCount(t, one, alex, "a", hourly("x", 1))
		mustCount(t, one, berta, "b", hourly("x", 1))
		if _, err := other.ErasePerson(t.Context(), alex); err != nil {
			t.Fatal(err)
		}
		mustCount(t, one, alex, "c", hourly("x", 1))
		mustRefuse(t, one, berta, "d", hourly("x", 1), hourly("x", 1))
	})
}

// openRows opens the database of the stores, so that a test can add rows with any time.
func openRows(t *testing.T, at string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.OpenAt(t.Context(), at, sqlstore.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// putCall adds a row for a call that was counted at a time.
func putCall(t *testing.T, db *sqldb.DB, call string, at time.Time) {
	t.Helper()
	_, err := db.Exec(t.Context(), "INSERT INTO rated_calls (person, tools, at, call) VALUES (?, ?, ?, ?)",
		sqldb.Text(alex), sqldb.Text("x"), at.UnixMicro(), sqldb.Text(call))
	if err != nil {
		t.Fatal(err)
	}
}

// Calls that were counted by a clock that was ahead lock nobody out.
func TestCallsFromTheFutureDoNotCount(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, _ *sqlstore.Store) {
		putCall(t, openRows(t, at), "a", time.Now().AddDate(1, 0, 0))
		mustCount(t, one, alex, "b", hourly("x", 1))
		mustRefuse(t, one, alex, "c", hourly("x", 1), hourly("x", 1))
	})
}

// Calls that are older than any window are removed, even if nobody makes calls anymore.
func TestOldCallsAreRemoved(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, _ *sqlstore.Store) {
		db := openRows(t, at)
		for i := range 600 {
			putCall(t, db, fmt.Sprint("old", i), time.Now().Add(-25*time.Hour))
		}
		putCall(t, db, "ahead", time.Now().AddDate(1, 0, 0))
		putCall(t, db, "today", time.Now().Add(-23*time.Hour))
		for more := true; more; {
			var err error
			if more, err = one.Rates().Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var n int
		if err := db.Get(t.Context(), "SELECT count(*) FROM rated_calls", nil, &n); err != nil || n != 1 {
			t.Errorf("%d calls remain, %v", n, err)
		}
	})
}

// Whether a call was counted is looked up by an index, without reading all calls of its person.
func TestACallIsFoundByItsIndex(t *testing.T) {
	db := openRows(t, filepath.Join(t.TempDir(), "store.db"))
	var a, b, c any
	var step string
	query := "EXPLAIN QUERY PLAN SELECT 1 FROM rated_calls WHERE person = 'a' AND call = 'b' AND at > 1 LIMIT 1"
	if err := db.Read.QueryRowContext(t.Context(), query).Scan(&a, &b, &c, &step); err != nil || !strings.Contains(step, "call=?") {
		t.Errorf("%s, %v", step, err)
	}
}
