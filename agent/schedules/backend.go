package schedules

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/schedules"
	"parley/tools"
	scheduletools "parley/tools/schedules"
)

// A Backend lets the agent's schedule tool add, list and cancel schedules.
type Backend struct{ Scheduler *Scheduler }

var _ scheduletools.Backend = Backend{}

// idLength is how many characters a schedule's id has. There are few because people type it.
const idLength = 10

// scheduleIDFor returns the id of the schedule that a call adds. It is the same for each attempt of the call.
func scheduleIDFor(call tools.Call) string {
	sum := sha256.Sum256([]byte(call.Session + "\x00" + call.Key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLength])
}

// Add implements scheduletools.Backend: it stores a schedule for the call's person and sets its timer. If an earlier
// attempt of the call has added it, it returns that one.
func (d Backend) Add(ctx context.Context, call tools.Call, w scheduletools.Request) (scheduletools.Entry, error) {
	if e, ok, err := d.Added(ctx, call); err != nil || ok {
		return e, err
	}
	c := d.Scheduler
	at, err := bus.ParseAddress(call.Address)
	if err != nil {
		return scheduletools.Entry{}, err
	}
	if _, err := c.admit(ctx, bus.Person{ID: call.Person, Name: call.PersonName}, at); err != nil {
		return scheduletools.Entry{}, d.explainError(err, call)
	}
	zone, err := c.zoneOf(ctx, call.Session, call.Person, w.Zone)
	if err != nil {
		return scheduletools.Entry{}, d.explainError(err, call)
	}
	if w.Zone != "" { // the person has said which zone they are in
		if err := c.Table.SetZone(ctx, call.Session, zone.String()); err != nil {
			return scheduletools.Entry{}, err
		}
	}
	s, err := c.keep(ctx, schedules.Schedule{
		ID: scheduleIDFor(call), Session: call.Session, Person: call.Person, PersonName: call.PersonName, Address: call.Address, When: w.When, Text: w.Text,
	}, zone)
	if err != nil {
		return scheduletools.Entry{}, d.explainError(err, call)
	}
	return entry(s, call), nil
}

// explainError rewords an error that the model can do something about, so that it says what to do.
func (d Backend) explainError(err error, call tools.Call) error {
	if invalid, ok := errors.AsType[*schedules.InvalidError](err); ok {
		return tools.Errorf(tools.InvalidArgs, "%v", invalid)
	}
	switch {
	case errors.Is(err, schedules.ErrNotNow):
		return tools.Errorf(tools.PermissionDenied, "%v. Tell the person to ask again later.", err)
	case errors.Is(err, schedules.ErrNotAdmitted):
		return tools.Errorf(tools.PermissionDenied, "Something can be scheduled only for people who may talk to me here, and %s may not right now.", call.Person)
	case errors.Is(err, schedules.ErrTooMany):
		return tools.Errorf(tools.PermissionDenied, "This person has %d schedules, here and in other chats, which is the most that one may have. One has to be canceled first.", d.Scheduler.Limits().MaxPerPerson)
	}
	return err
}

// Added implements scheduletools.Backend: it returns the schedule that an earlier attempt of the call added;
// false if there is none.
func (d Backend) Added(ctx context.Context, call tools.Call) (scheduletools.Entry, bool, error) {
	s, ok, err := d.Scheduler.Added(ctx, scheduleIDFor(call), "")
	if err != nil || !ok {
		return scheduletools.Entry{}, false, err
	}
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

// Cancel implements scheduletools.Backend: it removes a schedule of the session, if the person made it or is an
// owner.
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
	if err := d.Scheduler.Cancel(ctx, id); err != nil && !errors.Is(err, schedules.ErrNone) {
		return err
	}
	return nil
}

// Known implements scheduletools.Backend: it reports whether the session has a schedule with the id that the
// model named.
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

// entry returns a schedule in the form in which the model that made a call sees it.
func entry(s schedules.Schedule, call tools.Call) scheduletools.Entry {
	e := scheduletools.Entry{ID: s.ID, When: s.When, Zone: s.Zone}
	if s.Person != call.Person {
		e.By = bus.Person{ID: s.Person, Name: s.PersonName}.NameAndID()
	}
	e.Paused = !s.PausedAt.IsZero()
	if !s.Next.IsZero() {
		next := s.Next
		if zone, err := time.LoadLocation(s.Zone); err == nil {
			next = next.In(zone)
		}
		e.Next = next.Format("Mon 2006-01-02 15:04 MST (-07:00)")
	}
	return e
}
