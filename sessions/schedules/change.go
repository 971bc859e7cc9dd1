package schedules

import (
	"fmt"
	"strings"
	"time"
)

// MaxText is the maximum length of a schedule's text, in bytes.
const MaxText = 4000

// A Change says what to change in a schedule. A nil field is not changed.
type Change struct {
	Text   *string
	When   *string
	Zone   *string
	Paused *bool
}

// An InvalidError says why a schedule cannot be made or changed as requested.
type InvalidError struct {
	Field  string // of the request: when, text or time_zone
	Reason string
}

// Error names the field and the reason.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// Invalid returns an InvalidError.
func Invalid(field, format string, args ...any) error {
	return &InvalidError{field, fmt.Sprintf(format, args...)}
}

// CheckText returns an InvalidError unless the text is allowed for a schedule.
func CheckText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return Invalid("text", "write what to do then")
	case len(text) > MaxText:
		return Invalid("text", "it is %d bytes long; at most %d are allowed", len(text), MaxText)
	}
	return nil
}

// LoadZone returns the time zone of that name, or an InvalidError.
func LoadZone(name string) (*time.Location, error) {
	if !IsZone(name) {
		return nil, Invalid("time_zone", "%q isn't a time zone: write it like Europe/Berlin, America/New_York or UTC", name)
	}
	return time.LoadLocation(name)
}

// Plan sets when the schedule is due, from words that somebody says now in a time zone. It returns an
// InvalidError if it would be due more often than least allows, or never.
func (s Schedule) Plan(when string, zone *time.Location, now time.Time, least time.Duration) (Schedule, error) {
	w, err := Parse(when, zone, now)
	if err != nil {
		return s, Invalid("when", "%v", err)
	}
	if gap := w.ShortestGap(); !w.IsOnce() && gap < least {
		return s, Invalid("when", "it would be due every %s, but there have to be at least %s in between: choose a longer time", gap, least)
	}
	next := w.Next(now)
	if next.IsZero() {
		return s, Invalid("when", "%s is in the past; it's %s now", when, now.In(zone).Format(time.RFC3339))
	}
	s.When, s.Zone, s.MadeAt, s.Next = w.String(), zone.String(), now, next
	return s, nil
}

// Changed returns the schedule after a change. Slots that pass while it is paused do not count as missed: when it
// goes on, it is due at the next time after now. It returns ErrOver if the schedule is over, or its last slot is
// being worked on, and an InvalidError if the change is not allowed.
func (s Schedule) Changed(c Change, now time.Time, least time.Duration) (Schedule, error) {
	if s.IsOver() || s.Next.IsZero() && s.PausedAt.IsZero() {
		return s, ErrOver // its last slot is being worked on, so it is as good as over
	}
	if c.Text != nil {
		if err := CheckText(*c.Text); err != nil {
			return s, err
		}
		s.Text = *c.Text
	}
	pause := !s.PausedAt.IsZero()
	if c.Paused != nil {
		pause = *c.Paused
	}
	if c.When != nil || c.Zone != nil {
		planned, err := s.replan(c, now, least)
		if err != nil {
			return s, err
		}
		s = planned
	} else if !pause && !s.PausedAt.IsZero() {
		w, err := s.parseWhen()
		if err != nil {
			return s, err
		}
		if s.Next = w.Next(now); s.Next.IsZero() {
			return s, Invalid("when", "%s passed while the schedule was paused: give it another time", s.When)
		}
	}
	switch {
	case !pause:
		s.PausedAt = time.Time{}
	case s.PausedAt.IsZero():
		s.PausedAt = now
	}
	if pause {
		s.Next = time.Time{}
	}
	return s, nil
}

// replan sets when the schedule is due, if a change contains new words or another time zone.
func (s Schedule) replan(c Change, now time.Time, least time.Duration) (Schedule, error) {
	when, name := s.When, s.Zone
	if c.When != nil {
		when = *c.When
	}
	if c.Zone != nil {
		name = *c.Zone
	}
	zone, err := LoadZone(name)
	if err != nil {
		return s, err
	}
	return s.Plan(when, zone, now, least)
}
