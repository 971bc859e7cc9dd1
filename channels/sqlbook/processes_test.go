package sqlbook_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// recordLikeBefore records what a process understands as the release before does, which describes no process.
func recordLikeBefore(t *testing.T, db *sqldb.DB, name string) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `INSERT INTO processes (name, understands, noted) VALUES (?, 3, ?)`, name, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
}

// checkBeside checks that a process of the release before, which goes on beside this one, counts as before and is not
// described.
func checkBeside(t *testing.T, book *sqlbook.Book, before *sqldb.DB) {
	t.Helper()
	recordLikeBefore(t, before, "beside")
	if err := book.NoteProcess(t.Context(), "new", 4); err != nil {
		t.Fatal(err)
	}
	if err := book.DescribeProcess(t.Context(), "new", "{}"); err != nil {
		t.Fatal(err)
	}
	names := []string{"earlier", "beside", "new"}
	if ok, err := book.AllUnderstand(t.Context(), names, 3); err != nil || !ok {
		t.Errorf("they understand: %v, %v", ok, err)
	}
	if got, err := book.Descriptions(t.Context(), names); err != nil || !maps.Equal(got, map[string]string{"new": "{}"}) {
		t.Errorf("described are %q, %v", got, err)
	}
}

func TestProcessesOfTheReleaseBefore(t *testing.T) {
	now, before := sqlbook.Schema(), sqlbook.Schema()
	before.SQLite = before.SQLite[:slices.Index(before.SQLite, sqlbook.About)]
	before.Postgres = before.Postgres[:len(before.Postgres)-len(now.SQLite)+len(before.SQLite)]
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "book.db")
		db, err := sqldb.Open(t.Context(), path, before.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		recordLikeBefore(t, db, "earlier")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		book, err := sqlbook.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		if db, err = sqldb.Open(t.Context(), path, now.SQLite); err != nil { // it refuses what is newer, but writes the same
			t.Fatal(err)
		}
		defer db.Close()
		checkBeside(t, book, db)
	})
	t.Run("postgres", func(t *testing.T) {
		url := sqldbtest.New(t)
		db, err := sqldb.OpenAt(t.Context(), url, before)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		recordLikeBefore(t, db, "earlier")
		book, err := sqlbook.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer book.Close()
		checkBeside(t, book, db)
		again, err := sqldb.OpenAt(t.Context(), url, before) // the release before starts once more
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	})
}
