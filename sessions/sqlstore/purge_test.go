package sqlstore_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// If the file was not purged after an erasure, because the process died, the next erasure purges it, even if it
// finds nothing to erase.
func TestAnErasureFinishesAnInterruptedPurge(t *testing.T) {
	dir := t.TempDir()
	s := openTestStore(t, filepath.Join(dir, "sessions.db"))
	const secret = "a word that nobody else says"
	traces := func() (n int) {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(raw, []byte(secret))
		}
		return n
	}
	l, err := s.Open(t.Context(), "main:test:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	said, err := sessions.NewEntry("m", sessions.KindNotice, sessions.Notice{Text: secret})
	if err == nil {
		err = l.Append(t.Context(), 1, said)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	err = sqldb.PurgeOnce(ctx, func(ctx context.Context) error {
		defer stop()
		_, err := s.EraseSession(ctx, "main:test:1")
		return err
	})
	if err == nil || traces() == 0 {
		t.Fatalf("the file is rewritten with %v: the test cannot fail", err)
	}
	if _, err := s.ErasePerson(t.Context(), "test:9"); err != nil {
		t.Fatal(err)
	}
	if n := traces(); n > 0 {
		t.Errorf("there are %d traces", n)
	}
}

// Every table that contains ids of people is purged after an erasure.
func TestTablesWithPeopleArePurged(t *testing.T) {
	place := filepath.Join(t.TempDir(), "store.db")
	s := openTestStore(t, place)
	const named = `SELECT DISTINCT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND c.name IN ('person', 'subject')`
	found := sqldbtest.Query(t, "sqlite", place, named)
	if len(found) < 9 {
		t.Errorf("only the tables %q have ids of people", found)
	}
	for _, table := range found {
		if !slices.Contains(s.PurgedTables(), table) {
			t.Errorf("%s is not purged", table)
		}
	}
}
