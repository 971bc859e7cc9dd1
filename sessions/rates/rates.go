// Package rates counts people's calls of tools, to limit how many each person may have in a minute, an hour or a day.
//
// A call is counted under an id, and once, no matter how often it is tried or who resumes its turn. All processes of
// a fleet count in the same table. Only calls of the same person wait for each other.
package rates

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/sessions/sqldb"
)

// Migration is the migration that adds the table of calls; {bytes} is replaced by a text type that sorts by bytes. A
// row stays for as long as the longest window.
const Migration = `
CREATE TABLE rated_calls (
	person {bytes} NOT NULL,
	tools  {bytes} NOT NULL,  -- the names that the rate limits, such as web_*
	at     BIGINT NOT NULL,   -- microseconds since 1970
	call   {bytes} NOT NULL,
	PRIMARY KEY (person, tools, at, call)
);
CREATE INDEX rated_calls_by_call ON rated_calls (person, call, at);
CREATE INDEX rated_calls_by_time ON rated_calls (at);
`

// longestWindow is the longest window of a rate.
const longestWindow = 24 * time.Hour

// maxClockLead is by how much the clock may have been ahead with which a call was counted. Calls from later than that don't count,
// so nobody is locked out once the clock is right again.
const maxClockLead = time.Minute

// A Rate is the most calls that a person may have within any time of that length.
type Rate struct {
	Tools  string // the names of the tools whose calls are counted together
	Limit  int
	Window time.Duration
}

// An OverError says that a call would exceed a rate.
type OverError struct {
	Rate Rate
	Wait time.Duration // the wait until there may be another call
}

// Error says which rate is exceeded, and when there may be another call.
func (e *OverError) Error() string {
	return fmt.Sprintf("%d calls of %s within %v are reached; the next may be in %v", e.Rate.Limit, e.Rate.Tools, e.Rate.Window, e.Wait)
}

// A Table stores the calls in a database. Several processes may use the same one at a time.
type Table struct{ db *sqldb.DB }

// NewTable returns the Table of one process.
func NewTable(db *sqldb.DB) *Table { return &Table{db} }

// Count counts a call for a person under all of the rates, or under none: it returns an *OverError if one of them is
// reached. A call that is counted already is neither counted again nor refused.
func (t *Table) Count(ctx context.Context, person, call string, rates ...Rate) error {
	var over *OverError
	err := t.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		over, err = t.countIn(tx, sqldb.Text(person), sqldb.Text(call), rates)
		return err
	})
	if err != nil {
		return fmt.Errorf("count call %s of %s: %w", call, person, err)
	}
	if over != nil {
		return over
	}
	return nil
}

// countIn does what Count does, within a transaction.
func (t *Table) countIn(tx *sqldb.Tx, person, call string, rates []Rate) (over *OverError, err error) {
	now, err := t.begin(tx, person)
	if err != nil {
		return nil, err
	}
	var known int
	err = tx.Get("SELECT 1 FROM rated_calls WHERE person = ? AND call = ? AND at > ? LIMIT 1", []any{person, call, now - longestWindow.Microseconds()}, &known)
	if !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	var names []string
	for _, r := range rates {
		opens, err := r.opensIn(tx, person, now)
		if err != nil {
			return nil, err
		}
		if opens > 0 && (over == nil || opens > over.Wait) {
			over = &OverError{r, opens}
		}
		if !slices.Contains(names, r.Tools) {
			names = append(names, r.Tools)
		}
	}
	if over != nil {
		return over, nil
	}
	for _, name := range names {
		if _, err := tx.Exec("INSERT INTO rated_calls (person, tools, at, call) VALUES (?, ?, ?, ?)", person, sqldb.Text(name), now, call); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// begin returns the time in microseconds. In a fleet it is the server's, because the clocks of processes may differ,
// and from then on until the end of the transaction no other process counts calls of the person.
func (t *Table) begin(tx *sqldb.Tx, person string) (now int64, err error) {
	if t.db.IsPostgres() {
		if _, err := tx.Exec("SELECT pg_advisory_xact_lock(hashtext('parley:rates:' || current_schema()), hashtext(?))", person); err != nil {
			return 0, err
		}
	}
	return t.now(tx)
}

// now returns the time in microseconds, in a fleet the server's.
func (t *Table) now(tx *sqldb.Tx) (now int64, err error) {
	if !t.db.IsPostgres() {
		return time.Now().UnixMicro(), nil
	}
	err = tx.Get("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", nil, &now)
	return now, err
}

// opensIn returns how long a person has to wait for the next call; 0 if there may be one now.
func (r Rate) opensIn(tx *sqldb.Tx, person string, now int64) (time.Duration, error) {
	var at int64 // of the call that has to leave the window first
	err := tx.Get("SELECT at FROM rated_calls WHERE person = ? AND tools = ? AND at > ? AND at <= ? ORDER BY at DESC LIMIT 1 OFFSET ?",
		[]any{person, sqldb.Text(r.Tools), now - r.Window.Microseconds(), now + maxClockLead.Microseconds(), r.Limit - 1}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return min(r.Window-time.Duration(now-at)*time.Microsecond, r.Window), err // also if the clock was set back
}

// sweepRows is how many calls Sweep removes at most.
const sweepRows = 500

// Sweep removes some of the calls that no window reaches anymore, and of those from the future. more is true if there may be
// others.
func (t *Table) Sweep(ctx context.Context) (more bool, err error) {
	free := "" // so that two processes that sweep at once do not wait for each other's rows
	if t.db.IsPostgres() {
		free = " FOR UPDATE SKIP LOCKED"
	}
	var n int64
	err = t.db.Write(ctx, func(tx *sqldb.Tx) error {
		now, err := t.now(tx)
		if err != nil {
			return err
		}
		n, err = tx.Exec(`DELETE FROM rated_calls WHERE (person, tools, at, call) IN (
			SELECT person, tools, at, call FROM rated_calls WHERE at < ? OR at > ? LIMIT ?`+free+`)`,
			now-longestWindow.Microseconds(), now+maxClockLead.Microseconds(), sweepRows)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("remove old calls: %w", err)
	}
	return n == sweepRows, nil
}

// Forget removes what is counted for a person.
func Forget(tx *sqldb.Tx, person string) error {
	_, err := tx.Exec("DELETE FROM rated_calls WHERE person = ?", sqldb.Text(person))
	return err
}
