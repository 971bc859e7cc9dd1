package bill_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions/bill"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// BenchmarkMoney lets two processes reserve and settle at the same time for a few people,
// all of them bounded by the same day and month.
func BenchmarkMoney(b *testing.B) {
	for _, people := range []int64{2, 20, 200} {
		b.Run(fmt.Sprintf("people=%d", people), func(b *testing.B) {
			place := sqldbtest.New(b)
			var stores []*sqlstore.Store
			for range 2 {
				s, err := sqlstore.Open(b.Context(), place)
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				stores = append(stores, s)
			}
			var turns, worst atomic.Int64
			b.SetParallelism(50)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := turns.Add(1)
					began := time.Now()
					r := bill.Reservation{ID: fmt.Sprint("turn-", n), Cost: 100, At: began, Caps: []bill.Cap{
						{Of: bill.Person(fmt.Sprint("telegram:", n%people)), Most: 1 << 40}, {Most: 1 << 40}, {Month: true, Most: 1 << 40},
					}}
					money := stores[n/people%2].Money()
					if err := money.Reserve(b.Context(), r); err != nil {
						b.Error(err)
					}
					if err := money.Settle(b.Context(), r, 50); err != nil {
						b.Error(err)
					}
					if took := int64(time.Since(began)); took > worst.Load() {
						worst.Store(took) // about
					}
				}
			})
			b.ReportMetric(float64(turns.Load())/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(float64(worst.Load())/1e6, "worst-ms")
		})
	}
}
