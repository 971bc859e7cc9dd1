// Package schedules stores what is to be said to agents at certain times: once, at intervals, or by a
// cron line.
//
// Each time at which a schedule is due is a slot. The slot, and the one after it, are written into the
// table before the work for the slot begins. So if a process dies in between, another one finishes the
// slot under the same id, and a slot that passed while no process was running is counted as missed only
// once.
//
// The files, in reading order: schedules.go defines a schedule and how it goes from slot to slot; when.go
// parses the words that say when, cron.go a cron line; change.go defines how a schedule is made and
// changed; table.go stores schedules.
package schedules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // so that time zones are known on machines that have none installed
)

// Errors about a schedule.
var (
	// ErrNone says that there is no schedule of that id.
	ErrNone = errors.New("there's no such schedule")
	// ErrTooMany says that the person has the largest allowed number of schedules.
	ErrTooMany = errors.New("this person has too many schedules")
	// ErrOver says that the schedule will never be due again, so it cannot be changed.
	ErrOver = errors.New("this schedule is over")
	// ErrNotAdmitted says that the schedule's person may not talk to the bot there now.
	ErrNotAdmitted = errors.New("this person may not talk to the bot there")
	// ErrOtherRequest says that the schedule of that id was made by another request.
	ErrOtherRequest = errors.New("another request has made this schedule")
	// ErrNotNow says that nothing can be scheduled now, because a process of an older release serves.
	ErrNotNow = errors.New("nothing can be scheduled now")
)

// A Schedule is a text to be said to an agent at certain times.
type Schedule struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	// Person is who made it, CHANNEL:USER, and PersonName the name that their platform shows.
	Person     string `json:"person"`
	PersonName string `json:"called,omitempty"`
	Address    string `json:"address"` // where the conversation takes place
	When       string `json:"when"`    // when it is due, in words that Parse reads
	Zone       string `json:"time_zone"`
	Text       string `json:"text"`
	// MadeAt is when it was made, or when When was last changed. Intervals count from then.
	MadeAt time.Time
	// Next is the next time at which it is due, after Slot; zero if there is none, or it is paused.
	Next time.Time
	// PausedAt is when it was paused; zero if it is not paused.
	PausedAt time.Time
	// Request is a hash of the request that made it; "" if the agent's tool made it.
	Request string `json:"-"`
	// Slot is the slot that is being worked on; zero if none is.
	Slot time.Time
	// MissedSlots is how many slots passed while no process ran, the first of them at
	// MissedFrom. They are reported together with Slot.
	MissedSlots int
	MissedFrom  time.Time
}

// MaxMissed is the highest number of missed slots that is counted.
const MaxMissed = 1000

// parseWhen parses when the schedule is due.
func (s Schedule) parseWhen() (When, error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return When{}, fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	w, err := Parse(s.When, zone, s.MadeAt)
	if err != nil {
		return When{}, fmt.Errorf("schedule %s: %w", s.ID, err)
	}
	return w, nil
}

// Due returns the schedule in the state that it has when work on its newest slot up to now begins, with
// earlier slots counted as missed. It returns false if no slot has come yet, or if one is being worked
// on.
func (s Schedule) Due(now time.Time) (Schedule, bool, error) {
	if !s.Slot.IsZero() || s.Next.IsZero() || s.Next.After(now) {
		return s, false, nil
	}
	w, err := s.parseWhen()
	if err != nil {
		return s, false, err
	}
	s.Slot, s.MissedSlots, s.MissedFrom = s.Next, 0, time.Time{}
	if last := w.Last(now); last.After(s.Next) {
		s.MissedFrom, s.Slot = s.Next, last
		for at := s.Next; at.Before(last) && s.MissedSlots < MaxMissed; at = w.Next(at) {
			s.MissedSlots++
		}
	}
	s.Next = w.Next(s.Slot)
	return s, true, nil
}

// SlotID returns the permanent id of the slot that is being worked on.
func (s Schedule) SlotID() string { return SlotID(s.ID, s.Slot) }

// SlotID returns the permanent id of a slot of the schedule with that id.
func SlotID(id string, slot time.Time) string {
	return idPrefix(id) + strconv.FormatInt(slot.Unix(), 10)
}

// RunID returns the permanent id of a run that somebody asks for in addition to the schedule's slots. The
// same name means the same run.
func RunID(id, name string) string { return idPrefix(id) + "run:" + name }

// idPrefix returns the prefix of the ids of all slots and runs of the schedule with that id. Package
// sqlstore has an index of these ids, so the prefix must never change.
func idPrefix(id string) string { return "schedule:" + id + ":" }

// A Run is a turn that a schedule has begun.
type Run struct {
	ID    string // the id of the message that began it, made by SlotID or RunID
	N     int64  // the number of that message's entry in the log
	Turn  string
	Begun time.Time
	State string // how it ended; "" while it runs
	Code  string // why it ended early
	Ended time.Time
}

// Slot returns the slot that the run was for; false if somebody asked for the run.
func (r Run) Slot() (time.Time, bool) {
	seconds, err := strconv.ParseInt(r.ID[strings.LastIndexByte(r.ID, ':')+1:], 10, 64)
	if err != nil || strings.Contains(r.ID, ":run:") {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0), true
}

// IsOver reports whether the schedule will never be due again. Such a schedule is kept for a while.
func (s Schedule) IsOver() bool { return s.Slot.IsZero() && s.Next.IsZero() && s.PausedAt.IsZero() }

// DueSince returns when work on the schedule is or was due: at its slot, if one is being
// worked on, otherwise at the next; zero if it is paused.
func (s Schedule) DueSince() time.Time {
	if !s.Slot.IsZero() {
		return s.Slot
	}
	return s.Next
}
