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

// While a schedule is paused it is not due, whatever passes, and afterwards it goes on with what comes.
func TestAPausedScheduleIsNotDue(t *testing.T) {
	each(t, func(t *testing.T, one, other schedules.Table) {
		was, err := one.Add(t.Context(), sample("a"), 1)
		if err != nil {
			t.Fatal(err)
		}
		stop, goOn := true, false
		paused, err := was.Changed(schedules.Change{Paused: &stop}, was.Made.Add(time.Minute), time.Minute)
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
		if err != nil || kept.Paused.IsZero() || !kept.Next.IsZero() || kept.IsOver() {
			t.Fatalf("kept %+v, %v", kept, err)
		}
		late := was.Made.AddDate(1, 0, 0)
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
		if _, err := one.Add(t.Context(), sample("b"), 1); !errors.Is(err, schedules.ErrTooMany) {
			t.Errorf("what is paused does not count: %v", err)
		}
		now := was.Made.Add(35 * time.Minute)
		on, err := kept.Changed(schedules.Change{Paused: &goOn}, now, time.Minute)
		if err != nil || !on.Next.Equal(was.Made.Add(40*time.Minute)) {
			t.Fatalf("it goes on as %+v, %v", on, err)
		}
		if ours, err := one.Replace(t.Context(), kept, on); err != nil || !ours {
			t.Fatal(ours, err)
		}
		if again, err := other.Get(t.Context(), "a"); err != nil || !again.Paused.IsZero() || !again.Next.Equal(on.Next) || again.Missed != 0 {
			t.Errorf("kept %+v, %v", again, err)
		}
	})
}

// Who has read a schedule before its times were changed takes no slot of it, even if the next one is the same.
func TestASlotOfEarlierTimesIsNotTaken(t *testing.T) {
	each(t, func(t *testing.T, one, other schedules.Table) {
		was, err := one.Add(t.Context(), sample("a"), 1)
		if err != nil {
			t.Fatal(err)
		}
		when := was.Next.Format(time.RFC3339) // the same moment, once
		now, err := was.Changed(schedules.Change{When: &when}, was.Made.Add(time.Minute), time.Minute)
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

// What cannot be is said, with the field, and changes nothing.
func TestWhatAScheduleCannotBecome(t *testing.T) {
	s := sample("a")
	now := s.Made.Add(time.Minute)
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
	once.When, once.Next, once.Paused = "2026-11-23T10:30:00Z", time.Time{}, now
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

// A request that is repeated makes one schedule, and another request under the same id is refused.
func TestARequestMakesOneSchedule(t *testing.T) {
	each(t, func(t *testing.T, one, other schedules.Table) {
		s := sample("a")
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

// All schedules stand on one page or another, once, by when they are due, and the paused ones last.
func TestSchedulesComeInPages(t *testing.T) {
	each(t, func(t *testing.T, one, other schedules.Table) {
		stop := true
		want := []string{"s1", "s0", "s2", "s4", "s5", "s6", "s3"}
		for i := range 7 {
			s := sample(fmt.Sprint("s", i))
			s.Next = s.Made.Add(time.Duration(i/2) * time.Hour) // two at a time
			if i == 0 {
				s.Next = s.Made.Add(time.Minute)
			}
			s, err := one.Add(t.Context(), s, 9)
			if err != nil {
				t.Fatal(err)
			}
			if i == 3 {
				paused, err := s.Changed(schedules.Change{Paused: &stop}, s.Made, time.Minute)
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

// Who changes a schedule as somebody else has read it changes it if it is as they have read it, in all that a
// change may be about.
func TestNoChangeOfAScheduleIsLost(t *testing.T) {
	text := func(s string) *string { return &s }
	for name, first := range map[string]schedules.Change{"text": {Text: text("look at the mail")}, "time zone": {Zone: text("Europe/Paris")}, "when": {When: text("every 600s")}} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, one, other schedules.Table) {
				was, err := one.Add(t.Context(), sample("a"), 1)
				if err != nil {
					t.Fatal(err)
				}
				mine, err := was.Changed(first, was.Made, time.Minute)
				if err != nil || !mine.Next.Equal(was.Next) || !mine.Made.Equal(was.Made) {
					t.Fatal(mine, err)
				}
				theirs, err := was.Changed(schedules.Change{When: text("every 1h")}, was.Made.Add(time.Minute), time.Minute)
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

// Of those that change the same schedule at once, each by what it has read, one succeeds.
func TestOneOfManyChangesASchedule(t *testing.T) {
	each(t, func(t *testing.T, one, other schedules.Table) {
		was, err := one.Add(t.Context(), sample("a"), 1)
		if err != nil {
			t.Fatal(err)
		}
		var changed atomic.Int32
		var all sync.WaitGroup
		for i, table := range []schedules.Table{one, other, one, other} {
			all.Go(func() {
				text := fmt.Sprint("look ", i)
				now, err := was.Changed(schedules.Change{Text: &text}, was.Made, time.Minute)
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
