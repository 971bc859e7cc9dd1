package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"parley/sessions/sqldb"
)

// This file records in a database that something was erased from it, until no trace of it is left in
// unused parts of the database's files.
//
// A table has the purges that are due. Each erasure adds a row in its own transaction, and the row is deleted
// only after the database was purged: so a process that dies in between leaves it to the next erasure.

// purgesMigration is the SQL that adds the table to a schema.
const purgesMigration = `
CREATE TABLE purges (
	due BIGINT PRIMARY KEY      -- when something was deleted whose traces may be left
);
`

// A purger erases rows of a database, one erasure at a time, and then purges the database.
type purger struct {
	db      *sqldb.DB
	tables  []string
	erasing sync.Mutex // held while something is erased
}

// newPurger makes the purger of a database; these are the tables from which it erases.
func newPurger(db *sqldb.DB, tables ...string) *purger {
	return &purger{db: db, tables: tables}
}

// schedulePurge records that the database's files may still contain what was just deleted.
func schedulePurge(tx *sqldb.Tx) error {
	_, err := tx.Exec("INSERT INTO purges (due) VALUES (?) ON CONFLICT DO NOTHING", time.Now().UnixMicro())
	return err
}

// erase calls do and then, unless do fails, purges the database's files from traces of deleted rows, including
// those that an interrupted earlier call has left. Only one call runs at a time.
func (p *purger) erase(ctx context.Context, do func() error) error {
	p.erasing.Lock()
	defer p.erasing.Unlock()
	if err := do(); err != nil {
		return err
	}
	return p.purge(ctx)
}

// purge removes the traces of deleted rows if some may be left.
func (p *purger) purge(ctx context.Context) error {
	var due sql.NullInt64
	if err := p.db.Read.QueryRowContext(ctx, "SELECT max(due) FROM purges").Scan(&due); err != nil {
		return err
	}
	if !due.Valid {
		return nil
	}
	done := func(ctx context.Context) error {
		_, err := p.db.Exec(ctx, "DELETE FROM purges WHERE due <= ?", due.Int64)
		return err
	}
	return p.db.PurgeThen(ctx, done, p.tables...)
}

// announce records that somebody else is about to erase something from tables that may be in the same
// files. If this process dies before it calls end, the next erasure purges these files. end purges them
// too if something was erased; if not, it only forgets this again.
func (p *purger) announce(ctx context.Context) (end func(ctx context.Context, erased bool) error, err error) {
	if p.db.IsPostgres() { // where the tables of each component are purged separately
		return func(context.Context, bool) error { return nil }, nil
	}
	due, own := time.Now().UnixMicro(), false
	err = p.db.Write(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec("INSERT INTO purges (due) VALUES (?) ON CONFLICT DO NOTHING", due)
		own = n > 0
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note that something is to be purged: %w", err)
	}
	return func(ctx context.Context, erased bool) error {
		return p.erase(ctx, func() error {
			switch {
			case erased:
				// Somebody else may have purged before everything was erased, and removed the record.
				if err := p.db.Write(ctx, schedulePurge); err != nil {
					return fmt.Errorf("note that something is to be purged: %w", err)
				}
			case own:
				if _, err := p.db.Exec(ctx, "DELETE FROM purges WHERE due = ?", due); err != nil {
					return fmt.Errorf("note that nothing is to be purged: %w", err)
				}
			}
			return nil
		})
	}, nil
}
