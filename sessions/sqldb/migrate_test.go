package sqldb_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// migrateDuringWrite migrates two tables, the second one first, while a transaction that has written to the
// first is about to write to the second. It returns the errors of both.
func migrateDuringWrite(t *testing.T, locked ...string) (migrated, written error) {
	t.Helper()
	place := sqldbtest.New(t)
	s := schemaOf("CREATE TABLE first (n INTEGER); CREATE TABLE second (n INTEGER)")
	openAt(t, place, s)
	s.Postgres = append(s.Postgres, "ALTER TABLE second ADD COLUMN m INTEGER; ALTER TABLE first ADD COLUMN m INTEGER")
	s.LockOrder = append(locked, "missing")
	by, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	tx, err := by.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO first (n) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		db, err := sqldb.OpenAt(t.Context(), place, s)
		if err == nil {
			err = db.Close()
		}
		ended <- err
	}()
	retryUntilUp(t, func() error {
		var waits bool
		err := by.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'first'::regclass)").Scan(&waits)
		if err == nil && !waits {
			err = errors.New("the migration doesn't wait")
		}
		return err
	})
	_, written = tx.ExecContext(t.Context(), "INSERT INTO second (n) VALUES (1)")
	if written == nil {
		written = tx.Commit()
	} else {
		written = errors.Join(written, tx.Rollback())
	}
	return <-ended, written
}

// A migration waits for a writer of the previous release, but they never wait for each other.
func TestAMigrationLocksTablesInTheOrderOfWriters(t *testing.T) {
	if migrated, written := migrateDuringWrite(t, "first", "second"); migrated != nil || written != nil {
		t.Errorf("the migration ends with %v, the writer with %v", migrated, written)
	}
}

// If a migration and a writer wait for each other, and the server undoes the migration, it is retried.
func TestAMigrationIsTriedAgain(t *testing.T) {
	migrated, written := migrateDuringWrite(t)
	if pg, ok := errors.AsType[*pgconn.PgError](written); ok && pg.Code == "40P01" {
		written = nil // on a slow machine, the server may undo the writer instead
	}
	if migrated != nil || written != nil {
		t.Errorf("the migration ends with %v, the writer with %v", migrated, written)
	}
}
