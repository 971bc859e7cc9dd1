package sqldb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"parley/sessions/sqldb"
)

// What SQLite undoes by itself, as when the disk is full, is reported with its cause alone: that there
// was nothing left to undo says nothing to an operator.
func TestAFullDiskIsTheOnlyCause(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "t.db"), schema)
	pages := func(most int) {
		t.Helper()
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", most))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	pages(1) // which is: no more than there are
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec("INSERT INTO t (n, s) VALUES (1, ?)", strings.Repeat("x", 1<<16))
		return err
	})
	full, ok := errors.AsType[*sqlite.Error](err)
	if !ok || full.Code()&0xff != sqlite3.SQLITE_FULL {
		t.Fatalf("the write has failed with %v, want that the database is full", err)
	}
	if strings.Contains(err.Error(), "roll") {
		t.Errorf("the error is %q, want the cause alone", err)
	}
	pages(1 << 20)
	if err := db.Write(t.Context(), insert(2)); err != nil {
		t.Errorf("the next write: %v", err)
	}
}
