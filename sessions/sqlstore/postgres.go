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

// This file holds the statements that differ on PostgreSQL. SQLite runs several
// statements of a transaction at little cost. On PostgreSQL each is a round trip during
// which a session's row stays locked, so there one statement does everything.

// usagePostgres leaves out documents with an escaped NUL: PostgreSQL stores them as
// text but cannot read them as JSON.
const usagePostgres = `
CREATE VIEW usage AS
SELECT s.key                         AS session,
       e.person                      AS person,
       coalesce(d ->> 'agent', '')   AS agent,
       coalesce(d ->> 'model', '')   AS model,
       substr(e.at, 1, 10)           AS day,
       count(*)                      AS calls,
       coalesce(sum((d ->> 'input')::bigint), 0)      AS input,
       coalesce(sum((d ->> 'cached')::bigint), 0)     AS cached,
       coalesce(sum((d ->> 'output')::bigint), 0)     AS output,
       count(*) FILTER (WHERE d ->> 'estimated' = 'true') AS estimated
FROM entries e JOIN sessions s ON s.id = e.session,
     LATERAL (SELECT CASE WHEN position('\u0000' IN e.data) = 0 THEN e.data::json END AS d) AS doc
WHERE e.kind = 'usage' AND e.data <> ''
GROUP BY 1, 2, 3, 4, 5;
`

// lockSession returns the end of a SELECT that locks a session's row: the reader waits
// for those who change the row, and keeps them out until its transaction ends. SQLite
// needs none, as it has only one writer.
func (s *Store) lockSession() string {
	if s.db.Postgres() {
		return " FOR UPDATE"
	}
	return ""
}

// checkTombstone looks again for the tombstone of a session that Open has just created.
// Open's INSERT may have waited while the same session was being erased, and had looked
// for the tombstone before there was one. Such a session is deleted again, and
// checkTombstone returns ErrFenced. An erasure that begins later finds the session that
// Open has created.
func (s *Store) checkTombstone(ctx context.Context, l *log, key string) error {
	if !s.db.Postgres() || l.state.last > 0 {
		return nil
	}
	var buried bool
	err := s.queries.tombstone.QueryRowContext(ctx, key, l.fence).Scan(&buried)
	if err != nil || !buried {
		return err
	}
	if _, err := s.db.Exec(ctx, "DELETE FROM sessions WHERE id = ? AND fence = ? AND last = 0", l.session, l.fence); err != nil {
		return err
	}
	return sessions.ErrFenced
}

// moveLog begins the statement that appends entries. It updates a session's row, if the log
// is as its holder left it and none of the causes is known; then putEntries inserts the
// entries. An UPDATE that waited for the row's lock sees the row as the other transaction
// left it, so fence and last decide correctly.
const moveLog = `
WITH moved AS (
	UPDATE sessions SET last = $1, summary = $2, covers = $3, unfinished = $4, updated = $5
	WHERE id = $6 AND fence = $7 AND last = $8`

// raiseLog begins it where the append raises the fence. All that tells whether the log is as its
// last holder left it is in the session's row, for the same reason.
const raiseLog = `
WITH moved AS (
	UPDATE sessions SET last = $1, summary = $2, covers = $3, unfinished = $4, updated = $5, fence = $17
	WHERE id = $6 AND fence = $7 AND last = $8 AND erasures = $18 AND key = $19`

const returnMoved = `
	RETURNING id
)`

// unlessSeen and unlessAnySeen are the part of moveLog that looks for a cause, and for
// several. Most appends have none. For several PostgreSQL may read all entries of the
// session, if it has planned the statement while there were few.
const (
	unlessSeen = ` AND NOT EXISTS (
		SELECT 1 FROM entries e WHERE e.session = $6 AND e.cause = $%[1]d AND e.cause <> ''
		UNION ALL SELECT 1 FROM erased x WHERE x.key = sessions.key AND x.cause = $%[1]d)`
	unlessAnySeen = ` AND NOT EXISTS (
		SELECT 1 FROM entries e WHERE e.session = $6 AND e.cause = ANY($12::text[]) AND e.cause <> ''
		UNION ALL SELECT 1 FROM erased x WHERE x.key = sessions.key AND x.cause = ANY($12::text[]))`
)

// moveUnlessSeen returns moveLog, or raiseLog, for entries with these causes, and its arguments: the
// first 16 and those that it has more.
func (l *log) moveUnlessSeen(causes []string, args []any) (string, []any) {
	text := moveLog
	if l.raises() {
		text, args = raiseLog, append(args, l.fence, l.erasures, l.key)
	}
	var named []any
	for _, c := range causes {
		if c != "" {
			named = append(named, c)
		}
	}
	switch len(named) {
	case 0:
		return text + returnMoved, args
	case 1:
		return text + fmt.Sprintf(unlessSeen, len(args)+1) + returnMoved, append(args, named...)
	}
	return text + unlessAnySeen + returnMoved, args
}

const putEntries = `
INSERT INTO entries (session, n, turn, kind, at, cause, person, call, data)
SELECT moved.id, new.* FROM moved, unnest($9::bigint[], $10::text[], $11::text[], $16::text[], $12::text[], $13::text[], $14::text[], $15::text[])
	AS new (n, turn, kind, at, cause, person, call, data)`

// extendAtOnce appends rows and changes budgets in one statement. If it returns false, nothing was written,
// and append finds out why.
func (l *log) extendAtOnce(ctx context.Context, rows []row, c bill.Change) (appendOutcome, bool, error) {
	if rows[0].n != l.state.last+1 || hasRepeatedCause(rows) {
		return appendOutcome{}, false, nil
	}
	next, err := l.state.afterAppend(rows)
	if err != nil {
		return appendOutcome{refused: err}, true, nil // the data is not what its kind promises
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
		next.last, next.summary, next.covers, unfinished, formatTime(time.Now()), l.session, l.state.fence, l.state.last,
		numbers, turns, kinds, causes, people, calls, data, times,
	}
	next.fence = l.fence
	done := appendOutcome{state: next, rows: rows}
	moved, args := l.moveUnlessSeen(causes, args)
	asked := l.questionBeside(rows)
	var changed int64
	if c.Tokens == nil && c.Money == nil && asked.Query == nil {
		changed, err = l.store.db.Group(ctx, moved+putEntries, args)
	} else {
		changed, done.changed, err = l.store.appendWithAtOnce(ctx, moved, args, c, asked)
	}
	return done, changed > 0, err
}

// A Question is asked in the statement that begins a turn, so that it costs no statement of its own.
type Question struct {
	// Query returns a query of tables in the same database, which finds one text or NULL. Its
	// arguments are numbered from first on.
	Query func(first int) (query string, args []any)
	// Answer is called with what it has found, "" for NULL, once the turn has begun. It may not be
	// called although the turn has begun.
	Answer func(text string)
}

// AskBeside sets the function that returns the question to be asked when a turn of a session begins,
// by the first entry of that turn; false for none. On SQLite nothing is asked. It must be called
// before the first session is opened.
func (s *Store) AskBeside(ask func(session string, started sessions.Entry) (Question, bool)) {
	s.ask = ask
}

// questionBeside returns what to ask beside an append of rows, the zero Question for nothing.
func (l *log) questionBeside(rows []row) (q Question) {
	i := slices.IndexFunc(rows, func(r row) bool { return r.kind == string(sessions.KindTurnStarted) })
	if l.store.ask == nil || i < 0 {
		return q
	}
	if started, err := rows[i].toEntry(); err == nil {
		q, _ = l.store.ask(l.key, started)
	}
	return q
}

// appendWithAtOnce appends entries by a statement that begins with text, changes budgets and asks a
// question. It returns how many entries it has written, and what was changed.
func (s *Store) appendWithAtOnce(ctx context.Context, text string, args []any, c bill.Change, asked Question) (written int64, done bill.Done, err error) {
	row := ""
	tokens, money := "FALSE", "FALSE"
	if c.Tokens != nil {
		clause := tokensClause(c, len(args)+1)
		text, args, row = text+clause.Text, append(args, clause.Args...), sqldb.Text(c.Tokens.Person)
		tokens = "EXISTS (SELECT 1 FROM made)"
	}
	if c.Money != nil {
		clause, err := s.money.Clause(c, len(args)+1)
		if err != nil {
			return 0, done, err
		}
		text, args = text+clause.Text, append(args, clause.Args...)
		money = "EXISTS (SELECT 1 FROM charged)"
	}
	text += ", put AS (" + putEntries + "\nRETURNING 1)\nSELECT (SELECT count(*) FROM put), " + tokens + ", " + money
	dest := []any{&written, &done.Tokens, &done.Money}
	var found string
	if asked.Query != nil {
		query, more := asked.Query(len(args) + 1)
		text, args, dest = text+", coalesce(("+query+"), '')", append(args, more...), append(dest, &found)
	}
	_, err = s.db.Shared(ctx, row, text, args, dest...)
	if err == nil && written > 0 && asked.Query != nil {
		asked.Answer(found)
	}
	if c.Settle { // what was not there is settled, too
		done = bill.Done{Tokens: c.Tokens != nil, Money: c.Money != nil}
	}
	return written, done, err
}

// tokensClause returns the part of a change that is about tokens, as queries for the WITH of a
// statement; [bill.Budget.Clause] does the same for money.
func tokensClause(c bill.Change, first int) bill.Clause {
	r := c.Tokens
	id := sqldb.Text(r.ID)
	if c.Settle {
		return bill.Clause{Text: fmt.Sprintf(settleClause, first, first+1), Args: []any{id, bounded(c.Used)}}
	}
	return bill.Clause{
		Text: fmt.Sprintf(reserveClause, first, first+1, first+2, first+3, first+4),
		Args: []any{id, sqldb.Text(r.Person), formatDay(r.At), r.Tokens, roomFor(*r)},
	}
}

// settleClause does what the statement settleAtOnce does, as a part of another statement.
const settleClause = `, made AS (
	UPDATE reservations r SET settled = TRUE, tokens = $%[2]d::bigint FROM reservations before, moved
	WHERE r.id = $%[1]d AND before.id = $%[1]d AND NOT r.settled
	RETURNING r.person, r.day, before.tokens
), paid AS (
	UPDATE spending SET tokens = spending.tokens + $%[2]d::bigint - made.tokens
	FROM made WHERE spending.person = made.person AND spending.day = made.day
)`

// reserveClause does what the statement reserveAtOnce does, as a part of another statement.
const reserveClause = `, paid AS (
	INSERT INTO spending (person, day, tokens)
	SELECT $%[2]d, $%[3]d, $%[4]d::bigint FROM moved
	WHERE $%[5]d::bigint >= 0 AND NOT EXISTS (SELECT 1 FROM reservations WHERE id = $%[1]d)
	ON CONFLICT (person, day) DO UPDATE SET tokens = spending.tokens + excluded.tokens
	WHERE spending.tokens <= $%[5]d
	RETURNING person, day
), made AS (
	INSERT INTO reservations (id, person, day, tokens, settled)
	SELECT $%[1]d, person, day, $%[4]d, FALSE FROM paid
	RETURNING 1
)`

// hasRepeatedCause reports whether two of the rows have the same cause.
func hasRepeatedCause(rows []row) bool {
	for i, r := range rows {
		if r.cause != "" && slices.ContainsFunc(rows[:i], func(o row) bool { return o.cause == r.cause }) {
			return true
		}
	}
	return false
}

// reserveAtOnce is the statement that makes a reservation on PostgreSQL. It returns whether the
// reservation is known and whether it was made. If another process makes the same reservation
// meanwhile, the statement fails on its key and runs again.
const reserveAtOnce = `
WITH known AS (
	SELECT 1 FROM reservations WHERE id = $1
), paid AS (
	INSERT INTO spending (person, day, tokens)
	SELECT $2, $3, $4::bigint WHERE $5::bigint >= 0 AND NOT EXISTS (SELECT 1 FROM known)
	ON CONFLICT (person, day) DO UPDATE SET tokens = spending.tokens + excluded.tokens
	WHERE spending.tokens <= $5
	RETURNING person, day
), made AS (
	INSERT INTO reservations (id, person, day, tokens, settled)
	SELECT $1, person, day, $4, FALSE FROM paid
	RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM known), EXISTS (SELECT 1 FROM made)`

func (s *Store) reserveAtOnce(ctx context.Context, r sessions.Reservation) (over bool, err error) {
	person := sqldb.Text(r.Person)
	var known, made bool
	_, err = s.db.Shared(ctx, person, reserveAtOnce, []any{sqldb.Text(r.ID), person, formatDay(r.At), r.Tokens, roomFor(r)}, &known, &made)
	return !known && !made, err
}

// roomFor returns the most that the person may have spent and reserved already if the reservation
// is to fit under its cap; -1 if it never fits.
func roomFor(r sessions.Reservation) int64 {
	if r.Tokens > r.Cap {
		return -1
	}
	return r.Cap - r.Tokens
}

// settleAtOnce is the statement that settles a reservation on PostgreSQL, unless it is settled. Of
// two at once, the second waits for the row and then finds it settled. The tokens that were
// reserved come from a second reading of the row, as RETURNING gives the values after the change.
const settleAtOnce = `
WITH closed AS (
	UPDATE reservations r SET settled = TRUE, tokens = $2::bigint FROM reservations before
	WHERE r.id = $1 AND before.id = $1 AND NOT r.settled
	RETURNING r.person, r.day, before.tokens
)
UPDATE spending SET tokens = spending.tokens + $2::bigint - closed.tokens
FROM closed WHERE spending.person = closed.person AND spending.day = closed.day`
