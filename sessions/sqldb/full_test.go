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

// If SQLite rolls back by itself, for example because the disk is full, only the cause is reported, and not
// that the rollback found no transaction. The error has SQLite's code, no matter how long the statement is.
func TestAFullDiskIsReportedAsTheCause(t *testing.T) {
	for _, size := range []int{1 << 15, 1 << 16} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			db := openFile(t, filepath.Join(t.TempDir(), "t.db"), schema)
			setMaxPages(t, db, 1) // no more pages than the file already has
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
			setMaxPages(t, db, 1<<20)
			if err := db.Write(t.Context(), insert(1)); err != nil { // nothing of the failed write was left
				t.Errorf("the next write: %v", err)
			}
		})
	}
}

// If SQLite refuses a write but keeps its transaction open, the whole write is undone.
func TestARefusedWriteHasACodeAndLeavesNothing(t *testing.T) {
	for _, size := range []int{1 << 15, 1 << 16} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			db := openFile(t, filepath.Join(t.TempDir(), "t.db"), schema)
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

// setMaxPages sets how many pages the writer's connection allows the file to have.
func setMaxPages(t *testing.T, db *sqldb.DB, most int) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", most))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkCode fails the test unless an error has this SQLite code.
func checkCode(t *testing.T, err error, want int) {
	t.Helper()
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); !ok || e.Code()&0xff != want {
		t.Errorf("the write has failed with %v, want code %d", err, want)
	}
}
