package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// migrateWithin bounds a migration: an index over a large table takes its time.
const migrateWithin = 30 * time.Minute

// migrationLock is the number of the advisory lock under which one process at a
// time migrates a database, whatever the component.
const migrationLock = 0x7061726c6579 // the letters "parley"

// migratePostgres brings a component's tables to the newest version, or refuses
// them. All of it is one transaction: a process that dies leaves them as they were.
func migratePostgres(ctx context.Context, pool *sql.DB, s Schema) (err error) {
	ctx, cancel := context.WithTimeout(ctx, migrateWithin)
	defer cancel()
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		if err != nil {
			if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
				err = errors.Join(err, fmt.Errorf("roll back: %w", undo))
			}
		}
	}()
	if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
		return fmt.Errorf("prepare to migrate: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for another process that migrates: %w", err)
	}
	version, err := versionOf(ctx, tx, s)
	if err != nil {
		return err
	}
	for i := version; i < len(s.Postgres); i++ {
		if _, err := tx.ExecContext(ctx, s.Postgres[i]); err != nil {
			return fmt.Errorf("migrate to version %d: %w", i+1, explainRights(err))
		}
	}
	const note = `
		INSERT INTO parley_schema (component, version, oldest) VALUES (?, ?, ?)
		ON CONFLICT (component) DO UPDATE
		SET version = greatest(parley_schema.version, excluded.version), oldest = greatest(parley_schema.oldest, excluded.oldest)
		WHERE parley_schema.version < excluded.version OR parley_schema.oldest < excluded.oldest`
	if _, err := tx.ExecContext(ctx, note, s.Name, len(s.Postgres), s.Previous); err != nil {
		return fmt.Errorf("note the version: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit the migration: %w", err)
	}
	return nil
}

// explainRights adds a remedy to the error of a database user who may not create tables.
func explainRights(err error) error {
	const denied = "42501" // insufficient_privilege
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == denied {
		return fmt.Errorf("%w: its user makes the tables at the first start of each release: GRANT CREATE ON SCHEMA public to it, or make it the owner of the database", err)
	}
	return err
}

// versionOf returns how many migrations were applied to the component's tables. That may be more
// than this release knows, if a newer release has recorded that this one may still work on them.
func versionOf(ctx context.Context, tx *sql.Tx, s Schema) (int, error) {
	const table = `
		CREATE TABLE IF NOT EXISTS parley_schema (
			component TEXT PRIMARY KEY,
			version   INTEGER NOT NULL, -- how many migrations its tables have seen
			oldest    INTEGER NOT NULL  -- how many a release must know to work on them
		)`
	// CREATE TABLE IF NOT EXISTS requires the right to make tables even if the table
	// exists. The user of a bot that is up to date need not have that right.
	var there bool
	if err := tx.QueryRowContext(ctx, "SELECT to_regclass('parley_schema') IS NOT NULL").Scan(&there); err != nil {
		return 0, fmt.Errorf("look for the table of versions: %w", err)
	}
	if !there {
		if _, err := tx.ExecContext(ctx, table); err != nil {
			return 0, fmt.Errorf("make the table of versions: %w", explainRights(err))
		}
	}
	var version, oldest int
	err := tx.QueryRowContext(ctx, "SELECT version, oldest FROM parley_schema WHERE component = ?", s.Name).Scan(&version, &oldest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read the version: %w", err)
	case oldest > len(s.Postgres):
		return 0, newerError(version, len(s.Postgres))
	}
	return version, nil
}
