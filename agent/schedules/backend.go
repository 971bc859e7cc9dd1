package schedules

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/schedules"
	"parley/tools"
	scheduletools "parley/tools/schedules"
)

// A Backend lets the agent's tool "schedule" add, list and cancel schedules.
type Backend struct{ Scheduler *Scheduler }

var _ scheduletools.Backend = Backend{}

// idLength is how many characters a schedule's id has: few, because people type it.
const idLength = 10

// scheduleIDFor returns the id of the schedule that a call adds: the same for each attempt of the
// call.
func scheduleIDFor(call tools.Call) string {
	sum := sha256.Sum256([]byte(call.Session + "\x00" + call.Key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLength])
}

// Add implements scheduletools.Backend: it stores a schedule of the call's person and sets its
// timer.
func (d Backend) Add(ctx context.Context, call tools.Call, w scheduletools.Request) (scheduletools.Entry, error) {
	c := d.Scheduler
	why, err := c.Ready(ctx)
	if err != nil {
		return scheduletools.Entry{}, err
	}
	if why != "" {
		return scheduletools.Entry{}, tools.Errorf(tools.PermissionDenied, "Nothing can be scheduled now: %s. Tell the person to ask again later.", why)
	}
	at, err := bus.ParseAddress(call.At)
	if err != nil {
		return scheduletools.Entry{}, err
	}
	caller, ok, err := c.Admit(ctx, bus.Person{ID: call.Person, Name: call.Called}, at)
	switch {
	case err != nil:
		return scheduletools.Entry{}, err
	case !ok, caller.Program:
		return scheduletools.Entry{}, tools.Errorf(tools.PermissionDenied, "Only for people who may talk to me here something can be scheduled, and %s is none now.", call.Person)
	}
	limits := c.Limits()
	zone, err := d.zone(ctx, call, w, limits)
	if err != nil {
		return scheduletools.Entry{}, err
	}
	now := time.Now()
	when, err := schedules.Parse(w.When, zone, now)
	if err != nil {
		return scheduletools.Entry{}, tools.Errorf(tools.InvalidArgs, "when: %v", err)
	}
	if gap := when.ShortestGap(); !when.IsOnce() && gap < limits.Least {
		return scheduletools.Entry{}, tools.Errorf(tools.InvalidArgs, "when: it would be due every %s, and at least %s have to lie between: choose a longer time", gap, limits.Least)
	}
	next := when.Next(now)
	if next.IsZero() {
		return scheduletools.Entry{}, tools.Errorf(tools.InvalidArgs, "when: %s is past; it is %s now", w.When, now.In(zone).Format(time.RFC3339))
	}
	s := schedules.Schedule{
		ID: scheduleIDFor(call), Session: call.Session, Person: call.Person, PersonName: call.Called, Address: call.At,
		When: when.String(), Zone: zone.String(), Text: w.Text, Made: now, Next: next,
	}
	s, err = c.Table.Add(ctx, s, limits.Most)
	if errors.Is(err, schedules.ErrTooMany) {
		return scheduletools.Entry{}, tools.Errorf(tools.PermissionDenied, "This person has %d schedules, here and in other chats, which is the most that one may have. One has to be cancelled first.", limits.Most)
	}
	if err != nil {
		return scheduletools.Entry{}, err
	}
	c.Point("schedule:added")
	d.setTimer(ctx, s)
	return entry(s, call), nil
}

// setTimer sets the timer of a schedule that is stored already. If that fails, the sweep finds
// the slot when it is overdue, so it is only late.
func (d Backend) setTimer(ctx context.Context, s schedules.Schedule) {
	if err := d.Scheduler.setTimer(ctx, s); err != nil {
		d.Scheduler.Log.Warn("a schedule has no timer yet", slog.String("schedule", s.ID), slog.Any("error", err))
	}
}

// zone returns the time zone for a call's schedule: the one that the request names,
// otherwise that of the conversation, the person or the configuration.
func (d Backend) zone(ctx context.Context, call tools.Call, w scheduletools.Request, limits Limits) (*time.Location, error) {
	name := w.Zone
	if name == "" {
		var err error
		if name, err = d.Scheduler.Table.Zone(ctx, call.Session); err != nil {
			return nil, err
		}
	}
	if name == "" {
		if name = d.Scheduler.Zone(ctx, call.Person); !schedules.IsZone(name) {
			name = limits.Zone
		}
	}
	if !schedules.IsZone(name) {
		return nil, tools.Errorf(tools.InvalidArgs, "time_zone: there is no %q: write it like Europe/Berlin, America/New_York or UTC", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	if w.Zone != "" {
		return zone, d.Scheduler.Table.SetZone(ctx, call.Session, name)
	}
	return zone, nil
}

// Added implements scheduletools.Backend: it returns the schedule that an earlier attempt of the
// call has added; false if there is none.
func (d Backend) Added(ctx context.Context, call tools.Call) (scheduletools.Entry, bool, error) {
	s, err := d.Scheduler.Table.Get(ctx, scheduleIDFor(call))
	if errors.Is(err, schedules.ErrNone) {
		return scheduletools.Entry{}, false, nil
	}
	if err != nil {
		return scheduletools.Entry{}, false, err
	}
	d.setTimer(ctx, s) // who was cut off may not have come to it
	return entry(s, call), true, nil
}

// List implements scheduletools.Backend: it returns the schedules of the call's session.
func (d Backend) List(ctx context.Context, call tools.Call) ([]scheduletools.Entry, error) {
	all, err := d.Scheduler.Table.List(ctx, call.Session)
	if err != nil {
		return nil, err
	}
	var entries []scheduletools.Entry
	for _, s := range all {
		e := entry(s, call)
		e.Text = s.Text
		entries = append(entries, e)
	}
	return entries, nil
}

// Cancel implements scheduletools.Backend: it removes a schedule of the session, if the person
// made it or is an owner.
func (d Backend) Cancel(ctx context.Context, call tools.Call, id string) error {
	s, err := d.Scheduler.Table.Get(ctx, id)
	switch {
	case errors.Is(err, schedules.ErrNone), err == nil && s.Session != call.Session:
		return tools.Errorf(tools.NotFound, "this chat has no schedule %q: action list shows those that it has", id)
	case err != nil:
		return err
	case s.Person != call.Person && !call.Owner:
		return tools.Errorf(tools.PermissionDenied, "%s has made it: they or an owner of the bot can cancel it", bus.Person{ID: s.Person, Name: s.PersonName}.NameAndID())
	}
	if err := d.Scheduler.Table.Remove(ctx, id); err != nil && !errors.Is(err, schedules.ErrNone) {
		return err
	}
	return nil
}

// Known implements scheduletools.Backend: it reports whether the session has a schedule of that id, which
// the model has named.
func (d Backend) Known(ctx context.Context, call tools.Call, id string) (bool, error) {
	s, err := d.Scheduler.Table.Get(ctx, id)
	if errors.Is(err, schedules.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a schedule: %w", err)
	}
	return s.Session == call.Session, nil
}

// entry returns a schedule as the model of a call sees it.
func entry(s schedules.Schedule, call tools.Call) scheduletools.Entry {
	e := scheduletools.Entry{ID: s.ID, When: s.When, Zone: s.Zone}
	if s.Person != call.Person {
		e.By = bus.Person{ID: s.Person, Name: s.PersonName}.NameAndID()
	}
	if !s.Next.IsZero() {
		next := s.Next
		if zone, err := time.LoadLocation(s.Zone); err == nil {
			next = next.In(zone)
		}
		e.Next = next.Format("Mon 2006-01-02 15:04 MST (-07:00)")
	}
	return e
}
