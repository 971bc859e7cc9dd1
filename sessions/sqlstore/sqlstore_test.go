package sqlstore_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sessionstest"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

func sqliteHarness() sessionstest.Harness {
	return sessionstest.Harness{
		New: func(t testing.TB) string { return filepath.Join(t.TempDir(), "store.db") },
		Open: func(ctx context.Context, place string) (sessionstest.Store, error) {
			return sqlstore.Open(ctx, place)
		},
		MultiProcess: true,
		Files: func(t testing.TB, place string) []string {
			files, err := filepath.Glob(filepath.Join(filepath.Dir(place), "*"))
			if err != nil {
				t.Fatal(err)
			}
			return files
		},
	}
}

// postgresHarness returns a harness with the same store in PostgreSQL.
func postgresHarness() sessionstest.Harness {
	h := sqliteHarness()
	h.New, h.Files = sqldbtest.New, nil
	return h
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	sessionstest.Run(t, sqliteHarness())
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	sessionstest.Run(t, postgresHarness())
}

func BenchmarkStore(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { sessionstest.Benchmark(b, sqliteHarness()) })
	b.Run("postgres", func(b *testing.B) { sessionstest.Benchmark(b, postgresHarness()) })
}

// onEachPlace runs a test on both kinds of database, with a function that queries the database directly.
func onEachPlace(t *testing.T, test func(t *testing.T, place string, query func(text string) []string)) {
	for driver, h := range map[string]sessionstest.Harness{"sqlite": sqliteHarness(), "pgx": postgresHarness()} {
		t.Run(driver, func(t *testing.T) {
			place := h.New(t)
			test(t, place, func(text string) []string { return sqldbtest.Query(t, driver, place, text) })
		})
	}
}

func openTestStore(t *testing.T, path string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestUsageView(t *testing.T) { onEachPlace(t, testUsageView) }

func testUsageView(t *testing.T, place string, query func(string) []string) {
	s := openTestStore(t, place)
	for i, usage := range []sessions.Usage{
		{Model: "m1", Agent: "main", Input: 10, Cached: 4, Output: 1},
		{Model: "m1", Agent: "main", Input: 20, Output: 2, Estimated: true},
		{Model: "m2", Agent: "main", Input: 40, Output: 3},
		{Model: "m1", Input: 80, Output: 4},
		{Model: "m1", Agent: "main", Input: 160, Output: 5},
	} {
		e, err := sessions.NewEntry("t", sessions.KindUsage, usage)
		if err != nil {
			t.Fatal(err)
		}
		e.Person = "telegram:7"
		e.At = time.Date(2026, 5, 6+i/4, 23, 59, 59, 0, time.UTC)
		text, err := sessions.NewEntry("t", sessions.KindText, sessions.Text{Text: "x"})
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Open(t.Context(), "main:telegram:1", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), l.Next(), text, e, sessions.Entry{Kind: sessions.KindUsage}); err != nil {
			t.Fatal(err)
		}
	}
	got := query("SELECT session, person, agent, model, day, calls, input, cached, output, estimated FROM usage ORDER BY agent, model, day")
	want := []string{
		"main:telegram:1 telegram:7  m1 2026-05-06 1 80 0 4 0",
		"main:telegram:1 telegram:7 main m1 2026-05-06 2 30 4 3 1",
		"main:telegram:1 telegram:7 main m1 2026-05-07 1 160 0 5 0",
		"main:telegram:1 telegram:7 main m2 2026-05-06 1 40 0 3 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOldSpendingIsDeleted(t *testing.T) { onEachPlace(t, testOldSpending) }

func testOldSpending(t *testing.T, place string, query func(string) []string) {
	reserve := func(s *sqlstore.Store, id string, at time.Time) {
		t.Helper()
		if err := s.Reserve(t.Context(), sessions.Reservation{ID: id, Person: "a", Tokens: 5, Cap: 9, At: at}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	s := openTestStore(t, place)
	reserve(s, "long ago", now.AddDate(0, 0, -30))
	reserve(s, "lately", now.AddDate(0, 0, -3))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTestStore(t, place)
	reserve(s, "today", now)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"SELECT day FROM reservations ORDER BY day", "SELECT day FROM spending ORDER BY day"} {
		want := []string{now.UTC().AddDate(0, 0, -3).Format("2006-01-02"), now.UTC().Format("2006-01-02")}
		if got := query(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Entries that a summary covers are not read: a session with 20,000 covered entries opens about as fast as one
// without any.
func TestOpeningReadsNoCoveredEntries(t *testing.T) {
	quickest := func(s *sqlstore.Store) time.Duration {
		best := time.Hour
		for fence := range int64(30) {
			began := time.Now()
			l, err := s.Open(t.Context(), longKey, fence+2)
			best = min(best, time.Since(began))
			if err != nil || len(l.Entries()) != 10 {
				t.Fatalf("%d entries, %v", len(l.Entries()), err)
			}
		}
		return best
	}
	without, with := quickest(writeCoveredSession(t, 0, 10)), quickest(writeCoveredSession(t, 20_000, 10))
	t.Logf("without a past %s, with a long one %s", without, with)
	if with > 5*without {
		t.Errorf("a long past makes an opening of %s one of %s", without, with)
	}
}

func TestOpenErrorsNameTheProblem(t *testing.T) {
	dir := t.TempDir()
	if _, err := sqlstore.Open(t.Context(), filepath.Join(dir, "missing", "store.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	path := filepath.Join(dir, "text")
	if err := os.WriteFile(path, []byte("this is not a database, it is a text of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := sqlstore.Open(t.Context(), path); err == nil {
		t.Error("a text was opened as a database", s.Close())
	}
}

func TestClosedStoreRefuses(t *testing.T) { onEachPlace(t, testClosedStore) }

func testClosedStore(t *testing.T, place string, _ func(string) []string) {
	s := openTestStore(t, place)
	l, err := s.Open(t.Context(), longKey, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), 1, sessions.Entry{Turn: "t", Kind: sessions.KindResumed}); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.Open(t.Context(), longKey, 1); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("open: %v", err)
	}
}

func TestWritable(t *testing.T) {
	onEachPlace(t, func(t *testing.T, place string, _ func(string) []string) {
		s := openTestStore(t, place)
		for range 2 {
			if err := s.Writable(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Writable(t.Context()); err == nil {
			t.Error("a store that is closed can be written")
		}
	})
}
