package sqlstore_test

import (
	"context"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sessionstest"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// BenchmarkBudget lets two processes reserve and settle tokens at the same time.
func BenchmarkBudget(b *testing.B) {
	sessionstest.BenchmarkPayments(b, sessionstest.Payment[*sqlstore.Store]{
		New: sqldbtest.New, Open: sqlstore.Open, Parallel: 100,
		Pay: func(ctx context.Context, s *sqlstore.Store, turn, person string) error {
			r := sessions.Reservation{ID: turn, Person: person, Tokens: 100, Cap: 1 << 40, At: time.Now()}
			if err := s.Reserve(ctx, r); err != nil {
				return err
			}
			return s.Settle(ctx, r, 50)
		},
	})
}
