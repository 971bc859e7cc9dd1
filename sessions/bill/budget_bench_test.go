package bill_test

import (
	"context"
	"testing"
	"time"

	"parley/sessions/bill"
	"parley/sessions/sessionstest"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// BenchmarkMoney lets two processes reserve and settle money at the same time. All people share the caps of the
// same day and month.
func BenchmarkMoney(b *testing.B) {
	sessionstest.BenchmarkPayments(b, sessionstest.Payment[*sqlstore.Store]{
		New: sqldbtest.New, Open: sqlstore.Open, Parallel: 50,
		Pay: func(ctx context.Context, s *sqlstore.Store, turn, person string) error {
			r := bill.Reservation{ID: turn, Cost: 100, At: time.Now(), Caps: []bill.Cap{
				{Subject: bill.Person(person), Limit: 1 << 40}, {Limit: 1 << 40}, {IsMonthly: true, Limit: 1 << 40},
			}}
			if err := s.Money().Reserve(ctx, r); err != nil {
				return err
			}
			return s.Money().Settle(ctx, r, 50)
		},
	})
}
