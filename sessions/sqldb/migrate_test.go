package sqldb_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// migrateBeside migrates two tables, the second one first, while a transaction that has written to the first is about to
// write to the second. It returns what came of both.
func migrateBeside(t *testing.T, locked ...string) (migrated, written error) {
	t.Helper()
	place := sqldbtest.New(t)
	s := schemaOf("CREATE TABLE first (n INTEGER); CREATE TABLE second (n INTEGER)")
	openAt(t, place, s)
	s.Postgres = append(s.Postgres, "ALTER TABLE second ADD COLUMN m INTEGER; ALTER TABLE first ADD COLUMN m INTEGER")
	s.Locked = append(locked, "missing")
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
	eventually(t, func() error {
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

// A migration waits for a writer of the release before, and not each for the other.
func TestAMigrationLocksTablesInTheOrderOfWriters(t *testing.T) {
	if migrated, written := migrateBeside(t, "first", "second"); migrated != nil || written != nil {
		t.Errorf("the migration ends with %v, the writer with %v", migrated, written)
	}
}

// Where they do wait for each other, and the server undoes the migration, it is tried again.
func TestAMigrationIsTriedAgain(t *testing.T) {
	migrated, written := migrateBeside(t)
	if pg, ok := errors.AsType[*pgconn.PgError](written); ok && pg.Code == "40P01" {
		written = nil // on a slow machine it may be the writer that is undone
	}
	if migrated != nil || written != nil {
		t.Errorf("the migration ends with %v, the writer with %v", migrated, written)
	}
}
