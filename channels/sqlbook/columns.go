package sqlbook

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/sessions/sqldb"
)

// Old sends and submissions are deleted at every pruneEvery-th new one, and old asks at every new ask: at most
// pruneLimit rows each time.
const (
	pruneEvery = 256
	pruneLimit = 512
)

// textArgs returns the strings as arguments for a statement, in a form that every database can store.
func textArgs(list ...string) []any {
	held := make([]any, len(list))
	for i, s := range list {
		held[i] = sqldb.Text(s)
	}
	return held
}

// restoreTexts converts strings that were read from the database back, in place.
func restoreTexts(list ...*string) {
	for _, s := range list {
		*s = sqldb.Untext(*s)
	}
}

// toStamp returns a time in its stored form. 0 means no time, so the first microsecond of 1970 is stored as the
// second one.
func toStamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return cmp.Or(t.UnixMicro(), 1)
}

// timeOf returns the time that a stored stamp represents.
func timeOf(stamp int64) time.Time {
	if stamp == 0 {
		return time.Time{}
	}
	return time.UnixMicro(stamp)
}

// toBit returns a boolean in its stored form.
func toBit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// toStoredName returns a name in its stored form, cut to maxNameBytes.
func toStoredName(name string) string {
	if len(name) > maxNameBytes {
		name = strings.ToValidUTF8(name[:maxNameBytes], "")
	}
	return sqldb.Text(name)
}

// maxNameBytes is how much of a name is stored.
const maxNameBytes = 128 // bytes

// queryAll runs a query and returns the results of scan for its rows.
func queryAll[T any](ctx context.Context, db *sql.DB, scan func(func(...any) error) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the book: %w", err)
	}
	return readAll(rows, scan)
}

// readAll returns the results of scan for the rows that a query has found, and closes the rows.
func readAll[T any](rows *sql.Rows, scan func(func(...any) error) (T, error)) (all []T, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("read the book: %w", err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the book: %w", err)
	}
	return all, nil
}

// execCounting executes a statement and adds the number of changed rows to into.
func execCounting(tx *sqldb.Tx, into *int64, query string, args ...any) error {
	n, err := tx.Exec(query, args...)
	*into += n
	return err
}
