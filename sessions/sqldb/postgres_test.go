package sqldb_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

func TestMigrationsRunOnceHoweverManyStart(t *testing.T) {
	place := sqldbtest.New(t)
	s := schemaOf("CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT NOT NULL); INSERT INTO t VALUES (1, '')", "INSERT INTO t VALUES (2, '')")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			db, err := sqldb.OpenAt(t.Context(), place, s)
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := countAll(t, openAt(t, place, s)); got != 2 {
		t.Errorf("%d rows, want one of each migration", got)
	}
}

// schemaOfRelease returns a component as its nth release knows it, with one migration for each release.
func schemaOfRelease(n int) sqldb.Schema {
	var migrations []string
	for i := range n {
		migrations = append(migrations, fmt.Sprintf("CREATE TABLE of_%d (n INTEGER)", i+1))
	}
	s := schemaOf(migrations...)
	s.PreviousMigrations = max(n-1, 0)
	return s
}

func TestReleasesShareASchemaWithTheOneBefore(t *testing.T) {
	place := sqldbtest.New(t)
	for n := 1; n <= 3; n++ {
		openAt(t, place, schemaOfRelease(n))
	}
	openAt(t, place, schemaOfRelease(2))
	if _, err := sqldb.OpenAt(t.Context(), place, schemaOfRelease(1)); err == nil || !strings.Contains(err.Error(), "use the newer release") {
		t.Errorf("a release that is two behind opened it: %v", err)
	}
	// Even a release without changes ends the support of the release before its predecessor.
	same := schemaOfRelease(3)
	same.PreviousMigrations = 3
	openAt(t, place, same)
	if _, err := sqldb.OpenAt(t.Context(), place, schemaOfRelease(2)); err == nil {
		t.Error("a release that is two behind opened it")
	}
	openAt(t, place, schemaOfRelease(3))
}

func TestComponentsShareADatabase(t *testing.T) {
	place := sqldbtest.New(t)
	one, other := schemaOf("CREATE TABLE one (n INTEGER)"), schemaOf("CREATE TABLE other (n INTEGER)", "DROP TABLE other")
	other.Name = "other"
	openAt(t, place, one)
	openAt(t, place, other)
	openAt(t, place, one)
}

func TestFailedMigrationLeavesTheDatabaseAsItWas(t *testing.T) {
	place := sqldbtest.New(t)
	if _, err := sqldb.OpenAt(t.Context(), place, schemaOf("CREATE TABLE t (n INTEGER)", "CREATE TABLE broken (")); err == nil {
		t.Fatal("a broken migration passed")
	}
	if got := countAll(t, openAt(t, place, schemaOf(schema...))); got != 0 {
		t.Errorf("%d rows", got)
	}
}

// Two writes lock the same rows in different orders. The server makes one of them fail, and it is retried
// without its caller noticing.
func TestDeadlockIsRetried(t *testing.T) {
	db := openAt(t, sqldbtest.New(t), schemaOf(schema...))
	if _, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (1, ''), (2, '')"); err != nil {
		t.Fatal(err)
	}
	var both, wg sync.WaitGroup
	both.Add(2)
	for i := range 2 {
		wg.Go(func() {
			first := true
			if err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				for j := range 2 {
					if _, err := tx.Exec("UPDATE t SET s = s || 'x' WHERE n = ?", (i+j)%2+1); err != nil {
						return err
					}
					if first {
						first = false
						both.Done()
						both.Wait()
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var n int
	if err := db.Read.QueryRow("SELECT count(*) FROM t WHERE s = 'xx'").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows have seen both writes, %v", n, err)
	}
}

// lockRows locks some rows until release is called.
func lockRows(t *testing.T, db *sqldb.DB, all *sync.WaitGroup, rows string) (release func()) {
	t.Helper()
	held, released := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		if err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec("UPDATE t SET s = '' WHERE " + rows)
			close(held)
			<-released
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	<-held
	return func() { close(released) }
}

// A locked row delays only the statements that change it, and not the others in their group.
func TestGroupsDoNotWaitForOneRow(t *testing.T) {
	db := openAt(t, sqldbtest.New(t), schemaOf(schema...))
	for n := range 60 {
		if err := db.Write(t.Context(), insert(n)); err != nil {
			t.Fatal(err)
		}
	}
	var others, all sync.WaitGroup
	release := lockRows(t, db, &all, "n < 3")
	for n := range 60 {
		change := func() {
			if changed, err := db.Group(t.Context(), "UPDATE t SET s = s || 'y' WHERE n = ?", []any{n}); err != nil || changed != 1 {
				t.Errorf("row %d: %d changes, %v", n, changed, err)
			}
		}
		if n < 3 {
			all.Go(change)
		} else {
			others.Go(change)
		}
	}
	others.Wait() // blocks forever if they wait for the row
	release()
	all.Wait()
	var n int
	if err := db.Read.QueryRow("SELECT count(*) FROM t WHERE s IN ('xy', 'y')").Scan(&n); err != nil || n != 60 {
		t.Errorf("%d rows are changed once, %v", n, err)
	}
}

// A statement that waits for a locked row does not block the lane, even if it is alone in its group.
func TestLaneDoesNotWaitForOneRow(t *testing.T) {
	place := sqldbtest.New(t)
	db := openAt(t, place, schemaOf(schema...))
	for n := range 2 {
		if err := db.Write(t.Context(), insert(n)); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	release := lockRows(t, db, &all, "n = 0")
	const count = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%lane%' AND query LIKE 'UPDATE%'"
	for n := range 2 {
		all.Go(func() {
			if _, err := db.Group(t.Context(), "UPDATE t SET s = 'lane' WHERE n = 0", nil); err != nil {
				t.Error(err)
			}
		})
		retryUntilUp(t, func() error {
			if waiting := sqldbtest.Query(t, "pgx", place, count)[0]; waiting != fmt.Sprint(n+1) {
				return fmt.Errorf("%s statements wait, not %d", waiting, n+1)
			}
			return nil
		})
	}
	if changed, err := db.Group(t.Context(), "UPDATE t SET s = 'z' WHERE n = 1", nil); err != nil || changed != 1 { // blocks forever if it waits for the row
		t.Errorf("%d changes, %v", changed, err)
	}
	release()
	all.Wait()
}

// Concurrent groups would lock these rows in different orders, wait for each other, and be rolled back, if they
// did not take turns or sort their rows. A sequence counts every attempt, because rollbacks don't reset it. It
// also counts a statement that waits for a row and then reads it again: that is rare in turn, and happens at
// most once per group if sorted.
func TestNoTwoGroupsWaitForEachOther(t *testing.T) {
	for _, c := range []struct {
		name string
		most int // tries, in hundredths of the statements
		run  func(db *sqldb.DB, row int, query string) (int64, error)
	}{
		{"in turn", 101, func(db *sqldb.DB, row int, query string) (int64, error) {
			return db.InTurn(t.Context(), query, []any{row})
		}},
		{"sorted", 150, func(db *sqldb.DB, row int, query string) (int64, error) {
			return db.Shared(t.Context(), strconv.Itoa(row), query, []any{row})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			place := sqldbtest.New(t)
			const people, times = 100, 20
			var dbs []*sqldb.DB
			for range 4 {
				dbs = append(dbs, openAt(t, place, schemaOf(schema...)))
			}
			if _, err := dbs[0].Exec(t.Context(), "CREATE SEQUENCE tries"); err != nil {
				t.Fatal(err)
			}
			for n := range 5 {
				if err := dbs[0].Write(t.Context(), insert(n)); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for i := range people {
				wg.Go(func() {
					for j := range times {
						n, err := c.run(dbs[i%len(dbs)], (i+j*(i+1))%5, "UPDATE t SET s = nextval('tries')::text WHERE n = ?")
						if err != nil || n != 1 {
							t.Errorf("%d changes, %v", n, err)
						}
					}
				})
			}
			wg.Wait()
			var tries int
			if err := dbs[0].Read.QueryRow("SELECT last_value FROM tries").Scan(&tries); err != nil || tries > people*times*c.most/100 {
				t.Errorf("%d statements were carried out %d times, %v", people*times, tries, err)
			}
		})
	}
}

func TestAnIgnoredStatementErrorUndoesTheWrite(t *testing.T) {
	db := openAt(t, sqldbtest.New(t), schemaOf(schema...))
	if err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		if err := insert(1)(tx); err != nil {
			return err
		}
		_, _ = tx.Exec("INSERT INTO nowhere VALUES (1)")
		return nil
	}); err == nil {
		t.Error("a transaction that was undone passed as done")
	}
	if err := db.Write(t.Context(), insert(2)); err != nil {
		t.Error(err)
	}
	if got := countAll(t, db); got != 1 {
		t.Errorf("%d rows, want 1", got)
	}
}

// retryUntilUp retries until the server is back.
func retryUntilUp(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); ; {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatal(err)
		}
	}
}

func TestOutageEndsByItself(t *testing.T) {
	t.Parallel()
	server := sqldbtest.Start(t)
	db := openAt(t, server.URL(), schemaOf(schema...))
	var acked sync.Map
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for n := i * 1_000_000; ctx.Err() == nil; n++ {
				var err error
				switch i % 3 {
				case 0:
					err = db.Write(t.Context(), insert(n))
				case 1:
					_, err = db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, '')", n)
				default:
					_, err = db.Group(t.Context(), "INSERT INTO t (n, s) VALUES (?, '')", []any{n})
				}
				if err == nil {
					acked.Store(n, true)
				}
			}
		})
	}
	for range 3 {
		before := countAll(t, db)
		retryUntilUp(t, func() error {
			if countAll(t, db) < before+100 {
				return fmt.Errorf("fewer than 100 rows were written")
			}
			return nil
		})
		server.Kill()
		began := time.Now()
		for n := -1; db.Write(t.Context(), insert(n)) == nil; n-- { // a row that it started to write may exist
			if time.Since(began) > 5*time.Second {
				t.Fatal("writes pass without a server")
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a write without a server took %s to fail", took)
		}
		server.Restart()
		retryUntilUp(t, func() error {
			var n int
			return db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n)
		})
	}
	cancel()
	wg.Wait()
	rows, err := db.Read.QueryContext(t.Context(), "SELECT n FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		acked.Delete(n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	acked.Range(func(n, _ any) bool {
		t.Errorf("row %d was acknowledged and is not there", n)
		return true
	})
}

func TestAHangingServerBlocksNobody(t *testing.T) {
	t.Parallel()
	server := sqldbtest.Start(t)
	db := openAt(t, server.URL()+"&statement_timeout=300&connect_timeout=1", schemaOf(schema...))
	resume := server.Stop()
	t.Cleanup(resume)
	var wg sync.WaitGroup
	began := time.Now()
	for n := range 5 {
		wg.Go(func() {
			if err := db.Write(t.Context(), insert(n)); err == nil {
				t.Error("a write passed while the server stood still")
			}
		})
		wg.Go(func() {
			var n int
			if err := db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM t").Scan(&n); err == nil {
				t.Error("a query passed while the server stood still")
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s to notice", took)
	}
	resume()
	retryUntilUp(t, func() error { return db.Write(t.Context(), insert(100)) })
}

func TestURLParametersAndSecrecy(t *testing.T) {
	for _, place := range []string{
		"postgres://me:s3cret@127.0.0.1:1/nowhere",
		"postgres://me:s3cret@127.0.0.1:1/nowhere?pool_max_conns=0",
		"postgres://me:s3cret@127.0.0.1:port/nowhere",
	} {
		_, err := sqldb.OpenAt(t.Context(), place, schemaOf())
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", place, err)
		}
	}
	u, err := url.Parse(sqldbtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery += "&pool_max_conns=1"
	db := openAt(t, u.String(), schemaOf(schema...))
	if got := db.Read.Stats().MaxOpenConnections; got != 1 {
		t.Errorf("%d connections at most, want 1", got)
	}
	var synchronous string
	if err := db.Read.QueryRow("SHOW synchronous_commit").Scan(&synchronous); err != nil || synchronous != "on" {
		t.Errorf("synchronous_commit is %q, %v", synchronous, err)
	}
}

func TestTextAndUntextAreInverse(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []string{"", "plain", "é", "\x00", "a\xff", "a\xfe", `\x`, `\x61`, "a\uFFFD"} {
		held := sqldb.Text(s)
		if sqldb.Untext(held) != s || strings.Contains(held, "\x00") || held != strings.ToValidUTF8(held, "") {
			t.Errorf("%q is held as %q and read as %q", s, held, sqldb.Untext(held))
		}
		if other, ok := seen[held]; ok {
			t.Errorf("%q and %q are held as one", s, other)
		}
		seen[held] = s
	}
}

// If the answer to a write is lost, nobody knows whether it took place. The caller gets an error and has to
// decide; this package does not retry.
func TestALostAnswerIsAnErrorAndNotRetried(t *testing.T) {
	proxy, place := sqldbtest.NewProxy(t, sqldbtest.New(t))
	db := openAt(t, place, schemaOf(schema...))
	const change = "UPDATE t SET s = s || 'x'"
	if _, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (1, '')"); err != nil {
		t.Fatal(err)
	}
	for i, write := range []func() error{
		func() error { _, err := db.Exec(t.Context(), change); return err },
		func() error { _, err := db.Exec(t.Context(), change+" WHERE n = ?", 1); return err },
		func() error { _, err := db.Group(t.Context(), change+" WHERE n = ?", []any{1}); return err },
		func() error {
			return db.Write(t.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec(change)
				return err
			})
		},
		func() error {
			var s string
			return db.Get(t.Context(), change+" WHERE n = ? RETURNING s", []any{1}, &s)
		},
	} {
		if err := write(); err != nil { // prepares the statement on its connection
			t.Fatal(err)
		}
		proxy.Lose()
		if err := write(); err == nil {
			t.Errorf("write %d passed without an answer", i)
		}
		var times int
		if err := db.Read.QueryRow("SELECT length(s) FROM t").Scan(&times); err != nil || times != 2*(i+1) {
			t.Errorf("after write %d: carried out %d times in all, %v; want %d", i, times, err, 2*(i+1))
		}
	}
}
