package archive_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/archive/folder"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// On PostgreSQL, archiving waits for an erasure of a session before it locks records, because the erasure would
// otherwise wait for those records.
func TestArchivingLocksAsAnErasureDoes(t *testing.T) {
	at := sqldbtest.New(t)
	s, err := sqlstore.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	addSessions(t, s, group, anna, berta)
	addRecords(t, s, toolCallRecord(0, group, anna))
	by, err := sql.Open("pgx", at)
	if err != nil {
		t.Fatal(err)
	}
	defer by.Close()
	erasure, err := by.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var pid, free int
	if err := erasure.QueryRowContext(t.Context(), "WITH gone AS (DELETE FROM sessions RETURNING id) SELECT pg_backend_pid() FROM gone").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	a := newArchiver(t, s, folder.New(t.TempDir()), nil)
	ended := make(chan error, 1)
	go func() { ended <- a.ArchiveNow(t.Context(), timeAfterDays(1)) }()
	waiting := fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE %d = ANY(pg_blocking_pids(pid))", pid)
	for tick := time.Tick(5 * time.Millisecond); sqldbtest.Query(t, "pgx", at, waiting)[0] == "0"; {
		select {
		case err := <-ended:
			t.Fatalf("it didn't wait for the erasure: %v", err)
		case <-tick:
		}
	}
	const unlocked = "SELECT count(*) FROM (SELECT id FROM audit FOR UPDATE SKIP LOCKED) AS free"
	if err := erasure.QueryRowContext(t.Context(), unlocked).Scan(&free); err != nil || free != 1 {
		t.Errorf("%d records are not locked, want 1 (%v)", free, err)
	}
	if err := erasure.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// In a file of several pages, with other writes in between, an erased conversation has only one pseudonym.
func TestPagesAgreeOnAnErasedConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		for n := range 450 {
			r := toolCallRecord(0, private, anna)
			r.At = r.At.Add(time.Duration(n) * time.Second)
			addRecords(t, s, r)
		}
		dir := t.TempDir()
		var pages []time.Time
		a := newArchiver(t, s, folder.New(dir), func(name string) {
			if name == "archive:page" {
				pages = append(pages, time.Now())
			}
		})
		if err := a.ArchiveNow(t.Context(), timeAfterDays(1)); err != nil {
			t.Fatal(err)
		}
		if len(pages) < 3 || pages[1].Sub(pages[0]) < 5*time.Millisecond || pages[2].Sub(pages[1]) < 5*time.Millisecond {
			t.Errorf("the pages are written at %v", pages)
		}
		names := map[string]int{}
		for _, line := range readLines(t, filePath(dir, 0)) {
			var r struct {
				Session string `json:"session"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			names[r.Session]++
		}
		if delete(names, ""); len(names) != 1 {
			t.Errorf("the conversation has the pseudonyms %v", names)
		}
	})
}
