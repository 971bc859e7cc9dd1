package sqlstore

import (
	"context"
	"slices"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// On SQLite the entries of one session lie apart in the file, between those of others that were written at the
// same time. Most of the time that it takes to read a session goes into finding them. So when a session had to
// be read entry by entry, its entries are written once more, as one text: a pack, from which the next read takes
// them. A session that stays in memory is not read, and gets no packs.
//
// Every step of an erasure deletes or changes rows of entries, and triggers remove the packs with these entries in
// the same transaction. So nothing that was erased is left in a pack, and no step has to know about packs.

// packsMigration is the migration that adds the table of packs on SQLite. The packs of a session follow one another without
// a gap, unless one was removed.
const packsMigration = `
CREATE TABLE packs (
	session BIGINT NOT NULL,
	first   BIGINT NOT NULL,     -- the numbers of the first and the last entry that it stands for
	last    BIGINT NOT NULL,
	count   BIGINT NOT NULL,     -- how many of these are in its text
	text    TEXT NOT NULL,       -- what briefInOne selects
	PRIMARY KEY (session, first)
);
CREATE TRIGGER packs_gone AFTER DELETE ON entries
BEGIN DELETE FROM packs WHERE session = old.session AND first <= old.n AND last >= old.n; END;
CREATE TRIGGER packs_changed AFTER UPDATE ON entries
BEGIN DELETE FROM packs WHERE session = old.session AND first <= old.n AND last >= old.n; END;
`

const (
	// minPackedEntries is how many entries must have been read one by one before a pack is made of them.
	minPackedEntries = 60
	// maxPackedBytesPerEntry is the largest text of a pack, in bytes for each of its entries. Reading longer entries takes
	// its time wherever they are, and a copy of them would take much room.
	maxPackedBytesPerEntry = 400
)

// readPacks returns the entries from a number on that are in packs, and the number of the first one after them.
func (s *logs) readPacks(ctx context.Context, session, from int64) (entries []sessions.Entry, next int64, err error) {
	found, err := s.queries.packs.QueryContext(ctx, session, from)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = found.Close() }() // found.Err has reported errors already
	next = from
	for found.Next() {
		var first, last int64
		var count int
		var text string
		if err := found.Scan(&first, &last, &count, &text); err != nil {
			return nil, 0, err
		}
		packed, ok, err := splitEntries(text, count)
		if err != nil {
			return nil, 0, err
		}
		if !ok || first > next || last < next {
			break // one was removed; the rest is read entry by entry, and packed again
		}
		for len(packed) > 0 && packed[0].N < next { // a summary covers them
			packed = packed[1:]
		}
		entries, next = append(entries, packed...), last+1
	}
	return entries, next, found.Err()
}

// pack makes a pack of the entries of a session from one number to another, all of whose turns are finished. It
// doesn't wait for that. It removes the packs that nobody reads anymore: those before the entry oldest, and those
// after a gap. If something is erased in the meantime, or the session with it, it makes none. It makes none either
// of entries that are all gone, because no trigger would ever remove that pack, and a later session may get this
// session's number. A lost pack is made by a later read.
func (s *logs) pack(l *log, oldest, from, to int64) {
	key, session, erasures := l.key, l.session, l.erasures // the log's holder changes the log
	s.db.Start(func(tx *sqldb.Tx) error {
		if _, err := tx.Exec("DELETE FROM packs WHERE session = ? AND (last < ? OR first >= ?)", session, oldest, from); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO packs (session, first, last, count, text) SELECT ?, ?, ?, * FROM ("+briefInOne+`) AS brief
			WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ? AND key = ? AND erasures = ? AND last >= ?)
				AND EXISTS (SELECT 1 FROM entries WHERE session = ? AND n BETWEEN ? AND ?)`,
			session, from, to, session, from, to, to, session, from, to, session, key, erasures, to, session, from, to)
		return err
	})
}

// withoutStale removes the entries that Peek does not return from those of packs, where they were still the newest,
// and of those after the packs. last is the number of the log's last entry.
func withoutStale(entries []sessions.Entry, last int64) []sessions.Entry {
	usage := int64(-1)
	for i := len(entries) - 1; i >= 0 && usage < 0; i-- {
		if e := &entries[i]; e.Kind == sessions.KindUsage && e.Turn != "" {
			usage = e.N
		}
	}
	return slices.DeleteFunc(entries, func(e sessions.Entry) bool {
		return e.Kind.IsProgressOnly() && e.Turn != "" && e.N != usage && e.N != last
	})
}
