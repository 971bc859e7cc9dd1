package bill

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// A Cap is the most that something may cost in a day or a month.
type Cap struct {
	// Subject says whom the cap is for: it is the result of Person, Session or Agent; "" means everybody.
	Subject   string
	IsMonthly bool  // whether the cap is for a month; otherwise it is for a day
	Limit     int64 // in micro-dollars
}

// Person returns the value of Cap.Subject for a person.
func Person(id string) string { return "person:" + id }

// Session returns the value of Cap.Subject for a session.
func Session(key string) string { return "session:" + key }

// Agent returns the value of Cap.Subject for an agent.
func Agent(name string) string { return "agent:" + name }

// period returns the day or the month of a time, in the form in which the counters store it.
func (c Cap) period(at time.Time) string {
	if c.IsMonthly {
		return at.UTC().Format("2006-01")
	}
	return at.UTC().Format(time.DateOnly)
}

// NextPeriod returns when the next day or month begins, when nothing is spent yet.
func (c Cap) NextPeriod(at time.Time) time.Time {
	y, m, d := at.UTC().Date()
	if c.IsMonthly {
		return time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// A Reservation sets an amount aside for calls before they are made. It belongs to a turn: whoever
// resumes the turn takes it over, and once nobody works on the turn anymore it is settled; see TakeOver,
// Extend and SettleAbandoned.
type Reservation struct {
	ID       string // begins with the turn's id and "#"; the same id reserves only once
	Session  string // the turn's session; "" if nobody takes the reservation over
	Cost     int64  // in micro-dollars
	Used     int64  // the part of Cost that ended calls have cost
	SentCost int64  // the part of Cost that the current call costs at least, if it was sent
	Caps     []Cap  // the caps, none of which may be exceeded
	At       time.Time
}

// An OverError says which cap a reservation would exceed.
type OverError struct{ Cap Cap }

// Error returns a message that names the cap.
func (e *OverError) Error() string {
	return fmt.Sprintf("over the cap of %d micro-dollars of %q", e.Cap.Limit, e.Cap.Subject)
}

// Budgets is the migration that adds the tables of what is spent and set aside; {bytes} is replaced by a
// text type that sorts by bytes.
//
// A counter is the sum of its shards. Each process writes to a shard of its own, so that no two of them
// wait for each other, and reads all of them to compare the sum with its cap. It does not see what others
// set aside at the same moment, so a sum may exceed its cap by that much.
const Budgets = `
CREATE TABLE counters (
	period  {bytes} NOT NULL,     -- a day or a month
	subject {bytes} NOT NULL,     -- whom it is about; empty: all
	shard   BIGINT NOT NULL,
	micro   BIGINT NOT NULL,      -- dollars, spent and set aside
	PRIMARY KEY (period, subject, shard)
);
CREATE TABLE charges (
	id    {bytes} PRIMARY KEY,    -- what is set aside and not settled yet
	day   {bytes} NOT NULL,
	shard BIGINT NOT NULL,
	micro BIGINT NOT NULL
);
`

// Holders is the migration that records to whom a reservation belongs, and how long it counts as being
// worked on. A row without counters was written by the release before.
const Holders = `
ALTER TABLE charges ADD COLUMN session {bytes} NOT NULL DEFAULT '';
ALTER TABLE charges ADD COLUMN used BIGINT NOT NULL DEFAULT 0;        -- of micro: what calls have cost that have ended
ALTER TABLE charges ADD COLUMN sent BIGINT NOT NULL DEFAULT 0;        -- of micro: what the call under way has cost at least
ALTER TABLE charges ADD COLUMN counters TEXT NOT NULL DEFAULT '';     -- JSON: where micro is counted
ALTER TABLE charges ADD COLUMN until BIGINT NOT NULL DEFAULT 0;       -- microseconds since 1970: after that nobody works on it
ALTER TABLE charges ADD COLUMN abandoned BOOLEAN NOT NULL DEFAULT FALSE; -- micro is what the calls are counted as, as nobody came back
`

// shardCount is the number of shards, of which each process takes one at random. Two processes with the same
// shard lose nothing, but wait for each other's writes, so there are many shards. A counter has a row for
// each process that wrote to it in its day or month.
const shardCount = 1 << 40

// A Budget limits what models may cost, over all processes.
type Budget struct {
	db    *sqldb.DB
	shard int64
	swept atomic.Value // the day on which sweep last ran
}

// NewBudget makes a process's budget.
func NewBudget(db *sqldb.DB) *Budget { return &Budget{db: db, shard: rand.Int64N(shardCount)} }

// Reserve sets an amount aside for all caps or for none. It returns an *OverError if a sum would exceed
// its cap. Whoever works on the turn for longer than LeaseTime has to extend the reservation; otherwise it
// is settled at the known cost of its calls.
func (b *Budget) Reserve(ctx context.Context, r Reservation) error {
	if r.Cost < 0 {
		return fmt.Errorf("reserve for %s: %d micro-dollars are less than none", r.ID, r.Cost)
	}
	reserve := b.reserve
	if b.db.IsPostgres() {
		reserve = b.reserveAtOnce
	}
	over, err := reserve(ctx, r)
	if err != nil {
		return fmt.Errorf("reserve for %s: %w", r.ID, err)
	}
	if over > 0 {
		return &OverError{Cap: r.Caps[over-1]}
	}
	b.sweepOld(r)
	return nil
}

// sweepOld removes the counters that are old both now and at a reservation's time, because either time
// may be wrong.
func (b *Budget) sweepOld(r Reservation) {
	if now := time.Now(); r.At.Before(now) {
		b.sweep(r.At)
	} else {
		b.sweep(now)
	}
}

// counterValueQuery is the query for the value of a counter.
const counterValueQuery = "SELECT coalesce(sum(micro), 0) FROM counters WHERE period = ? AND subject = ?"

// reserve makes a reservation. It returns the number of the cap that forbids it, counted from 1; 0 if
// none does.
func (b *Budget) reserve(ctx context.Context, r Reservation) (over int, err error) {
	err = b.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		over, err = b.reserveIn(tx, r)
		return err
	})
	return over, err
}

// reserveIn does what reserve does, within an existing transaction.
func (b *Budget) reserveIn(tx *sqldb.Tx, r Reservation) (over int, err error) {
	var known int
	err = tx.Get("SELECT 1 FROM charges WHERE id = ?", []any{sqldb.Text(r.ID)}, &known)
	if !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	for i, c := range r.Caps {
		var spent int64
		if err := tx.Get(counterValueQuery, []any{c.period(r.At), sqldb.Text(c.Subject)}, &spent); err != nil {
			return 0, err
		}
		if spent+r.Cost > c.Limit {
			return i + 1, nil
		}
	}
	for _, c := range r.Caps {
		_, err := tx.Exec(`INSERT INTO counters (period, subject, shard, micro) VALUES (?, ?, ?, ?)
			ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro`,
			c.period(r.At), sqldb.Text(c.Subject), b.shard, r.Cost)
		if err != nil {
			return 0, err
		}
	}
	counters, err := r.counters()
	if err != nil {
		return 0, err
	}
	until, from := HeldUntilSQL(b.db)
	_, err = tx.Exec("INSERT INTO charges (id, day, shard, micro, session, used, sent, counters, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, "+until+")",
		sqldb.Text(r.ID), day(r.At), b.shard, r.Cost, sqldb.Text(r.Session), r.Used, r.SentCost, counters, from)
	return 0, err
}

// reserveAtOnce is the statement that does for PostgreSQL what reserve does. It returns whether the
// reservation is known, and the number of the cap that forbids it. If another process makes the same
// reservation meanwhile, the statement fails on its key and runs again.
const reserveAtOnce = `
WITH known AS (
	SELECT 1 FROM charges WHERE id = $1
), caps AS (
	SELECT * FROM json_to_recordset($2::text::json) AS c (n INT, period TEXT, subject TEXT, most BIGINT)
), over AS (
	SELECT min(n) AS n FROM caps c
	WHERE $3::bigint + (SELECT coalesce(sum(micro), 0) FROM counters k WHERE k.period = c.period AND k.subject = c.subject) > c.most
), made AS (
	INSERT INTO charges (id, day, shard, micro, session, used, sent, counters, until)
	SELECT $1, $4, $5::bigint, $3::bigint, $6, $7::bigint, $8::bigint, $2::text, ` + PostgresClock + ` + $9::bigint
	FROM over WHERE over.n IS NULL AND NOT EXISTS (SELECT 1 FROM known)
	RETURNING 1
), counted AS (
	INSERT INTO counters (period, subject, shard, micro)
	SELECT period, subject, $5::bigint, $3::bigint FROM caps WHERE EXISTS (SELECT 1 FROM made)
	ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro
)
SELECT EXISTS (SELECT 1 FROM known), coalesce((SELECT n FROM over), 0)`

func (b *Budget) reserveAtOnce(ctx context.Context, r Reservation) (over int, err error) {
	caps, err := r.counters()
	if err != nil {
		return 0, err
	}
	var known bool
	_, err = b.db.Group(ctx, reserveAtOnce, []any{
		sqldb.Text(r.ID), caps, r.Cost, day(r.At), b.shard, sqldb.Text(r.Session), r.Used, r.SentCost, LeaseTime.Microseconds(),
	}, &known, &over)
	if known {
		over = 0
	}
	return over, err
}

// A counter is one of the stored sums to which a reservation is added, with its cap.
type counter struct {
	Number  int    `json:"n"`
	Period  string `json:"period"`
	Subject string `json:"subject"`
	Limit   int64  `json:"most"`
}

// counters returns the counters to which a reservation is added, and their caps, as JSON. With arrays
// PostgreSQL would check their lengths, and plan the statement again each time.
func (r Reservation) counters() (string, error) {
	raw, err := plainjson.Marshal(r.list())
	return string(raw), err
}

// list returns the counters to which a reservation is added.
func (r Reservation) list() []counter {
	all := make([]counter, 0, len(r.Caps))
	for i, c := range r.Caps {
		all = append(all, counter{i + 1, c.period(r.At), sqldb.Text(c.Subject), c.Limit})
	}
	return all
}

// maxCost is the most that one reservation can cost, so that a provider that reports
// nonsense cannot make a sum overflow.
const maxCost = 1 << 40

// clampCost returns a cost limited to the range in which it is counted: not negative, and at most maxCost.
func clampCost(cost int64) int64 { return min(max(cost, 0), maxCost) }

// Settle replaces a reservation with what the calls have cost; r must be the same as was given to
// Reserve. It does nothing for an unknown or already settled reservation.
func (b *Budget) Settle(ctx context.Context, r Reservation, cost int64) error {
	settle := b.settle
	if b.db.IsPostgres() {
		settle = b.settleAtOnce
	}
	if err := settle(ctx, r, clampCost(cost)); err != nil {
		return fmt.Errorf("settle %s: %w", r.ID, err)
	}
	return nil
}

func (b *Budget) settle(ctx context.Context, r Reservation, cost int64) error {
	return b.db.Write(ctx, func(tx *sqldb.Tx) error { return settleIn(tx, r, cost) })
}

// settleIn does what Settle does, within an existing transaction.
func settleIn(tx *sqldb.Tx, r Reservation, cost int64) error {
	var shard, reserved int64
	err := tx.Get("DELETE FROM charges WHERE id = ? RETURNING shard, micro", []any{sqldb.Text(r.ID)}, &shard, &reserved)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range r.Caps {
		_, err := tx.Exec("UPDATE counters SET micro = micro + ? WHERE period = ? AND subject = ? AND shard = ?",
			cost-reserved, c.period(r.At), sqldb.Text(c.Subject), shard)
		if err != nil {
			return err
		}
	}
	return nil
}

// settleAtOnce is the statement that does for PostgreSQL what Settle does. If two run at once, the second
// waits for the row and then finds it gone. It is written so that PostgreSQL looks up each counter by its
// key; for an UPDATE it would read the whole table. It does not add counters that were removed meanwhile.
const settleAtOnce = `
WITH closed AS (
	DELETE FROM charges WHERE id = $1 RETURNING shard, micro
)
INSERT INTO counters (period, subject, shard, micro)
SELECT c.period, c.subject, closed.shard, $2::bigint - closed.micro FROM closed, json_to_recordset($3::text::json) AS c (period TEXT, subject TEXT)
WHERE (SELECT TRUE FROM counters k WHERE k.period = c.period AND k.subject = c.subject AND k.shard = closed.shard)
ON CONFLICT (period, subject, shard) DO UPDATE SET micro = counters.micro + excluded.micro`

func (b *Budget) settleAtOnce(ctx context.Context, r Reservation, cost int64) error {
	caps, err := r.counters()
	if err != nil {
		return err
	}
	_, err = b.db.Group(ctx, settleAtOnce, []any{sqldb.Text(r.ID), cost, caps})
	return err
}

// Spent returns what is spent and set aside for a cap in the day or month that contains a time.
func (b *Budget) Spent(ctx context.Context, c Cap, at time.Time) (micro int64, err error) {
	if err := b.db.Read.QueryRowContext(ctx, counterValueQuery, c.period(at), sqldb.Text(c.Subject)).Scan(&micro); err != nil {
		return 0, fmt.Errorf("read what %q has spent: %w", c.Subject, err)
	}
	return micro, nil
}

const (
	keepDays   = 7 // how many days the counters of days, and reservations that were never settled, are kept
	keepMonths = 2
)

// sweep removes the counters of days and months long past, once a day in each process. Nobody waits for
// it; if it fails, the next one removes the same counters.
func (b *Budget) sweep(at time.Time) {
	today := day(at)
	if b.swept.Swap(today) == today {
		return
	}
	lastDay, lastMonth := day(at.AddDate(0, 0, -keepDays)), at.UTC().AddDate(0, -keepMonths, 0).Format("2006-01")
	b.db.Start(func(tx *sqldb.Tx) error {
		_, err := tx.Exec("DELETE FROM counters WHERE length(period) = 10 AND period < ? OR length(period) = 7 AND period < ?", lastDay, lastMonth)
		if err != nil {
			return err
		}
		_, err = tx.Exec("DELETE FROM charges WHERE day < ?", lastDay)
		return err
	})
}

// Forget removes the counters of a person or a session; subject is what Person or Session returns.
func Forget(tx *sqldb.Tx, subject string) error {
	_, err := tx.Exec("DELETE FROM counters WHERE subject = ?", sqldb.Text(subject))
	return err
}

func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }
