package audit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions"
	"parley/sessions/audit"
	"parley/tools/testlog"
)

// A countingStore keeps records in memory, and counts the writes. While it fails, it accepts none.
type countingStore struct {
	sessions.Auditor
	mu      sync.Mutex
	failing bool
	writes  int
	records []sessions.AuditRecord
}

func (s *countingStore) AuditNotes(_ context.Context, records []sessions.AuditRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing {
		return errors.New("the disk is full")
	}
	s.writes++
	s.records = append(s.records, records...)
	return nil
}

// setFailing sets whether the store fails.
func (s *countingStore) setFailing(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = away
}

// written returns how many writes there were, and all records.
func (s *countingStore) written() (int, []sessions.AuditRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, slices.Clone(s.records)
}

func (s *countingStore) DropAudit(context.Context, time.Time) (int64, error) { return 0, nil }
func (s *countingStore) DropRefusals(context.Context, time.Time) error       { return nil }

func newRefusal(person, message string) sessions.AuditRecord {
	return sessions.AuditRecord{Kind: sessions.AuditRefusal, By: person, Result: "stranger", Address: person, Messages: []string{message}}
}

// withTrail runs a Trail over a store in a synctest bubble.
func withTrail(t *testing.T, store sessions.Auditor, run func(trail *audit.Trail, lost *atomic.Int32, log *testlog.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lost, log := &atomic.Int32{}, &testlog.Buffer{}
		trail := audit.New(audit.Config{Store: store, RecordLifetime: time.Hour, OnLost: func() { lost.Add(1) }, Log: slog.New(slog.NewTextHandler(log, nil))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- trail.Run(ctx) }()
		run(trail, lost, log)
		cancel()
		if err := errors.Join(<-done, trail.Close()); err != nil {
			t.Error(err)
		}
	})
}

// A flood of refusals costs one write a second, of a limited size, and no caller waits.
func TestAFloodOfRefusalsCostsOneWriteASecond(t *testing.T) {
	const strangers = 10_000
	store := &countingStore{}
	withTrail(t, store, func(trail *audit.Trail, lost *atomic.Int32, log *testlog.Buffer) {
		for n := range 100 {
			trail.Note(newRefusal("telegram:7", fmt.Sprint("m", n)))
		}
		for n := range strangers {
			trail.Note(newRefusal(fmt.Sprint("telegram:", 100+n), "m"))
		}
		synctest.Wait()
		if writes, _ := store.written(); writes != 0 {
			t.Error("it is written before others could come")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		writes, records := store.written()
		if writes != 1 || len(records) != 256 || lost.Load() != 0 {
			t.Errorf("%d writes of %d records, and %d are lost", writes, len(records), lost.Load())
		}
		for _, r := range records {
			if r.By == "telegram:7" && (r.Count != 100 || len(r.Messages) != sessions.MaxRefusedIDs || r.Messages[7] != "m99" || r.At.IsZero()) {
				t.Errorf("the stranger who wrote often is %+v", r)
			}
		}
		if want := fmt.Sprintf("refusals=%d", strangers+1-256); !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, log)
		}
	})
}

// Messages that are not meant for the bot take no room from refusals of strangers, and leaving them out is not
// reported.
func TestUnaddressedMessagesTakeLittleRoom(t *testing.T) {
	store := &countingStore{}
	withTrail(t, store, func(trail *audit.Trail, _ *atomic.Int32, log *testlog.Buffer) {
		for n := range 1000 {
			trail.Note(sessions.AuditRecord{Kind: sessions.AuditRefusal, Result: "not_mentioned", Address: fmt.Sprint("slack:C", n), Messages: []string{"m"}})
		}
		for n := range 100 {
			trail.Note(newRefusal(fmt.Sprint("slack:U", n), "m"))
			trail.Note(sessions.AuditRecord{Kind: sessions.AuditRefusal, Result: "not_mentioned", Address: "slack:C0", Messages: []string{fmt.Sprint("m", n)}})
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		writes, records := store.written()
		strangers := 0
		for _, r := range records {
			if r.By != "" {
				strangers++
			}
			if r.Address == "slack:C0" && (r.Count != 101 || len(r.Messages) != sessions.MaxRefusedIDs) {
				t.Errorf("the group in which most is said has %+v", r)
			}
		}
		if writes != 1 || len(records) != 164 || strangers != 100 || log.String() != "" {
			t.Errorf("%d writes of %d records, of which %d are of strangers, and the log has %q", writes, len(records), strangers, log)
		}
	})
}

// Records that the store does not accept are written later, and the last ones when the process ends.
func TestNotesWaitForTheStoreAndTheEnd(t *testing.T) {
	store := &countingStore{failing: true}
	withTrail(t, store, func(trail *audit.Trail, _ *atomic.Int32, log *testlog.Buffer) {
		trail.Note(sessions.AuditRecord{Kind: sessions.AuditTurn, Turn: "t1"})
		trail.Note(newRefusal("telegram:7", "m1"))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if store.setFailing(false); !strings.Contains(log.String(), "not in the audit") {
			t.Errorf("the log does not say it: %s", log)
		}
		trail.Note(newRefusal("telegram:7", "m2"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, records := store.written(); len(records) != 2 || records[0].Turn != "t1" || records[1].Count != 2 {
			t.Errorf("written are %+v", records)
		}
		trail.Note(sessions.AuditRecord{Kind: sessions.AuditTurn, Turn: "t2"})
	})
	if _, records := store.written(); len(records) != 3 || records[2].Turn != "t2" {
		t.Errorf("at the end there are %+v", records)
	}
}

// If more turns wait than there is room for, they are counted as lost. The file contains turns but no refusals,
// because strangers could fill it with those.
func TestWaitingNotesAreLimited(t *testing.T) {
	store, path := openStore(t), filepath.Join(t.TempDir(), "audit.jsonl")
	lost := 0
	trail := audit.New(audit.Config{
		Store: store, File: audit.NewFile(path, 1<<30), RecordLifetime: time.Hour, OnLost: func() { lost++ }, Log: slog.New(slog.DiscardHandler),
	})
	for n := range 5000 {
		trail.Note(sessions.AuditRecord{Kind: sessions.AuditTurn, Turn: fmt.Sprint(n)})
	}
	trail.Note(newRefusal("telegram:7", "m"))
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := trail.Records(t.Context(), sessions.AuditQuery{Limit: 10_000})
	if written, _ := readRecords(t, path); err != nil || lost != 5000-4096 || len(kept) != 4096+1 || len(written) != 4096 {
		t.Errorf("%d are lost, the store has %d and the file %d, %v", lost, len(kept), len(written), err)
	}
}
