package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// WithReadOnly calls fn with the database at place, for queries only. It does not migrate the database, and
// another process may have it open. To find out what a component's tables lack, fn calls [DB.HasTable].
func WithReadOnly(ctx context.Context, place string, fn func(*DB) error) (err error) {
	db := &DB{isPostgres: IsURL(place), backend: &writer{closed: true}}
	if db.isPostgres {
		cfg, _, err := parseURL(place)
		if err != nil {
			return fmt.Errorf("database URL: %w", err)
		}
		disablePreparing(cfg)
		db.Read = newPool(cfg, 1, connector{queries: &queryCache{}, timeout: statementTimeout(cfg)})
	} else if db.Read, err = sql.Open("sqlite", fileURI(place)+"?mode=ro&_pragma=busy_timeout(5000)"); err != nil {
		return fmt.Errorf("open %s: %w", place, err)
	}
	defer func() { err = errors.Join(err, db.Read.Close()) }()
	return fn(db)
}

// HasTable reports whether the database has a table of that name.
func (db *DB) HasTable(ctx context.Context, name string) (has bool, err error) {
	query := "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)"
	if db.isPostgres {
		query = "SELECT to_regclass(?) IS NOT NULL"
	}
	err = db.Read.QueryRowContext(ctx, query, name).Scan(&has)
	return has, err
}
