package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// queries holds the prepared statements of the frequent queries.
type queries struct {
	span, brief, whole, packs, peek, turn, page, session, find, list, info, spent, tombstone *sql.Stmt
}

func prepare(ctx context.Context, db *sql.DB, postgres bool) (_ *queries, err error) {
	q := new(queries)
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&q.span, "SELECT " + entryColumns + " FROM entries WHERE session = ? AND n >= ? AND n <= ? ORDER BY n"},
		{&q.brief, "SELECT " + columnsInBrief + briefSource + " ORDER BY n"},
		{&q.peek, "SELECT id, erasures, fence, last, summary, covers, unfinished, title FROM sessions WHERE key = ?"},
		{&q.turn, "SELECT " + entryColumns + " FROM entries WHERE session = ? AND n >= ? AND n <= ? AND turn = ? ORDER BY n"},
		{&q.page, "SELECT " + entryColumns + " FROM entries WHERE session = ? AND n >= ? ORDER BY n LIMIT ?"},
		{&q.session, "SELECT id FROM sessions WHERE key = ?"},
		{&q.find, "SELECT " + entryColumns + " FROM entries WHERE session = (SELECT id FROM sessions WHERE key = ?) AND cause = ? AND cause <> ''"},
		{&q.list, "SELECT " + infoColumns + " FROM sessions s" + titledInfo + " WHERE s.key > ? ORDER BY s.key LIMIT ?"},
		{&q.info, "SELECT key, last, erasures, created, updated, '', '', '' FROM sessions WHERE key = ?"},
		{&q.spent, "SELECT tokens FROM spending WHERE person = ? AND day = ?"},
		{&q.tombstone, "SELECT EXISTS (SELECT 1 FROM graves WHERE key = ? AND fence >= ?)"},
	} {
		if *p.stmt, err = db.PrepareContext(ctx, p.text); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare %q: %w", p.text, err), q.close())
		}
	}
	if postgres {
		return q, nil
	}
	if q.whole, err = db.PrepareContext(ctx, briefInOne); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %q: %w", briefInOne, err), q.close())
	}
	const inPacks = "SELECT first, last, count, text FROM packs WHERE session = ? AND last >= ? ORDER BY first"
	if q.packs, err = db.PrepareContext(ctx, inPacks); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %q: %w", inPacks, err), q.close())
	}
	return q, nil
}

func (q *queries) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{q.span, q.brief, q.whole, q.packs, q.peek, q.turn, q.page, q.session, q.find, q.list, q.info, q.spent, q.tombstone} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// The part of a span of entries that Peek selects: all entries except those that only record the progress
// of turns, and of these the ones that [sessions.Peeker] names. Entries of an unknown kind are selected.
// SQLite would look up each kind of a NOT IN in a table that it makes first, which takes longer than to compare
// it with all of them. The arguments are the session, the span, the newest entry, and once more the session and
// the span.
const (
	columnsInBrief = "n, turn, kind, at, cause, person, call, CASE WHEN kind IN ('turn_started', 'turn_done') AND turn <> '' THEN '' ELSE data END"
	briefSource    = `
	FROM entries WHERE session = ? AND n >= ? AND n <= ? AND (
		kind <> 'published' AND kind <> 'usage' AND kind <> 'tool_started' AND kind <> 'resumed' AND kind <> 'suspended' AND kind <> 'turn_parked' AND kind <> 'turn_unparked'
		OR turn = '' OR n = ?
		OR n = (SELECT n FROM entries WHERE session = ? AND n >= ? AND n <= ? AND kind = 'usage' AND turn <> '' ORDER BY n DESC LIMIT 1))`
)

// briefInOne selects the same on SQLite as one text, and the number of entries in it. It takes the driver
// twice as long to hand over each column of each row as it takes SQLite to find them. The entries come in
// the order of the primary key, by which they are found. Asking for that order would take nearly as long
// again, because SQLite would copy each column once more.
const briefInOne = `
	SELECT count(*), coalesce(group_concat(concat_ws(char(31), ` + columnsInBrief + `), char(30)), '')` + briefSource

// The characters that separate entries, and the columns of an entry, in the result of briefInOne. JSON
// contains neither. If another column contains one, the number of entries or columns is wrong, which
// splitEntries notices.
const (
	entrySeparator  = "\x1e"
	columnSeparator = "\x1f"
)
