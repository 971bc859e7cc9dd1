package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

const (
	// maxCost bounds the cost of one call, so that a provider that reports nonsense
	// cannot make a day's sum overflow.
	maxCost = 1 << 40
	// keepFor is how long spending and reservations are kept. An interrupted call is
	// resumed or given up long before that.
	keepFor = 7 * 24 * time.Hour

	// reserveWithin is how long after a reservation it is on the disk, on SQLite, where the memory
	// of the one process decides: a crash before that forgets the calls that are in flight then.
	reserveWithin = 10 * time.Millisecond
	// settleWithin is how long after a settlement it is on the disk. A crash before that leaves the
	// reservation, as a crash before Settle does.
	settleWithin = 200 * time.Millisecond
)

// bounded returns the cost of a call, in tokens, in the form in which it is counted: not negative,
// and at most maxCost.
func bounded(tokens int64) int64 { return min(max(tokens, 0), maxCost) }

// Reserve sets tokens aside for one call; see [sessions.Budget].
func (s *Store) Reserve(ctx context.Context, r sessions.Reservation) error {
	if r.Tokens < 0 {
		return fmt.Errorf("reserve for %s: %d tokens are less than none", r.ID, r.Tokens)
	}
	over, err := s.reserve(ctx, r)
	if err == nil && over {
		err = sessions.ErrOverBudget
	}
	if err != nil {
		return fmt.Errorf("reserve for %s: %w", r.ID, err)
	}
	s.sweep(time.Now(), r.At)
	return nil
}

// reserve sets tokens aside; over is true if that would exceed the cap.
func (s *Store) reserve(ctx context.Context, r sessions.Reservation) (over bool, err error) {
	if s.db.Postgres() {
		return s.reserveAtOnce(ctx, r)
	}
	var refused atomic.Bool // the function may run again when Soon has returned
	err = s.db.Soon(ctx, reserveWithin, func(tx *sqldb.Tx) error {
		over, err := reserveIn(tx, r)
		refused.Store(over)
		return err
	})
	return refused.Load(), err
}

// reserveIn sets tokens aside in a transaction; over is true if that would exceed the cap.
func reserveIn(tx *sqldb.Tx, r sessions.Reservation) (over bool, err error) {
	id, person, on := sqldb.Text(r.ID), sqldb.Text(r.Person), formatDay(r.At)
	fresh, err := tx.Exec("INSERT INTO reservations (id, person, day, tokens, settled) VALUES (?, ?, ?, ?, FALSE) ON CONFLICT DO NOTHING",
		id, person, on, r.Tokens)
	if err != nil || fresh == 0 {
		return false, err
	}
	if over, err = addUnlessOver(tx, person, on, r); err == nil && over {
		_, err = tx.Exec("DELETE FROM reservations WHERE id = ?", id)
	}
	return over, err
}

// addUnlessOver adds a reservation to its day's sum. It returns true, and adds nothing,
// if the sum would exceed the cap. The condition is part of the write, so that two
// reservations at once cannot both take the last tokens.
func addUnlessOver(tx *sqldb.Tx, person, on string, r sessions.Reservation) (bool, error) {
	if r.Tokens > r.Cap {
		return true, nil
	}
	changed, err := tx.Exec(`
		INSERT INTO spending (person, day, tokens) VALUES (?, ?, ?)
		ON CONFLICT (person, day) DO UPDATE SET tokens = spending.tokens + excluded.tokens
		WHERE spending.tokens <= ?`, person, on, r.Tokens, r.Cap-r.Tokens)
	return changed == 0, err
}

// Settle replaces a reservation by what the call has cost; see [sessions.Budget].
func (s *Store) Settle(ctx context.Context, r sessions.Reservation, tokens int64) error {
	if err := s.settle(ctx, r, bounded(tokens)); err != nil {
		return fmt.Errorf("settle %s: %w", r.ID, err)
	}
	return nil
}

func (s *Store) settle(ctx context.Context, r sessions.Reservation, tokens int64) error {
	if s.db.Postgres() {
		_, err := s.db.Shared(ctx, sqldb.Text(r.Person), settleAtOnce, []any{sqldb.Text(r.ID), tokens})
		return err
	}
	return s.db.Soon(ctx, settleWithin, func(tx *sqldb.Tx) error { return settleIn(tx, r, tokens) })
}

// settleIn replaces a reservation in a transaction. It first assumes that the reservation was made
// as r says, and reads it only if it was not.
func settleIn(tx *sqldb.Tx, r sessions.Reservation, tokens int64) error {
	id, person, on, reserved := sqldb.Text(r.ID), sqldb.Text(r.Person), formatDay(r.At), r.Tokens
	changed, err := tx.Exec("UPDATE reservations SET settled = TRUE, tokens = ? WHERE id = ? AND NOT settled AND person = ? AND day = ? AND tokens = ?",
		tokens, id, person, on, reserved)
	if err == nil && changed == 0 {
		err = tx.Get("SELECT person, day, tokens FROM reservations WHERE id = ? AND NOT settled", []any{id}, &person, &on, &reserved)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = tx.Exec("UPDATE reservations SET settled = TRUE, tokens = ? WHERE id = ?", tokens, id)
		}
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec("UPDATE spending SET tokens = tokens + ? WHERE person = ? AND day = ?", tokens-reserved, person, on)
	return err
}

// changeIn makes a change of budgets, of tokens and money, in a transaction, on a database of any
// kind.
func (s *Store) changeIn(tx *sqldb.Tx, c bill.Change) (done bill.Done, err error) {
	switch {
	case c.Tokens == nil:
	case c.Settle:
		err = settleIn(tx, *c.Tokens, bounded(c.Used))
		done.Tokens = err == nil
	default:
		var over bool
		over, err = reserveIn(tx, *c.Tokens)
		done.Tokens = err == nil && !over
	}
	if err == nil {
		done.Money, err = s.money.MakeIn(tx, c)
	}
	return done, err
}

// sweepAfter deletes old spending, as Reserve does, after a change that was made with an append.
func (s *Store) sweepAfter(c bill.Change) {
	if c.Tokens != nil && !c.Settle {
		s.sweep(time.Now(), c.Tokens.At)
	}
	s.money.Swept(c)
}

// Spent returns what a person has spent and reserved on a day; see [sessions.Budget].
func (s *Store) Spent(ctx context.Context, person string, at time.Time) (int64, error) {
	s.db.Flush()
	var tokens int64
	err := s.queries.spent.QueryRowContext(ctx, sqldb.Text(person), formatDay(at)).Scan(&tokens)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("spending of %s: %w", person, err)
	}
	return tokens, nil
}

// sweep deletes what is older than keepFor, once a day in each process. A day must be
// old both by the clock and by the time of the reservation, as either may be wrong.
// Nobody waits for sweep; if it fails, the next one deletes the same days.
func (s *Store) sweep(now, at time.Time) {
	if today := formatDay(now); s.swept.Swap(today) == today {
		return
	}
	if at.Before(now) {
		now = at
	}
	before := formatDay(now.Add(-keepFor))
	s.db.Start(func(tx *sqldb.Tx) error {
		if _, err := tx.Exec("DELETE FROM reservations WHERE day < ?", before); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM spending WHERE day < ?", before)
		return err
	})
}
