package bill

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// This file keeps track of who holds a reservation: whoever works on its turn changes the amount, whoever
// resumes the turn takes it over, and once nobody works on the turn it is settled.

const (
	// LeaseTime is how long a reservation counts as being worked on after it was made or extended. After
	// that it is settled; in total this takes less than a minute.
	LeaseTime = 40 * time.Second
	// handBackPeriod is how long after that the process that made the reservation may come back and settle it
	// itself. A turn takes less.
	handBackPeriod = time.Hour
	// OldLeaseTime is how long a reservation from the release before, which nobody extends, counts as being
	// worked on. It is longer than a turn may take.
	OldLeaseTime = 40 * time.Minute
)

// PostgresClock is the SQL expression for the time of a PostgreSQL server in microseconds since 1970. It
// is used because the clocks of processes may differ.
const PostgresClock = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

// HeldUntilSQL returns the SQL expression for the time until which a reservation that is made or extended now
// counts as being worked on, and its argument.
func HeldUntilSQL(db *sqldb.DB) (expression string, arg int64) { return AfterSQL(db, LeaseTime) }

// AfterSQL returns the SQL expression for the time d from now, and its argument.
func AfterSQL(db *sqldb.DB, d time.Duration) (expression string, arg int64) {
	if db.IsPostgres() {
		return PostgresClock + " + CAST(? AS BIGINT)", d.Microseconds()
	}
	return "?", time.Now().Add(d).UnixMicro()
}

// TurnIDRange returns the bounds of the ids of a turn's reservations: these are greater than from and less
// than to.
func TurnIDRange(turn string) (from, to string) { return turn + "#", turn + "$" }

// IsOfTurn reports whether the reservation with this id belongs to the turn, and not to another whose id
// begins with it: the turn's id is followed only by numbers.
func IsOfTurn(id, turn string) bool {
	numbers, ok := strings.CutPrefix(id, turn+"#")
	return ok && strings.Trim(numbers, "0123456789.a") == ""
}

// Renew changes an existing reservation to another amount: r.Cost in all, of which ended calls have used
// r.Used. It returns an *OverError if a sum would exceed its cap, and leaves the reservation as it was.
// It returns false if the reservation does not exist, or no longer does.
func (b *Budget) Renew(ctx context.Context, r Reservation) (known bool, err error) {
	if b.db.IsPostgres() {
		done, known, err := b.renewAtOnce(ctx, r)
		if err != nil {
			return false, fmt.Errorf("renew %s: %w", r.ID, err)
		}
		if done || !known {
			return known, nil
		}
	}
	var over int
	err = b.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		over, known, err = b.renewIn(tx, r)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("renew %s: %w", r.ID, err)
	}
	if over > 0 {
		return true, &OverError{Cap: r.Caps[over-1]}
	}
	return known, nil
}

// renewAtOnce renews a reservation on PostgreSQL in one statement, unless a cap forbids it. It returns
// whether it has done so, and whether the reservation exists.
func (b *Budget) renewAtOnce(ctx context.Context, r Reservation) (done, known bool, err error) {
	clause, err := b.Clause(Change{Money: &r, IsRenewal: true}, 1)
	if err != nil {
		return false, false, err
	}
	_, err = b.db.Group(ctx, "WITH moved AS (SELECT 1)"+clause.Text+"\nSELECT EXISTS (SELECT 1 FROM charged), EXISTS (SELECT 1 FROM held)", clause.Args, &done, &known)
	return done, known, err
}

// renewIn does what Renew does, within a transaction. It returns the number of the cap that forbids it,
// counted from 1; 0 if none does.
func (b *Budget) renewIn(tx *sqldb.Tx, r Reservation) (over int, known bool, err error) {
	var shard, before int64
	err = tx.Get("SELECT shard, micro FROM charges WHERE id = ? AND NOT abandoned"+b.lock(), []any{sqldb.Text(r.ID)}, &shard, &before)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	for i, c := range r.Caps {
		var sum int64
		if err := tx.Get(counterValueQuery, []any{c.period(r.At), sqldb.Text(c.Subject)}, &sum); err != nil {
			return 0, true, err
		}
		if r.Cost > before && sum+r.Cost-before > c.Limit {
			return i + 1, true, nil
		}
	}
	until, from := HeldUntilSQL(b.db)
	_, err = tx.Exec("UPDATE charges SET micro = ?, used = ?, sent = ?, until = "+until+" WHERE id = ?", r.Cost, r.Used, r.SentCost, from, sqldb.Text(r.ID))
	if err == nil {
		err = addTo(tx, r.list(), shard, r.Cost-before)
	}
	return 0, true, err
}

// lock returns the end of a SELECT that locks its rows on PostgreSQL.
func (b *Budget) lock() string {
	if b.db.IsPostgres() {
		return " FOR UPDATE"
	}
	return ""
}

// addTo adds an amount to those of the counters that still exist.
func addTo(tx *sqldb.Tx, counters []counter, shard, micro int64) error {
	if micro == 0 {
		return nil
	}
	for _, c := range counters {
		_, err := tx.Exec("UPDATE counters SET micro = micro + ? WHERE period = ? AND subject = ? AND shard = ?", micro, c.Period, c.Subject, shard)
		if err != nil {
			return err
		}
	}
	return nil
}

// A charge is a row of the table of amounts set aside.
type charge struct {
	id, day, session, counters      string
	shard, micro, used, sent, until int64
	abandoned                       bool
}

const chargeColumns = "id, day, session, counters, shard, micro, used, sent, until, abandoned"

// readCharges reads rows of the table of amounts set aside.
func readCharges(found *sql.Rows, err error) (all []charge, _ error) {
	if err != nil {
		return nil, err
	}
	for found.Next() {
		var c charge
		if err := found.Scan(&c.id, &c.day, &c.session, &c.counters, &c.shard, &c.micro, &c.used, &c.sent, &c.until, &c.abandoned); err != nil {
			return nil, errors.Join(err, found.Close())
		}
		all = append(all, c)
	}
	return all, errors.Join(found.Err(), found.Close())
}

// isOld reports whether the release before has written the row. Nobody extends such a reservation.
func (c charge) isOld() bool { return c.counters == "" }

// storedCounters returns the counters to which the row was added, as far as they are known.
func (c charge) storedCounters() ([]counter, error) {
	if c.isOld() { // its counters of persons, sessions and agents are not known
		return []counter{{Period: c.day}, {Period: c.day[:len("2006-01")]}}, nil
	}
	var all []counter
	err := json.Unmarshal([]byte(c.counters), &all)
	return all, err
}

// KnownCost returns the amount that a reservation's calls count as if nobody reports what they have cost:
// what the ended calls have cost, and the part that was sent. The release before set aside the amount for
// four calls at once or, under an id that ends in "a", for one; one of these calls is counted.
func KnownCost(id string, amount, used, sent int64, old bool) int64 {
	switch {
	case !old:
		return min(amount, used+sent)
	case strings.HasSuffix(id, "a"):
		return amount
	}
	return amount / 4
}

// TakeOver turns what earlier holders have set aside for a turn into the reservation r, of which only ID,
// Session, Caps and At matter. What their ended calls have used stays counted; the rest now belongs to r.
// TakeOver returns how much that is; false if nothing was set aside, or not in the caps of r. A repeated
// call returns the same.
func (b *Budget) TakeOver(ctx context.Context, r Reservation, turn string) (micro int64, ok bool, err error) {
	err = b.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		micro, ok, err = b.takeOverIn(tx, r, turn)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("take over what is set aside for turn %s: %w", turn, err)
	}
	return micro, ok, nil
}

func (b *Budget) takeOverIn(tx *sqldb.Tx, r Reservation, turn string) (micro int64, ok bool, err error) {
	from, to := TurnIDRange(sqldb.Text(turn))
	all, err := readCharges(tx.Query("SELECT "+chargeColumns+" FROM charges WHERE id > ? AND id < ? ORDER BY id"+b.lock(), from, to))
	if err != nil {
		return 0, false, err
	}
	mine, session := sqldb.Text(r.ID), sqldb.Text(r.Session)
	if i := slices.IndexFunc(all, func(c charge) bool { return c.id == mine }); i >= 0 {
		return all[i].micro, true, nil // this call repeats an earlier one
	}
	for _, c := range all {
		if !IsOfTurn(c.id, sqldb.Text(turn)) || c.session != session && !c.isOld() {
			continue
		}
		counted, err := c.storedCounters()
		switch {
		case err != nil:
			return 0, false, err
		case c.isOld():
			counted = r.list() // the current ones, because the row does not contain them
		}
		spent := c.used
		if c.isOld() {
			spent = KnownCost(c.id, c.micro, 0, 0, true)
		}
		if !ok && c.day == day(r.At) && sameCounters(counted, r.list()) {
			counters, err := r.counters()
			if err != nil {
				return 0, false, err
			}
			micro, ok = c.micro-spent, true
			until, at := HeldUntilSQL(b.db)
			_, err = tx.Exec("UPDATE charges SET id = ?, session = ?, counters = ?, micro = ?, used = 0, sent = 0, abandoned = FALSE, until = "+until+" WHERE id = ?",
				mine, session, counters, micro, at, c.id)
			if err != nil {
				return 0, false, err
			}
			continue
		}
		if _, err := tx.Exec("DELETE FROM charges WHERE id = ?", c.id); err != nil {
			return 0, false, err
		}
		if err := addTo(tx, onDay(counted, c.day), c.shard, spent-c.micro); err != nil {
			return 0, false, err
		}
	}
	return micro, ok, nil
}

// onDay returns the counters with their periods replaced by those that contain a day.
func onDay(counters []counter, day string) []counter {
	all := slices.Clone(counters)
	for i := range all {
		all[i].Period = day[:len(all[i].Period)]
	}
	return all
}

// sameCounters reports whether two reservations were added to the same counters.
func sameCounters(a, b []counter) bool {
	return slices.EqualFunc(a, b, func(a, b counter) bool { return a.Period == b.Period && a.Subject == b.Subject })
}

// Extend records that reservations are still being worked on. Those that were settled meanwhile stay
// settled.
func (b *Budget) Extend(ctx context.Context, ids []string) error {
	if b.db.IsPostgres() { // there each statement is a round trip
		until, from := HeldUntilSQL(b.db)
		_, err := b.db.Exec(ctx, "UPDATE charges SET until = "+until+" WHERE id = ANY(CAST(? AS text[])) AND NOT abandoned", from, StoredTexts(ids))
		if err != nil {
			return fmt.Errorf("extend what is set aside: %w", err)
		}
		return nil
	}
	return b.db.Soon(ctx, extendFlushTime, func(tx *sqldb.Tx) error {
		until, from := HeldUntilSQL(b.db)
		for _, id := range ids {
			if _, err := tx.Exec("UPDATE charges SET until = "+until+" WHERE id = ? AND NOT abandoned", from, sqldb.Text(id)); err != nil {
				return fmt.Errorf("extend what is set aside: %w", err)
			}
		}
		return nil
	})
}

// StoredTexts returns ids in the form in which the database stores them.
func StoredTexts(ids []string) []string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = sqldb.Text(id)
	}
	return all
}

// extendFlushTime is the time within which an extension is on the disk.
const extendFlushTime = time.Second

// Expired returns the ids of reservations whose holder stopped extending them, at most most.
func (b *Budget) Expired(ctx context.Context, most int) (ids []string, err error) {
	now, from := AfterSQL(b.db, 0)
	ids, err = sqldb.Column(b.db.Read.QueryContext(ctx, "SELECT id FROM charges WHERE until < "+now+" ORDER BY until LIMIT "+strconv.Itoa(most), from))
	if err != nil {
		return nil, fmt.Errorf("look for what nobody works on: %w", err)
	}
	return ids, nil
}

// SettleExpired settles, in a transaction, a reservation that Expired has returned, at the known cost of
// its calls. The row stays for a while, so that its owner can settle it if it comes back. SettleExpired
// returns whether anything was settled.
func (b *Budget) SettleExpired(tx *sqldb.Tx, id string) (settled bool, err error) {
	now, from := AfterSQL(b.db, 0)
	all, err := readCharges(tx.Query("SELECT "+chargeColumns+" FROM charges WHERE id = ? AND until < "+now+b.lock(), id, from))
	if err != nil || len(all) == 0 {
		return false, err
	}
	c := all[0]
	counted, err := c.storedCounters()
	if err != nil {
		return false, err
	}
	known := KnownCost(c.id, c.micro, c.used, c.sent, c.isOld())
	switch {
	case c.isOld() && c.until == 0: // its time begins now, because it is not known when it was made
		until, from := AfterSQL(b.db, OldLeaseTime)
		_, err = tx.Exec("UPDATE charges SET until = "+until+" WHERE id = ?", from, id)
		return false, err
	case c.abandoned:
		_, err = tx.Exec("DELETE FROM charges WHERE id = ?", id)
		return false, err
	case c.isOld(), c.session == "":
		_, err = tx.Exec("DELETE FROM charges WHERE id = ?", id)
	default:
		until, from := AfterSQL(b.db, handBackPeriod)
		_, err = tx.Exec("UPDATE charges SET micro = ?, abandoned = TRUE, until = "+until+" WHERE id = ?", known, from, id)
	}
	if err == nil {
		err = addTo(tx, counted, c.shard, known-c.micro)
	}
	return true, err
}

// OpenReservations is what is set aside, but not spent yet, at one moment.
type OpenReservations struct {
	All  int64 // in micro-dollars
	rows []charge
}

// SetAside reads what is set aside for all current calls.
func (b *Budget) SetAside(ctx context.Context) (a OpenReservations, err error) {
	return b.setAside(ctx, "TRUE")
}

// setAside reads what is set aside in the rows for which the condition is true.
func (b *Budget) setAside(ctx context.Context, condition string, args ...any) (a OpenReservations, err error) {
	b.db.Flush()
	a.rows, err = readCharges(b.db.Read.QueryContext(ctx, "SELECT "+chargeColumns+" FROM charges WHERE NOT abandoned AND "+condition, args...))
	if err != nil {
		return a, fmt.Errorf("read what is set aside: %w", err)
	}
	for _, c := range a.rows {
		a.All += c.micro - c.used
	}
	return a, nil
}

// ForCap returns how much is set aside for a cap, in the day or month that contains a time.
func (a OpenReservations) ForCap(c Cap, at time.Time) (micro int64, err error) {
	for _, row := range a.rows {
		counted, err := row.storedCounters()
		if err != nil {
			return 0, fmt.Errorf("read what is set aside: %w", err)
		}
		if slices.ContainsFunc(counted, func(k counter) bool { return k.Period == c.period(at) && k.Subject == sqldb.Text(c.Subject) }) {
			micro += row.micro - row.used
		}
	}
	return micro, nil
}

// Subjects returns the people and sessions, in the form of Person and Session, for whom something is set
// aside in caps of the day that contains a time.
func (a OpenReservations) Subjects(at time.Time) (all []string, err error) {
	for _, row := range a.rows {
		counted, err := row.storedCounters()
		if err != nil {
			return nil, fmt.Errorf("read what is set aside: %w", err)
		}
		for _, k := range counted {
			of := sqldb.Untext(k.Subject)
			if k.Period == day(at) && (strings.HasPrefix(of, Person("")) || strings.HasPrefix(of, Session(""))) && !slices.Contains(all, of) {
				all = append(all, of)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// A CapState says how much of a cap was spent, and how much more is set aside for current calls.
type CapState struct {
	Of       string `json:"of"`      // "all", or whom the cap is for, as person:ID, session:KEY or agent:NAME
	Span     string `json:"span"`    // "day" or "month"
	Setting  string `json:"setting"` // where the cap is set
	Limit    int64  `json:"most_microdollars"`
	Spent    int64  `json:"spent_microdollars"`
	Reserved int64  `json:"reserved_microdollars"`
}

// CapState returns the state of a cap in the day or month that contains a time, given what is set aside.
// setting says where the cap is set.
func (b *Budget) CapState(ctx context.Context, aside OpenReservations, c Cap, setting string, at time.Time) (CapState, error) {
	s := CapState{Of: cmp.Or(c.Subject, "all"), Span: "day", Setting: setting, Limit: c.Limit}
	if c.IsMonthly {
		s.Span = "month"
	}
	var err error
	if s.Reserved, err = aside.ForCap(c, at); err != nil {
		return s, err
	}
	sum, err := b.Spent(ctx, c, at)
	s.Spent = max(0, sum-s.Reserved)
	return s, err
}

// State returns what was spent of a cap in the day or month that contains a time, and what is set aside
// in addition.
func (b *Budget) State(ctx context.Context, c Cap, at time.Time) (spent, aside int64, err error) {
	condition, args := mayContainCondition(sqldb.Text(c.Subject))
	all, err := b.setAside(ctx, "("+condition+" OR counters = '')", args...)
	if err != nil {
		return 0, 0, err
	}
	s, err := b.CapState(ctx, all, c, "", at)
	return s.Spent, s.Reserved, err
}

// mayContainCondition returns an SQL condition that is true for all rows of charges in a subject's counters, and for
// few others: so only those reservations are decoded, and not one for each turn in progress. An index
// would make every turn slower.
//
// The condition is that the row's counters contain each word of the subject, because the characters
// between words can be written in different ways in JSON.
func mayContainCondition(subject string) (condition string, args []any) {
	condition = "TRUE"
	for word := range strings.FieldsFuncSeq(subject, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		condition, args = condition+" AND counters LIKE ?", append(args, "%"+word+"%")
	}
	slices.Reverse(args) // the last word of an id is the rarest, so it is looked for first
	return "(" + condition + ")", args
}

// Detach removes a session, unless it is "", from what is set aside for its turns, and a person or
// session from what is set aside in their caps; subject is what Person or Session returns. The rest stays
// counted until it is settled, and nobody takes it over.
func Detach(tx *sqldb.Tx, session, subject string) error {
	condition, args := mayContainCondition(sqldb.Text(subject))
	all, err := readCharges(tx.Query("SELECT "+chargeColumns+" FROM charges WHERE "+condition+" OR session = ? AND session <> ''", append(args, sqldb.Text(session))...))
	if err != nil {
		return err
	}
	for _, c := range all {
		counted, err := c.storedCounters()
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(counted), func(k counter) bool { return k.Subject == sqldb.Text(subject) })
		if c.isOld() || len(left) == len(counted) && (session == "" || c.session != sqldb.Text(session)) {
			continue
		}
		raw, err := plainjson.Marshal(left)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE charges SET session = '', counters = ? WHERE id = ?", string(raw), c.id); err != nil {
			return err
		}
	}
	return nil
}
