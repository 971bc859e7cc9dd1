package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/schedules"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

const scheduledIn = "main:telegram:7"

// writeRuns lets two schedules, "a" and "b", begin a number of turns each, alternately by slot and by request,
// with other turns in between. It returns the ids of the messages that began those of "a", newest first.
func writeRuns(t *testing.T, s *sqlstore.Store, each int) (ids []string) {
	t.Helper()
	l, err := s.Open(t.Context(), scheduledIn, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range each {
		for _, by := range []string{"b", "a"} {
			cause := schedules.SlotID(by, time.Unix(1_800_000_000+int64(i), 0))
			if i%2 == 1 {
				cause = schedules.RunID(by, fmt.Sprint(99-i)) // a name that does not contain a time
			}
			turn := fmt.Sprint("of ", cause)
			err := l.Append(t.Context(), l.Next(),
				sessions.Entry{Turn: "t", Kind: sessions.KindUser, Cause: fmt.Sprint("telegram:", by, i), Data: []byte(`{"text":"hello"}`)},
				sessions.Entry{Turn: turn, Kind: sessions.KindUser, Cause: cause, Data: []byte(`{"text":"look"}`)},
				sessions.Entry{Turn: turn, Kind: sessions.KindTurnDone, Data: fmt.Appendf(nil, `{"state":"done","code":"%d"}`, i)},
				sessions.Entry{Turn: "t", Kind: sessions.KindText, Data: []byte(`{"text":"hello"}`)})
			if err != nil {
				t.Fatal(err)
			}
			if by == "a" {
				ids = append(ids, cause)
			}
		}
	}
	slices.Reverse(ids)
	return ids
}

// wantRuns fails the test unless the newest runs of a schedule are these.
func wantRuns(t *testing.T, s *sqlstore.Store, id string, limit int, want []string) {
	t.Helper()
	runs, err := s.ScheduleRuns(t.Context(), schedules.Schedule{ID: id, Session: scheduledIn}, limit)
	var got []string
	for _, r := range runs {
		got = append(got, r.ID)
		if r.State != "done" || r.Ended.IsZero() || r.Turn != "of "+r.ID {
			t.Errorf("a run is %+v", r)
		}
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the runs are %q, %v, want %q", got, err, want)
	}
}

// The newest runs of a schedule are found with every sort order that a database may have for texts.
func TestRunsOfASchedule(t *testing.T) {
	onEachPlace(t, func(t *testing.T, place string, query func(string) []string) {
		s := openTestStore(t, place)
		ids := writeRuns(t, s, 7)
		if sqldb.IsURL(place) {
			query("DROP VIEW usage, calls")                                               // the views depend on the column
			query(`ALTER TABLE entries ALTER COLUMN cause TYPE TEXT COLLATE "und-x-icu"`) // the default sort order of databases in most languages
		}
		wantRuns(t, s, "a", 99, ids)
		wantRuns(t, s, "a", 3, ids[:3])
		wantRuns(t, s, "none", 3, nil)
	})
}

// If a schedule has begun many turns, only the runs that are shown are read.
func TestOnlyTheShownRunsAreRead(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	db, err := sqldb.OpenAt(sqldb.Watch(t.Context(), func(query string) {
		mu.Lock()
		defer mu.Unlock()
		asked[query]++
	}), filepath.Join(t.TempDir(), "store.db"), sqlstore.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := sqlstore.Use(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	ids := writeRuns(t, s, 12)
	clear(asked)
	wantRuns(t, s, "a", 3, ids[:3])
	var found []string
	for query, times := range asked {
		switch {
		case !strings.Contains(query, "FROM entries"):
		case strings.Contains(query, "turn_done"):
			if times > 3 || !strings.HasSuffix(query, "LIMIT 1") {
				t.Errorf("%d times it was asked %s", times, query)
			}
		default:
			found = append(found, query)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the runs are found by %q", found)
	}
	checkOnBothDatabases(t, db, found, func(t *testing.T, db *sqldb.DB, asked []string) {
		for _, query := range asked {
			plan := strings.Join(sqldbtest.Plan(t, db.Read, db.IsPostgres(), query), "\n")
			if !strings.Contains(plan, "entries_scheduled") || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") {
				t.Errorf("%s\n%s", query, plan)
			}
		}
	})
}
