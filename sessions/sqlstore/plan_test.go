package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/schedules"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/subagents"
)

// openWatchedStore returns a store on SQLite, its database, and the statements that are run in it.
func openWatchedStore(t *testing.T) (*sqlstore.Store, *sqldb.DB, *sqldbtest.Statements) {
	t.Helper()
	var statements sqldbtest.Statements
	db, err := sqldb.OpenAt(statements.Watch(t.Context()), filepath.Join(t.TempDir(), "store.db"), sqlstore.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := sqlstore.Use(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return s, db, &statements
}

// checkOnBothDatabases calls check with SQLite statements and their database, and then with the same statements
// in PostgreSQL's form and an empty PostgreSQL database.
func checkOnBothDatabases(t *testing.T, db *sqldb.DB, asked []string, check func(t *testing.T, db *sqldb.DB, asked []string)) {
	t.Run("sqlite", func(t *testing.T) { check(t, db, asked) })
	t.Run("postgres", func(t *testing.T) {
		pg, err := sqldb.OpenAt(t.Context(), sqldbtest.New(t), sqlstore.Schema())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pg.Close() })
		check(t, pg, toPostgres(asked))
	})
}

// toPostgres returns statements in PostgreSQL's form, without those that exist only for SQLite.
func toPostgres(asked []string) (list []string) {
	for _, query := range asked {
		if !strings.Contains(query, "json_each") && !strings.Contains(query, "'optimize'") && !strings.Contains(query, "sqlite_schema") {
			list = append(list, strings.NewReplacer(" INDEXED BY sessions_by_time", "", sqlstore.ScheduledBy, sqlstore.ScheduledByPostgres).Replace(query))
		}
	}
	return list
}

// An erasure finds everything that it changes by index, no matter how large the tables are. Reads without an
// index are allowed once a night for old rows, and for the reservations of a week, because nobody waits for
// them.
func TestNoStatementOfAnErasureReadsAWholeTable(t *testing.T) {
	s, db, statements := openWatchedStore(t)
	const anna = "telegram:7"
	for n, key := range []string{"main:telegram:-1", "main:telegram:-2", "main:telegram:-3"} {
		writeSharedSession(t, s, key, 1000)
		reservation := sessions.Reservation{ID: fmt.Sprint("r", n), Person: anna, Tokens: 10, Cap: 1000, At: time.Now()}
		if err := s.Reserve(t.Context(), reservation); err != nil {
			t.Fatal(err)
		}
		if err := s.Audit(t.Context(), sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditTool, By: anna, Session: key, Arguments: []byte(`{"a":1}`), Detail: anna}); err != nil {
			t.Fatal(err)
		}
	}
	statements.Forget()
	if _, err := s.EraseSession(t.Context(), "main:telegram:-1"); err != nil {
		t.Fatal(err)
	}
	if done, err := s.ErasePerson(t.Context(), anna); err != nil || len(done.PartlyErased) != 2 {
		t.Fatal(done, err)
	}
	if done, err := s.EraseBefore(t.Context(), time.Now().Add(time.Hour)); err != nil || len(done.Sessions) != 2 {
		t.Fatal(done, err)
	}
	asked := statements.List()
	if len(asked) < 25 {
		t.Fatalf("only %d statements were seen", len(asked))
	}
	const may = "SELECT id FROM reservations WHERE person = ?"
	if !slices.Contains(asked, may) {
		t.Error("the reservations are not looked through")
	}
	asked = slices.DeleteFunc(asked, func(query string) bool { return query == may })
	growing := strings.Fields("sessions entries e audit counters tasks node_calls node_waits schedules jobs graves erased time_zones reservations spending")
	mayScan := func(table, step string) bool {
		return !slices.Contains(growing, table) || strings.Contains(step, "reservations_open") // there are few of them
	}
	checkOnBothDatabases(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) { sqldbtest.WantNoScan(t, db, asked, mayScan) })
}

// Every query for the state of a session or a place uses an index, no matter how large the tables are.
func TestNoQueryOfAPlaceReadsAWholeTable(t *testing.T) {
	s, db, statements := openWatchedStore(t)
	const key = "main:telegram:-1"
	writeSharedSession(t, s, key, 10)
	l, err := s.Open(t.Context(), key, 1<<60)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []sessions.Entry{{Turn: "r", Kind: sessions.KindUser, Cause: schedules.RunID("s", "now"), Data: []byte("{}")}, {Turn: "t", Kind: sessions.KindTurnStarted, Data: []byte("{}")}, {Turn: "t", Kind: sessions.KindToolStarted, Call: "c", Data: []byte("{}")}} {
		if err := l.Append(t.Context(), l.Next(), e); err != nil {
			t.Fatal(err)
		}
	}
	job := sessions.Job{ID: "j", Session: key, Person: "telegram:7", Started: time.Now(), Deadline: time.Now().Add(time.Hour)}
	if err := s.BeginJob(t.Context(), job, sessions.JobLimits{Session: 9, Person: 9}); err != nil {
		t.Fatal(err)
	}
	statements.Forget()
	open, err := s.OpenTurns(t.Context(), key)
	if err != nil || len(open) != 1 || len(open[0].Calls) != 1 {
		t.Fatal(open, err)
	}
	if _, err := s.FindIn(t.Context(), key, "nothing"); !errors.Is(err, sessions.ErrNotFound) {
		t.Fatal(err)
	}
	if found, err := s.RecentIn(t.Context(), key, 5); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if found, err := s.List(t.Context(), "", 5); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if all, err := s.AllRunningJobs(t.Context(), 5); err != nil || all.Count != 1 {
		t.Fatal(all, err)
	}
	if runs, err := s.ScheduleRuns(t.Context(), schedules.Schedule{ID: "s", Session: key}, 5); err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	if all, err := s.EndedJobs(t.Context(), 5); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	if used, err := s.SubAgents().UsageOf(t.Context(), subagents.Task{ID: "a", Session: key}, subagents.Task{ID: "b", Session: key}); err != nil || len(used) != 0 {
		t.Fatal(used, err)
	}
	for _, q := range []sessions.AuditQuery{{Message: "m"}, {Place: "telegram:-1"}} {
		if _, err := s.AuditRecords(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	asked := statements.List()
	if len(asked) < 9 {
		t.Fatalf("only %d statements were seen", len(asked))
	}
	growing := strings.Fields("sessions s entries t audit jobs")
	mayScan := func(table, step string) bool {
		return !slices.Contains(growing, table) || strings.Contains(step, "jobs_open") || strings.Contains(step, "audit_refusals") // there are few of them
	}
	checkOnBothDatabases(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) { sqldbtest.WantNoScan(t, db, asked, mayScan) })
}

// No query for a page of sessions reads all sessions or all entries.
func TestNoPageOfSessionsReadsAWholeTable(t *testing.T) {
	s, db, statements := openWatchedStore(t)
	writeSharedSession(t, s, "main:telegram:-1", 10)
	statements.Forget()
	for _, q := range []sessions.SessionQuery{
		{}, {Agent: "main"}, {Channel: "telegram"}, {Channel: "telegram", Chat: "-1"}, {Person: "telegram:7"},
		{Keys: []string{"main:telegram:-1"}}, {Keys: []string{"main:telegram:-1"}, Person: "telegram:7"},
	} {
		for _, q.After = range []*sessions.Info{nil, {Key: "main:telegram:-2", Updated: time.Now().Add(time.Hour)}} {
			q.Limit = 5
			if page, err := s.Recent(t.Context(), q); err != nil || len(page.Sessions) != 1 {
				t.Fatal(page, err)
			}
		}
	}
	if found, err := s.ListIn(t.Context(), "telegram", "-1", "", 5); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	asked := statements.List()
	if len(asked) < 15 {
		t.Fatalf("only %d statements were seen", len(asked))
	}
	growing := strings.Fields("sessions entries t participants")
	mayScan := func(table, _ string) bool { return !slices.Contains(growing, table) }
	checkOnBothDatabases(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) { sqldbtest.WantNoScan(t, db, asked, mayScan) })
}

// A sum of usage reads the stored sums, and only those calls that are not yet included in them.
func TestSumsOfUsageReadOnlyTheNewestCalls(t *testing.T) {
	s, db, statements := openWatchedStore(t)
	writeSharedSession(t, s, "main:telegram:-1", 10)
	statements.Forget()
	for _, by := range []bill.Grouping{bill.ByDay, bill.ByHour, bill.ByPerson, "day,model"} {
		if _, err := s.Bill().Usage(t.Context(), by, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	asked := slices.DeleteFunc(statements.List(), func(query string) bool { return !strings.Contains(query, "used_") })
	if len(asked) != 4 {
		t.Fatalf("%d statements were seen", len(asked))
	}
	if _, err := s.Bill().SumUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := statements.List()
	checkOnBothDatabases(t, db, asked, func(t *testing.T, db *sqldb.DB, asked []string) {
		between := "USING INDEX entries_usage (at>? AND at<?)"
		if db.IsPostgres() {
			between = "Index Cond: ((at >= $0) AND (at <"
		}
		for _, query := range asked {
			steps := sqldbtest.Plan(t, db.Read, db.IsPostgres(), query)
			if !slices.ContainsFunc(steps, func(step string) bool { return strings.Contains(step, between) }) {
				t.Errorf("%s\n\tdoes not look up the newest calls: %q", query, steps)
			}
		}
	})
	growing := strings.Fields("entries used_hours used_days")
	mayScan := func(table, _ string) bool { return !slices.Contains(growing, table) }
	checkOnBothDatabases(t, db, all, func(t *testing.T, db *sqldb.DB, asked []string) { sqldbtest.WantNoScan(t, db, asked, mayScan) })
}

// Old audit records are deleted in many transactions.
func TestOldAuditRecordsAreErasedInSteps(t *testing.T) {
	s := openTestStore(t, filepath.Join(t.TempDir(), "store.db"))
	const records = 1203
	for range records {
		if err := s.AuditSoon(t.Context(), sessions.AuditRecord{At: time.Now().Add(-time.Hour), Kind: sessions.AuditTool, By: "telegram:7", Session: "main:telegram:7", Detail: "telegram:7"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ErasePerson(t.Context(), "telegram:7"); err != nil {
		t.Fatal(err)
	}
	all, err := s.AuditRecords(t.Context(), sessions.AuditQuery{Limit: 2 * records})
	if err != nil || len(all) != records || slices.ContainsFunc(all, func(r sessions.AuditRecord) bool { return r.By != "" || r.Detail != "" }) {
		t.Errorf("%d records, %v, and some name the person", len(all), err)
	}
	if n, err := s.DropAudit(t.Context(), time.Now()); err != nil || n != records {
		t.Errorf("%d records are erased, %v", n, err)
	}
}

// A long session is erased in many transactions, and others can write in between. After an interruption, only
// whole turns are missing, and the next call erases the rest.
func TestALongSessionIsErasedInSteps(t *testing.T) {
	const entries, ofTurn, key = 10_000, 5, "main:telegram:-1"
	for name, erase := range map[string]func(context.Context, *sqlstore.Store) (sessions.Erased, error){
		"the session": func(ctx context.Context, s *sqlstore.Store) (sessions.Erased, error) { return s.EraseSession(ctx, key) },
		"what is old": func(ctx context.Context, s *sqlstore.Store) (sessions.Erased, error) {
			return s.EraseBefore(ctx, time.Now().Add(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var steps, most, turns atomic.Int64
			cut := make(chan context.CancelFunc, 1)
			db, err := sqldb.OpenAt(sqldb.Watch(t.Context(), func(query string) {
				switch {
				case strings.HasPrefix(query, "BEGIN"):
					turns.Store(0)
				case strings.HasPrefix(query, "DELETE FROM entries"):
					if n := turns.Add(1); n == 1 {
						steps.Add(1)
					} else if n > most.Load() {
						most.Store(n)
					}
					if steps.Load() == 4 {
						select {
						case stop := <-cut:
							stop()
						default:
						}
					}
				}
			}), filepath.Join(t.TempDir(), "store.db"), sqlstore.Schema())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			s, err := sqlstore.Use(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			writeSharedSession(t, s, key, entries)
			ctx, stop := context.WithCancel(t.Context())
			cut <- stop
			if _, err := erase(ctx, s); err == nil {
				t.Fatal("it was not cut off")
			}
			left := map[string]int{}
			for e, err := range s.Read(t.Context(), key, 1) {
				if err != nil {
					t.Fatal(err)
				}
				left[e.Turn]++
			}
			if len(left) == 0 || len(left) >= entries/ofTurn {
				t.Errorf("%d turns are left when it is cut off", len(left))
			}
			for id, n := range left {
				if n != ofTurn {
					t.Errorf("of turn %s %d entries are left", id, n)
				}
			}
			done, err := erase(t.Context(), s)
			if err != nil || len(done.Sessions) != 1 || done.Entries != int64(len(left)*ofTurn) {
				t.Errorf("erased %+v, %v", done, err)
			}
			if steps.Load() < entries/sqlstore.LongSession || most.Load() > sqlstore.LongSession/ofTurn+1 {
				t.Errorf("%d entries were erased in %d steps, of at most %d turns", entries, steps.Load(), most.Load())
			}
		})
	}
}
