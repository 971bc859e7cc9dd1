package sqlstore

import (
	"database/sql"
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

// tokens bounds how many tokens people use.
type tokens struct {
	db    *sqldb.DB
	spent *sql.Stmt
	swept atomic.Value // the day on which sweep last ran
	money *bill.Budget // bounds what they may cost
}

// bounded returns the cost of a call, in tokens, in the form in which it is counted: not negative,
// and at most maxCost.
func bounded(tokens int64) int64 { return min(max(tokens, 0), maxCost) }

// roomFor returns the most that the person may have spent and reserved already if the reservation
// is to fit under its cap; -1 if it never fits.
func roomFor(r sessions.Reservation) int64 {
	if r.Tokens > r.Cap {
		return -1
	}
	return r.Cap - r.Tokens
}

// lockRow returns the end of a SELECT that locks its rows: the reader waits for those who change them,
// and keeps them out until its transaction ends. SQLite needs none, as it has only one writer.
func lockRow(db *sqldb.DB) string {
	if db.Postgres() {
		return " FOR UPDATE"
	}
	return ""
}
