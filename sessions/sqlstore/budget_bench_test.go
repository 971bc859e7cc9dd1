package sqlstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// BenchmarkBudget lets two processes reserve and settle for a few people at the same
// time, so that most writes change a row that others change too.
func BenchmarkBudget(b *testing.B) {
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
			b.SetParallelism(100)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := turns.Add(1)
					began := time.Now()
					pay(b, stores[n/people%2], fmt.Sprint("turn-", n), fmt.Sprint("telegram:", n%people))
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

func pay(b *testing.B, s *sqlstore.Store, id, person string) {
	r := sessions.Reservation{ID: id, Person: person, Tokens: 100, Cap: 1 << 40, At: time.Now()}
	if err := s.Reserve(b.Context(), r); err != nil {
		b.Error(err)
	}
	if err := s.Settle(b.Context(), r, 50); err != nil {
		b.Error(err)
	}
}
