package sqlbook_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb/sqldbtest"
)

func open(t testing.TB, place string) *sqlbook.Book {
	t.Helper()
	b, err := sqlbook.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "book.db") }

func harness(place func(testing.TB) string) channelstest.Harness {
	return channelstest.Harness{
		New:  place,
		Open: func(t testing.TB, place string) channelstest.Book { return open(t, place) },
	}
}

func TestSQLite(t *testing.T) { channelstest.RunBook(t, harness(file)) }

func TestPostgres(t *testing.T) { channelstest.RunBook(t, harness(sqldbtest.New)) }

func TestFinishedSendsAreForgottenAfterAMonth(t *testing.T) {
	place := file(t)
	synctest.Test(t, func(t *testing.T) {
		b := open(t, place)
		part := []channels.SentPart{{Text: "x", Plain: "x"}}
		for i := range 40 {
			id := fmt.Sprint("old", i)
			if _, _, err := b.Begin(t.Context(), channels.Send{ID: id, To: bus.Address{Channel: "c", Chat: "1"}, Parts: part}); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				continue // is still to be sent
			}
			if err := b.Mark(t.Context(), id, 0, channels.SentPart{State: channels.Sent}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(31 * 24 * time.Hour) // the bubble's clock
		for i := range 256 {
			if _, _, err := b.Begin(t.Context(), channels.Send{ID: fmt.Sprint("new", i), Parts: part}); err != nil {
				t.Fatal(err)
			}
		}
		left := 0
		for i := range 40 {
			if _, err := b.Lookup(t.Context(), fmt.Sprint("old", i)); err == nil {
				left++
			}
		}
		if left != 1 {
			t.Errorf("%d old messages are left, want the one that is not finished", left)
		}
		asked, err := b.Ask(t.Context(), "c:1", "c:1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := b.Admit(t.Context(), channels.Admission{Code: asked.Code}); err == nil {
			t.Error("a code was good after an hour")
		}
		if again, err := b.Ask(t.Context(), "c:1", "c:1"); err != nil || again.Code == asked.Code {
			t.Errorf("an expired request stands: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkSend(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchmark(b, file(b)) })
	b.Run("postgres", func(b *testing.B) { benchmark(b, sqldbtest.New(b)) })
}

func benchmark(b *testing.B, place string) {
	book := open(b, place)
	b.Cleanup(func() {
		if err := book.Close(); err != nil {
			b.Error(err)
		}
	})
	var n atomic.Int64
	one := func() {
		id := fmt.Sprint("m", n.Add(1))
		_, _, err := book.Begin(b.Context(), channels.Send{ID: id, Parts: []channels.SentPart{{Text: "hello", Plain: "hello"}}})
		if err == nil {
			err = book.Mark(b.Context(), id, 0, channels.SentPart{State: channels.Sent, PlatformID: "1"})
		}
		if err != nil {
			b.Error(err)
		}
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			one()
		}
	})
	b.Run("together", func(b *testing.B) {
		b.SetParallelism(100)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	})
	b.Run("paired", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := book.Paired(b.Context(), "c:1"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
