package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

// SQLite runs several statements of a transaction at little cost. On PostgreSQL each is a round trip
// during which a session's row stays locked, so there one statement does everything.

// extendLogStatement begins the statement that appends entries. It updates a session's row, if the log
// is as its holder left it and none of the causes is known; then putEntries inserts the
// entries. An UPDATE that waited for the row's lock sees the row as the other transaction
// left it, so fence and last decide correctly.
const extendLogStatement = `
WITH moved AS (
	UPDATE sessions SET last = $1, summary = $2, covers = $3, unfinished = $4, updated = $5,
		title = CASE WHEN $17::bigint < 0 THEN title ELSE $17::bigint END, named = CASE WHEN $17::bigint < 0 THEN named ELSE '' END
	WHERE id = $6 AND fence = $7 AND last = $8`

// raiseFenceStatement replaces extendLogStatement if the append raises the fence. For the same reason, all that it checks to see
// whether the log is as its last holder left it is in the session's row.
const raiseFenceStatement = `
WITH moved AS (
	UPDATE sessions SET last = $1, summary = $2, covers = $3, unfinished = $4, updated = $5,
		title = CASE WHEN $17::bigint < 0 THEN title ELSE $17::bigint END, named = CASE WHEN $17::bigint < 0 THEN named ELSE '' END, fence = $18
	WHERE id = $6 AND fence = $7 AND last = $8 AND erasures = $19 AND key = $20`

const returningSession = `
	RETURNING id
)`

// unlessCauseSeen and unlessAnyCauseSeen are the parts of extendLogStatement that look for one cause, and for several. Most
// appends have no cause. For several, PostgreSQL may read all entries of the session, if it planned the
// statement when there were few.
const (
	unlessCauseSeen = ` AND NOT EXISTS (
		SELECT 1 FROM entries e WHERE e.session = $6 AND e.cause = $%[1]d AND e.cause <> ''
		UNION ALL SELECT 1 FROM erased x WHERE x.key = sessions.key AND x.cause = $%[1]d)`
	unlessAnyCauseSeen = ` AND NOT EXISTS (
		SELECT 1 FROM entries e WHERE e.session = $6 AND e.cause = ANY($12::text[]) AND e.cause <> ''
		UNION ALL SELECT 1 FROM erased x WHERE x.key = sessions.key AND x.cause = ANY($12::text[]))`
)

// extendStatement returns extendLogStatement, or raiseFenceStatement, for entries with these causes, and its arguments: the 17 in
// args, followed by those that only this form of it has.
func (l *log) extendStatement(causes []string, args []any) (string, []any) {
	text := extendLogStatement
	if l.raisesFence() {
		text, args = raiseFenceStatement, append(args, l.fence, l.erasures, l.key)
	}
	var named []any
	for _, c := range causes {
		if c != "" {
			named = append(named, c)
		}
	}
	switch len(named) {
	case 0:
		return text + returningSession, args
	case 1:
		return text + fmt.Sprintf(unlessCauseSeen, len(args)+1) + returningSession, append(args, named...)
	}
	return text + unlessAnyCauseSeen + returningSession, args
}

const putEntries = `
INSERT INTO entries (session, n, turn, kind, at, cause, person, call, data)
SELECT moved.id, new.* FROM moved, unnest($9::bigint[], $10::text[], $11::text[], $16::text[], $12::text[], $13::text[], $14::text[], $15::text[])
	AS new (n, turn, kind, at, cause, person, call, data)`

// extendAtOnce appends rows and changes budgets in one statement. If it returns false, nothing was written,
// and append finds out why.
func (l *log) extendAtOnce(ctx context.Context, rows []row, c bill.Change) (appendOutcome, bool, error) {
	if rows[0].n != l.state.lastEntry+1 || hasRepeatedCause(rows) {
		return appendOutcome{}, false, nil
	}
	next, err := l.state.afterAppend(rows)
	if err != nil {
		return appendOutcome{refused: err}, true, nil // the data is not valid for its kind
	}
	unfinished, err := next.unfinished.text()
	if err != nil {
		return appendOutcome{}, false, err
	}
	numbers := make([]int64, len(rows))
	var turns, kinds, causes, people, calls, data, times []string
	for i, r := range rows {
		numbers[i] = r.n
		turns, kinds, causes = append(turns, r.turn), append(kinds, r.kind), append(causes, r.cause)
		people, calls, data, times = append(people, r.person), append(calls, r.call), append(data, r.data), append(times, r.at)
	}
	args := []any{
		next.lastEntry, next.summary, next.summaryCovers, unfinished, sqldb.FormatTime(time.Now()), l.session, l.state.fence, l.state.lastEntry,
		numbers, turns, kinds, causes, people, calls, data, times, next.newTitle(),
	}
	next.fence, next.storedTitle = l.fence, next.title
	done := appendOutcome{state: next, rows: rows}
	moved, args := l.extendStatement(causes, args)
	noted, counted, err := l.logs.activity.Clause(next.counts, len(args)+1)
	if err != nil {
		return appendOutcome{}, false, err
	}
	moved, args = moved+noted, append(args, counted...)
	told, err := l.wantedEvents(rows)
	if err != nil {
		return appendOutcome{}, false, err
	}
	recorded, more, err := l.logs.subscriptions.Clause("moved", told, len(args)+1)
	if err != nil {
		return appendOutcome{}, false, err
	}
	moved, args, done.eventCount = moved+recorded, append(args, more...), len(told)
	also := l.turnStartQuery(rows)
	var changed int64
	if c.Tokens == nil && c.Money == nil && also.Query == nil {
		changed, err = l.logs.db.Group(ctx, moved+putEntries, args)
	} else {
		changed, done.changed, err = l.logs.appendWithAtOnce(ctx, moved, args, c, also)
	}
	return done, changed > 0, err
}

// turnStartQuery returns the query to run in the same statement as an append of rows; the zero
// TurnStartQuery if they don't begin a turn, or nothing is to be queried then.
func (l *log) turnStartQuery(rows []row) (q TurnStartQuery) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.kind == string(sessions.KindTurnStarted) })
	if l.logs.queryAtStart == nil || i < 0 {
		return q
	}
	if started, err := rows[i].toEntry(); err == nil {
		q, _ = l.logs.queryAtStart(l.key, started)
	}
	return q
}

// appendWithAtOnce runs one statement that begins with text: it appends entries, changes budgets and runs
// a query, unless that is zero. It returns how many entries it has written, and what was changed.
func (s *logs) appendWithAtOnce(ctx context.Context, text string, args []any, c bill.Change, also TurnStartQuery) (written int64, done bill.Changed, err error) {
	row := ""
	tokens, money := "FALSE", "FALSE"
	if c.Tokens != nil {
		clause := tokensClause(c, len(args)+1)
		text, args, row = text+clause.Text, append(args, clause.Args...), sqldb.Text(c.Tokens.Person)
		tokens = "EXISTS (SELECT 1 FROM made)"
	}
	if c.Money != nil {
		clause, err := s.tokens.money.Clause(c, len(args)+1)
		if err != nil {
			return 0, done, err
		}
		text, args = text+clause.Text, append(args, clause.Args...)
		money = "EXISTS (SELECT 1 FROM charged)"
	}
	text += ", put AS (" + putEntries + "\nRETURNING 1)\nSELECT (SELECT count(*) FROM put), " + tokens + ", " + money
	dest := []any{&written, &done.Tokens, &done.Money}
	var found string
	if also.Query != nil {
		query, more := also.Query(len(args) + 1)
		text, args, dest = text+", coalesce(("+query+"), '')", append(args, more...), append(dest, &found)
	}
	_, err = s.db.Shared(ctx, row, text, args, dest...)
	if err == nil && written > 0 && also.Query != nil {
		also.Result(found)
	}
	if c.IsSettlement { // a reservation that did not exist counts as settled, too
		done = bill.Changed{Tokens: c.Tokens != nil, Money: c.Money != nil}
	}
	return written, done, err
}

// hasRepeatedCause reports whether two of the rows have the same cause.
func hasRepeatedCause(rows []row) bool {
	for i, r := range rows {
		if r.cause != "" && slices.ContainsFunc(rows[:i], func(o row) bool { return o.cause == r.cause }) {
			return true
		}
	}
	return false
}
