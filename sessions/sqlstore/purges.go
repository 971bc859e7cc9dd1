package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"parley/sessions/sqldb"
)

// This file records in a database that something was erased from it, until no trace of that is
// left in unused parts of its files.
//
// The record is a table. Each erasure adds a row in its own transaction, and the row is deleted only
// after the database was purged: so a process that dies in between leaves it to the next erasure.

// purgesMigration is the SQL that adds the table to a schema.
const purgesMigration = `
CREATE TABLE purges (
	due BIGINT PRIMARY KEY      -- when something was deleted whose traces may be left
);
`

// A purgeRecord knows whether its database must be purged.
type purgeRecord struct {
	db      *sqldb.DB
	tables  []string
	erasing sync.Mutex // held while something is erased
}

// newPurgeRecord makes the purgeRecord of a database, in which things are erased from these tables.
func newPurgeRecord(db *sqldb.DB, tables ...string) *purgeRecord {
	return &purgeRecord{db: db, tables: tables}
}

// schedulePurge records that the database's files may still hold what was just deleted.
func schedulePurge(tx *sqldb.Tx) error {
	_, err := tx.Exec("INSERT INTO purges (due) VALUES (?) ON CONFLICT DO NOTHING", time.Now().UnixMicro())
	return err
}

// erase calls do, and then removes the traces of deleted rows from the database's files, including
// those left by an earlier call that was cut off. Only one call at a time runs.
func (r *purgeRecord) erase(ctx context.Context, do func() error) error {
	r.erasing.Lock()
	defer r.erasing.Unlock()
	if err := do(); err != nil {
		return err
	}
	return r.purge(ctx)
}

// purge removes the traces of deleted rows if some may be left.
func (r *purgeRecord) purge(ctx context.Context) error {
	var due sql.NullInt64
	if err := r.db.Read.QueryRowContext(ctx, "SELECT max(due) FROM purges").Scan(&due); err != nil {
		return err
	}
	if !due.Valid {
		return nil
	}
	done := func(ctx context.Context) error {
		_, err := r.db.Exec(ctx, "DELETE FROM purges WHERE due <= ?", due.Int64)
		return err
	}
	return r.db.PurgeThen(ctx, done, r.tables...)
}

// announce records that something is about to be erased by others whose tables may be in the same
// files. If this process dies before it calls end, the next erasure purges these files. end purges
// them too if something was erased; if not, it takes the record back.
func (r *purgeRecord) announce(ctx context.Context) (end func(ctx context.Context, erased bool) error, err error) {
	if r.db.Postgres() { // where each component's tables are purged by themselves
		return func(context.Context, bool) error { return nil }, nil
	}
	due, own := time.Now().UnixMicro(), false
	err = r.db.Write(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec("INSERT INTO purges (due) VALUES (?) ON CONFLICT DO NOTHING", due)
		own = n > 0
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note that something is to be purged: %w", err)
	}
	return func(ctx context.Context, erased bool) error {
		return r.erase(ctx, func() error {
			switch {
			case erased:
				// Somebody else may have purged meanwhile, before all was erased, and taken the
				// record away.
				if err := r.db.Write(ctx, schedulePurge); err != nil {
					return fmt.Errorf("note that something is to be purged: %w", err)
				}
			case own:
				if _, err := r.db.Exec(ctx, "DELETE FROM purges WHERE due = ?", due); err != nil {
					return fmt.Errorf("note that nothing is to be purged: %w", err)
				}
			}
			return nil
		})
	}, nil
}
