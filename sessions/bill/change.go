package bill

import (
	"context"
	"fmt"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// A Change says what to do with a turn's reservations of tokens and money. They are made; or, with IsRenewal,
// changed to another amount; or, with IsSettlement, replaced by what was used. The zero Change changes nothing.
type Change struct {
	Tokens       *sessions.Reservation // the tokens to reserve or settle; nil for none
	Money        *Reservation          // the money to reserve or settle; nil for none
	IsRenewal    bool                  // the reservations were made before; see Budget.Renew
	IsSettlement bool
	Used         int64 // with IsSettlement: how many tokens were used
	Cost         int64 // with IsSettlement: what it cost, in micro-dollars
}

// Changed says which parts of a Change were made. A part is missing if the Change had none, if a cap forbade it, or if the
// store could not make it in that write; for that part, nothing has changed.
type Changed struct{ Tokens, Money bool }

// A Log is a session's log that can also change budgets in the write that appends entries, which
// saves a write.
type Log interface {
	sessions.Log
	// AppendWith appends entries as Append does and, in the same write, makes a change. It returns an
	// error only if Append would.
	AppendWith(ctx context.Context, at int64, c Change, entries ...sessions.Entry) (Changed, error)
}

// ChangeIn makes the part of a change that concerns money, in a transaction on either kind of database, and
// returns whether it did.
func (b *Budget) ChangeIn(tx *sqldb.Tx, c Change) (done bool, err error) {
	switch {
	case c.Money == nil:
		return false, nil
	case c.IsSettlement:
		return true, settleIn(tx, *c.Money, clampCost(c.Cost))
	}
	if c.IsRenewal {
		over, known, err := b.renewIn(tx, *c.Money)
		return err == nil && known && over == 0, err
	}
	over, err := b.reserveIn(tx, *c.Money)
	return err == nil && over == 0, err
}

// A Clause is a part of a PostgreSQL statement: queries for its WITH, and their arguments.
type Clause struct {
	Text string
	Args []any
}

// Clause returns the part of a change that concerns money, of which there must be some, as queries for the WITH of a
// statement. That WITH contains a query named moved: if moved returns no row, nothing is changed. The arguments are
// numbered from first on. The change was made if the query named charged returns a row.
func (b *Budget) Clause(c Change, first int) (Clause, error) {
	caps, err := c.Money.counters()
	if err != nil {
		return Clause{}, err
	}
	id := sqldb.Text(c.Money.ID)
	if c.IsSettlement {
		return Clause{fmt.Sprintf(settleClause, first, first+1, first+2), []any{id, clampCost(c.Cost), caps}}, nil
	}
	if c.IsRenewal {
		return Clause{
			fmt.Sprintf(renewClause, first, first+1, first+2, first+3, first+4, first+5),
			[]any{id, caps, c.Money.Cost, c.Money.Used, c.Money.SentCost, LeaseTime.Microseconds()},
		}, nil
	}
	return Clause{
		fmt.Sprintf(reserveClause, first, first+1, first+2, first+3, first+4, first+5, first+6, first+7, first+8),
		[]any{id, caps, c.Money.Cost, day(c.Money.At), b.shard, sqldb.Text(c.Money.Session), c.Money.Used, c.Money.SentCost, LeaseTime.Microseconds()},
	}, nil
}

// SweepAfter removes counters that are long past, after a reservation that was made along with an append.
func (b *Budget) SweepAfter(c Change) {
	if c.Money != nil && !c.IsSettlement {
		b.sweepOld(*c.Money)
	}
}

// settleClause does what settleAtOnce does, as a part of another statement.
const settleClause = `, charged AS (
	DELETE FROM charges USING moved WHERE charges.id = $%[1]d RETURNING shard, micro
), counted AS (
	INSERT INTO counters (period, subject, shard, micro)
	SELECT c.period, c.subject, charged.shard, $%[2]d::bigint - charged.micro
	FROM charged, json_to_recordset($%[3]d::text::json) AS c (period TEXT, subject TEXT)
	WHERE (SELECT TRUE FROM counters k WHERE k.period = c.period AND k.subject = c.subject AND k.shard = charged.shard)
	ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro
)`

// reserveClause does what reserveAtOnce does, as a part of another statement.
const reserveClause = `, caps AS (
	SELECT * FROM json_to_recordset($%[2]d::text::json) AS c (period TEXT, subject TEXT, most BIGINT)
), charged AS (
	INSERT INTO charges (id, day, shard, micro, session, used, sent, counters, until)
	SELECT $%[1]d, $%[4]d, $%[5]d::bigint, $%[3]d::bigint, $%[6]d, $%[7]d::bigint, $%[8]d::bigint, $%[2]d::text, ` + PostgresClock + ` + $%[9]d::bigint FROM moved
	WHERE NOT EXISTS (SELECT 1 FROM charges WHERE id = $%[1]d) AND NOT EXISTS (SELECT 1 FROM caps c
		WHERE $%[3]d::bigint + (SELECT coalesce(sum(micro), 0) FROM counters k WHERE k.period = c.period AND k.subject = c.subject) > c.most)
	RETURNING 1
), counted AS (
	INSERT INTO counters (period, subject, shard, micro)
	SELECT period, subject, $%[5]d::bigint, $%[3]d::bigint FROM caps WHERE EXISTS (SELECT 1 FROM charged)
	ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro
)`

// renewClause does for PostgreSQL, as a part of another statement, what renewIn does. If somebody else
// has changed the reservation meanwhile, its amount is different, and then nothing is done.
const renewClause = `, caps AS (
	SELECT * FROM json_to_recordset($%[2]d::text::json) AS c (period TEXT, subject TEXT, most BIGINT)
), held AS (
	SELECT charges.micro FROM charges, moved WHERE charges.id = $%[1]d AND NOT charges.abandoned
), charged AS (
	UPDATE charges SET micro = $%[3]d::bigint, used = $%[4]d::bigint, sent = $%[5]d::bigint, until = ` + PostgresClock + ` + $%[6]d::bigint FROM held
	WHERE charges.id = $%[1]d AND charges.micro = held.micro AND NOT charges.abandoned
		AND ($%[3]d::bigint <= held.micro OR NOT EXISTS (SELECT 1 FROM caps c WHERE $%[3]d::bigint - held.micro
			+ (SELECT coalesce(sum(micro), 0) FROM counters k WHERE k.period = c.period AND k.subject = c.subject) > c.most))
	RETURNING charges.shard, held.micro
), counted AS (
	INSERT INTO counters (period, subject, shard, micro)
	SELECT c.period, c.subject, charged.shard, $%[3]d::bigint - charged.micro FROM charged, caps c
	WHERE (SELECT TRUE FROM counters k WHERE k.period = c.period AND k.subject = c.subject AND k.shard = charged.shard)
	ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro
)`
