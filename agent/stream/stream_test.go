package stream

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/llm"
	"parley/bus"
)

// A watcher sees each word within milliseconds. Where very many answers come at once, their
// words come in fewer events, and none is lost.
func TestWordsComeAtOnceUnlessAnswersAreMany(t *testing.T) {
	for _, tc := range []struct {
		answers         int
		latest          time.Duration
		fewest, highest int // events
	}{{1, 2 * time.Millisecond, 100, 100}, {5000, 40 * time.Millisecond, 20, 30}} {
		synctest.Test(t, func(t *testing.T) {
			pace := new(Counter)
			pace.open.Add(int64(tc.answers - 1))
			var mu sync.Mutex // of all that follows
			var said strings.Builder
			var written time.Time
			events, late := 0, time.Duration(0)
			s := New(pace, 0, func(e bus.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Type == bus.BlockDelta {
					events++
					said.WriteString(e.Delta)
					late = max(late, time.Since(written))
				}
			}, func() func(string, bool) string { return func(p string, _ bool) string { return p } })
			for range 100 {
				mu.Lock()
				written = time.Now()
				mu.Unlock()
				s.Delta(llm.Delta{Kind: llm.BlockText, Text: "word "})
				time.Sleep(10 * time.Millisecond)
			}
			s.End()
			s.Close()
			mu.Lock()
			defer mu.Unlock()
			if said.String() != strings.Repeat("word ", 100) || events < tc.fewest || events > tc.highest || late > tc.latest {
				t.Errorf("beside %d answers: %d events, the last word of one after %v", tc.answers-1, events, late)
			}
			if left := pace.open.Load(); left != int64(tc.answers-1) {
				t.Errorf("%d answers are counted", left)
			}
		})
	}
}
