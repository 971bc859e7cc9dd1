package sqlstore

import (
	"context"
	"fmt"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

// tokensClause returns the part of a change that concerns tokens, as queries for the WITH of a statement;
// [bill.Budget.Clause] does the same for money.
func tokensClause(c bill.Change, first int) bill.Clause {
	r := c.Tokens
	id := sqldb.Text(r.ID)
	switch {
	case c.IsSettlement:
		return bill.Clause{Text: fmt.Sprintf(settleClause, first, first+1), Args: []any{id, clampCost(c.Used)}}
	case c.IsRenewal:
		return bill.Clause{
			Text: fmt.Sprintf(renewClause, first, first+1, first+2, first+3, first+4, first+5),
			Args: []any{id, r.Tokens, r.Used, r.SentTokens, bill.LeaseTime.Microseconds(), r.Cap},
		}
	}
	return bill.Clause{
		Text: fmt.Sprintf(reserveClause, first, first+1, first+2, first+3, first+4, first+5, first+6, first+7, first+8),
		Args: []any{id, sqldb.Text(r.Person), formatDay(r.At), r.Tokens, roomFor(*r), sqldb.Text(r.Session), r.Used, r.SentTokens, bill.LeaseTime.Microseconds()},
	}
}

// settleClause does what the statement settleAtOnce does, as a part of another statement.
const settleClause = `, made AS (
	UPDATE reservations r SET settled = TRUE, session = '', tokens = $%[2]d::bigint FROM reservations before, moved
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
	INSERT INTO reservations (id, person, day, tokens, settled, session, used, sent, until)
	SELECT $%[1]d, person, day, $%[4]d, FALSE, $%[6]d, $%[7]d::bigint, $%[8]d::bigint, ` + bill.PostgresClock + ` + $%[9]d::bigint FROM paid
	RETURNING 1
)`

// renewClause does what renewIn does, as a part of another statement. The sum is changed first, and only
// if the reservation still has the number of tokens that was read.
const renewClause = `, before AS (
	SELECT r.person, r.day, r.tokens FROM reservations r, moved WHERE r.id = $%[1]d AND NOT r.settled AND NOT r.abandoned
), paid AS (
	UPDATE spending SET tokens = spending.tokens + $%[2]d::bigint - before.tokens FROM before
	WHERE spending.person = before.person AND spending.day = before.day
		AND ($%[2]d::bigint <= before.tokens OR spending.tokens - before.tokens <= $%[6]d::bigint - $%[2]d::bigint)
	RETURNING 1
), made AS (
	UPDATE reservations r SET tokens = $%[2]d::bigint, used = $%[3]d::bigint, sent = $%[4]d::bigint, until = ` + bill.PostgresClock + ` + $%[5]d::bigint
	FROM before, paid WHERE r.id = $%[1]d
	RETURNING 1
)`

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
	INSERT INTO reservations (id, person, day, tokens, settled, session, used, sent, until)
	SELECT $1, person, day, $4, FALSE, $6, $7::bigint, $8::bigint, ` + bill.PostgresClock + ` + $9::bigint FROM paid
	RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM known), EXISTS (SELECT 1 FROM made)`

func (s *tokens) reserveAtOnce(ctx context.Context, r sessions.Reservation) (over bool, err error) {
	person := sqldb.Text(r.Person)
	var known, made bool
	_, err = s.db.Shared(ctx, person, reserveAtOnce, []any{
		sqldb.Text(r.ID), person, formatDay(r.At), r.Tokens, roomFor(r), sqldb.Text(r.Session), r.Used, r.SentTokens, bill.LeaseTime.Microseconds(),
	}, &known, &made)
	return !known && !made, err
}

// settleAtOnce is the statement that settles a reservation on PostgreSQL, unless it is settled. If two
// run at once, the second waits for the row and then finds it settled. The number of reserved tokens
// comes from a second read of the row, because RETURNING gives the values after the change.
const settleAtOnce = `
WITH closed AS (
	UPDATE reservations r SET settled = TRUE, session = '', tokens = $2::bigint FROM reservations before
	WHERE r.id = $1 AND before.id = $1 AND NOT r.settled
	RETURNING r.person, r.day, before.tokens
)
UPDATE spending SET tokens = spending.tokens + $2::bigint - closed.tokens
FROM closed WHERE spending.person = closed.person AND spending.day = closed.day`
