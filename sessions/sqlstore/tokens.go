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
	// maxCost limits the cost of one call, so that a provider that reports nonsense cannot make a day's
	// sum overflow.
	maxCost = 1 << 40
	// keepSpendingFor is how long spending and reservations are kept. An interrupted call is
	// resumed or given up long before that.
	keepSpendingFor = 7 * 24 * time.Hour

	// reserveFlushTime is the time within which a reservation is on the disk, on SQLite. There only one
	// process makes calls: a crash before that loses the calls in flight along with their reservations.
	reserveFlushTime = 10 * time.Millisecond
	// settleFlushTime is the time within which a settlement is on the disk. A crash before that leaves the
	// reservation, like a crash before Settle.
	settleFlushTime = 200 * time.Millisecond
)

// tokens limits how many tokens people use.
type tokens struct {
	db           *sqldb.DB
	spent        *sql.Stmt
	lastSweepDay atomic.Value // the day on which sweep last ran
	money        *bill.Budget // limits what model calls may cost
}

// clampCost returns the cost of a call, in tokens, limited to the range in which it is counted: not
// negative, and at most maxCost.
func clampCost(tokens int64) int64 { return min(max(tokens, 0), maxCost) }

// roomFor returns the most that the person may have spent and reserved already if the reservation
// is to fit under its cap; -1 if it never fits.
func roomFor(r sessions.Reservation) int64 {
	if r.Tokens > r.Cap {
		return -1
	}
	return r.Cap - r.Tokens
}

// lockRow returns the end of a SELECT that locks its rows: the reader waits for those who are changing
// them, and keeps others out until its transaction ends. SQLite needs no such lock, because it has only
// one writer.
func lockRow(db *sqldb.DB) string {
	if db.IsPostgres() {
		return " FOR UPDATE"
	}
	return ""
}
