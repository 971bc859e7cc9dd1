package sqlstore_test

import (
	"fmt"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqlstore"
)

// writeSharedSession writes a session with a number of entries. Every second turn is by telegram:7.
func writeSharedSession(tb testing.TB, s *sqlstore.Store, key string, entries int) {
	tb.Helper()
	l, err := s.Open(tb.Context(), key, time.Now().UnixMicro()+1)
	if err != nil {
		tb.Fatal(err)
	}
	const turn = 5
	for l.Next() <= int64(entries) {
		var batch []sessions.Entry
		for range 1000 / turn {
			id := fmt.Sprint("t", l.Next()+int64(len(batch)))
			person := fmt.Sprint("telegram:", 7+len(batch)/turn%2)
			for range turn {
				batch = append(batch, sessions.Entry{Turn: id, Kind: sessions.KindText, Person: person, Data: fmt.Appendf(nil, `{"text":"%0500d"}`, 1)})
			}
		}
		if err := l.Append(tb.Context(), l.Next(), batch...); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkErasePerson erases half of the 10,000 entries of a session: those of one of
// two people.
func BenchmarkErasePerson(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s, err := sqlstore.Open(b.Context(), sqliteHarness().New(b))
		if err != nil {
			b.Fatal(err)
		}
		writeSharedSession(b, s, "main:telegram:-1", 10_000)
		b.StartTimer()
		if done, err := s.ErasePerson(b.Context(), "telegram:7"); err != nil || done.Entries != 5000 {
			b.Fatal(done, err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
