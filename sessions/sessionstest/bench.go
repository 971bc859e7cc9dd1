package sessionstest

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions"
)

// Benchmark measures small turns, in one session and in 200 sessions at once. Each turn
// opens the log and appends four times.
func Benchmark(b *testing.B, h Harness) {
	b.Run("alone", func(b *testing.B) {
		s := place{b, h, h.New(b)}.open()
		for n := 0; b.Loop(); n++ {
			runTurn(b, s, key, n)
		}
		b.ReportMetric(float64(4*b.N)/b.Elapsed().Seconds(), "appends/s")
	})
	b.Run("together", func(b *testing.B) {
		s := place{b, h, h.New(b)}.open()
		var sessions, turns atomic.Int64
		b.SetParallelism(100)
		b.RunParallel(func(pb *testing.PB) {
			key := fmt.Sprintf("main:telegram:%d", sessions.Add(1))
			for n := 0; pb.Next(); n++ {
				runTurn(b, s, key, n)
				turns.Add(1)
			}
		})
		b.ReportMetric(float64(4*turns.Load())/b.Elapsed().Seconds(), "appends/s")
	})
}

// runTurn writes the entries of one small turn, the nth of its session, as the agent would.
func runTurn(b *testing.B, s sessions.Store, key string, n int) {
	l, err := s.Open(b.Context(), key, int64(n+1))
	if err != nil {
		b.Error(err)
		return
	}
	turn := fmt.Sprintf("%s-%d", key, n)
	appends := [][]sessions.Entry{
		{turnStarted(turn), said(turn, turn, "What is the weather like in the mountains today?")},
		{replied(turn, "Sunny, with a light wind from the west."), entry(turn, sessions.KindUsage, sessions.Usage{Model: "m", Input: 900, Output: 12})},
		{turnDone(turn, turn+"-out")},
		{turnPublished(turn)},
	}
	if n%20 == 19 { // as the agent does from time to time
		appends[3] = append(appends[3], summary(l.Next()-1))
	}
	for _, entries := range appends {
		if err := l.Append(b.Context(), l.Next(), entries...); err != nil {
			b.Error(err)
		}
	}
}

// A Payment has the functions with which BenchmarkPayments opens stores and pays for turns.
type Payment[S io.Closer] struct {
	New  func(t testing.TB) string // makes an empty place, as Harness.New does
	Open func(ctx context.Context, place string) (S, error)
	// Pay reserves and settles what a turn of a person costs.
	Pay      func(ctx context.Context, s S, turn, person string) error
	Parallel int // how many turns run at once for each processor
}

// BenchmarkPayments measures how many turns a second are paid for while 2, 20 or 200 people
// have many turns at once, so that most writes change a row that others change too. It opens
// two stores over the same place, as two processes would.
func BenchmarkPayments[S io.Closer](b *testing.B, p Payment[S]) {
	for _, people := range []int64{2, 20, 200} {
		b.Run(fmt.Sprintf("people=%d", people), func(b *testing.B) {
			place := p.New(b)
			var stores []S
			for range 2 {
				s, err := p.Open(b.Context(), place)
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				stores = append(stores, s)
			}
			var turns, worst atomic.Int64
			b.SetParallelism(p.Parallel)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					n := turns.Add(1)
					began := time.Now()
					if err := p.Pay(b.Context(), stores[n/people%2], fmt.Sprint("turn-", n), fmt.Sprint("telegram:", n%people)); err != nil {
						b.Error(err)
					}
					if took := int64(time.Since(began)); took > worst.Load() {
						worst.Store(took) // a concurrent update may be lost
					}
				}
			})
			b.ReportMetric(float64(turns.Load())/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(float64(worst.Load())/1e6, "worst-ms")
		})
	}
}
