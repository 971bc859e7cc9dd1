package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
)

// This file keeps track of who holds a reservation: whoever works on its turn changes the amount, whoever
// resumes the turn takes it over, and once nobody works on the turn it is settled. Package bill does the
// same for money.

// Renew changes the number of tokens of a reservation; see [sessions.Budget].
func (s *tokens) Renew(ctx context.Context, r sessions.Reservation) (known bool, err error) {
	if s.db.IsPostgres() {
		var done bool
		clause := tokensClause(bill.Change{Tokens: &r, IsRenewal: true}, 1)
		_, err := s.db.Shared(ctx, sqldb.Text(r.Person), "WITH moved AS (SELECT 1)"+clause.Text+"\nSELECT EXISTS (SELECT 1 FROM made), EXISTS (SELECT 1 FROM before)", clause.Args, &done, &known)
		if err != nil {
			return false, fmt.Errorf("renew %s: %w", r.ID, err)
		}
		if done || !known {
			return known, nil
		}
	}
	var over bool
	err = s.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		over, known, err = s.renewIn(tx, r)
		return err
	})
	if err == nil && over {
		err = sessions.ErrOverBudget
	}
	if err != nil {
		return known, fmt.Errorf("renew %s: %w", r.ID, err)
	}
	return known, nil
}

// renewIn does what Renew does, in a transaction; over is true if that would exceed the cap.
func (s *tokens) renewIn(tx *sqldb.Tx, r sessions.Reservation) (over, known bool, err error) {
	var person, on string
	var before int64
	err = tx.Get("SELECT person, day, tokens FROM reservations WHERE id = ? AND NOT settled AND NOT abandoned"+lockRow(s.db),
		[]any{sqldb.Text(r.ID)}, &person, &on, &before)
	if errors.Is(err, sql.ErrNoRows) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	most := r.Cap - r.Tokens + before // the most that may be spent and reserved before this change
	changed, err := tx.Exec("UPDATE spending SET tokens = tokens + ? WHERE person = ? AND day = ? AND (CAST(? AS BIGINT) <= 0 OR tokens <= ?)",
		r.Tokens-before, person, on, r.Tokens-before, most)
	if err != nil || changed == 0 {
		return err == nil, true, err
	}
	until, from := bill.HeldUntilSQL(s.db)
	_, err = tx.Exec("UPDATE reservations SET tokens = ?, used = ?, sent = ?, until = "+until+" WHERE id = ?", r.Tokens, r.Used, r.SentTokens, from, sqldb.Text(r.ID))
	return false, true, err
}

// A reservedRow is a row of the table of reserved tokens.
type reservedRow struct {
	id, person, day, session  string
	tokens, used, sent, until int64
	abandoned                 bool
}

const reservedColumns = "id, person, day, session, tokens, used, sent, until, abandoned"

// isOld reports whether the row looks as the release before writes it. That release does not extend its
// reservations.
func (r reservedRow) isOld() bool { return r.session == "" && r.used == 0 && r.sent == 0 }

// knownTokens returns the number of tokens that the row's calls count as if nobody reports what they have used.
func (r reservedRow) knownTokens() int64 {
	return bill.KnownCost(r.id, r.tokens, r.used, r.sent, r.isOld())
}

// readReserved reads rows of reserved tokens.
func readReserved(found *sql.Rows, err error) (all []reservedRow, _ error) {
	if err != nil {
		return nil, err
	}
	for found.Next() {
		var r reservedRow
		if err := found.Scan(&r.id, &r.person, &r.day, &r.session, &r.tokens, &r.used, &r.sent, &r.until, &r.abandoned); err != nil {
			return nil, errors.Join(err, found.Close())
		}
		all = append(all, r)
	}
	return all, errors.Join(found.Err(), found.Close())
}

// addSpending adds tokens to a person's spending on a day.
func addSpending(tx *sqldb.Tx, r reservedRow, tokens int64) error {
	_, err := tx.Exec("UPDATE spending SET tokens = tokens + ? WHERE person = ? AND day = ?", tokens, r.person, r.day)
	return err
}

// TakeOver turns the reservations for a turn into another reservation; see [sessions.Budget].
func (s *tokens) TakeOver(ctx context.Context, r sessions.Reservation, turn string) (tokens int64, ok bool, err error) {
	err = s.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		tokens, ok, err = s.takeOverIn(tx, r, turn)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("take over the tokens of turn %s: %w", turn, err)
	}
	return tokens, ok, nil
}

func (s *tokens) takeOverIn(tx *sqldb.Tx, r sessions.Reservation, turn string) (tokens int64, ok bool, err error) {
	from, to := bill.TurnIDRange(sqldb.Text(turn))
	all, err := readReserved(tx.Query("SELECT "+reservedColumns+" FROM reservations WHERE id > ? AND id < ? AND NOT settled ORDER BY id"+lockRow(s.db), from, to))
	if err != nil {
		return 0, false, err
	}
	mine := sqldb.Text(r.ID)
	if i := slices.IndexFunc(all, func(o reservedRow) bool { return o.id == mine }); i >= 0 {
		return all[i].tokens, true, nil // this call repeats an earlier one
	}
	for _, o := range all {
		if !bill.IsOfTurn(o.id, sqldb.Text(turn)) || !o.isOld() && o.session != sqldb.Text(r.Session) {
			continue
		}
		used := o.used
		if o.isOld() {
			used = o.knownTokens()
		}
		if !ok && o.day == formatDay(r.At) && o.person == sqldb.Text(r.Person) {
			tokens, ok = o.tokens-used, true
			until, at := bill.HeldUntilSQL(s.db)
			_, err = tx.Exec("UPDATE reservations SET id = ?, session = ?, tokens = ?, used = 0, sent = 0, abandoned = FALSE, until = "+until+" WHERE id = ?",
				mine, sqldb.Text(r.Session), tokens, at, o.id)
		} else if _, err = tx.Exec("UPDATE reservations SET settled = TRUE, session = '', tokens = ? WHERE id = ?", used, o.id); err == nil {
			err = addSpending(tx, o, used-o.tokens)
		}
		if err != nil {
			return 0, false, err
		}
	}
	return tokens, ok, nil
}

// Extend records that reservations are still worked on; see [sessions.Budget].
func (s *tokens) Extend(ctx context.Context, ids []string) error {
	if s.db.IsPostgres() { // there each statement is a round trip
		until, from := bill.HeldUntilSQL(s.db)
		_, err := s.db.Exec(ctx, "UPDATE reservations SET until = "+until+" WHERE id = ANY(CAST(? AS text[])) AND NOT settled AND NOT abandoned", from, bill.StoredTexts(ids))
		if err != nil {
			return fmt.Errorf("extend reservations: %w", err)
		}
		return nil
	}
	return s.db.Soon(ctx, settleFlushTime, func(tx *sqldb.Tx) error {
		until, from := bill.HeldUntilSQL(s.db)
		for _, id := range ids {
			if _, err := tx.Exec("UPDATE reservations SET until = "+until+" WHERE id = ? AND NOT settled AND NOT abandoned", from, sqldb.Text(id)); err != nil {
				return fmt.Errorf("extend reservations: %w", err)
			}
		}
		return nil
	})
}

// Reserved returns the tokens that are only reserved; see [sessions.Budget].
func (s *tokens) Reserved(ctx context.Context, person string, at time.Time) (tokens int64, err error) {
	s.db.Flush()
	err = s.db.Read.QueryRowContext(ctx, "SELECT CAST(coalesce(sum(tokens - used), 0) AS BIGINT) FROM reservations WHERE NOT settled AND NOT abandoned AND person = ? AND day = ?",
		sqldb.Text(person), formatDay(at)).Scan(&tokens)
	if err != nil {
		return 0, fmt.Errorf("reserved tokens of %s: %w", person, err)
	}
	return tokens, nil
}

const (
	// maxSettledPerWrite is the most reservations that are settled in one write, which takes a few
	// milliseconds at most.
	maxSettledPerWrite = 50
	handBackPeriod     = time.Hour // see bill.LeaseTime
)

// detachReservations removes a session from the reservations of its turns, so that nobody takes them over.
func detachReservations(tx *sqldb.Tx, session string) error {
	_, err := tx.Exec("UPDATE reservations SET session = '' WHERE NOT settled AND session = ?", sqldb.Text(session))
	return err
}

// SettleAbandoned settles the reservations of tokens and money on which nobody works anymore, and returns
// how many these were.
func (s *tokens) SettleAbandoned(ctx context.Context) (settled int, err error) {
	for {
		money, err := s.money.Expired(ctx, maxSettledPerWrite)
		if err != nil {
			return settled, err
		}
		tokens, err := s.expired(ctx)
		if err != nil || len(money)+len(tokens) == 0 {
			return settled, err
		}
		n := 0
		err = s.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			n, err = s.settleExpired(tx, money, tokens)
			return err
		})
		if err != nil {
			return settled, fmt.Errorf("settle what nobody works on: %w", err)
		}
		settled += n
	}
}

// settleExpired settles reservations of money and of tokens, by their ids.
func (s *tokens) settleExpired(tx *sqldb.Tx, money, tokens []string) (settled int, err error) {
	settle := func(ids []string, one func(*sqldb.Tx, string) (bool, error)) {
		for _, id := range ids {
			if err != nil {
				return
			}
			var done bool
			if done, err = one(tx, id); done {
				settled++
			}
		}
	}
	settle(money, s.money.SettleExpired)
	settle(tokens, s.settleExpiredTokens)
	return settled, err
}

// expired returns the ids of some reservations of tokens on which nobody works anymore.
func (s *tokens) expired(ctx context.Context) (ids []string, err error) {
	now, from := bill.AfterSQL(s.db, 0)
	ids, err = sqldb.Column(s.db.Read.QueryContext(ctx,
		"SELECT id FROM reservations WHERE NOT settled AND until < "+now+" ORDER BY until LIMIT "+strconv.Itoa(maxSettledPerWrite), from))
	if err != nil {
		return nil, fmt.Errorf("look for reservations that nobody works on: %w", err)
	}
	return ids, nil
}

// settleExpiredTokens does for reserved tokens what [bill.Budget.SettleExpired] does for money.
func (s *tokens) settleExpiredTokens(tx *sqldb.Tx, id string) (settled bool, err error) {
	now, from := bill.AfterSQL(s.db, 0)
	all, err := readReserved(tx.Query("SELECT "+reservedColumns+" FROM reservations WHERE id = ? AND NOT settled AND until < "+now+lockRow(s.db), id, from))
	if err != nil || len(all) == 0 {
		return false, err
	}
	r := all[0]
	known := r.knownTokens()
	switch {
	case r.isOld() && r.until == 0: // its time begins now, because it is not known when it was made
		until, from := bill.AfterSQL(s.db, bill.OldLeaseTime)
		_, err = tx.Exec("UPDATE reservations SET until = "+until+" WHERE id = ?", from, id)
		return false, err
	case r.abandoned:
		_, err = tx.Exec("UPDATE reservations SET settled = TRUE, session = '' WHERE id = ?", id)
		return false, err
	case r.session == "":
		_, err = tx.Exec("UPDATE reservations SET settled = TRUE, tokens = ? WHERE id = ?", known, id)
	default:
		until, from := bill.AfterSQL(s.db, handBackPeriod)
		_, err = tx.Exec("UPDATE reservations SET tokens = ?, abandoned = TRUE, until = "+until+" WHERE id = ?", known, from, id)
	}
	if err == nil {
		err = addSpending(tx, r, known-r.tokens)
	}
	return true, err
}

// reservationsOf returns the ids of a person's reservations. It reads all reservations of a week, while
// others may write: an index by person would cost every turn something.
func (s *tokens) reservationsOf(ctx context.Context, person string) (ids []string, err error) {
	return sqldb.Column(s.db.Read.QueryContext(ctx, "SELECT id FROM reservations WHERE person = ?", person))
}

// anonymizeSpending moves a person's spending to the empty name, and their reservations too. It adds
// exactly the rows that the DELETE returns, so that tokens spent meanwhile are not lost.
func anonymizeSpending(tx *sqldb.Tx, person string, reservations []string) error {
	found, err := tx.Query("DELETE FROM spending WHERE person = ? RETURNING day, tokens", person)
	if err != nil {
		return err
	}
	sums := map[string]int64{}
	for found.Next() {
		var day string
		var tokens int64
		if err := found.Scan(&day, &tokens); err != nil {
			return errors.Join(err, found.Close())
		}
		sums[day] = tokens
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return err
	}
	for day, tokens := range sums {
		if _, err := tx.Exec(`INSERT INTO spending (person, day, tokens) VALUES ('', ?, ?)
			ON CONFLICT (person, day) DO UPDATE SET tokens = spending.tokens + excluded.tokens`, day, tokens); err != nil {
			return err
		}
	}
	for _, id := range reservations {
		if _, err := tx.Exec("UPDATE reservations SET person = '', session = '' WHERE id = ? AND person = ?", id, person); err != nil {
			return err
		}
	}
	return nil
}
