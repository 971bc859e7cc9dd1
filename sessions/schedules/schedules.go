// Package schedules keeps what is to be done at times: once, every so often, or by a cron line.
//
// Each time at which a schedule is due is a slot. The slot is written into the table,
// with the next one, before anything is done about it: so whoever dies in between
// leaves a slot that others bring to its end under the same id, and a slot that has
// passed unseen is counted as missed once.
//
// The files, in reading order: schedules.go has what a schedule is and how it goes from
// slot to slot; when.go reads the words that say when, cron.go a cron line; table.go is
// where schedules are kept.
package schedules

import (
	"errors"
	"fmt"
	"strconv"
	"time"
	_ "time/tzdata" // zones are known where the machine has none installed
)

// Why something cannot be done to a schedule.
var (
	// ErrNone says that there is no schedule of that id.
	ErrNone = errors.New("there is no such schedule")
	// ErrTooMany says that the person has as many as they may have.
	ErrTooMany = errors.New("this person has too many schedules")
)

// A Schedule is something that is to be said to an agent at times.
type Schedule struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	// Person is who made it, CHANNEL:USER, and Called what their platform calls them.
	Person string `json:"person"`
	Called string `json:"called,omitempty"`
	At     string `json:"address"` // of the conversation
	When   string `json:"when"`    // as Parse reads it
	Zone   string `json:"time_zone"`
	Text   string `json:"text"`
	Made   time.Time
	// Next is the next slot; zero if there is none.
	Next time.Time
	// Slot is the slot that is being brought to its end; zero if none is.
	Slot time.Time
	// Missed slots passed while nobody was there to see them, the first at MissedFrom.
	// They are told with Slot.
	Missed     int
	MissedFrom time.Time
}

// MostMissed is how many missed slots are counted.
const MostMissed = 1000

// read is what says when the schedule is due.
func (s Schedule) read() (When, error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return When{}, fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	w, err := Parse(s.When, zone, s.Made)
	if err != nil {
		return When{}, fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	return w, nil
}

// Due is the schedule with the slot that is due now: the newest that has come. The
// slots before it are missed. False if none has come.
func (s Schedule) Due(now time.Time) (Schedule, bool, error) {
	if !s.Slot.IsZero() || s.Next.IsZero() || s.Next.After(now) {
		return s, false, nil
	}
	w, err := s.read()
	if err != nil {
		return s, false, err
	}
	s.Slot, s.Missed, s.MissedFrom = s.Next, 0, time.Time{}
	if last := w.Last(now); last.After(s.Next) {
		s.MissedFrom, s.Slot = s.Next, last
		for at := s.Next; at.Before(last) && s.Missed < MostMissed; at = w.Next(at) {
			s.Missed++
		}
	}
	s.Next = w.Next(s.Slot)
	return s, true, nil
}

// SlotID names a slot of a schedule for good.
func (s Schedule) SlotID() string { return SlotID(s.ID, s.Slot) }

// SlotID names a slot of a schedule for good.
func SlotID(id string, slot time.Time) string {
	return "schedule:" + id + ":" + strconv.FormatInt(slot.Unix(), 10)
}

// Overdue is the time since which something is to be done about the schedule: its slot,
// if one is being brought to its end, else the next.
func (s Schedule) Overdue() time.Time {
	if !s.Slot.IsZero() {
		return s.Slot
	}
	return s.Next
}
