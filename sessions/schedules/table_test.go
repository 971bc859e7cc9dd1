package schedules_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions/schedules"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

// onEachDatabase runs a test on both kinds of database, with two tables over each.
func onEachDatabase(t *testing.T, test func(t *testing.T, one, other schedules.Table)) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, one, other *sqlstore.Store) { test(t, one.Schedules(), other.Schedules()) })
}

func newSchedule(id string) schedules.Schedule {
	made := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	return schedules.Schedule{
		ID: id, Session: "main:telegram:2", Person: "telegram:2", PersonName: "Al\x00ex", Address: "telegram:2", When: "every 10m", Zone: "UTC",
		Text: "look at the \xff build", MadeAt: made, Next: made.Add(10 * time.Minute),
	}
}

func TestSchedulesAreStored(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		if _, err := other.Get(t.Context(), "a"); !errors.Is(err, schedules.ErrNone) {
			t.Errorf("without any: %v", err)
		}
		for range 2 { // a repeated call adds nothing
			if _, err := one.Add(t.Context(), newSchedule("a"), 2); err != nil {
				t.Fatal(err)
			}
		}
		got, err := other.Get(t.Context(), "a")
		want := newSchedule("a")
		if err != nil || !got.MadeAt.Equal(want.MadeAt) || !got.Next.Equal(want.Next) || got.Text != want.Text || got.PersonName != want.PersonName ||
			got.Session != want.Session || got.Person != want.Person || got.Address != want.Address || got.When != want.When || got.Zone != want.Zone {
			t.Errorf("kept %+v, %v", got, err)
		}
		if _, err := other.Add(t.Context(), newSchedule("b"), 2); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Add(t.Context(), newSchedule("c"), 2); !errors.Is(err, schedules.ErrTooMany) {
			t.Errorf("a third of two: %v", err)
		}
		if err := other.Remove(t.Context(), "b"); err != nil {
			t.Error(err)
		}
		if err := one.Remove(t.Context(), "b"); !errors.Is(err, schedules.ErrNone) {
			t.Errorf("removed twice: %v", err)
		}
		for _, zone := range []string{"", "Europe/Berlin", "Asia/Tokyo"} {
			if zone != "" {
				if err := one.SetZone(t.Context(), "s", zone); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := other.Zone(t.Context(), "s"); got != zone || err != nil {
				t.Errorf("the zone is %q, %v", got, err)
			}
		}
	})
}

// However many processes find a schedule due, only one begins its slot. The schedule is over after its last
// slot.
func TestASlotIsBegunOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		s, err := one.Add(t.Context(), newSchedule("a"), 1)
		if err != nil {
			t.Fatal(err)
		}
		due, ok, err := s.Due(s.Next)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		var taken atomic.Int32
		var all sync.WaitGroup
		for _, table := range []schedules.Table{one, other, one, other} {
			all.Go(func() {
				ours, err := table.BeginSlot(t.Context(), s, due)
				if err != nil {
					t.Error(err)
				}
				if ours {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		if n := taken.Load(); n != 1 {
			t.Errorf("the slot was taken %d times", n)
		}
		if late, err := other.DueBefore(t.Context(), due.Slot.Add(time.Second)); err != nil || len(late) != 1 || !late[0].Slot.Equal(due.Slot) {
			t.Errorf("to be done are %+v, %v", late, err)
		}
		if err := other.EndSlot(t.Context(), due, schedules.SlotFired); err != nil {
			t.Fatal(err)
		}
		if err := one.EndSlot(t.Context(), due, schedules.SlotFired); err != nil { // the same call again
			t.Fatal(err)
		}
		now, err := one.Get(t.Context(), "a")
		if err != nil || !now.Slot.IsZero() || !now.Next.Equal(due.Next) {
			t.Errorf("it is %+v, %v", now, err)
		}
		if late, err := one.DueBefore(t.Context(), now.Next); err != nil || len(late) != 0 {
			t.Errorf("to be done are %+v, %v", late, err)
		}
		last := now
		last.Slot, last.Next = now.Next, time.Time{}
		if ours, err := one.BeginSlot(t.Context(), now, last); err != nil || !ours {
			t.Fatal(ours, err)
		}
		if err := one.EndSlot(t.Context(), last, schedules.SlotFired); err != nil {
			t.Fatal(err)
		}
		if all, err := one.List(t.Context(), ""); err != nil || len(all) != 0 {
			t.Errorf("after its last slot there are %+v, %v", all, err)
		}
		if _, err := one.Add(t.Context(), newSchedule("b"), 1); err != nil { // the schedule that is over does not count anymore
			t.Error(err)
		}
		if err := other.Prune(t.Context(), last.MadeAt.Add(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := one.Get(t.Context(), "a"); err != nil {
			t.Errorf("who was cut off as it was added does not find it: %v", err)
		}
		if err := other.Prune(t.Context(), last.MadeAt.Add(72*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := one.Get(t.Context(), "a"); !errors.Is(err, schedules.ErrNone) {
			t.Errorf("long after its last slot: %v", err)
		}
	})
}

func TestSchedulesAreErased(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		theirs, elsewhere := newSchedule("theirs"), newSchedule("elsewhere")
		theirs.Person, elsewhere.Session = "telegram:3", "main:telegram:9"
		for _, s := range []schedules.Schedule{newSchedule("a"), theirs, elsewhere} {
			if _, err := one.Add(t.Context(), s, 9); err != nil {
				t.Fatal(err)
			}
		}
		if err := one.SetZone(t.Context(), "main:telegram:2", "UTC"); err != nil {
			t.Fatal(err)
		}
		left := func(want ...string) {
			t.Helper()
			all, err := other.List(t.Context(), "")
			if err != nil || len(all) != len(want) {
				t.Fatalf("left are %+v, %v; want %q", all, err, want)
			}
		}
		erase := func(do func(tx *sqldb.Tx) (int64, error)) {
			t.Helper()
			if err := one.DB.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := do(tx); return err }); err != nil {
				t.Fatal(err)
			}
		}
		erase(func(tx *sqldb.Tx) (int64, error) { return schedules.ErasePerson(tx, "telegram:3") })
		left("a", "elsewhere")
		erase(func(tx *sqldb.Tx) (int64, error) { return schedules.EraseSession(tx, "main:telegram:2") })
		left("elsewhere")
		if zone, err := other.Zone(t.Context(), "main:telegram:2"); zone != "" || err != nil {
			t.Errorf("the zone is %q, %v", zone, err)
		}
	})
}

// The schedules that are due next are listed first, and only as many as requested.
func TestNextDue(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		if next, count, err := other.NextDue(t.Context(), 2); err != nil || count != 0 || len(next) != 0 {
			t.Errorf("without any: %v, %d, %v", next, count, err)
		}
		for id, after := range map[string]time.Duration{"late": 3 * time.Hour, "soon": time.Minute, "later": 2 * time.Hour, "begun": 5 * time.Minute} {
			s := newSchedule(id)
			s.Next = s.MadeAt.Add(after)
			if _, err := one.Add(t.Context(), s, 9); err != nil {
				t.Fatal(err)
			}
		}
		was, err := one.Get(t.Context(), "begun")
		if err != nil {
			t.Fatal(err)
		}
		begun := was
		begun.Slot, begun.Next = was.Next, was.Next.Add(10*time.Hour)
		if ours, err := one.BeginSlot(t.Context(), was, begun); err != nil || !ours {
			t.Fatal(ours, err)
		}
		for limit, want := range map[int]string{2: "soon begun", 9: "soon begun later late"} {
			next, count, err := other.NextDue(t.Context(), limit)
			var ids []string
			for _, s := range next {
				ids = append(ids, s.ID)
			}
			if err != nil || count != 4 || strings.Join(ids, " ") != want {
				t.Errorf("of %d schedules %v are due next, %v", count, ids, err)
			}
		}
	})
}
