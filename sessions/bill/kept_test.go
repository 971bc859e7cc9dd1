package bill_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

// writeCalls appends a turn with a number of calls, one per minute, to a session.
func writeCalls(t *testing.T, s *sqlstore.Store, session, turn, person string, n int, from time.Time) {
	t.Helper()
	l, err := s.Open(t.Context(), session, 1<<60)
	if err != nil {
		t.Fatal(err)
	}
	started := sessions.Entry{Turn: turn, Kind: sessions.KindTurnStarted, Person: person, At: from, Data: []byte(`{"agent":"main"}`)}
	all := []sessions.Entry{started}
	for i := range n {
		e := sessions.Entry{Turn: turn, Kind: sessions.KindUsage, Person: person, At: from.Add(time.Duration(i) * time.Minute)}
		e.Data = fmt.Appendf(nil, `{"agent":"agent%d","model":"model%d","input":%d,"output":%d,"microdollars":%d}`, i%2, i%3, 100+i, i, 10*i)
		if i%7 == 0 {
			e.Data = fmt.Appendf(nil, `{"model":"unknown","input":%d,"estimated":true}`, i)
		}
		all = append(all, e)
	}
	done := sessions.Entry{Turn: turn, Kind: sessions.KindTurnDone, At: from.Add(time.Duration(n) * time.Minute), Data: []byte(`{"state":"done"}`)}
	if err := l.Append(t.Context(), l.Next(), append(all, done)...); err != nil {
		t.Fatal(err)
	}
}

// wantSameSums fails the test unless two stores have the same sums in every grouping, over periods that begin
// or end among the days with calls.
func wantSameSums(t *testing.T, after string, kept, plain *sqlstore.Store) {
	t.Helper()
	days := [][2]time.Time{{noonOfToday().AddDate(0, 0, -10), time.Now()}, {noonOfToday().AddDate(0, 0, 1), noonOfToday().AddDate(0, 0, 1)}, {time.Now(), time.Now()}}
	for _, by := range append(bill.AllGroupings(), "day,model", "hour,agent", "person,day", "model,person", "session,day", "hour,person", "agent,agent") {
		for _, d := range days {
			requireSame(t, fmt.Sprintf("after %s, %s from %v", after, by, d[0]), readSums(t, kept, by, d[0], d[1]), readSums(t, plain, by, d[0], d[1]))
		}
	}
}

// Sums are the same with and without kept sums, even if calls are recorded late, erased, or summed up by
// several processes.
func TestKeptSumsMatchTheCalls(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, kept, other *sqlstore.Store) {
		plain := openEmptyStore(t, at)
		random := rand.New(rand.NewPCG(1, 2))
		stores := []*sqlstore.Store{kept, plain}
		steps := 0
		sumUp := func() {
			t.Helper()
			for more := true; more; steps++ {
				var err error
				if more, err = []*sqlstore.Store{kept, other}[steps%2].Bill().SumUp(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		each := func(do func(s *sqlstore.Store) error) {
			t.Helper()
			for _, s := range stores {
				if err := do(s); err != nil {
					t.Fatal(err)
				}
			}
		}
		add := func(n int, from time.Time) {
			t.Helper()
			session, turn, person := fmt.Sprint("main:telegram:", random.IntN(4)), fmt.Sprint("t", random.Uint64()), fmt.Sprint("telegram:", random.IntN(3))
			each(func(s *sqlstore.Store) error { writeCalls(t, s, session, turn, person, n, from); return nil })
		}
		for day := range 4 {
			add(400, noonOfToday().AddDate(0, 0, day))
		}
		add(50, time.Now().Add(-10*time.Minute)) // not summed up yet
		wantSameSums(t, "the first calls", kept, plain)
		sumUp()
		if steps < 5 {
			t.Errorf("1,600 calls were summed up in %d steps", steps)
		}
		wantSameSums(t, "they are summed up", kept, plain)
		add(20, noonOfToday().AddDate(0, 0, 1)) // recorded late
		add(20, noonOfToday().AddDate(0, 0, 9))
		wantSameSums(t, "late calls", kept, plain)
		sumUp()
		wantSameSums(t, "these are summed up", kept, plain)
		each(func(s *sqlstore.Store) error {
			_, err := s.EraseSession(t.Context(), "main:telegram:1")
			return ignoreMissing(err)
		})
		wantSameSums(t, "a session is erased", kept, plain)
		each(func(s *sqlstore.Store) error {
			_, err := s.EraseBefore(t.Context(), noonOfToday().AddDate(0, 0, 2))
			return err
		})
		wantSameSums(t, "what is old is erased", kept, plain)
		for person := range 3 {
			each(func(s *sqlstore.Store) error {
				_, err := s.ErasePerson(t.Context(), fmt.Sprint("telegram:", person))
				return err
			})
			wantSameSums(t, "a person is erased", kept, plain)
		}
		for _, table := range []string{"used_days", "used_hours"} {
			driver := "sqlite"
			if sqldb.IsURL(at) {
				driver = "pgx"
			}
			if left := sqldbtest.Query(t, driver, at, "SELECT count(*) FROM "+table); left[0] != "0" {
				t.Errorf("%s still has %s rows", table, left[0])
			}
		}
	})
}

// openEmptyStore opens an empty store in a database of the same kind as an existing one.
func openEmptyStore(t *testing.T, at string) *sqlstore.Store {
	t.Helper()
	place := t.TempDir() + "/store.db"
	if sqldb.IsURL(at) {
		place = sqldbtest.New(t)
	}
	s, err := sqlstore.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ignoreMissing returns nil if the error only says that there is no such session.
func ignoreMissing(err error) error {
	if errors.Is(err, sessions.ErrNotFound) {
		return nil
	}
	return err
}

// A process whose clock is ahead does not sum up calls that others may still record.
func TestTheServersClockSettlesCalls(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, s, _ *sqlstore.Store) {
		ahead := time.Now().Add(12 * time.Hour)
		until, err := s.Bill().Settled(t.Context(), ahead)
		if err != nil {
			t.Fatal(err)
		}
		settled, err := sqldb.ParseTime(until)
		if err != nil {
			t.Fatal(err)
		}
		by := ahead
		if sqldb.IsURL(at) {
			by = time.Now()
		}
		if age := by.Sub(settled); age < 119*time.Minute || age > 121*time.Minute {
			t.Errorf("calls are settled after %s", age)
		}
	})
}
