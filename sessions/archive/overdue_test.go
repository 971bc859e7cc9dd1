package archive_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/archive/folder"
)

// If no process archives, the records become overdue some hours after their day, even without any failure.
func TestUnarchivedRecordsBecomeOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		record := toolCallRecord(0, private, anna)
		record.At = time.Now().UTC().Truncate(time.Microsecond)
		addRecords(t, s, record)
		want := func(when string, overdue time.Time) {
			t.Helper()
			if state, err := s.Archive().State(t.Context()); err != nil || !state.Overdue.Equal(overdue) {
				t.Errorf("%s, overdue is %s, want %s (%v)", when, state.Overdue, overdue, err)
			}
		}
		time.Sleep(40 * time.Hour)
		want("without an archive", time.Time{})
		place := folder.New(t.TempDir())
		a := newArchiver(t, s, place, nil)
		want("with a new archive", time.Time{})
		time.Sleep(5 * time.Hour)
		want("after some hours", record.At)
		if err := a.ArchiveNow(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		want("once it is archived", time.Time{})
		record.At = time.Now().UTC().Truncate(time.Microsecond)
		addRecords(t, s, record)
		time.Sleep(27 * time.Hour)
		want("after a day", time.Time{})
		time.Sleep(2 * time.Hour)
		want("after a day and some hours", record.At)
	})
}

// If Run can't find out whether the audit may be archived, that is recorded as a failure too.
func TestRunRecordsWhyItIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		a := newArchiver(t, s, folder.New(t.TempDir()), nil)
		a.Ready = func(context.Context) (bool, error) { return false, errors.New("nobody knows") }
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if state, err := s.Archive().State(t.Context()); err != nil || state.Failing.IsZero() || !strings.Contains(state.Problem, "nobody knows") || a.Failing() == 0 {
			t.Errorf("the state is %+v, %v", state, err)
		}
		cancel()
		running.Wait()
	})
}
