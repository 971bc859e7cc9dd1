package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"parley/sessions/sqldb"
)

// migrationTable is a table in the new database in which a migration records what it has copied there.
type migrationTable struct{ db *sqldb.DB }

// A move says which parts of a migration are complete.
type move struct{ known, store, book, done bool }

func openMoves(ctx context.Context, url string) (*migrationTable, error) {
	db, err := sqldb.OpenAt(ctx, url, sqldb.Schema{Name: "moves", Postgres: []string{`
CREATE TABLE moves (
	id    TEXT PRIMARY KEY,
	began BIGINT NOT NULL,           -- microseconds since 1970; 0 below is not yet
	store BIGINT NOT NULL DEFAULT 0, -- when its logs had been taken
	book  BIGINT NOT NULL DEFAULT 0,
	done  BIGINT NOT NULL DEFAULT 0
)`}})
	if err != nil {
		return nil, err
	}
	return &migrationTable{db}, nil
}

func (t *migrationTable) close() error { return t.db.Close() }

// find returns how far the migration with this id has come. It returns ErrOther while another one
// is in progress.
func (t *migrationTable) find(ctx context.Context, id string) (m move, err error) {
	other, err := t.unfinished(ctx, id)
	if err == nil && other {
		err = fmt.Errorf("%w to this database: finish that one, or use another database", ErrOther)
	}
	if err != nil {
		return m, err
	}
	err = t.db.Read.QueryRowContext(ctx, "SELECT store > 0, book > 0, done > 0 FROM moves WHERE id = ?", id).
		Scan(&m.store, &m.book, &m.done)
	m.known = err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return m, fmt.Errorf("find out how far the migration has come: %w", err)
	}
	return m, nil
}

// unfinished reports whether a migration with another id than own is in progress.
func (t *migrationTable) unfinished(ctx context.Context, own string) (yes bool, err error) {
	err = t.db.Read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM moves WHERE done = 0 AND id <> ?)", own).Scan(&yes)
	if err != nil {
		return false, fmt.Errorf("look for migrations: %w", err)
	}
	return yes, nil
}

func (t *migrationTable) begin(ctx context.Context, id string) error {
	_, err := t.db.Exec(ctx, "INSERT INTO moves (id, began) VALUES (?, ?) ON CONFLICT DO NOTHING", id, time.Now().UnixMicro())
	if err != nil {
		return fmt.Errorf("record the migration: %w", err)
	}
	return nil
}

// recordCopied returns a function that records that a part was copied. The function must be called in the transaction
// that copies the part, so that both happen or neither.
func (t *migrationTable) recordCopied(id, part string) func(*sqldb.Tx) error {
	return func(tx *sqldb.Tx) error {
		_, err := tx.Exec("UPDATE moves SET "+part+" = ? WHERE id = ?", time.Now().UnixMicro(), id)
		return err
	}
}

func (t *migrationTable) finish(ctx context.Context, id string) error {
	if _, err := t.db.Exec(ctx, "UPDATE moves SET done = ? WHERE id = ?", time.Now().UnixMicro(), id); err != nil {
		return fmt.Errorf("record the end of the migration: %w", err)
	}
	return nil
}

// Unfinished reports whether a migration to the database at this URL is in progress, so that the
// database must not be served yet.
func Unfinished(ctx context.Context, url string) (yes bool, err error) {
	t, err := openMoves(ctx, url)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.unfinished(ctx, "")
}
