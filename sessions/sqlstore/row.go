package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// A row is an entry as the table entries stores it.
type row struct {
	n                                         int64
	turn, kind, at, cause, person, call, data string
}

// entryColumns are the columns of a row in SQL, in the order of scanTargets.
const entryColumns = "n, turn, kind, at, cause, person, call, data"

// scanTargets returns where the columns of a row are scanned to.
func (r *row) scanTargets() []any {
	return []any{&r.n, &r.turn, &r.kind, &r.at, &r.cause, &r.person, &r.call, &r.data}
}

// rowOf converts an entry into row number n. An entry without a time gets now, a time that sqldb.FormatTime has
// formatted. It returns an error if the entry's data is not JSON.
func rowOf(n int64, e sessions.Entry, now string) (row, error) {
	if len(e.Data) > 0 && !json.Valid(e.Data) {
		return row{}, fmt.Errorf("%s entry %d: its data is not JSON", e.Kind, n)
	}
	at := now
	// A year of five digits could be written but not read again.
	if year := e.At.UTC().Year(); !e.At.IsZero() && 1 <= year && year <= 9999 {
		at = sqldb.FormatTime(e.At)
	}
	return row{
		n:      n,
		turn:   sqldb.Text(e.Turn),
		kind:   sqldb.Text(string(e.Kind)),
		at:     at,
		cause:  sqldb.Text(e.Cause),
		person: sqldb.Text(e.Person),
		call:   sqldb.Text(e.Call),
		data:   cleanJSON(e.Data),
	}, nil
}

// toEntry converts a row back into its entry.
func (r *row) toEntry() (sessions.Entry, error) {
	at, err := r.time()
	if err != nil {
		return sessions.Entry{}, err
	}
	e := sessions.Entry{
		N:      r.n,
		Turn:   sqldb.Untext(r.turn),
		Kind:   sessions.Kind(sqldb.Untext(r.kind)),
		At:     at,
		Cause:  sqldb.Untext(r.cause),
		Person: sqldb.Untext(r.person),
		Call:   sqldb.Untext(r.call),
	}
	if r.data != "" {
		e.Data = json.RawMessage(r.data)
	}
	return e, nil
}

// time returns when the entry was appended.
func (r *row) time() (time.Time, error) {
	at, err := sqldb.ParseTime(r.at)
	if err != nil {
		return at, fmt.Errorf("entry %d: %w", r.n, err)
	}
	return at, nil
}

// equals reports whether two rows are the same entry; their times may differ.
func (r *row) equals(o *row) bool {
	a, b := *r, *o
	a.at, b.at = "", ""
	return a == b
}

const dayLayout = "2006-01-02"

func formatDay(t time.Time) string { return t.UTC().Format(dayLayout) }

// cleanJSON returns data in a form that every database can store. It replaces each byte that is not UTF-8
// by U+FFFD, as JSON decoders do. In JSON, NUL can only occur escaped.
func cleanJSON(data json.RawMessage) string {
	if utf8.Valid(data) {
		return string(data)
	}
	return string([]rune(string(data)))
}

// readEntries runs a query that selects columns, and appends the found entries to entries.
func readEntries(ctx context.Context, stmt *sql.Stmt, entries []sessions.Entry, args ...any) ([]sessions.Entry, error) {
	found, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return scanRows(found, entries, func(r *row) (sessions.Entry, error) { return r.toEntry() })
}

// scanRows converts each row of a result by the function convert, appends it to list, and closes
// the result.
func scanRows[T any](found *sql.Rows, list []T, convert func(*row) (T, error)) (_ []T, err error) {
	defer func() { err = errors.Join(err, found.Close()) }()
	var r row
	targets := r.scanTargets()
	for found.Next() {
		if err := found.Scan(targets...); err != nil {
			return nil, err
		}
		v, err := convert(&r)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, found.Err()
}
