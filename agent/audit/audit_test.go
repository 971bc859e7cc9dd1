package audit_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"parley/agent/audit"
	"parley/sessions"
)

// Who records goes on at once; the records are kept in their order, and Wait returns when
// the last one is.
func TestRecordsAreKeptBesideTheWorkAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept, want []string
		store := make(chan struct{}) // takes a record for each value
		trail := audit.New(func(r sessions.AuditRecord) {
			<-store
			kept = append(kept, r.Call)
		})
		trail.Wait() // for nothing
		for n := range 100 {
			want = append(want, strconv.Itoa(n))
			trail.Record(sessions.AuditRecord{Call: want[n]})
		}
		waited := make(chan struct{})
		go func() {
			trail.Wait()
			close(waited)
		}()
		for range 99 {
			store <- struct{}{}
		}
		synctest.Wait()
		select {
		case <-waited:
			t.Fatal("Wait returned before the last record was kept")
		default:
		}
		store <- struct{}{}
		<-waited
		if !slices.Equal(kept, want) {
			t.Errorf("kept were %v", kept)
		}
	})
}

// Calls that run side by side record at the same time: none is lost.
func TestManyRecordAtOnce(t *testing.T) {
	kept := map[string]int{} // one at a time is kept, and Wait comes after all
	trail := audit.New(func(r sessions.AuditRecord) { kept[r.Call]++ })
	var calls sync.WaitGroup
	for n := range 50 {
		calls.Go(func() {
			for m := range 20 {
				trail.Record(sessions.AuditRecord{Call: strconv.Itoa(100*n + m)})
			}
		})
	}
	calls.Wait()
	trail.Wait()
	if len(kept) != 1000 {
		t.Errorf("of 1000 records %d were kept", len(kept))
	}
}
