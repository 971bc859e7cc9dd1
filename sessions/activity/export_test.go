package activity

import (
	"context"
	"time"

	"parley/sessions/sqldb"
)

// SweepNow does what Sweep does, and waits for it.
func (t *Table) SweepNow(ctx context.Context, now time.Time) error {
	return t.db.Write(ctx, func(tx *sqldb.Tx) error { return t.sweepIn(tx, now) })
}
