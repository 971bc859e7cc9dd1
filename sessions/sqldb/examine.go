package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// ErrDamaged says that a database file is damaged, or is not an SQLite database.
var ErrDamaged = errors.New("the database is damaged")

// Examine reads a SQLite file from end to end and fails with ErrDamaged if it is damaged. It doesn't compare indexes
// with their tables. It writes nothing, and another process may have the file open.
func Examine(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", fileURI(path)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "PRAGMA quick_check(3)")
	if err != nil {
		return asDamaged(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var said []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return asDamaged(err)
		}
		if line != "ok" {
			said = append(said, line)
		}
	}
	if err := rows.Err(); err != nil {
		return asDamaged(err)
	}
	if len(said) > 0 {
		return fmt.Errorf("%w: %s", ErrDamaged, strings.Join(said, "; "))
	}
	return nil
}

// asDamaged wraps an error that concerns the file's content in ErrDamaged, and returns any other as it
// is.
func asDamaged(err error) error {
	if code, ok := resultCode(err); ok {
		switch code & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return err
}
