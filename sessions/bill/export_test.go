package bill

import (
	"context"
	"time"
)

// Settled returns the time before which calls are added to the kept sums.
func (t Table) Settled(ctx context.Context, now time.Time) (string, error) {
	return t.settled(ctx, now)
}
