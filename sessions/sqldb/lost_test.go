package sqldb_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/sessions/sqldb"
)

// A lossRecorder records what OnLost reports.
type lossRecorder struct {
	mu     sync.Mutex
	writes int
	errs   []error
}

func (l *lossRecorder) report(writes int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes += writes
	l.errs = append(l.errs, err)
}

// wantLost fails the test unless this number of writes was reported as lost since the last call.
func (l *lossRecorder) wantLost(t *testing.T, writes int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writes != writes || (writes > 0) != (len(l.errs) > 0 && l.errs[0] != nil) {
		t.Errorf("%d writes are reported as lost (%v), want %d", l.writes, l.errs, writes)
	}
	l.writes, l.errs = 0, nil
}

// If a commit fails after callers have continued, the number of lost writes is reported. Callers that wait get
// the error themselves.
func TestLostWritesAreReported(t *testing.T) {
	db := openFile(t, filepath.Join(t.TempDir(), "t.db"), append(schema[:1:1],
		"CREATE TABLE u (n INTEGER REFERENCES t(n) DEFERRABLE INITIALLY DEFERRED)"))
	var l lossRecorder
	db.OnLost(l.report)
	soon := func(fn func(*sqldb.Tx) error) {
		t.Helper()
		if err := db.Soon(t.Context(), time.Hour, fn); err != nil {
			t.Fatal(err)
		}
	}
	dangling := func(tx *sqldb.Tx) error { // violates a constraint that is checked at the commit
		_, err := tx.Exec("INSERT INTO u (n) VALUES (7)")
		return err
	}
	soon(insert(1))
	db.Start(insert(2))
	soon(dangling)
	if err := db.Write(t.Context(), insert(3)); err == nil {
		t.Fatal("the commit has not failed")
	}
	if n := countAll(t, db); n != 0 {
		t.Errorf("%d rows after a commit that has failed", n)
	}
	l.wantLost(t, 3)

	if err := db.Write(t.Context(), dangling); err == nil {
		t.Fatal("the commit has not failed")
	}
	l.wantLost(t, 0)

	soon(insert(1))
	db.Start(insert(1)) // refused by the database
	if err := db.Write(t.Context(), insert(2)); err != nil {
		t.Fatal(err)
	}
	l.wantLost(t, 1)
	if n := countAll(t, db); n != 2 {
		t.Errorf("%d rows beside a write that was refused, want 2", n)
	}
}

// A failed write of Start is reported on both kinds of database.
func TestAStartedWriteThatFailsIsReported(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		db := openAt(t, place, schemaOf(schema...))
		var l lossRecorder
		db.OnLost(l.report)
		refused := errors.New("refused")
		var lost error
		db.StartOrReport(func(*sqldb.Tx) error { return refused }, func(err error) { lost = err })
		if err := db.Write(t.Context(), insert(1)); err != nil {
			t.Fatal(err)
		}
		if err := l.errs[0]; !errors.Is(err, refused) {
			t.Errorf("the reason is %v", err)
		}
		if !errors.Is(lost, refused) {
			t.Errorf("who has started the write is told %v", lost)
		}
		l.wantLost(t, 1)
		db.StartOrReport(insert(2), func(err error) { t.Errorf("a write that is there is lost: %v", err) })
		if err := db.Write(t.Context(), insert(3)); err != nil {
			t.Fatal(err)
		}
		l.wantLost(t, 0)
	})
}
