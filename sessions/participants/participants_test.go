package participants_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

// turnOf returns a turn that a person began, with its answer.
func turnOf(turn, person string) []sessions.Entry {
	return []sessions.Entry{
		{Turn: turn, Kind: sessions.KindTurnStarted, Person: person, Data: []byte("{}")},
		{Turn: turn, Kind: sessions.KindUser, Person: person, Cause: turn, Data: []byte(`{"text":"hello"}`)},
		{Turn: turn, Kind: sessions.KindUsage, Person: person, Data: []byte("{}")},
		{Turn: turn, Kind: sessions.KindTurnDone, Data: []byte(`{"state":"done"}`)},
	}
}

// appendTurns appends a turn of each person to a session.
func appendTurns(t *testing.T, s *sqlstore.Store, key string, people ...string) {
	t.Helper()
	l, err := s.Open(t.Context(), key, time.Now().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	for _, person := range people {
		if err := l.Append(t.Context(), l.Next(), turnOf(fmt.Sprint("t", time.Now().UnixNano()), person)...); err != nil {
			t.Fatal(err)
		}
	}
}

// driverOf returns the name of the driver for a place.
func driverOf(at string) string {
	if sqldb.IsURL(at) {
		return "pgx"
	}
	return "sqlite"
}

// wantParticipants fails the test unless the table lists exactly the people with entries in each session, and
// the hours of those sessions.
func wantParticipants(t *testing.T, at string) {
	t.Helper()
	const (
		listed = "SELECT session || ' ' || person || ' ' || hour FROM participants ORDER BY session, person"
		there  = "SELECT DISTINCT e.session || ' ' || e.person || ' ' || substr(s.active, 1, 13), e.session, e.person FROM entries e JOIN sessions s ON s.id = e.session WHERE e.person <> '' ORDER BY e.session, e.person"
	)
	got := sqldbtest.Query(t, driverOf(at), at, listed)
	want := sqldbtest.Query(t, driverOf(at), at, "SELECT one FROM ("+strings.Replace(there, "13), e", "13) AS one, e", 1)+") AS who")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the participants are %q, want %q", got, want)
	}
}

// recentOf returns the keys of a person's sessions, read in pages of two.
func recentOf(t *testing.T, s *sqlstore.Store, q sessions.SessionQuery) (keys []string) {
	t.Helper()
	for q.Limit = 2; ; {
		page, err := s.Recent(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.Sessions {
			keys = append(keys, info.Key)
		}
		if q.After = page.Next; q.After == nil {
			return keys
		}
	}
}

// Whoever has spoken in a session is a participant until the last of their entries there is erased.
func TestParticipantsAreSpeakers(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, s, _ *sqlstore.Store) {
		const anna, berta, carla = "telegram:1", "telegram:2", "telegram:3"
		check := func(after string, want ...string) {
			t.Helper()
			wantParticipants(t, at)
			if got := recentOf(t, s, sessions.SessionQuery{Person: anna}); !slices.Equal(got, want) {
				t.Errorf("after %s the sessions are %q, want %q", after, got, want)
			}
		}
		appendTurns(t, s, "main:telegram:1", anna)
		appendTurns(t, s, "main:telegram:-1", anna, berta, anna)
		appendTurns(t, s, "main:telegram:-2", berta)
		appendTurns(t, s, "main:telegram:-3", berta, carla, anna)
		check("the first words", "main:telegram:-3", "main:telegram:-1", "main:telegram:1")

		// Sessions that were used in other hours are listed in their order.
		for n, key := range []string{"main:telegram:-3", "main:telegram:-1"} {
			hour := time.Now().Add(-time.Duration(n+3) * time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")
			sqldbtest.Query(t, driverOf(at), at, "UPDATE sessions SET updated = '"+hour+"' WHERE key = '"+key+"' RETURNING key")
		}
		check("hours", "main:telegram:1", "main:telegram:-3", "main:telegram:-1")
		appendTurns(t, s, "main:telegram:-1", berta)
		check("another's words", "main:telegram:-1", "main:telegram:1", "main:telegram:-3")
		if got := recentOf(t, s, sessions.SessionQuery{Person: anna, Since: time.Now().Add(-time.Hour)}); !slices.Equal(got, []string{"main:telegram:-1", "main:telegram:1"}) {
			t.Errorf("in the last hour she spoke in %q", got)
		}

		if _, err := s.ErasePerson(t.Context(), carla); err != nil {
			t.Fatal(err)
		}
		check("the erasure of another", "main:telegram:-1", "main:telegram:1", "main:telegram:-3")
		if _, err := s.EraseBefore(t.Context(), time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		check("the erasure of what is old", "main:telegram:-1", "main:telegram:1")
		if _, err := s.ErasePerson(t.Context(), anna); err != nil {
			t.Fatal(err)
		}
		check("her erasure")
		if got := recentOf(t, s, sessions.SessionQuery{Person: berta}); !slices.Equal(got, []string{"main:telegram:-1", "main:telegram:-2"}) {
			t.Errorf("the sessions of another are %q", got)
		}
	})
}

// An append to a large group writes at most a hundred rows, whoever is the first to speak in an hour. Pages
// still list the sessions of everybody else in order.
func TestAnAppendToALargeGroupWritesFewRows(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, s, other *sqlstore.Store) {
		var people []string
		for n := range 130 {
			people = append(people, fmt.Sprint("telegram:", n))
		}
		late := people[len(people)-1]
		want := []string{"main:telegram:1", "main:telegram:-1", "main:telegram:2", "main:telegram:-2", "main:telegram:3"}
		for _, key := range want {
			if strings.Contains(key, "-") {
				appendTurns(t, s, key, people...)
			} else {
				appendTurns(t, s, key, late)
			}
		}
		for n, key := range want {
			updated := time.Now().Add(-time.Duration(n+1) * 90 * time.Minute).UTC().Format("2006-01-02T15:04:05.000000Z")
			sqldbtest.Query(t, driverOf(at), at, "UPDATE sessions SET updated = '"+updated+"' WHERE key = '"+key+"' RETURNING key")
		}
		check := func() {
			t.Helper()
			for _, person := range []string{people[0], late} {
				mine := slices.Clone(want)
				if person != late {
					mine = slices.DeleteFunc(mine, func(key string) bool { return !strings.Contains(key, "-") })
				}
				if got := recentOf(t, s, sessions.SessionQuery{Person: person}); !slices.Equal(got, mine) {
					t.Errorf("the sessions of %s are %q, want %q", person, got, mine)
				}
			}
			if got := recentOf(t, s, sessions.SessionQuery{Person: late, Since: time.Now().Add(-4 * time.Hour)}); !slices.Equal(got, want[:2]) {
				t.Errorf("in the last four hours the sessions are %q, want %q", got, want[:2])
			}
			const moved = "SELECT count(*) FROM participants JOIN sessions ON id = session WHERE hour = substr(active, 1, 13) AND key LIKE '%-%' GROUP BY session"
			if got := sqldbtest.Query(t, driverOf(at), at, moved); !slices.Equal(got, []string{"100", "100"}) {
				t.Errorf("so many rows of the groups have the hour: %q", got)
			}
		}
		check()
		sqldbtest.Query(t, driverOf(at), at, "DELETE FROM participants RETURNING person")
		sqldbtest.Query(t, driverOf(at), at, "UPDATE participants_filled SET before = (SELECT max(id) + 1 FROM sessions) RETURNING before")
		for more := true; more; {
			var err error
			if more, err = other.Participants().Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		check()
		appendTurns(t, s, want[3], people[0])
		want = []string{want[3], want[0], want[1], want[2], want[4]}
		if got := recentOf(t, s, sessions.SessionQuery{Person: late}); !slices.Equal(got, want) {
			t.Errorf("after another's words the sessions are %q, want %q", got, want)
		}
	})
}

// The sessions of an earlier release are added in steps. After each step, lists are complete, and people who
// were erased meanwhile stay erased.
func TestParticipantsOfOldSessionsAreFilledInSteps(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, s, _ *sqlstore.Store) {
		const anna, berta = "telegram:1", "telegram:2"
		var want []string
		for n := range 120 {
			key := fmt.Sprint("main:telegram:", n)
			if n%2 == 0 {
				appendTurns(t, s, key, anna, berta)
				want = append(want, key)
			} else {
				appendTurns(t, s, key, berta)
			}
		}
		slices.Reverse(want)
		sqldbtest.Query(t, driverOf(at), at, "DELETE FROM participants RETURNING person")
		sqldbtest.Query(t, driverOf(at), at, "UPDATE participants_filled SET before = (SELECT max(id) + 1 FROM sessions) RETURNING before")
		open := func() *sqlstore.Store { // a store that does not know yet that the table was completed
			t.Helper()
			s, err := sqlstore.Open(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		s, other := open(), open()
		steps := 0
		for more := true; more; steps++ {
			if got := recentOf(t, s, sessions.SessionQuery{Person: anna}); !slices.Equal(got, want) {
				t.Errorf("after %d steps the sessions are %q, want %q", steps, got, want)
			}
			var err error
			if more, err = s.Participants().Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
			if steps == 0 {
				gone := "main:telegram:2" // a session that has not been added yet
				if _, err := other.EraseSession(t.Context(), gone); err != nil {
					t.Fatal(err)
				}
				if _, err := other.Participants().Fill(t.Context()); err != nil { // by another process
					t.Fatal(err)
				}
				want = slices.DeleteFunc(want, func(key string) bool { return key == gone })
			}
		}
		if steps < 2 {
			t.Errorf("it took %d steps", steps)
		}
		wantParticipants(t, at)
		if got := recentOf(t, s, sessions.SessionQuery{Person: anna}); !slices.Equal(got, want) {
			t.Errorf("at the end the sessions are %q, want %q", got, want)
		}
		if more, err := other.Participants().Fill(t.Context()); more || err != nil {
			t.Errorf("another step: %v, %v", more, err)
		}
	})
}
