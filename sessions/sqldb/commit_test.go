package sqldb_test

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/sqldb"
)

// A write that nobody waits for needs no flush of its own if another write follows.
func TestStartedWritesShareTheNextCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, path, schema)
		db.Start(insert(1))
		synctest.Wait()
		if n := countAll(t, db); n != 0 {
			t.Errorf("%d rows were committed for a write that nobody waits for, want none yet", n)
		}
		if err := db.Write(t.Context(), insert(2)); err != nil {
			t.Fatal(err)
		}
		if n := countAll(t, db); n != 2 {
			t.Errorf("%d rows after the next write, want 2", n)
		}
		db.Start(insert(3))
		time.Sleep(time.Second)
		synctest.Wait()
		if n := countAll(t, db); n != 3 {
			t.Errorf("%d rows a second after a write was started, want 3", n)
		}
	})
}

// A write of Soon runs immediately, in the order of all writes, and is committed later.
func TestSoonRunsImmediatelyAndCommitsLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, path, schema)
		soon := func(n int, within time.Duration) (rows int) {
			t.Helper()
			err := db.Soon(t.Context(), within, func(tx *sqldb.Tx) error {
				if err := insert(n)(tx); err != nil {
					return err
				}
				return tx.Get("SELECT count(*) FROM t", nil, &rows)
			})
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		db.Start(insert(1))
		if n := soon(2, time.Minute); n != 2 {
			t.Errorf("Soon has seen %d rows, want 2: its own and the one that was started before", n)
		}
		soon(3, time.Second)
		if n := countAll(t, db); n != 0 {
			t.Errorf("%d rows are committed, want none yet", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := countAll(t, db); n != 3 {
			t.Errorf("%d rows are committed after the shortest time, want 3", n)
		}
		soon(4, time.Minute)
		if err := db.Write(t.Context(), insert(5)); err != nil {
			t.Fatal(err)
		}
		if n := countAll(t, db); n != 5 {
			t.Errorf("%d rows are committed with the next write, want 5", n)
		}
	})
}

// A failed write undoes neither what ran before it in the open transaction nor what comes after it.
func TestAFailedWriteUndoesOnlyItself(t *testing.T) { onEachDatabase(t, testSoonAmongFailures) }

func testSoonAmongFailures(t *testing.T, place string) {
	db := openAt(t, place, schemaOf(schema...))
	refused := errors.New("refused")
	fail := func(tx *sqldb.Tx) error { return errors.Join(insert(99)(tx), refused) }
	for n := range 20 {
		if err := db.Soon(t.Context(), time.Minute, insert(n)); err != nil {
			t.Fatal(err)
		}
		if err := db.Soon(t.Context(), time.Minute, fail); !errors.Is(err, refused) {
			t.Fatalf("Soon gave %v, want its own error", err)
		}
		if err := db.Write(t.Context(), fail); n%3 == 0 && !errors.Is(err, refused) {
			t.Fatalf("Write gave %v, want its own error", err)
		}
	}
	if err := db.Write(t.Context(), insert(20)); err != nil {
		t.Fatal(err)
	}
	if n := countAll(t, db); n != 21 {
		t.Errorf("%d rows, want 21", n)
	}
}

func TestCloseCommitsPendingWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	db := openFile(t, path, schema)
	if err := db.Soon(t.Context(), time.Hour, insert(1)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Soon(t.Context(), time.Hour, insert(2)); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("after Close Soon gives %v", err)
	}
	if n := countAll(t, openFile(t, path, schema)); n != 1 {
		t.Errorf("%d rows after Close, want 1", n)
	}
}

// If there are more writes than a group may have, they are committed even if none of them is due.
func TestManyStartedWritesDoNotPileUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, path, schema)
		for n := range 1000 {
			db.Start(insert(n))
		}
		synctest.Wait()
		if n := countAll(t, db); n < 700 {
			t.Errorf("%d of 1000 writes are committed, want all but a group's", n)
		}
	})
}

// After a failed write of Soon, the next one is still committed in time.
func TestSoonIsCommittedInTimeAfterAFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.db")
	synctest.Test(t, func(t *testing.T) {
		db := openFile(t, path, schema)
		refused := errors.New("refused")
		if err := db.Soon(t.Context(), time.Second, func(*sqldb.Tx) error { return refused }); !errors.Is(err, refused) {
			t.Fatalf("Soon gave %v, want its own error", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if err := db.Soon(t.Context(), time.Second, insert(1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := countAll(t, db); n != 1 {
			t.Errorf("%d rows are committed after the time of the second write, want 1", n)
		}
	})
}
