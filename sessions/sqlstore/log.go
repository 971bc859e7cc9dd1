package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

var _ interface {
	bill.Log
	sessions.Publisher
	sessions.Reopener
	sessions.SoonLog
} = (*log)(nil)

// A log is a session's log, opened under one fence, for one caller at a time.
type log struct {
	store    *Store
	key      string
	session  int64
	fence    int64 // that of the holder; the session's row has a lower one until the first append after ReopenLater
	erasures int64 // the session's count of erasures when the log was opened
	entries  []sessions.Entry
	state    state // what the session's row said after this holder's last append
}

// raises reports whether the next append has to raise the session's fence.
func (l *log) raises() bool { return l.state.fence != l.fence }

// Entries returns the entries that Open has read, until they are released; see
// [sessions.Log].
func (l *log) Entries() []sessions.Entry { return l.entries }

// Next returns the number of the next entry.
func (l *log) Next() int64 { return l.state.last + 1 }

// Append writes entries at their place; see [sessions.Log].
func (l *log) Append(ctx context.Context, at int64, entries ...sessions.Entry) error {
	_, err := l.AppendWith(ctx, at, bill.Change{}, entries...)
	return err
}

// AppendWith writes entries at their place and changes budgets in the same write; see
// [bill.Log].
func (l *log) AppendWith(ctx context.Context, at int64, c bill.Change, entries ...sessions.Entry) (bill.Done, error) {
	return l.appendBy(ctx, l.store.db.Write, at, c, nil, entries)
}

// Soon returns the same log, whose writes share a flush; see [sessions.SoonLog].
func (l *log) Soon(within time.Duration) sessions.Log { return soonLog{l, within} }

// A soonLog is a log whose appends may return before their entries are durable; these become durable
// within the time that was given.
type soonLog struct {
	*log
	within time.Duration
}

// Append does what the log's Append does, but may return before the entries are durable.
func (l soonLog) Append(ctx context.Context, at int64, entries ...sessions.Entry) error {
	_, err := l.AppendWith(ctx, at, bill.Change{}, entries...)
	return err
}

// AppendWith does what the log's AppendWith does, but may return before the entries are durable.
func (l soonLog) AppendWith(ctx context.Context, at int64, c bill.Change, entries ...sessions.Entry) (bill.Done, error) {
	soon := func(ctx context.Context, fn func(*sqldb.Tx) error) error { return l.store.db.Soon(ctx, l.within, fn) }
	return l.appendBy(ctx, soon, at, c, nil, entries)
}

// A writeFunc is one of the database's ways to write: at once, or soon.
type writeFunc func(context.Context, func(*sqldb.Tx) error) error

// appendBy appends entries, changes budgets and writes the shares of others in one write, which the
// function write carries out. With shares, that function must wait until the write is durable.
func (l *log) appendBy(ctx context.Context, write writeFunc, at int64, c bill.Change, shares []sqldb.Share, entries []sessions.Entry) (bill.Done, error) {
	if len(entries) == 0 {
		return bill.Done{}, nil
	}
	rows, err := rowsOf(at, entries)
	if err != nil {
		return bill.Done{}, fmt.Errorf("append: %w", err)
	}
	done, err := l.write(ctx, write, rows, c, shares)
	if err == nil {
		err = done.refused
	}
	if err != nil {
		return bill.Done{}, fmt.Errorf("append %d entries at %d: %w", len(entries), at, err)
	}
	l.state = done.state
	for i, r := range done.rows {
		entries[i].N = r.n
		if !entries[i].At.IsZero() {
			continue
		}
		if entries[i].At, err = r.time(); err != nil {
			return bill.Done{}, fmt.Errorf("append: %w", err)
		}
	}
	l.store.sweepAfter(c)
	return done.changed, nil
}

// write appends rows, changes budgets and writes shares. On PostgreSQL, where there are no shares,
// it first tries to do so in one statement; if that fails, it appends the rows without changing the
// budgets.
func (l *log) write(ctx context.Context, write writeFunc, rows []row, c bill.Change, shares []sqldb.Share) (appendOutcome, error) {
	postgres := l.store.db.Postgres()
	if postgres {
		done, known, err := l.extendAtOnce(ctx, rows, c)
		if err != nil || known {
			return done, err
		}
	}
	var last atomic.Pointer[appendOutcome] // the function may run again when write has returned
	st, fence := l.state, l.fence
	err := write(ctx, func(tx *sqldb.Tx) error {
		done, err := l.append(tx, st, fence, rows)
		if err == nil && done.refused == nil && !postgres {
			done.changed, err = l.store.changeIn(tx, c)
		}
		if err == nil && done.refused == nil {
			err = writeShares(tx, shares)
		}
		last.Store(&done)
		return err
	})
	var done appendOutcome
	if ran := last.Load(); ran != nil {
		done = *ran
	}
	endShares(shares, err == nil && done.refused == nil)
	return done, err
}

// rowsOf converts entries, the first of which gets the number at, into rows.
func rowsOf(at int64, entries []sessions.Entry) ([]row, error) {
	now := formatTime(time.Now())
	rows := make([]row, len(entries))
	for i, e := range entries {
		var err error
		if rows[i], err = rowOf(at+int64(i), e, now); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// appendOutcome is the outcome of an append.
type appendOutcome struct {
	refused error // why nothing was written, such as a higher fence; unlike after a failure, another try would not help
	state   state // the log's state afterwards
	rows    []row // the entries as the log has them
	changed bill.Done
}

// append writes rows at the end of the log, or finds out why it may not. It first assumes that the
// log is as this holder left it (known); the UPDATE in extend confirms that or changes nothing.
// Only if it does not is the session's row read, so that the usual append needs no read.
func (l *log) append(tx *sqldb.Tx, known state, fence int64, rows []row) (appendOutcome, error) {
	if known.fence <= fence && rows[0].n == known.last+1 {
		done, ok, err := l.extend(tx, known, fence, rows)
		if err != nil || ok {
			return done, err
		}
	}
	var st state
	var key string
	var erasures int64
	err := tx.Get("SELECT key, erasures, fence, last, summary, covers, unfinished FROM sessions WHERE id = ?"+l.store.lockSession(),
		[]any{l.session}, &key, &erasures, &st.fence, &st.last, &st.summary, &st.covers, &st.unfinished)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return appendOutcome{refused: sessions.ErrConflict}, nil // it was erased
	case err != nil:
		return appendOutcome{}, err
	case st.fence > fence, st.fence < fence && known.fence == fence:
		return appendOutcome{refused: sessions.ErrFenced}, nil
	case st.fence < fence && (st.fence != known.fence || st.last != known.last || key != l.key || erasures != l.erasures):
		return appendOutcome{refused: sessions.ErrConflict}, nil // another has held it since, or something was erased
	case st.fence == fence && rows[0].n >= 1 && rows[len(rows)-1].n <= st.last:
		// This may be the same append again, after the answer to its commit was lost.
		return l.acceptRepeated(tx, st, rows)
	case rows[0].n != st.last+1:
		return appendOutcome{refused: sessions.ErrConflict}, nil
	}
	done, ok, err := l.extend(tx, st, fence, rows)
	if !ok && done.refused == nil {
		done.refused = sessions.ErrConflict
	}
	return done, err
}

// extend writes rows at the end of a log if its state is st and their causes are
// new, and stores the holder's fence. It returns false if it wrote nothing, because st is
// out of date or a cause is known.
func (l *log) extend(tx *sqldb.Tx, st state, fence int64, rows []row) (appendOutcome, bool, error) {
	switch seen, err := l.findSeen(tx, rows); {
	case err != nil:
		return appendOutcome{}, false, err
	case seen != nil:
		return appendOutcome{refused: seen}, false, nil
	}
	next, err := st.afterAppend(rows)
	if err != nil {
		return appendOutcome{refused: err}, true, nil // the data is not what its kind promises
	}
	unfinished, err := next.unfinished.text()
	if err != nil {
		return appendOutcome{}, false, err
	}
	// Fence and last in the condition make this the check and the lock in one: a
	// holder with an old fence, or one whose log has grown, changes no row. Where the
	// fence is raised, nothing may have been erased either; see Reopen.
	changed, err := tx.Exec(`
		UPDATE sessions SET fence = ?, last = ?, summary = ?, covers = ?, unfinished = ?, updated = ?
		WHERE id = ? AND fence = ? AND last = ? AND (fence = ? OR key = ? AND erasures = ?)`,
		fence, next.last, next.summary, next.covers, unfinished, formatTime(time.Now()),
		l.session, st.fence, st.last, fence, l.key, l.erasures)
	next.fence = fence
	if err != nil || changed == 0 {
		return appendOutcome{}, false, err
	}
	return appendOutcome{state: next, rows: rows}, true, l.store.insert(tx, l.session, rows)
}

// findSeen looks for a cause among rows that the session knows already, or that two of the rows
// have. Causes of erased entries count as known. It returns nil if there is none.
func (l *log) findSeen(tx *sqldb.Tx, rows []row) (*sessions.SeenError, error) {
	for i, r := range rows {
		if r.cause == "" {
			continue
		}
		var by string
		if j := slices.IndexFunc(rows[:i], func(o row) bool { return o.cause == r.cause }); j >= 0 {
			by = rows[j].turn
		} else {
			// "cause <> ''" repeats the condition of the partial index, which is not
			// used without it.
			err := tx.Get(`SELECT turn FROM entries WHERE session = ? AND cause = ? AND cause <> ''
				UNION ALL SELECT turn FROM erased WHERE key = ? AND cause = ?`,
				[]any{l.session, r.cause, l.key, r.cause}, &by)
			if errors.Is(err, sql.ErrNoRows) {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		return &sessions.SeenError{Cause: sqldb.Untext(r.cause), Turn: sqldb.Untext(by)}, nil
	}
	return nil, nil
}

// acceptRepeated accepts rows that are in the log already, as those of a repeated append,
// and refuses others with ErrConflict.
func (l *log) acceptRepeated(tx *sqldb.Tx, st state, rows []row) (appendOutcome, error) {
	found, err := tx.Query("SELECT "+columns+" FROM entries WHERE session = ? AND n >= ? AND n <= ? ORDER BY n",
		l.session, rows[0].n, rows[len(rows)-1].n)
	if err != nil {
		return appendOutcome{}, err
	}
	stored, err := scanRows(found, nil, func(r row) (row, error) { return r, nil })
	if err != nil {
		return appendOutcome{}, err
	}
	if !slices.EqualFunc(rows, stored, func(a, b row) bool { return a.same(&b) }) {
		return appendOutcome{refused: sessions.ErrConflict}, nil
	}
	return appendOutcome{state: st, rows: stored}, nil
}

// insert writes rows, several in one statement.
func (s *Store) insert(tx *sqldb.Tx, session int64, rows []row) error {
	for chunk := range slices.Chunk(rows, maxInsert) {
		args := make([]any, 0, 9*len(chunk))
		for _, r := range chunk {
			args = append(args, session, r.n, r.turn, r.kind, r.at, r.cause, r.person, r.call, r.data)
		}
		if _, err := tx.Exec(s.inserts[len(chunk)], args...); err != nil {
			return err
		}
	}
	return nil
}

// Release removes the entries from memory; see [sessions.Reopener].
func (l *log) Release() { l.entries = nil }

// Reopen raises the session's fence if the log is as this holder has left it; see
// [sessions.Reopener]. All of the condition is in the session's row: on PostgreSQL an
// UPDATE that has waited for another transaction sees that row as it is then, and
// everything else as it was before. The number of a row that was deleted may be given
// again, but not together with the key and the fence.
func (l *log) Reopen(ctx context.Context, fence int64) (bool, error) {
	if fence < l.fence {
		return false, fmt.Errorf("reopen session %s: %w", l.key, sessions.ErrFenced)
	}
	changed, err := l.raise(ctx, `
		UPDATE sessions SET fence = ? WHERE id = ? AND key = ? AND fence = ? AND last = ? AND erasures = ?`,
		fence, l.session, l.key, l.state.fence, l.state.last, l.erasures)
	if err != nil {
		return false, fmt.Errorf("reopen session %s: %w", l.key, err)
	}
	if changed > 0 {
		l.fence, l.state.fence = fence, fence
	}
	return changed > 0, nil
}

// ReopenLater has the next append raise the session's fence; see [sessions.Reopener].
func (l *log) ReopenLater(fence int64) error {
	if fence < l.fence {
		return fmt.Errorf("reopen session %s: %w", l.key, sessions.ErrFenced)
	}
	l.fence = fence
	return nil
}

// raise carries out the statement with which Reopen raises a fence, and returns how many rows it
// has changed. On SQLite it shares the disk flush of the turn's beginning: a crash that loses it
// ends all holders, too.
func (l *log) raise(ctx context.Context, query string, args ...any) (int64, error) {
	db := l.store.db
	if db.Postgres() {
		return db.Group(ctx, query, args)
	}
	var changed atomic.Int64 // the function may run again when Soon has returned
	err := db.Soon(ctx, reserveWithin, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(query, args...)
		changed.Store(n)
		return err
	})
	return changed.Load(), err
}
