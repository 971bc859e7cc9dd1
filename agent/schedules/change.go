package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions/schedules"
)

// Add makes a schedule, and sets its timer. Of s it reads ID, Session, Person, PersonName, Address, When,
// Zone, Text and Request; without a zone, that of the conversation or the person holds. If there is a
// schedule with the id already, it returns that one, but only while another one could be made too: who may
// be repeating a request asks Added first.
//
// Its error is a *schedules.InvalidError, or ErrNotNow, ErrNotAdmitted, ErrTooMany or ErrOtherRequest of
// that package, if the caller can do something about it.
func (c *Scheduler) Add(ctx context.Context, s schedules.Schedule) (schedules.Schedule, error) {
	at, err := bus.ParseAddress(s.Address)
	if err != nil {
		return schedules.Schedule{}, err
	}
	if _, err := c.admit(ctx, bus.Person{ID: s.Person, Name: s.PersonName}, at); err != nil {
		return schedules.Schedule{}, err
	}
	zone, err := c.zoneOf(ctx, s.Session, s.Person, s.Zone)
	if err != nil {
		return schedules.Schedule{}, err
	}
	return c.keep(ctx, s, zone)
}

// Added returns the schedule of that id, even if it is over, with which an earlier attempt of the request has
// been answered or cut off; false if there is none. request is what Add has got as Request. Time, rights and
// limits do not count, because they have done so already. It returns ErrOtherRequest of package schedules if
// another request has made that schedule.
func (c *Scheduler) Added(ctx context.Context, id, request string) (schedules.Schedule, bool, error) {
	s, err := c.Table.Get(ctx, id)
	switch {
	case errors.Is(err, schedules.ErrNone):
		return schedules.Schedule{}, false, nil
	case err != nil:
		return schedules.Schedule{}, false, err
	case s.Request != request:
		return schedules.Schedule{}, false, schedules.ErrOtherRequest
	}
	c.trySetTimer(ctx, s) // who was cut off may not have come to it
	c.tellWatchers(s, bus.StateAdded)
	return s, true, nil
}

// Cancel removes a schedule. It returns ErrNone of package schedules if there is none of that id.
func (c *Scheduler) Cancel(ctx context.Context, id string) error {
	s, err := c.Table.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := c.Table.Remove(ctx, id); err != nil {
		return err
	}
	c.tellWatchers(s, bus.StateCancelled)
	return nil
}

// admit returns with which rights a person may schedule something at an address now, or why they may not.
func (c *Scheduler) admit(ctx context.Context, who bus.Person, at bus.Address) (bus.Caller, error) {
	why, err := c.Ready(ctx)
	if err != nil {
		return bus.Caller{}, err
	}
	if why != "" {
		return bus.Caller{}, fmt.Errorf("%w: %s", schedules.ErrNotNow, why)
	}
	caller, ok, err := c.Admit(ctx, who, at)
	if err != nil {
		return bus.Caller{}, err
	}
	if !ok || caller.Program {
		return bus.Caller{}, schedules.ErrNotAdmitted
	}
	return caller, nil
}

// zoneOf returns the time zone of that name; without a name that of the conversation, the person or the
// configuration.
func (c *Scheduler) zoneOf(ctx context.Context, session, person, name string) (*time.Location, error) {
	if name != "" {
		return schedules.LoadZone(name)
	}
	name, err := c.Table.Zone(ctx, session)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name = c.Zone(ctx, person); !schedules.IsZone(name) {
			name = c.Limits().Zone
		}
	}
	return schedules.LoadZone(name)
}

// keep stores a schedule whose times are those of its When, and sets its timer.
func (c *Scheduler) keep(ctx context.Context, s schedules.Schedule, zone *time.Location) (schedules.Schedule, error) {
	if err := schedules.CheckText(s.Text); err != nil {
		return schedules.Schedule{}, err
	}
	limits := c.Limits()
	s, err := s.Plan(s.When, zone, time.Now(), limits.Least)
	if err != nil {
		return schedules.Schedule{}, err
	}
	if s, err = c.Table.Add(ctx, s, limits.Most); err != nil {
		return schedules.Schedule{}, err
	}
	c.Point("schedule:added")
	c.trySetTimer(ctx, s)
	c.tellWatchers(s, bus.StateAdded)
	return s, nil
}

// trySetTimer sets the timer of a schedule that is stored already. If that fails, the sweep finds
// the slot when it is overdue, so it is only late.
func (c *Scheduler) trySetTimer(ctx context.Context, s schedules.Schedule) {
	if err := c.setTimer(ctx, s); err != nil {
		c.Log.Warn("a schedule has no timer yet", slog.String("schedule", s.ID), slog.Any("error", err))
	}
}

// Change changes a schedule, and sets its timer. It returns ErrNone, ErrOver or a *InvalidError of package
// schedules if that cannot be.
func (c *Scheduler) Change(ctx context.Context, id string, to schedules.Change) (schedules.Schedule, error) {
	for {
		was, err := c.Table.Get(ctx, id)
		if err != nil {
			return schedules.Schedule{}, err
		}
		now, err := was.Changed(to, time.Now(), c.Limits().Least)
		if err != nil {
			return schedules.Schedule{}, err
		}
		ours, err := c.Table.Replace(ctx, was, now)
		if err != nil {
			return schedules.Schedule{}, err
		}
		if ours {
			c.Point("schedule:changed")
			c.trySetTimer(ctx, now)
			c.tellWatchers(now, bus.StateChanged)
			return now, nil
		}
	}
}

// Say says a schedule's text to its agent now, beside its slots, and returns the id of that message. The
// same name of a run says it only once, whenever it is repeated. It returns ErrNone, ErrOver, ErrNotNow or
// ErrNotAdmitted of package schedules, or bus.ErrFull, if that cannot be.
func (c *Scheduler) Say(ctx context.Context, id, run string) (message string, s schedules.Schedule, err error) {
	if s, err = c.Table.Get(ctx, id); err != nil {
		return "", s, err
	}
	if s.IsOver() {
		return "", s, schedules.ErrOver
	}
	at, err := bus.ParseAddress(s.Address)
	if err != nil {
		return "", s, err
	}
	caller, err := c.admit(ctx, bus.Person{ID: s.Person, Name: s.PersonName}, at)
	if err != nil {
		return "", s, err
	}
	message = schedules.RunID(s.ID, run)
	if err := c.say(ctx, s, at, caller, message, time.Now()); err != nil {
		return "", s, err
	}
	c.Log.Info("a schedule is said because somebody asks for it", slog.String("schedule", s.ID), slog.String("session", s.Session), slog.String("message", message))
	c.Fired(Asked, 1)
	return message, s, nil
}

// say publishes a schedule's text to its session, under an id that is the same for each attempt.
func (c *Scheduler) say(ctx context.Context, s schedules.Schedule, at bus.Address, caller bus.Caller, id string, due time.Time) error {
	return bus.PublishInbound(ctx, c.Bus, s.Session, caller.Mail(bus.Inbound{
		ID: id, Kind: bus.Scheduled, At: at, Text: s.Text, SentAt: due, Schedule: s.ID,
	}), false)
}
