package search

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
)

const (
	// One transaction of Fill indexes at most this many entries, bytes and sessions, so that writes wait for it
	// only for a few milliseconds.
	entriesPerWrite  = 64
	bytesPerWrite    = 256 << 10
	sessionsPerWrite = 20
	// Fill looks at all sessions once in fullScanInterval; at other times it looks at those that were used
	// recentPeriod.
	fullScanInterval = time.Hour
	recentPeriod     = 30 * time.Minute
	// mergeEvery is the number of added entries after which mergePending has PostgreSQL merge its list of pending
	// entries into the index.
	mergeEvery = 300
	// mergedPages is how many pages of the index SQLite writes in one transaction that merges parts of it.
	mergedPages = 16
	// pageOfSessions is how many sessions one statement looks at.
	pageOfSessions = 1000
)

// A filling records how far one process has searched for sessions whose entries are not all in the index. How
// far each session is indexed is stored in the tables.
type filling struct {
	mu             sync.Mutex
	nextBelow      int64     // the sessions with lower numbers have yet to be looked at; 0 for none
	scanStarted    time.Time // when it began to look at all sessions
	pendingEntries int       // how many entries PostgreSQL has put on the index's list of pending entries
	cutChecked     bool      // whether it was checked that this release has split the words of the index
	isMerged       bool      // whether SQLite has merged the parts of the index and nothing was added since
}

// A pendingSession is a session with entries that are not in the index, and the values that show whether it has
// changed.
type pendingSession struct {
	id, last, indexed, embedded, fence, erasures int64
	key                                          string
	lastRead                                     int64 // the last entry that rows or texts cover
	rows                                         []row
	texts                                        []entryText
	vectors                                      []vectors.Row // of the texts
}

const pendingColumns = "id, key, last, indexed, embedded, fence, erasures"

// Fill indexes some of the entries that are not in the index; see [Rebuilder]. It reads them and cuts
// their words before it writes. If meanwhile something was erased from a session, or another process has
// indexed the same entries or has taken over the session, it leaves that session for the next time. It
// reports whether there is more to do.
func (t *Table) Fill(ctx context.Context) (more bool, err error) {
	t.filling.mu.Lock()
	defer t.filling.mu.Unlock()
	if err := t.checkWordRules(ctx); err != nil {
		return false, fmt.Errorf("fill the index: %w", err)
	}
	more, err = t.eachIncomplete(ctx, &t.filling, "indexed < last", t.index)
	if err == nil && !more {
		if err = t.mergePending(ctx, mergeEvery*min(1, t.filling.pendingEntries)); err == nil {
			more, err = t.mergeParts(ctx)
		}
	}
	if err != nil {
		return false, fmt.Errorf("fill the index: %w", err)
	}
	return more, nil
}

// checkWordRules has the whole index filled again if another release has cut its words in a different way.
func (t *Table) checkWordRules(ctx context.Context) error {
	if t.filling.cutChecked {
		return nil
	}
	var cut int64
	if err := t.db.Read.QueryRowContext(ctx, "SELECT cut FROM word_cut").Scan(&cut); err != nil {
		return err
	}
	if cut != WordRules {
		if err := t.restartFill(ctx); err != nil {
			return err
		}
	}
	t.filling.cutChecked = true
	return nil
}

// eachIncomplete calls do with sessions that lack something: with those that were used lately and, unless these leave
// something to do, with a page of the others, the newest first. do returns for how many it has done something, and
// whether it has left something. walk reports whether there may be more, not counting what is said from now on: in a
// conversation without a pause, there is always more of that.
func (t *Table) eachIncomplete(ctx context.Context, at *filling, lack string, do func(context.Context, []pendingSession) (done int, left bool, err error)) (more bool, err error) {
	since := sqldb.FormatTime(time.Now().Add(-recentPeriod))[:len("2006-01-02T15:0")] // in the form of the column active
	recent, err := t.pending(ctx, "SELECT "+pendingColumns+" FROM sessions WHERE active >= ? AND "+lack+" ORDER BY active DESC LIMIT ?", since, sessionsPerWrite)
	if err != nil {
		return false, err
	}
	if n, left, err := do(ctx, recent); err != nil || n > 0 && (left || len(recent) == sessionsPerWrite) {
		return true, err
	}
	if now := time.Now(); now.Sub(at.scanStarted) > fullScanInterval {
		at.nextBelow, at.scanStarted = math.MaxInt64, now
	}
	for at.nextBelow > 0 {
		lowest, err := t.pageBelow(ctx, at.nextBelow)
		if err != nil {
			return false, err
		}
		of, err := t.pending(ctx, "SELECT "+pendingColumns+" FROM sessions WHERE id < ? AND id >= ? AND "+lack+" ORDER BY id DESC LIMIT ?", at.nextBelow, lowest, sessionsPerWrite)
		if err != nil {
			return false, err
		}
		n, left, err := do(ctx, of)
		if err != nil {
			return true, err
		}
		if n == 0 || n == len(of) && !left && n < sessionsPerWrite {
			at.nextBelow = lowest
		}
		if n > 0 {
			return at.nextBelow > 0, nil
		}
	}
	return false, nil
}

// pageBelow returns the lowest session number on the page of sessions below a number that one statement
// looks at; 0 if there are no more.
func (t *Table) pageBelow(ctx context.Context, before int64) (int64, error) {
	var lowest sql.NullInt64
	err := t.db.Read.QueryRowContext(ctx, "SELECT min(id) FROM (SELECT id FROM sessions WHERE id < ? ORDER BY id DESC LIMIT ?) AS page", before, pageOfSessions).Scan(&lowest)
	return lowest.Int64, err
}

// pending reads the sessions in a query's result.
func (t *Table) pending(ctx context.Context, query string, args ...any) (list []pendingSession, err error) {
	found, err := t.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var p pendingSession
		if err := found.Scan(&p.id, &p.key, &p.last, &p.indexed, &p.embedded, &p.fence, &p.erasures); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, found.Err()
}

// index indexes entries of sessions in one transaction. It returns the number of sessions for which it has indexed
// some, and whether it has left some of the entries that the sessions had.
func (t *Table) index(ctx context.Context, list []pendingSession) (done int, left bool, err error) {
	entries, bytes, n := entriesPerWrite, bytesPerWrite, 0
	for i := range list {
		if entries <= 0 || bytes <= 0 {
			break
		}
		read, size, err := t.readWords(ctx, &list[i], entries, bytes)
		if err != nil {
			return 0, false, err
		}
		entries, bytes, n = entries-read, bytes-size, n+1
		left = left || list[i].lastRead < list[i].last
	}
	left = left || n < len(list)
	if list, err = t.write(ctx, list[:n], t.put); err != nil || len(list) == 0 {
		return 0, false, err
	}
	t.filling.isMerged = false
	return len(list), left, t.mergePending(ctx, entriesPerWrite-entries)
}

// write calls put for each of the sessions in one transaction, and returns the sessions that put found
// unchanged, without the others.
func (t *Table) write(ctx context.Context, list []pendingSession, put func(*sqldb.Tx, *pendingSession) (still bool, err error)) (written []pendingSession, err error) {
	slices.SortFunc(list, func(a, b pendingSession) int { return cmp.Compare(a.id, b.id) }) // so that no two processes wait for each other
	for len(list) > 0 {
		changed := -1 // the index of a session that has changed
		err = t.db.Write(ctx, func(tx *sqldb.Tx) error {
			for i := range list {
				still, err := put(tx, &list[i])
				if changed = -1; err == nil && !still {
					changed, err = i, errChanged
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if !errors.Is(err, errChanged) {
			break
		}
		list, err = slices.Delete(list, changed, changed+1), nil // the others are written without it
	}
	return list, err
}

// errChanged says that a session has changed since its entries were read.
var errChanged = errors.New("the session has changed")

// mergePending makes PostgreSQL merge its list of pending entries into the index, once that is long. So
// that happens while no session is locked, and not during an insertion.
func (t *Table) mergePending(ctx context.Context, more int) error {
	if t.filling.pendingEntries += more; !t.db.IsPostgres() || t.filling.pendingEntries < mergeEvery {
		return nil
	}
	t.filling.pendingEntries = 0
	_, err := t.db.Exec(ctx, "SELECT gin_clean_pending_list('entry_words_words')")
	return err
}

// mergeParts has SQLite merge a few pages of the parts that the index consists of, and reports whether it has
// done so. Each transaction of Fill adds a part, and a search looks for each word in each part. SQLite itself
// merges them while it inserts, but only after every 64 pages, and then many at once.
func (t *Table) mergeParts(ctx context.Context) (more bool, err error) {
	if t.db.IsPostgres() || t.filling.isMerged {
		return false, nil
	}
	var before, after int64
	err = t.db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := tx.Get("SELECT total_changes()", nil, &before); err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO entry_words (entry_words, rank) VALUES ('merge', ?)", mergedPages); err != nil {
			return err
		}
		return tx.Get("SELECT total_changes()", nil, &after)
	})
	if err != nil {
		return false, fmt.Errorf("merge its parts: %w", err)
	}
	more = after-before > 1 // the insertion itself counts as one
	t.filling.isMerged = !more
	return more, nil
}

// readWords reads entries of a session that are not in the index and cuts their words. It returns how
// many entries and bytes it has read.
func (t *Table) readWords(ctx context.Context, p *pendingSession, most, mostBytes int) (read, size int, err error) {
	found, err := t.db.Read.QueryContext(ctx, "SELECT "+entryColumns+" FROM entries e WHERE e.session = ? AND e.n > ? AND e.n <= ? AND e.kind IN "+mayHaveWords+" ORDER BY e.n LIMIT ?",
		p.id, p.indexed, p.last, most)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	p.lastRead = p.last
	for found.Next() {
		_, e, err := scanEntry(found)
		if err != nil {
			return 0, 0, err
		}
		if words := wordsOf(e); words != "" && e.N < maxEntries {
			p.rows = append(p.rows, row{e.N, words})
		}
		read, size = read+1, size+len(e.Data)
		if read == most || size >= mostBytes {
			p.lastRead = e.N
			break
		}
	}
	return read, size, found.Err()
}

// put writes what readWords has read from a session, and returns whether the session is unchanged.
// Whoever erases something from a session locks its row first and changes one of these columns, or
// deletes the row. On PostgreSQL the row is locked last, so that an append only waits for the end of the
// transaction.
func (t *Table) put(tx *sqldb.Tx, p *pendingSession) (still bool, err error) {
	write := putSQLite
	if t.db.IsPostgres() {
		write = putPostgres
	}
	if err := write(tx, p.id, p.indexed+1, p.lastRead, p.rows); err != nil {
		return false, err
	}
	n, err := tx.Exec("UPDATE sessions SET indexed = ? WHERE id = ? AND key = ? AND indexed = ? AND fence = ? AND erasures = ?", p.lastRead, p.id, p.key, p.indexed, p.fence, p.erasures)
	return n > 0, err
}

// Rebuild has Fill index all entries again; see [Rebuilder].
func (t *Table) Rebuild(ctx context.Context) error {
	t.filling.mu.Lock()
	defer t.filling.mu.Unlock()
	if err := t.restartFill(ctx); err != nil {
		return fmt.Errorf("rebuild the index: %w", err)
	}
	return nil
}

// restartFill removes the index's rows for sessions that do not exist, and for numbers that they do not
// have, and has Fill replace the rest.
func (t *Table) restartFill(ctx context.Context) error {
	for from := int64(math.MaxInt64); from > 0; {
		held, err := t.sessionsInIndex(ctx, from, pageOfSessions)
		if err != nil {
			return err
		}
		if from = 0; len(held) == pageOfSessions {
			from = held[len(held)-1]
		}
		err = t.db.Write(ctx, func(tx *sqldb.Tx) error {
			for _, id := range held {
				if err := t.removeStray(tx, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for before := int64(math.MaxInt64); before > 0; {
		lowest, err := t.pageBelow(ctx, before)
		if err == nil {
			_, err = t.db.Exec(ctx, "UPDATE sessions SET indexed = 0 WHERE id < ? AND id >= ? AND indexed > 0", before, lowest)
		}
		if err != nil {
			return err
		}
		before = lowest
	}
	// If a process dies before this, the index is filled again from the beginning.
	if _, err := t.db.Exec(ctx, "UPDATE word_cut SET cut = ?", int64(WordRules)); err != nil {
		return err
	}
	t.filling.nextBelow, t.filling.scanStarted = math.MaxInt64, time.Now()
	return nil
}

// sessionsInIndex lists the sessions below a number that have rows in the index, from the highest number
// on.
func (t *Table) sessionsInIndex(ctx context.Context, below int64, limit int) (ids []int64, err error) {
	query := "SELECT id >> 28 FROM entry_words_docsize WHERE id < ? ORDER BY id DESC LIMIT 1"
	if t.db.IsPostgres() {
		query = "SELECT session FROM entry_words WHERE session < ? ORDER BY session DESC, n DESC LIMIT 1"
	}
	for len(ids) < limit {
		bound := below
		if !t.db.IsPostgres() && below < math.MaxInt64>>28 {
			bound = rowOf(below, 0)
		}
		var id int64
		err := t.db.Read.QueryRowContext(ctx, query, bound).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return ids, nil
		}
		if err != nil {
			return nil, err
		}
		ids, below = append(ids, id), id
	}
	return ids, nil
}

// removeStray removes the rows of a session that does not exist, and those after a session's last entry.
func (t *Table) removeStray(tx *sqldb.Tx, session int64) error {
	last := int64(0)
	err := tx.Get("SELECT last FROM sessions WHERE id = ?", []any{session}, &last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if t.db.IsPostgres() {
		_, err = tx.Exec("DELETE FROM entry_words WHERE session = ? AND n > ?", session, last)
	} else {
		_, err = tx.Exec("DELETE FROM entry_words WHERE rowid > ? AND rowid < ?", rowOf(session, last), rowOf(session+1, 0))
	}
	return err
}
