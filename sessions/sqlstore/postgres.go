package sqlstore

import (
	"context"
	"slices"
	"time"

	"parley/sessions"
)

// This file holds what PostgreSQL is told otherwise than SQLite. Where SQLite
// carries out a few statements at no cost, PostgreSQL is sent one that does it
// all: each statement more is a round trip, with a session's row locked meanwhile.

// A document with an escaped NUL is JSON and yet cannot be taken apart.
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

// lockSession makes the reading of a session's row wait for those who change it,
// and keeps them out until the transaction's end. SQLite has one writer only.
func (s *Store) lockSession() string {
	if s.db.Postgres() {
		return " FOR UPDATE"
	}
	return ""
}

// rises looks for the grave of a session that has just begun once more: who waits
// for one that is being erased begins it anew, and has looked before it was dug.
// From then on whoever erases finds the session that has begun.
func (s *Store) rises(ctx context.Context, l *log, key string) error {
	if !s.db.Postgres() || l.state.last > 0 {
		return nil
	}
	var buried bool
	err := s.queries.buried.QueryRowContext(ctx, key, l.fence).Scan(&buried)
	if err != nil || !buried {
		return err
	}
	if _, err := s.db.Exec(ctx, "DELETE FROM sessions WHERE id = ? AND fence = ? AND last = 0", l.session, l.fence); err != nil {
		return err
	}
	return sessions.ErrFenced
}

// appendAtOnce moves a session's row on, if the log is as its holder has left it
// and none of the causes is known, and then writes the entries. To wait for the
// row's lock is to see it as its last holder has left it, so the row decides.
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

// extendAtOnce appends rows where nothing is unexpected. If it could not, what is
// in the way is still to be found out.
func (l *log) extendAtOnce(ctx context.Context, rows []row) (appended, bool, error) {
	if rows[0].n != l.state.last+1 || repeats(rows) {
		return appended{}, false, nil
	}
	next, err := l.state.with(rows)
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
		next.last, next.summary, next.covers, next.unfinished, stamp(time.Now()), l.session, l.fence, l.state.last,
		numbers, turns, kinds, causes, people, calls, data, times,
	})
	return appended{state: next, rows: rows}, changed > 0, err
}

// repeats tells whether rows have a cause twice.
func repeats(rows []row) bool {
	for i, r := range rows {
		if r.cause != "" && slices.ContainsFunc(rows[:i], func(o row) bool { return o.cause == r.cause }) {
			return true
		}
	}
	return false
}

// reserveAtOnce returns whether the reservation is known and whether it was made.
// Somebody who makes the same one meanwhile makes the statement fail, to be
// carried out again.
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
	_, err = s.db.InTurn(ctx, reserveAtOnce, []any{id, person, on, r.Tokens, room}, &known, &made)
	return !known && !made, err
}

// settleAtOnce changes a reservation that is not settled: of two who do, one waits
// for the other and then finds it settled. What was reserved is read beside it,
// since what is returned of the change itself is as it stands afterwards.
const settleAtOnce = `
WITH closed AS (
	UPDATE reservations r SET settled = TRUE, tokens = $2::bigint FROM reservations before
	WHERE r.id = $1 AND before.id = $1 AND NOT r.settled
	RETURNING r.person, r.day, before.tokens
)
UPDATE spending SET tokens = spending.tokens + $2::bigint - closed.tokens
FROM closed WHERE spending.person = closed.person AND spending.day = closed.day`

func (s *Store) settleAtOnce(ctx context.Context, id string, tokens int64) error {
	_, err := s.db.InTurn(ctx, settleAtOnce, []any{id, tokens})
	return err
}
