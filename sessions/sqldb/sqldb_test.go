package sqldb_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"parley/sessions/sqldb"
)

var schema = []string{"CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT NOT NULL)"}

func open(t *testing.T, path string, migrations []string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), path, migrations)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func count(t *testing.T, db *sqldb.DB) (n int) {
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

func TestFailedWriteUndoesItselfAlone(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a b%.db"), schema)
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
	if got := count(t, db); got != 400 {
		t.Errorf("%d rows, want the 400 that did not fail", got)
	}
}

func TestCloseCarriesOutWhatWasStarted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db := open(t, path, schema)
	for n := range 300 {
		db.Start(insert(n))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), insert(1000)); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
	if got := count(t, open(t, path, schema)); got != 300 {
		t.Errorf("%d rows after reopening, want 300", got)
	}
}

func TestMigrationsRunOnceAndNewerFilesAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	if err := open(t, path, schema).Close(); err != nil {
		t.Fatal(err)
	}
	two := append(schema, "ALTER TABLE t ADD COLUMN extra TEXT")
	if err := open(t, path, two).Close(); err != nil {
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
	if got := count(t, open(t, path, schema)); got != 0 {
		t.Errorf("%d rows", got)
	}
}

func BenchmarkWrite(b *testing.B) {
	db, err := sqldb.Open(b.Context(), filepath.Join(b.TempDir(), "x.db"), schema)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			if err := db.Write(b.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec("INSERT INTO t (s) VALUES (?)", "x")
				return err
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		b.SetParallelism(100)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := db.Write(b.Context(), func(tx *sqldb.Tx) error {
					_, err := tx.Exec("INSERT INTO t (s) VALUES (?)", "x")
					return err
				}); err != nil {
					b.Error(err)
				}
			}
		})
	})
}
