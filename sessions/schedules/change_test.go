package schedules_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/sessions/schedules"
)

// A paused schedule is never due. When it is resumed, it continues with the next slot.
func TestAPausedScheduleIsNotDue(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		was, err := one.Add(t.Context(), newSchedule("a"), 1)
		if err != nil {
			t.Fatal(err)
		}
		stop, goOn := true, false
		paused, err := was.Changed(schedules.Change{Paused: &stop}, was.MadeAt.Add(time.Minute), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if ours, err := one.Replace(t.Context(), was, paused); err != nil || !ours {
			t.Fatal(ours, err)
		}
		if ours, err := other.Replace(t.Context(), was, paused); err != nil || ours {
			t.Errorf("what was changed meanwhile is changed: %v, %v", ours, err)
		}
		kept, err := other.Get(t.Context(), "a")
		if err != nil || kept.PausedAt.IsZero() || !kept.Next.IsZero() || kept.IsOver() {
			t.Fatalf("kept %+v, %v", kept, err)
		}
		late := was.MadeAt.AddDate(1, 0, 0)
		if due, err := other.DueBefore(t.Context(), late); err != nil || len(due) != 0 {
			t.Errorf("due are %+v, %v", due, err)
		}
		if _, due, err := kept.Due(late); due || err != nil {
			t.Errorf("it is due, %v", err)
		}
		if ours, err := other.BeginSlot(t.Context(), was, was); err != nil || ours {
			t.Errorf("who has read it before the pause takes a slot: %v, %v", ours, err)
		}
		if err := other.Prune(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		if _, err := one.Add(t.Context(), newSchedule("b"), 1); !errors.Is(err, schedules.ErrTooMany) {
			t.Errorf("what is paused does not count: %v", err)
		}
		now := was.MadeAt.Add(35 * time.Minute)
		on, err := kept.Changed(schedules.Change{Paused: &goOn}, now, time.Minute)
		if err != nil || !on.Next.Equal(was.MadeAt.Add(40*time.Minute)) {
			t.Fatalf("it goes on as %+v, %v", on, err)
		}
		if ours, err := one.Replace(t.Context(), kept, on); err != nil || !ours {
			t.Fatal(ours, err)
		}
		if again, err := other.Get(t.Context(), "a"); err != nil || !again.PausedAt.IsZero() || !again.Next.Equal(on.Next) || again.MissedSlots != 0 {
			t.Errorf("kept %+v, %v", again, err)
		}
	})
}

// A process that has read a schedule before its times were changed begins no slot of it, even if the next slot
// is the same.
func TestASlotOfChangedTimesIsNotBegun(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		was, err := one.Add(t.Context(), newSchedule("a"), 1)
		if err != nil {
			t.Fatal(err)
		}
		when := was.Next.Format(time.RFC3339) // the same time, but only once
		now, err := was.Changed(schedules.Change{When: &when}, was.MadeAt.Add(time.Minute), time.Minute)
		if err != nil || !now.Next.Equal(was.Next) {
			t.Fatal(now, err)
		}
		if ours, err := one.Replace(t.Context(), was, now); err != nil || !ours {
			t.Fatal(ours, err)
		}
		begun, _, err := was.Due(was.Next)
		if err != nil {
			t.Fatal(err)
		}
		if ours, err := other.BeginSlot(t.Context(), was, begun); err != nil || ours {
			t.Errorf("the slot is taken with the times from before: %v, %v", ours, err)
		}
	})
}

// An invalid change is refused with the name of the field, and changes nothing.
func TestInvalidChanges(t *testing.T) {
	s := newSchedule("a")
	now := s.MadeAt.Add(time.Minute)
	text := func(s string) *string { return &s }
	for field, to := range map[string]schedules.Change{
		"when": {When: text("every 1s")}, "text": {Text: text(" ")}, "time_zone": {Zone: text("Mars/Base")},
	} {
		_, err := s.Changed(to, now, time.Minute)
		if invalid, ok := errors.AsType[*schedules.InvalidError](err); !ok || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	once, goOn := s, false
	once.When, once.Next, once.PausedAt = "2026-11-23T10:30:00Z", time.Time{}, now
	if _, err := once.Changed(schedules.Change{Paused: &goOn}, now.Add(time.Hour), time.Minute); err == nil {
		t.Error("what has passed while it was paused goes on")
	}
	over := s
	over.Next = time.Time{}
	if _, err := over.Changed(schedules.Change{Text: text("look")}, now, time.Minute); !errors.Is(err, schedules.ErrOver) {
		t.Errorf("what is over is changed: %v", err)
	}
	over.Slot = now
	if _, err := over.Changed(schedules.Change{Text: text("look")}, now, time.Minute); !errors.Is(err, schedules.ErrOver) {
		t.Errorf("what is said for the last time is changed: %v", err)
	}
}

// A repeated request makes only one schedule, and a different request with the same id is refused.
func TestARequestMakesOneSchedule(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		s := newSchedule("a")
		s.Request = "this"
		for range 2 {
			if _, err := one.Add(t.Context(), s, 2); err != nil {
				t.Fatal(err)
			}
		}
		s.Request = "that"
		if _, err := other.Add(t.Context(), s, 2); !errors.Is(err, schedules.ErrOtherRequest) {
			t.Errorf("another request: %v", err)
		}
	})
}

// Each schedule is on exactly one page, in the order in which they are due, the paused ones last.
func TestPagesOfSchedules(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		stop := true
		want := []string{"s1", "s0", "s2", "s4", "s5", "s6", "s3"}
		for i := range 7 {
			s := newSchedule(fmt.Sprint("s", i))
			s.Next = s.MadeAt.Add(time.Duration(i/2) * time.Hour) // two at the same time
			if i == 0 {
				s.Next = s.MadeAt.Add(time.Minute)
			}
			s, err := one.Add(t.Context(), s, 9)
			if err != nil {
				t.Fatal(err)
			}
			if i == 3 {
				paused, err := s.Changed(schedules.Change{Paused: &stop}, s.MadeAt, time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if ours, err := one.Replace(t.Context(), s, paused); err != nil || !ours {
					t.Fatal(ours, err)
				}
			}
		}
		var got []string
		for after := ""; ; {
			page, err := other.Page(t.Context(), "main:telegram:2", after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page {
				got, after = append(got, s.ID), s.Cursor()
			}
			if len(page) < 2 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages they are %q, want %q", got, want)
		}
		if none, err := other.Page(t.Context(), "main:telegram:3", "", 9); err != nil || len(none) != 0 {
			t.Errorf("another session has %+v, %v", none, err)
		}
		if _, err := other.Page(t.Context(), "", "yesterday", 9); err == nil {
			t.Error("a page after anything is shown")
		}
	})
}

// A change succeeds only if the stored schedule is still as the caller has read it, in everything that a change
// may affect.
func TestNoChangeOfAScheduleIsLost(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, first := range map[string]schedules.Change{"text": {Text: text("look at the mail")}, "time zone": {Zone: text("Europe/Paris")}, "when": {When: text("every 600s")}} {
		t.Run(name, func(t *testing.T) {
			onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
				was, err := one.Add(t.Context(), newSchedule("a"), 1)
				if err != nil {
					t.Fatal(err)
				}
				mine, err := was.Changed(first, was.MadeAt, time.Minute)
				if err != nil || !mine.Next.Equal(was.Next) || !mine.MadeAt.Equal(was.MadeAt) {
					t.Fatal(mine, err)
				}
				theirs, err := was.Changed(schedules.Change{When: text("every 1h")}, was.MadeAt.Add(time.Minute), time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				if ours, err := one.Replace(t.Context(), was, mine); err != nil || !ours {
					t.Fatal(ours, err)
				}
				if ours, err := other.Replace(t.Context(), was, theirs); err != nil || ours {
					t.Errorf("a change is made of what was changed meanwhile: %v, %v", ours, err)
				}
				begun, _, err := was.Due(was.Next)
				if err != nil {
					t.Fatal(err)
				}
				if ours, err := other.BeginSlot(t.Context(), was, begun); err != nil || ours {
					t.Errorf("a slot is taken of what was changed meanwhile: %v, %v", ours, err)
				}
				got, err := other.Get(t.Context(), "a")
				if err != nil || got.Text != mine.Text || got.Zone != mine.Zone || got.When != mine.When || !got.Slot.IsZero() {
					t.Errorf("kept %+v, %v", got, err)
				}
				if ours, err := other.BeginSlot(t.Context(), got, begun); err != nil || !ours {
					t.Errorf("as it is now it is not taken: %v, %v", ours, err)
				}
			})
		})
	}
}

// If several callers change the same schedule concurrently, each by what it has read, only one succeeds.
func TestOneOfConcurrentChangesSucceeds(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, one, other schedules.Table) {
		was, err := one.Add(t.Context(), newSchedule("a"), 1)
		if err != nil {
			t.Fatal(err)
		}
		var changed atomic.Int32
		var all sync.WaitGroup
		for i, table := range []schedules.Table{one, other, one, other} {
			all.Go(func() {
				text := fmt.Sprint("look ", i)
				now, err := was.Changed(schedules.Change{Text: &text}, was.MadeAt, time.Minute)
				if err != nil {
					t.Error(err)
				}
				ours, err := table.Replace(t.Context(), was, now)
				if err != nil {
					t.Error(err)
				}
				if ours {
					changed.Add(1)
				}
			})
		}
		all.Wait()
		if n := changed.Load(); n != 1 {
			t.Errorf("it was changed %d times", n)
		}
	})
}
