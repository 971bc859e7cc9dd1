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

// If nobody archives, the records are overdue some hours after they are a day old, though nothing fails.
func TestRecordsThatNobodyArchivesAreOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		record := call(0, private, anna)
		record.At = time.Now().UTC().Truncate(time.Microsecond)
		keep(t, s, record)
		want := func(when string, overdue time.Time) {
			t.Helper()
			if state, err := s.Archive().State(t.Context()); err != nil || !state.Overdue.Equal(overdue) {
				t.Errorf("%s, overdue is %s, want %s (%v)", when, state.Overdue, overdue, err)
			}
		}
		time.Sleep(40 * time.Hour)
		want("without an archive", time.Time{})
		place := folder.New(t.TempDir())
		a := archiver(t, s, place, nil)
		want("with a new archive", time.Time{})
		time.Sleep(5 * time.Hour)
		want("after some hours", record.At)
		if err := a.ArchiveNow(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		want("once it is archived", time.Time{})
		record.At = time.Now().UTC().Truncate(time.Microsecond)
		keep(t, s, record)
		time.Sleep(27 * time.Hour)
		want("after a day", time.Time{})
		time.Sleep(2 * time.Hour)
		want("after a day and some hours", record.At)
	})
}

// It is recorded, too, if it can't be found out whether the audit may be archived.
func TestRunRecordsWhyItIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		a := archiver(t, s, folder.New(t.TempDir()), nil)
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
