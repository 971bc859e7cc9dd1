package sessionstest

import (
	"fmt"
	"sync/atomic"
	"testing"

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
