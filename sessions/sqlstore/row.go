package sqlstore

import (
	"encoding/json"
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

// columns are the columns of a row in SQL, in the order of scanTargets.
const columns = "n, turn, kind, at, cause, person, call, data"

// scanTargets returns where the columns of a row are scanned to.
func (r *row) scanTargets() []any {
	return []any{&r.n, &r.turn, &r.kind, &r.at, &r.cause, &r.person, &r.call, &r.data}
}

// rowOf converts an entry into row number n; an entry without a time gets now.
func rowOf(n int64, e sessions.Entry, now time.Time) (row, error) {
	if len(e.Data) > 0 && !json.Valid(e.Data) {
		return row{}, fmt.Errorf("%s entry %d: its data is not JSON", e.Kind, n)
	}
	at := e.At
	if at.IsZero() || at.UTC().Year() < 1 || at.UTC().Year() > 9999 {
		at = now // a year of five digits could be written but not read again
	}
	return row{
		n:      n,
		turn:   sqldb.Text(e.Turn),
		kind:   sqldb.Text(string(e.Kind)),
		at:     formatTime(at),
		cause:  sqldb.Text(e.Cause),
		person: sqldb.Text(e.Person),
		call:   sqldb.Text(e.Call),
		data:   cleanJSON(e.Data),
	}, nil
}

// toEntry converts a row back into its entry.
func (r *row) toEntry() (sessions.Entry, error) {
	at, err := time.Parse(stampLayout, r.at)
	if err != nil {
		return sessions.Entry{}, fmt.Errorf("entry %d: %w", r.n, err)
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

// same reports whether two rows are the same entry; the time of the append may differ.
func (r *row) same(o *row) bool {
	a, b := *r, *o
	a.at, b.at = "", ""
	return a == b
}

const (
	stampLayout = "2006-01-02T15:04:05.000000Z"
	dayLayout   = "2006-01-02"
)

func formatTime(t time.Time) string { return t.UTC().Format(stampLayout) }

func formatDay(t time.Time) string { return t.UTC().Format(dayLayout) }

// cleanJSON returns data in a form that every database can store. It replaces each byte that is not
// UTF-8 by U+FFFD, as JSON decoders do. A NUL can only occur escaped in JSON.
func cleanJSON(data json.RawMessage) string {
	if utf8.Valid(data) {
		return string(data)
	}
	return string([]rune(string(data)))
}
