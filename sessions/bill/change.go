package bill

import (
	"context"
	"fmt"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// A Change is what becomes of a turn's reservations: they are made or, with Settle,
// replaced by what was used. The zero Change changes nothing.
type Change struct {
	Tokens *sessions.Reservation // nil: no tokens
	Money  *Reservation          // nil: no money
	Settle bool
	Used   int64 // tokens, with Settle
	Cost   int64 // micro-dollars, with Settle
}

// Done says which part of a Change was made. What was not, because of a cap or for any
// other reason, is left to the budgets themselves.
type Done struct{ Tokens, Money bool }

// A Log is a session's log that changes budgets in the same write.
type Log interface {
	sessions.Log
	// AppendWith appends entries as Append does and, in the same write, makes a change. It
	// returns an error only where Append would.
	AppendWith(ctx context.Context, at int64, c Change, entries ...sessions.Entry) (Done, error)
}

// MakeIn makes the money's part of a change in a transaction, on a database of any kind,
// and returns whether it did.
func (b *Budget) MakeIn(tx *sqldb.Tx, c Change) (done bool, err error) {
	switch {
	case c.Money == nil:
		return false, nil
	case c.Settle:
		return true, settleIn(tx, *c.Money, bounded(c.Cost))
	}
	over, err := b.reserveIn(tx, *c.Money)
	return err == nil && over == 0, err
}

// A Clause is a part of a statement of PostgreSQL: queries that its WITH contains, and
// their arguments.
type Clause struct {
	Text string
	Args []any
}

// Clause returns the money's part of a change, as queries of a WITH that has a query
// moved: they change nothing if moved has no row. Their arguments are numbered from first
// on. A reservation is made if the query charged has a row.
func (b *Budget) Clause(c Change, first int) (Clause, error) {
	caps, err := c.Money.counters()
	if err != nil {
		return Clause{}, err
	}
	id := sqldb.Text(c.Money.ID)
	if c.Settle {
		return Clause{fmt.Sprintf(settleClause, first, first+1, first+2), []any{id, bounded(c.Cost), caps}}, nil
	}
	return Clause{
		fmt.Sprintf(reserveClause, first, first+1, first+2, first+3, first+4),
		[]any{id, caps, c.Money.Cost, day(c.Money.At), b.shard},
	}, nil
}

// Swept removes what is long past, after a reservation that was made with an append.
func (b *Budget) Swept(c Change) {
	if c.Money != nil && !c.Settle {
		b.sweepBefore(*c.Money)
	}
}

// settleClause is settleAtOnce, as a part of another statement.
const settleClause = `, charged AS (
	DELETE FROM charges USING moved WHERE charges.id = $%[1]d RETURNING shard, micro
), counted AS (
	INSERT INTO counters (period, subject, shard, micro)
	SELECT c.period, c.subject, charged.shard, $%[2]d::bigint - charged.micro
	FROM charged, json_to_recordset($%[3]d::text::json) AS c (period TEXT, subject TEXT)
	WHERE (SELECT TRUE FROM counters k WHERE k.period = c.period AND k.subject = c.subject AND k.shard = charged.shard)
	ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro
)`

// reserveClause is reserveAtOnce, as a part of another statement.
const reserveClause = `, caps AS (
	SELECT * FROM json_to_recordset($%[2]d::text::json) AS c (period TEXT, subject TEXT, most BIGINT)
), charged AS (
	INSERT INTO charges (id, day, shard, micro)
	SELECT $%[1]d, $%[4]d, $%[5]d::bigint, $%[3]d::bigint FROM moved
	WHERE NOT EXISTS (SELECT 1 FROM charges WHERE id = $%[1]d) AND NOT EXISTS (SELECT 1 FROM caps c
		WHERE $%[3]d::bigint + (SELECT coalesce(sum(micro), 0) FROM counters k WHERE k.period = c.period AND k.subject = c.subject) > c.most)
	RETURNING 1
), counted AS (
	INSERT INTO counters (period, subject, shard, micro)
	SELECT period, subject, $%[5]d::bigint, $%[3]d::bigint FROM caps WHERE EXISTS (SELECT 1 FROM charged)
	ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro
)`
