package sqlstore

import (
	"context"
	"slices"
	"time"

	"parley/sessions"
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

// appendAtOnce updates a session's row, if the log is as its holder left it and none
// of the causes is known, and inserts the entries. An UPDATE that waited for the
// row's lock sees the row as the other transaction left it, so fence and last decide
// correctly.
const appendAtOnce = `
WITH moved AS (
	UPDATE sessions SET last = $1, summary = $2, covers = $3, unfinished = $4, updated = $5
	WHERE id = $6 AND fence = $7 AND last = $8 AND NOT EXISTS (
		SELECT 1 FROM entries e WHERE e.session = $6 AND e.cause = ANY($12::text[]) AND e.cause <> ''
		UNION ALL SELECT 1 FROM erased x WHERE x.key = sessions.key AND x.cause = ANY($12::text[]))
	RETURNING id
)
INSERT INTO entries (session, n, turn, kind, at, cause, person, call, data)
SELECT moved.id, new.* FROM moved, unnest($9::bigint[], $10::text[], $11::text[], $16::text[], $12::text[], $13::text[], $14::text[], $15::text[])
	AS new (n, turn, kind, at, cause, person, call, data)`

// extendAtOnce appends rows in one statement. If it returns false, nothing was written,
// and append finds out why.
func (l *log) extendAtOnce(ctx context.Context, rows []row) (appended, bool, error) {
	if rows[0].n != l.state.last+1 || hasRepeatedCause(rows) {
		return appended{}, false, nil
	}
	next, err := l.state.afterAppend(rows)
	if err != nil {
		return appended{refused: err}, true, nil // the data is not what its kind promises
	}
	numbers := make([]int64, len(rows))
	var turns, kinds, causes, people, calls, data, times []string
	for i, r := range rows {
		numbers[i] = r.n
		turns, kinds, causes = append(turns, r.turn), append(kinds, r.kind), append(causes, r.cause)
		people, calls, data, times = append(people, r.person), append(calls, r.call), append(data, r.data), append(times, r.at)
	}
	changed, err := l.store.db.Group(ctx, appendAtOnce, []any{
		next.last, next.summary, next.covers, next.unfinished, formatTime(time.Now()), l.session, l.fence, l.state.last,
		numbers, turns, kinds, causes, people, calls, data, times,
	})
	return appended{state: next, rows: rows}, changed > 0, err
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

// reserveAtOnce returns whether the reservation is known and whether it was made. If
// another makes the same reservation meanwhile, the statement fails on its key and
// runs again.
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

func (s *Store) reserveAtOnce(ctx context.Context, id, person, on string, r sessions.Reservation) (over bool, err error) {
	room := int64(-1)
	if r.Tokens <= r.Cap {
		room = r.Cap - r.Tokens
	}
	var known, made bool
	_, err = s.db.Shared(ctx, person, reserveAtOnce, []any{id, person, on, r.Tokens, room}, &known, &made)
	return !known && !made, err
}

// settleAtOnce settles a reservation that is not settled. Of two at once, the second
// waits for the row and then finds it settled. The tokens that were reserved come
// from a second reading of the row, as RETURNING gives the values after the change.
const settleAtOnce = `
WITH closed AS (
	UPDATE reservations r SET settled = TRUE, tokens = $2::bigint FROM reservations before
	WHERE r.id = $1 AND before.id = $1 AND NOT r.settled
	RETURNING r.person, r.day, before.tokens
)
UPDATE spending SET tokens = spending.tokens + $2::bigint - closed.tokens
FROM closed WHERE spending.person = closed.person AND spending.day = closed.day`
