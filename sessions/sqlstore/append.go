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
	"parley/sessions/subscriptions"
)

// Append writes entries at their place; see [sessions.Log].
func (l *log) Append(ctx context.Context, at int64, entries ...sessions.Entry) error {
	_, err := l.AppendWith(ctx, at, bill.Change{}, entries...)
	return err
}

// AppendWith writes entries at their place and changes budgets in the same write; see
// [bill.Log].
func (l *log) AppendWith(ctx context.Context, at int64, c bill.Change, entries ...sessions.Entry) (bill.Changed, error) {
	return l.appendBy(ctx, l.logs.db.Write, at, c, nil, entries)
}

// A writeFunc is one of the database's ways of writing: at once, or soon.
type writeFunc func(context.Context, func(*sqldb.Tx) error) error

// appendBy appends entries, changes budgets and writes the shares of other components in one write, for
// which it uses the function write. If there are shares, that function must wait until the write is
// durable.
func (l *log) appendBy(ctx context.Context, write writeFunc, at int64, c bill.Change, shares []sqldb.Share, entries []sessions.Entry) (bill.Changed, error) {
	if len(entries) == 0 {
		return bill.Changed{}, nil
	}
	rows, err := rowsOf(at, entries)
	if err != nil {
		return bill.Changed{}, fmt.Errorf("append: %w", err)
	}
	done, err := l.write(ctx, write, rows, c, shares)
	if err == nil {
		err = done.refused
	}
	if err != nil {
		return bill.Changed{}, fmt.Errorf("append %d entries at %d: %w", len(entries), at, err)
	}
	l.state = done.state
	for i, r := range done.rows {
		entries[i].N = r.n
		if !entries[i].At.IsZero() {
			continue
		}
		if entries[i].At, err = r.time(); err != nil {
			return bill.Changed{}, fmt.Errorf("append: %w", err)
		}
	}
	l.logs.tokens.sweepAfter(c)
	l.logs.subscriptions.Added(done.eventCount)
	if len(l.state.counts) > 0 {
		l.state.counts = nil // so that they are not kept in memory as long as the log
		l.logs.activity.Sweep(time.Now())
	}
	return done.changed, nil
}

// write appends rows, changes budgets and writes shares. On PostgreSQL, where there are no shares, it
// first tries to do so in one statement. If that fails, it appends the rows without changing the budgets.
func (l *log) write(ctx context.Context, write writeFunc, rows []row, c bill.Change, shares []sqldb.Share) (appendOutcome, error) {
	postgres := l.logs.db.IsPostgres()
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
			done.changed, err = l.logs.tokens.changeIn(tx, c)
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
	now := sqldb.FormatTime(time.Now())
	rows := make([]row, len(entries))
	for i, e := range entries {
		var err error
		if rows[i], err = rowOf(at+int64(i), e, now); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// append writes rows at the end of the log, or finds out why it may not. It first assumes that the
// log is as this holder left it (known); the UPDATE in extend confirms that or changes nothing.
// Only if it does not is the session's row read, so that the usual append needs no read.
func (l *log) append(tx *sqldb.Tx, known state, fence int64, rows []row) (appendOutcome, error) {
	if known.fence <= fence && rows[0].n == known.lastEntry+1 {
		done, ok, err := l.extend(tx, known, fence, rows)
		if err != nil || ok {
			return done, err
		}
	}
	var st state
	var key string
	var erasures int64
	err := tx.Get("SELECT key, erasures, fence, last, summary, covers, unfinished, title FROM sessions WHERE id = ?"+lockRow(l.logs.db),
		[]any{l.session}, &key, &erasures, &st.fence, &st.lastEntry, &st.summary, &st.summaryCovers, &st.unfinished, &st.storedTitle)
	st.title = st.storedTitle
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return appendOutcome{refused: sessions.ErrConflict}, nil // it was erased
	case err != nil:
		return appendOutcome{}, err
	case st.fence > fence, st.fence < fence && known.fence == fence:
		return appendOutcome{refused: sessions.ErrFenced}, nil
	case st.fence < fence && (st.fence != known.fence || st.lastEntry != known.lastEntry || key != l.key || erasures != l.erasures):
		return appendOutcome{refused: sessions.ErrConflict}, nil // another holder has opened it since, or something was erased
	case st.fence == fence && rows[0].n >= 1 && rows[len(rows)-1].n <= st.lastEntry:
		// This may be the same append again, after the answer to its commit was lost.
		return l.acceptRepeated(tx, st, rows)
	case rows[0].n != st.lastEntry+1:
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
		return appendOutcome{refused: err}, true, nil // the data is not valid for its kind
	}
	unfinished, err := next.unfinished.text()
	if err != nil {
		return appendOutcome{}, false, err
	}
	// Fence and last in the condition make this the check and the lock in one: a
	// holder with an old fence, or one whose log has grown, changes no row. Where the
	// fence is raised, nothing may have been erased either; see Reopen.
	changed, err := tx.Exec(`
		UPDATE sessions SET fence = ?, last = ?, summary = ?, covers = ?, unfinished = ?, updated = ?,
			title = CASE WHEN CAST(? AS BIGINT) < 0 THEN title ELSE CAST(? AS BIGINT) END, named = CASE WHEN CAST(? AS BIGINT) < 0 THEN named ELSE '' END
		WHERE id = ? AND fence = ? AND last = ? AND (fence = ? OR key = ? AND erasures = ?)`,
		fence, next.lastEntry, next.summary, next.summaryCovers, unfinished, sqldb.FormatTime(time.Now()), next.newTitle(), next.newTitle(), next.newTitle(),
		l.session, st.fence, st.lastEntry, fence, l.key, l.erasures)
	next.fence, next.storedTitle = fence, next.title
	if err != nil || changed == 0 {
		return appendOutcome{}, false, err
	}
	if err := l.logs.activity.AddIn(tx, next.counts); err != nil {
		return appendOutcome{}, false, err
	}
	told, err := l.wantedEvents(rows)
	if err == nil {
		err = l.logs.subscriptions.AddIn(tx, told...)
	}
	if err != nil {
		return appendOutcome{}, false, err
	}
	return appendOutcome{state: next, rows: rows, eventCount: len(told)}, true, l.logs.insert(tx, l.session, rows)
}

// wantedEvents returns the events that rows are, as far as a subscriber wants them.
func (l *log) wantedEvents(rows []row) (told []subscriptions.Event, err error) {
	for _, r := range rows {
		e, ok, err := l.logs.subscriptions.InLog(l.key, subscriptions.Entry{Number: r.n, At: r.at, Kind: r.kind, Turn: r.turn, Cause: r.cause, Call: r.call, Data: r.data})
		if err != nil {
			return nil, err
		}
		if ok {
			told = append(told, e)
		}
	}
	return told, nil
}

// findSeen looks for a cause among rows that the session already knows, or that two of the rows have in common.
// Causes of erased entries count as known. It returns nil if there is none.
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

// acceptRepeated accepts rows that are in the log already, because an earlier append wrote them, and refuses
// all others with ErrConflict.
func (l *log) acceptRepeated(tx *sqldb.Tx, st state, rows []row) (appendOutcome, error) {
	found, err := tx.Query("SELECT "+entryColumns+" FROM entries WHERE session = ? AND n >= ? AND n <= ? ORDER BY n",
		l.session, rows[0].n, rows[len(rows)-1].n)
	if err != nil {
		return appendOutcome{}, err
	}
	stored, err := scanRows(found, nil, func(r *row) (row, error) { return *r, nil })
	if err != nil {
		return appendOutcome{}, err
	}
	if !slices.EqualFunc(rows, stored, func(a, b row) bool { return a.equals(&b) }) {
		return appendOutcome{refused: sessions.ErrConflict}, nil
	}
	return appendOutcome{state: st, rows: stored}, nil
}

// insert writes rows, several in one statement.
func (s *logs) insert(tx *sqldb.Tx, session int64, rows []row) error {
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

// writeShares writes the shares of other components in a transaction. An error undoes it.
func writeShares(tx *sqldb.Tx, shares []sqldb.Share) error {
	for _, s := range shares {
		refused, err := s.Write(tx)
		if refused != nil {
			err = fmt.Errorf("%w: %w", sessions.ErrUnpublished, refused)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endShares tells other components whether what they have written is durable.
func endShares(shares []sqldb.Share, durable bool) {
	for _, s := range shares {
		s.End(durable)
	}
}
