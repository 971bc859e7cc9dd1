package sqlstore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// If a commit fails, the entries that were appended with Soon are lost. The log's holder learns that with the
// next append, and can't reopen the log without reading it.
func TestALostCommitIsNoticedByTheNextAppend(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write := func(query string) error {
		return s.db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(query)
			return err
		})
	}
	for _, table := range []string{
		"CREATE TABLE known (n INTEGER PRIMARY KEY)",
		"CREATE TABLE checked (n INTEGER REFERENCES known(n) DEFERRABLE INITIALLY DEFERRED)", // fails at COMMIT
	} {
		if err := write(table); err != nil {
			t.Fatal(err)
		}
	}
	const key = "main:test:1"
	opened := func(fence int64) *log {
		t.Helper()
		l, err := s.open(t.Context(), key, fence)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	entry := sessions.Entry{Turn: "t", Kind: sessions.KindResumed}
	l := opened(1)
	if err := l.Append(t.Context(), 1, entry); err != nil {
		t.Fatal(err)
	}
	if err := l.Soon(time.Minute).Append(t.Context(), 2, entry); err != nil {
		t.Fatal(err)
	}
	if err := write("INSERT INTO checked (n) VALUES (1)"); err == nil {
		t.Fatal("the commit has not failed")
	}
	if err := l.Append(t.Context(), 3, entry); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("an append after one that was lost gives %v, want ErrConflict", err)
	}
	if again, err := l.Reopen(t.Context(), 2); again || err != nil {
		t.Errorf("a log whose end was lost is opened again without reading it: %t, %v", again, err)
	}
	if l = opened(2); len(l.Entries()) != 1 || l.Next() != 2 {
		t.Errorf("the log has %d entries, and the next is %d; want 1 and 2", len(l.Entries()), l.Next())
	}
	// The same happens to a fence that was raised with Soon, unless it was committed before.
	fence := int64(2)
	for stands := fence; stands == fence; {
		fence++
		if again, err := l.Reopen(t.Context(), fence); !again || err != nil {
			t.Fatalf("opened again: %t, %v", again, err)
		}
		if err := write("INSERT INTO checked (n) VALUES (2)"); err == nil {
			t.Fatal("the commit has not failed")
		}
		if err := s.db.Read.QueryRowContext(t.Context(), "SELECT fence FROM sessions WHERE key = ?", key).Scan(&stands); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Append(t.Context(), 2, entry); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("an append under a fence that was lost gives %v, want ErrFenced", err)
	}
	if err := opened(fence+1).Append(t.Context(), 2, entry); err != nil {
		t.Errorf("the next holder's append: %v", err)
	}
}
