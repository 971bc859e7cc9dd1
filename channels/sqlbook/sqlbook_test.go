package sqlbook_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

func openBook(t testing.TB, place string) *sqlbook.Book {
	t.Helper()
	b, err := sqlbook.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newPlace(t testing.TB) string { return filepath.Join(t.TempDir(), "book.db") }

func newHarness(place func(testing.TB) string) channelstest.Harness {
	return channelstest.Harness{
		New:  place,
		Open: func(t testing.TB, place string) channelstest.Book { return openBook(t, place) },
	}
}

func TestSQLite(t *testing.T) { channelstest.RunBook(t, newHarness(newPlace)) }

func TestPostgres(t *testing.T) { channelstest.RunBook(t, newHarness(sqldbtest.New)) }

func TestFinishedSendsAreForgottenAfterAMonth(t *testing.T) {
	place := newPlace(t)
	synctest.Test(t, func(t *testing.T) {
		b := openBook(t, place)
		part := []channels.SentPart{{Text: "x", Plain: "x"}}
		for i := range 40 {
			id := fmt.Sprint("old", i)
			if _, _, err := b.Begin(t.Context(), channels.Send{ID: id, To: bus.Address{Channel: "c", Chat: "1"}, Parts: part}); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				continue // it is still waiting to be sent
			}
			if err := b.Mark(t.Context(), id, 0, channels.SentPart{State: channels.Sent}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(31 * 24 * time.Hour) // in the bubble's fake time
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
		asked, err := b.RequestPairing(t.Context(), "c:1", "c:1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := b.Admit(t.Context(), channels.Admission{Code: asked.Code}); err == nil {
			t.Error("a code was good after an hour")
		}
		if again, err := b.RequestPairing(t.Context(), "c:1", "c:1"); err != nil || again.Code == asked.Code {
			t.Errorf("an expired request stands: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkSend(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchmarkSend(b, newPlace(b)) })
	b.Run("postgres", func(b *testing.B) { benchmarkSend(b, sqldbtest.New(b)) })
}

func benchmarkSend(b *testing.B, place string) {
	book := openBook(b, place)
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
			if _, _, err := book.FindPairing(b.Context(), "c:1"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// sharedBooks opens one book per place for all callers, as a process does that owns its book.
type sharedBooks struct {
	mu    sync.Mutex
	books map[string]*sharedBook
}

// A sharedBook is closed once all callers that have opened it have closed it.
type sharedBook struct {
	*sqlbook.Book
	owner *sharedBooks
	place string
	db    *sqldb.DB
	users int
}

func (s *sharedBooks) open(t testing.TB, place string) channelstest.Book {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.books[place] == nil {
		db, err := sqldb.OpenFile(t.Context(), place, sqlbook.Schema())
		if err != nil {
			t.Fatal(err)
		}
		book, err := sqlbook.Use(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		s.books[place] = &sharedBook{Book: book, owner: s, place: place, db: db}
	}
	s.books[place].users++
	return s.books[place]
}

func (b *sharedBook) Close() error {
	b.owner.mu.Lock()
	defer b.owner.mu.Unlock()
	if b.users--; b.users > 0 {
		return nil
	}
	delete(b.owner.books, b.place)
	return errors.Join(b.Book.Close(), b.db.Close())
}

func TestOwnedBook(t *testing.T) {
	s := &sharedBooks{books: map[string]*sharedBook{}}
	channelstest.RunBook(t, channelstest.Harness{New: newPlace, Open: s.open})
}

// Pairings and memories are always read as they were last written, however many readers fill the caches
// meanwhile.
func TestAnOwnedBooksCachesAreCurrent(t *testing.T) {
	s := &sharedBooks{books: map[string]*sharedBook{}}
	b := s.open(t, newPlace(t))
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer cancel()
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _, _ = b.FindPairing(ctx, "c:7")
				_, _, _ = b.MemoriesFor(ctx, "main", "c:7")
			}
		})
	}
	for i := range 100 {
		asked, err := b.RequestPairing(ctx, "c:7", "c:70")
		if err == nil {
			_, err = b.Admit(ctx, channels.Admission{Code: asked.Code})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, in, err := b.FindPairing(ctx, "c:7"); !in || err != nil {
			t.Fatalf("after the admission: %v, %v", in, err)
		}
		if err := b.Revoke(ctx, "c:7"); err != nil {
			t.Fatal(err)
		}
		if _, in, err := b.FindPairing(ctx, "c:7"); in || err != nil {
			t.Fatalf("after the admission was revoked: %v, %v", in, err)
		}
		want := fmt.Sprint("likes ", i)
		if err := b.Remember(ctx, channels.ScopePerson, "c:7", want, true, false, func(string) (string, error) { return want, nil }); err != nil {
			t.Fatal(err)
		}
		if _, got, err := b.MemoriesFor(ctx, "main", "c:7"); got.Content != want || err != nil {
			t.Fatalf("remembers %q, %v, want %q", got.Content, err, want)
		}
	}
	if _, err := b.(*sharedBook).Erase(ctx, sqlbook.Erasure{Person: "c:7"}); err != nil {
		t.Fatal(err)
	}
	if _, got, err := b.MemoriesFor(ctx, "main", "c:7"); got.Content != "" || err != nil {
		t.Errorf("after the erasure it remembers %q, %v", got.Content, err)
	}
}
