package sqlstore_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"parley/sessions"
	"parley/sessions/sqlstore"
)

const longKey = "main:telegram:1"

// writeCoveredSession makes a session with that many entries under a summary, and fresh ones after it.
func writeCoveredSession(tb testing.TB, covered, fresh int64) *sqlstore.Store {
	tb.Helper()
	s, err := sqlstore.Open(tb.Context(), filepath.Join(tb.TempDir(), "store.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	l, err := s.Open(tb.Context(), longKey, 1)
	if err != nil {
		tb.Fatal(err)
	}
	text := func(turn string) sessions.Entry {
		return sessions.Entry{Turn: turn, Kind: sessions.KindText, Data: []byte(`{"text":"Sunny, with a light wind from the west."}`)}
	}
	for l.Next() <= covered {
		batch := make([]sessions.Entry, min(1000, covered+1-l.Next()))
		for i := range batch {
			batch[i] = text(fmt.Sprint("t", (l.Next()+int64(i))/5))
		}
		if err := l.Append(tb.Context(), l.Next(), batch...); err != nil {
			tb.Fatal(err)
		}
	}
	sum := sessions.Entry{Turn: "s", Kind: sessions.KindSummary, Data: fmt.Appendf(nil, `{"covers":%d,"text":"so far"}`, covered)}
	batch := []sessions.Entry{sum}
	for range fresh - 1 {
		batch = append(batch, text("new"))
	}
	if err := l.Append(tb.Context(), l.Next(), batch...); err != nil {
		tb.Fatal(err)
	}
	return s
}

func BenchmarkOpen(b *testing.B) {
	for _, size := range []struct{ covered, fresh int64 }{{0, 1}, {100_000, 10}, {0, 100}, {0, 1000}} {
		b.Run(fmt.Sprintf("covered=%d/fresh=%d", size.covered, size.fresh), func(b *testing.B) {
			s := writeCoveredSession(b, size.covered, size.fresh)
			for fence := int64(2); b.Loop(); fence++ {
				l, err := s.Open(b.Context(), longKey, fence)
				if err != nil {
					b.Fatal(err)
				}
				if int64(len(l.Entries())) != size.fresh {
					b.Fatalf("%d entries", len(l.Entries()))
				}
			}
		})
	}
}
