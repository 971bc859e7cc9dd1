package sqldb_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/sqldb"
)

// newComponent returns a component with one table for each version, named after the component.
func newComponent(name string, versions int) sqldb.Schema {
	s := sqldb.Schema{Name: name}
	for v := range versions {
		s.SQLite = append(s.SQLite, "CREATE TABLE "+name+strings.Repeat("_more", v)+" (n INTEGER NOT NULL)")
	}
	return s
}

// countRows returns the number of rows of a table.
func countRows(t *testing.T, db *sqldb.DB, table string) (n int) {
	t.Helper()
	if err := db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func insertInto(t *testing.T, db *sqldb.DB, table string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), "INSERT INTO "+table+" (n) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
}

func closeDB(t *testing.T, db *sqldb.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Components that share a file keep their tables and versions next to each other.
func TestComponentsShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	db, err := sqldb.OpenFile(t.Context(), path, newComponent("store", 1), newComponent("book", 2))
	if err != nil {
		t.Fatal(err)
	}
	insertInto(t, db, "store")
	insertInto(t, db, "book_more")
	closeDB(t, db)
	db, err = sqldb.OpenFile(t.Context(), path, newComponent("store", 3), newComponent("book", 2), newComponent("bus", 1))
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]int{"store": 1, "store_more_more": 0, "book_more": 1, "bus": 0} {
		if n := countRows(t, db, table); n != want {
			t.Errorf("table %s has %d rows, want %d", table, n, want)
		}
	}
	closeDB(t, db)
	_, err = sqldb.OpenFile(t.Context(), path, newComponent("store", 3), newComponent("book", 1))
	if err == nil || !strings.Contains(err.Error(), "tables of the book") || !strings.Contains(err.Error(), "use the newer release") {
		t.Errorf("a file of a newer release was opened with: %v", err)
	}
}

// A file of one component becomes a shared one, with all its content. Releases that know only files of one
// component then refuse it.
func TestAFileOfOneComponentIsShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shared.db")
	db, err := sqldb.Open(t.Context(), path, newComponent("store", 1).SQLite)
	if err != nil {
		t.Fatal(err)
	}
	insertInto(t, db, "store")
	closeDB(t, db)
	broken := newComponent("bus", 1)
	broken.SQLite[0] = "CREATE TABLE store (n INTEGER)"
	if _, err := sqldb.OpenFile(t.Context(), path, newComponent("store", 2), broken); err == nil {
		t.Fatal("a table was made twice")
	}
	if db, err = sqldb.Open(t.Context(), path, newComponent("store", 1).SQLite); err != nil {
		t.Fatal("after a migration that failed: ", err)
	}
	closeDB(t, db)
	db, err = sqldb.OpenFile(t.Context(), path, newComponent("store", 2), newComponent("bus", 1))
	if err != nil {
		t.Fatal(err)
	}
	if n := countRows(t, db, "store") + countRows(t, db, "store_more") + countRows(t, db, "bus"); n != 1 {
		t.Errorf("the tables have %d rows, want 1", n)
	}
	closeDB(t, db)
	if _, err := sqldb.Open(t.Context(), path, newComponent("store", 2).SQLite); err == nil || !strings.Contains(err.Error(), "use the newer release") {
		t.Errorf("a release that knows no shared files opened it: %v", err)
	}
}

// What one component writes with Soon is durable with the next write of another.
func TestComponentsShareACommit(t *testing.T) {
	db, err := sqldb.OpenFile(t.Context(), filepath.Join(t.TempDir(), "shared.db"), newComponent("store", 1), newComponent("bus", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer closeDB(t, db)
	store, carrier := db.Lend(), db.Lend()
	store.Start(func(tx *sqldb.Tx) error {
		_, err := tx.Exec("INSERT INTO store (n) VALUES (1)")
		return err
	})
	if err := carrier.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec("INSERT INTO bus (n) VALUES (1)")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if n := countRows(t, db, "store"); n != 1 {
		t.Errorf("the first write has %d rows, want 1", n)
	}
	closeDB(t, store)
	if err := carrier.Write(context.Background(), func(*sqldb.Tx) error { return nil }); err != nil {
		t.Errorf("after another component has closed: %v", err)
	}
}
