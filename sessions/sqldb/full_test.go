package sqldb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"parley/sessions/sqldb"
)

// What SQLite undoes by itself, as when the disk is full, is reported with its cause alone: that there
// was nothing left to undo says nothing to an operator. The cause has SQLite's code, whether or not the
// text is so long that only the driver takes it.
func TestAFullDiskIsTheOnlyCause(t *testing.T) {
	for _, size := range []int{1 << 15, 1 << 16} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "t.db"), schema)
			allowPages(t, db, 1) // which is: no more than there are
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				if err := insert(1)(tx); err != nil {
					return err
				}
				_, err := tx.Exec("INSERT INTO t (n, s) VALUES (2, ?)", strings.Repeat("x", size))
				return err
			})
			checkCode(t, err, sqlite3.SQLITE_FULL)
			if err != nil && strings.Contains(err.Error(), "roll") {
				t.Errorf("the error is %q, want the cause alone", err)
			}
			allowPages(t, db, 1<<20)
			if err := db.Write(t.Context(), insert(1)); err != nil { // of which nothing was left
				t.Errorf("the next write: %v", err)
			}
		})
	}
}

// A write that SQLite refuses, but whose transaction it leaves open, is undone whole.
func TestARefusedWriteHasACodeAndLeavesNothing(t *testing.T) {
	for _, size := range []int{1 << 15, 1 << 16} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "t.db"), schema)
			err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
				if err := insert(1)(tx); err != nil {
					return err
				}
				_, err := tx.Exec("INSERT INTO t (n, s) VALUES (1, ?)", strings.Repeat("x", size))
				return err
			})
			checkCode(t, err, sqlite3.SQLITE_CONSTRAINT)
			if err := db.Write(t.Context(), insert(1)); err != nil {
				t.Errorf("the next write: %v", err)
			}
		})
	}
}

// allowPages sets how many pages the writer lets the file have.
func allowPages(t *testing.T, db *sqldb.DB, most int) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", most))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkCode fails the test if an error has not this code of SQLite's.
func checkCode(t *testing.T, err error, want int) {
	t.Helper()
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); !ok || e.Code()&0xff != want {
		t.Errorf("the write has failed with %v, want code %d", err, want)
	}
}
