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

// A countingStore keeps records in memory, and counts the writes. While it is away it takes nothing.
type countingStore struct {
	sessions.Auditor
	mu      sync.Mutex
	away    bool
	writes  int
	records []sessions.AuditRecord
}

func (s *countingStore) AuditNotes(_ context.Context, records []sessions.AuditRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("the disk is full")
	}
	s.writes++
	s.records = append(s.records, records...)
	return nil
}

// setAway says whether the store is away.
func (s *countingStore) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// written returns how many writes there were, and all records.
func (s *countingStore) written() (int, []sessions.AuditRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes, slices.Clone(s.records)
}

func (s *countingStore) DropAudit(context.Context, time.Time) (int64, error) { return 0, nil }
func (s *countingStore) DropRefusals(context.Context, time.Time) error       { return nil }

func refusal(person, message string) sessions.AuditRecord {
	return sessions.AuditRecord{Kind: sessions.AuditRefusal, By: person, Result: "stranger", Address: person, Messages: []string{message}}
}

// noting runs a Trail over a store in a bubble, until the function returns.
func noting(t *testing.T, store sessions.Auditor, run func(trail *audit.Trail, lost *atomic.Int32, log *testlog.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lost, log := &atomic.Int32{}, &testlog.Buffer{}
		trail := audit.New(audit.Config{Store: store, Keep: time.Hour, Lost: func() { lost.Add(1) }, Log: slog.New(slog.NewTextHandler(log, nil))})
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

// A flood of refusals costs one write a second, of a bounded size, and nobody waits for it.
func TestAFloodOfRefusalsCostsOneWriteASecond(t *testing.T) {
	const strangers = 10_000
	store := &countingStore{}
	noting(t, store, func(trail *audit.Trail, lost *atomic.Int32, log *testlog.Buffer) {
		for n := range 100 {
			trail.Note(refusal("telegram:7", fmt.Sprint("m", n)))
		}
		for n := range strangers {
			trail.Note(refusal(fmt.Sprint("telegram:", 100+n), "m"))
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

// What people say in groups, and not to the bot, takes no stranger's place, and nobody is told that it is left
// out.
func TestWhatIsNotMeantForTheBotTakesLittleRoom(t *testing.T) {
	store := &countingStore{}
	noting(t, store, func(trail *audit.Trail, _ *atomic.Int32, log *testlog.Buffer) {
		for n := range 1000 {
			trail.Note(sessions.AuditRecord{Kind: sessions.AuditRefusal, Result: "not_mentioned", Address: fmt.Sprint("slack:C", n), Messages: []string{"m"}})
		}
		for n := range 100 {
			trail.Note(refusal(fmt.Sprint("slack:U", n), "m"))
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

// What the store does not take is written later, and what the process has noted last when it ends.
func TestNotesWaitForTheStoreAndTheEnd(t *testing.T) {
	store := &countingStore{away: true}
	noting(t, store, func(trail *audit.Trail, _ *atomic.Int32, log *testlog.Buffer) {
		trail.Note(sessions.AuditRecord{Kind: sessions.AuditTurn, Turn: "t1"})
		trail.Note(refusal("telegram:7", "m1"))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if store.setAway(false); !strings.Contains(log.String(), "not in the audit") {
			t.Errorf("the log does not say it: %s", log)
		}
		trail.Note(refusal("telegram:7", "m2"))
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

// More turns than the store takes are counted as lost. The file has turns, and no refusals, which
// strangers could fill it with.
func TestNotesAreBoundedAndTheFileHasTurns(t *testing.T) {
	store, path := openStore(t), filepath.Join(t.TempDir(), "audit.jsonl")
	lost := 0
	trail := audit.New(audit.Config{
		Store: store, File: audit.NewFile(path, 1<<30), Keep: time.Hour, Lost: func() { lost++ }, Log: slog.New(slog.DiscardHandler),
	})
	for n := range 5000 {
		trail.Note(sessions.AuditRecord{Kind: sessions.AuditTurn, Turn: fmt.Sprint(n)})
	}
	trail.Note(refusal("telegram:7", "m"))
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := trail.Records(t.Context(), sessions.AuditQuery{Limit: 10_000})
	if written, _ := lines(t, path); err != nil || lost != 5000-4096 || len(kept) != 4096+1 || len(written) != 4096 {
		t.Errorf("%d are lost, the store has %d and the file %d, %v", lost, len(kept), len(written), err)
	}
}
