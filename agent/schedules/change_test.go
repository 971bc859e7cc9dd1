package schedules_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/bus"
	kept "parley/sessions/schedules"
)

// A change of a schedule applies to its next slot, and nothing is sent while it is paused, wherever a process dies
// during the change.
func TestAChangedScheduleUsesItsNewText(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		id := s.add("one", "every 10m")
		stop, goOn, when, text := true, false, "every 20m", "look at the mail"
		change := func(to kept.Change) {
			t.Helper()
			s.survive(func() error {
				_, err := s.scheduler().Change(t.Context(), id, to)
				return err
			})
		}
		s.diesAt = "schedule:changed"
		change(kept.Change{Paused: &stop})
		s.serve(2, 35*time.Minute)
		if got, _ := s.takeMessages(bus.InboundTopic); len(got) > 0 {
			t.Errorf("while it is paused, said are %q", got)
		}
		changed := time.Now()
		s.diesAt = "schedule:changed"
		change(kept.Change{When: &when, Text: &text})
		s.serve(2, 25*time.Minute)
		if got, _ := s.takeMessages(bus.InboundTopic); len(got) > 0 {
			t.Errorf("a change lets it go on: %q", got)
		}
		s.diesAt = "schedule:changed"
		change(kept.Change{Paused: &goOn})
		s.serve(2, 20*time.Minute)
		got, texts := s.takeMessages(bus.InboundTopic)
		if !slices.Equal(got, slotIDs(id, changed, 40*time.Minute)) || !slices.Equal(texts, []string{text}) {
			t.Errorf("said are %q %q", got, texts)
		}
		if told := s.personMessages(); len(told) > 0 || s.fired["missed"] > 0 {
			t.Errorf("a pause is told as missed: %q", told)
		}
	})
}

// If a text is changed just before a slot begins, the slot sends the new text.
func TestAChangeJustBeforeASlotHolds(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		began, text := time.Now(), "look at the mail"
		id := s.add("one", "every 10m")
		var once sync.Once
		s.between = func(point string) {
			if point == "schedule:begin" { // the process that fires has read the schedule already
				once.Do(func() {
					if _, err := s.scheduler().Change(t.Context(), id, kept.Change{Text: &text}); err != nil {
						t.Error(err)
					}
				})
			}
		}
		s.serve(2, 11*time.Minute)
		got, texts := s.takeMessages(bus.InboundTopic)
		if !slices.Equal(got, slotIDs(id, began, 10*time.Minute)) || !slices.Equal(texts, []string{text}) {
			t.Errorf("said are %q %q", got, texts)
		}
	})
}

// If two people change different fields at the same time, both changes are made.
func TestTwoConcurrentChanges(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		id := s.add("one", "every 10m")
		text, when := "look at the mail", "every 20m"
		var all sync.WaitGroup
		for range 10 {
			for _, to := range []kept.Change{{Text: &text}, {When: &when}} {
				all.Go(func() {
					if _, err := s.scheduler().Change(t.Context(), id, to); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			got, err := s.Store.Schedules().Get(t.Context(), id)
			if err != nil || got.Text != text || got.When != when {
				t.Fatalf("it is %+v, %v", got, err)
			}
			text, when = text+"!", fmt.Sprintf("every %dm", 20+len(text))
		}
	})
}

// A repeated request for the same run sends the text once, and changes no slots.
func TestARunOnRequestIsSentOnce(t *testing.T) {
	runOnHome(t, func(t *testing.T, s *testHome) {
		began := time.Now()
		id := s.add("one", "every 10m")
		for range 3 { // each by a different process
			if message, _, err := s.scheduler().Say(t.Context(), id, "k"); err != nil || message != kept.RunID(id, "k") {
				t.Fatal(message, err)
			}
		}
		s.serve(2, 11*time.Minute)
		got, _ := s.takeMessages(bus.InboundTopic)
		if want := append([]string{kept.RunID(id, "k")}, slotIDs(id, began, 10*time.Minute)...); !slices.Equal(got, want) {
			t.Errorf("said are %q, want %q", got, want)
		}
		s.refused = true
		if _, _, err := s.scheduler().Say(t.Context(), id, "l"); !errors.Is(err, kept.ErrNotAdmitted) {
			t.Errorf("for somebody who may not talk: %v", err)
		}
		if _, _, err := s.scheduler().Say(t.Context(), "none", "l"); !errors.Is(err, kept.ErrNone) {
			t.Errorf("without a schedule: %v", err)
		}
	})
}
