package sqlstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions"
	"parley/sessions/sqlstore"
)

// The audit record of a call shares the flush of a later write, and is lost if the process crashes before.
func TestAnAuditRecordSharesALaterFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlstore.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Open(t.Context(), "main:test:1", 1)
		if err != nil {
			t.Fatal(err)
		}
		keep := func(turn string) {
			t.Helper()
			if err := s.AuditSoon(t.Context(), sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditTool, Turn: turn, Result: "ok"}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(n int) {
			t.Helper()
			// The database's other connections see what is on the disk.
			records, err := s.AuditRecords(t.Context(), sessions.AuditQuery{Limit: 10})
			if err != nil || len(records) != n {
				t.Errorf("%d records are on the disk, %v, want %d", len(records), err, n)
			}
		}
		keep("t1")
		want(0)
		if err := l.Append(t.Context(), l.Next(), sessions.Entry{Turn: "t1", Kind: sessions.KindResumed}); err != nil {
			t.Fatal(err)
		}
		want(1)
		keep("t2")
		time.Sleep(time.Second)
		synctest.Wait()
		want(2)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// countAfterCrash returns how many entries of a session, and tokens of a person, the next process would find if
// this one died now.
func countAfterCrash(t *testing.T, path string) (entries int, tokens int64) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "sessions.db")
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(copied+suffix, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := sqlstore.Open(t.Context(), copied)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, err := range s.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		entries++
	}
	if tokens, err = s.Spent(t.Context(), "p", time.Now()); err != nil {
		t.Fatal(err)
	}
	return entries, tokens
}

// The beginning of a turn and its reservation share the flush of the answer. A crash before loses both
// together.
func TestATurnsBeginningSharesALaterFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlstore.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.Open(t.Context(), "main:test:1", 1)
		if err != nil {
			t.Fatal(err)
		}
		entry := func() sessions.Entry { return sessions.Entry{Turn: "t", Kind: sessions.KindResumed} }
		soon := func() {
			t.Helper()
			if err := l.(sessions.SoonLog).Soon(time.Second).Append(t.Context(), l.Next(), entry()); err != nil {
				t.Fatal(err)
			}
		}
		reservation := func(id string) sessions.Reservation {
			return sessions.Reservation{ID: id, Person: "p", Tokens: 60, Cap: 100, At: time.Now()}
		}
		soon()
		if err := s.Reserve(t.Context(), reservation("a")); err != nil {
			t.Fatal(err)
		}
		if err := s.Reserve(t.Context(), reservation("b")); !errors.Is(err, sessions.ErrOverBudget) {
			t.Errorf("a reservation beyond the cap gives %v: the one before is not on the disk, but counts", err)
		}
		if n, tokens := countAfterCrash(t, path); n != 0 || tokens != 0 {
			t.Errorf("a crash leaves %d entries and %d tokens, want none: somebody has waited for the disk", n, tokens)
		}
		if err := s.Settle(t.Context(), reservation("a"), 7); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), l.Next(), entry()); err != nil {
			t.Fatal(err)
		}
		if n, tokens := countAfterCrash(t, path); n != 2 || tokens != 7 {
			t.Errorf("after Append a crash leaves %d entries and %d tokens, want 2 and 7", n, tokens)
		}
		soon()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n, _ := countAfterCrash(t, path); n != 3 {
			t.Errorf("a crash a while after that leaves %d entries, want 3", n)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
