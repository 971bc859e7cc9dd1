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

// Reserve sets tokens aside for one call; see [sessions.Budget].
func (s *tokens) Reserve(ctx context.Context, r sessions.Reservation) error {
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
func (s *tokens) reserve(ctx context.Context, r sessions.Reservation) (over bool, err error) {
	if s.db.IsPostgres() {
		return s.reserveAtOnce(ctx, r)
	}
	var refused atomic.Bool // the function may run again when Soon has returned
	err = s.db.Soon(ctx, reserveFlushTime, func(tx *sqldb.Tx) error {
		over, err := reserveIn(tx, r)
		refused.Store(over)
		return err
	})
	return refused.Load(), err
}

// reserveIn sets tokens aside in a transaction; over is true if that would exceed the cap.
func reserveIn(tx *sqldb.Tx, r sessions.Reservation) (over bool, err error) {
	id, person, on := sqldb.Text(r.ID), sqldb.Text(r.Person), formatDay(r.At)
	fresh, err := tx.Exec(`INSERT INTO reservations (id, person, day, tokens, settled, session, used, sent, until)
		VALUES (?, ?, ?, ?, FALSE, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		id, person, on, r.Tokens, sqldb.Text(r.Session), r.Used, r.SentTokens, time.Now().Add(bill.LeaseTime).UnixMicro())
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
func (s *tokens) Settle(ctx context.Context, r sessions.Reservation, tokens int64) error {
	if err := s.settle(ctx, r, clampCost(tokens)); err != nil {
		return fmt.Errorf("settle %s: %w", r.ID, err)
	}
	return nil
}

func (s *tokens) settle(ctx context.Context, r sessions.Reservation, tokens int64) error {
	if s.db.IsPostgres() {
		_, err := s.db.Shared(ctx, sqldb.Text(r.Person), settleAtOnce, []any{sqldb.Text(r.ID), tokens})
		return err
	}
	return s.db.Soon(ctx, settleFlushTime, func(tx *sqldb.Tx) error { return settleIn(tx, r, tokens) })
}

// settleIn replaces a reservation in a transaction. It first assumes that the reservation is stored as r
// says, and reads it only if it is not.
func settleIn(tx *sqldb.Tx, r sessions.Reservation, tokens int64) error {
	id, person, on, reserved := sqldb.Text(r.ID), sqldb.Text(r.Person), formatDay(r.At), r.Tokens
	changed, err := tx.Exec("UPDATE reservations SET settled = TRUE, session = '', tokens = ? WHERE id = ? AND NOT settled AND person = ? AND day = ? AND tokens = ?",
		tokens, id, person, on, reserved)
	if err == nil && changed == 0 {
		err = tx.Get("SELECT person, day, tokens FROM reservations WHERE id = ? AND NOT settled", []any{id}, &person, &on, &reserved)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = tx.Exec("UPDATE reservations SET settled = TRUE, session = '', tokens = ? WHERE id = ?", tokens, id)
		}
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec("UPDATE spending SET tokens = tokens + ? WHERE person = ? AND day = ?", tokens-reserved, person, on)
	return err
}

// Spent returns what a person has spent and reserved on a day; see [sessions.Budget].
func (s *tokens) Spent(ctx context.Context, person string, at time.Time) (int64, error) {
	s.db.Flush()
	var tokens int64
	err := s.spent.QueryRowContext(ctx, sqldb.Text(person), formatDay(at)).Scan(&tokens)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("spending of %s: %w", person, err)
	}
	return tokens, nil
}

// sweep deletes what is older than keepSpendingFor, once a day in each process. A day must be old both by the
// clock (now) and by the time of the reservation (at), because either may be wrong. Nobody waits for
// sweep; if it fails, the next one deletes the same days.
func (s *tokens) sweep(now, at time.Time) {
	if today := formatDay(now); s.lastSweepDay.Swap(today) == today {
		return
	}
	if at.Before(now) {
		now = at
	}
	before := formatDay(now.Add(-keepSpendingFor))
	s.db.Start(func(tx *sqldb.Tx) error {
		if _, err := tx.Exec("DELETE FROM reservations WHERE day < ?", before); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM spending WHERE day < ?", before)
		return err
	})
}
