package sqldb_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

var schema = []string{"CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT NOT NULL)"}

func schemaOf(migrations ...string) sqldb.Schema {
	return sqldb.Schema{Name: "test", SQLite: migrations, Postgres: migrations}
}

// onEachDatabase runs a test on both kinds of database.
func onEachDatabase(t *testing.T, test func(t *testing.T, place string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "a b%.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, sqldbtest.New(t)) })
}

func openAt(t *testing.T, place string, s sqldb.Schema) *sqldb.DB {
	t.Helper()
	db, err := sqldb.OpenAt(t.Context(), place, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func openFile(t *testing.T, path string, migrations []string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), path, migrations)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func countAll(t *testing.T, db *sqldb.DB) (n int) {
	t.Helper()
	if err := db.Read.QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func insert(n int) func(*sqldb.Tx) error {
	return func(tx *sqldb.Tx) error {
		_, err := tx.Exec("INSERT INTO t (n, s) VALUES (?, ?)", n, "x")
		return err
	}
}

func TestAFailedWriteLeavesOtherWrites(t *testing.T) { onEachDatabase(t, testFailedWrite) }

func testFailedWrite(t *testing.T, place string) {
	db := openAt(t, place, schemaOf(schema...))
	var wg sync.WaitGroup
	sentinel := errors.New("refused")
	for n := range 500 {
		wg.Go(func() {
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				if err := insert(n)(tx); err != nil {
					return err
				}
				if n%5 == 0 {
					return sentinel
				}
				return nil
			})
			if (n%5 == 0) != errors.Is(err, sentinel) {
				t.Errorf("write %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	if got := countAll(t, db); got != 400 {
		t.Errorf("%d rows, want the 400 that did not fail", got)
	}
}

func TestCloseRunsStartedWrites(t *testing.T) { onEachDatabase(t, testClose) }

func testClose(t *testing.T, place string) {
	db := openAt(t, place, schemaOf(schema...))
	for n := range 300 {
		db.Start(insert(n))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), insert(1000)); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if _, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (1001, '')"); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("statement after close: %v", err)
	}
	if got := countAll(t, openAt(t, place, schemaOf(schema...))); got != 300 {
		t.Errorf("%d rows after reopening, want 300", got)
	}
}

func TestSingleStatements(t *testing.T) { onEachDatabase(t, testSingleStatements) }

func testSingleStatements(t *testing.T, place string) {
	db := openAt(t, place, schemaOf(schema...))
	n, err := db.Exec(t.Context(), "INSERT INTO t (n, s) VALUES (?, 'what?'), (?, ?)", 1, 2, "two")
	if err != nil || n != 2 {
		t.Fatalf("%d rows inserted, %v", n, err)
	}
	var s string
	const change = "UPDATE t SET s = s || ? WHERE n = ? AND s = 'what?' RETURNING s"
	if err := db.Get(t.Context(), change, []any{"!", 1}, &s); err != nil || s != "what?!" {
		t.Errorf("%q, %v", s, err)
	}
	if err := db.Get(t.Context(), change, []any{"!", 1}, &s); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("a change of no row: %v", err)
	}
	if err := db.Get(t.Context(), "INSERT INTO t (n, s) VALUES (?, ?) RETURNING s", []any{1, "one"}, &s); err == nil {
		t.Error("a row was inserted twice")
	}
	if _, err := db.Exec(t.Context(), "INSERT INTO nowhere VALUES (?)", 1); err == nil {
		t.Error("a statement that makes no sense passed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Exec(ctx, "DELETE FROM t"); !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose caller has gone: %v", err)
	}
	if got := countAll(t, db); got != 2 {
		t.Errorf("%d rows, want 2", got)
	}
}

// Each statement of a group gets its own outcome, even if another one fails.
func TestGroups(t *testing.T) { onEachDatabase(t, testGroups) }

func testGroups(t *testing.T, place string) {
	db := openAt(t, place, schemaOf(schema...))
	var wg sync.WaitGroup
	for n := range 500 {
		wg.Go(func() {
			row := n
			if n%100 == 1 {
				row-- // the row exists, or will exist
			}
			inserted, err := db.Group(t.Context(), "INSERT INTO t (n, s) VALUES (?, ?)", []any{row, "x"})
			if n%100 > 1 && (err != nil || inserted != 1) {
				t.Errorf("insert %d: %d rows, %v", n, inserted, err)
			}
		})
		wg.Go(func() {
			var got int
			_, err := db.Group(t.Context(), "UPDATE t SET s = s || 'y' WHERE n = ? RETURNING n", []any{1000 + n}, &got)
			if !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("change %d of no row: %v", n, err)
			}
		})
		if n%100 == 50 {
			wg.Go(func() {
				if _, err := db.Group(t.Context(), "INSERT INTO nowhere VALUES (?)", []any{n}); err == nil {
					t.Error("a statement that makes no sense passed")
				}
			})
		}
	}
	wg.Wait()
	if got := countAll(t, db); got != 495 {
		t.Errorf("%d rows, want the 495 that are there once", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Group(t.Context(), "DELETE FROM t", nil); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("statement after close: %v", err)
	}
}

func TestMigrationsRunOnceAndNewerFilesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := openFile(t, path, schema).Close(); err != nil {
		t.Fatal(err)
	}
	two := append(schema, "ALTER TABLE t ADD COLUMN extra TEXT")
	if err := openFile(t, path, two).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqldb.Open(t.Context(), path, schema); err == nil {
		t.Error("a file of a newer release was opened")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want it readable by its owner alone", info.Mode())
	}
}

func TestFailedMigrationLeavesTheFileAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if _, err := sqldb.Open(t.Context(), path, []string{"CREATE TABLE t (n); CREATE TABLE broken ("}); err == nil {
		t.Fatal("a broken migration passed")
	}
	if _, err := sqldb.Open(t.Context(), path, append(schema, "CREATE TABLE u (n); CREATE TABLE broken (")); err == nil {
		t.Fatal("a broken second migration passed")
	}
	if got := countAll(t, openFile(t, path, schema)); got != 0 {
		t.Errorf("%d rows", got)
	}
	if _, err := sqldb.Open(t.Context(), path, append(schema, "CREATE TABLE u (n)", "CREATE TABLE broken (")); err == nil {
		t.Fatal("a broken third migration passed")
	}
	var n int
	if err := openFile(t, path, append(schema, "CREATE TABLE u (n)")).Read.QueryRow("SELECT count(*) FROM u").Scan(&n); err != nil {
		t.Errorf("the migration before the broken one: %v", err)
	}
}

func BenchmarkWrite(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchmarkWrites(b, filepath.Join(b.TempDir(), "x.db")) })
	b.Run("postgres", func(b *testing.B) { benchmarkWrites(b, sqldbtest.New(b)) })
}

func benchmarkWrites(b *testing.B, place string) {
	s := schemaOf(schema...)
	s.Postgres = []string{"CREATE TABLE t (n BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, s TEXT NOT NULL)"}
	db, err := sqldb.OpenAt(b.Context(), place, s)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const insert = "INSERT INTO t (s) VALUES (?)"
	for name, write := range map[string]func() error{
		"write": func() error {
			return db.Write(b.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec(insert, "x")
				return err
			})
		},
		"single": func() error {
			_, err := db.Exec(b.Context(), insert, "x")
			return err
		},
		"group": func() error {
			_, err := db.Group(b.Context(), insert, []any{"x"})
			return err
		},
	} {
		b.Run(name+"/alone", func(b *testing.B) {
			for b.Loop() {
				if err := write(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/together", func(b *testing.B) {
			b.SetParallelism(100)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := write(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
