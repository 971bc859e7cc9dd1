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

// Add makes a schedule, and sets its timer. It reads these fields of s: ID, Session, Person, PersonName,
// Address, When, Zone, Text and Request. Without a zone, the conversation's is used, or else the person's, or
// else the configured one. If a schedule with the id exists already, Add returns that one, but only if a new
// one would be allowed at the moment: a caller that may be repeating a request should first call Added.
//
// Its error is a *schedules.InvalidError, or ErrNotNow, ErrNotAdmitted, ErrTooMany or ErrOtherRequest of
// package schedules, if the caller can do something about it.
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

// Added returns the schedule with that id, even if it is over, that an earlier attempt of the request made,
// whether or not the attempt got its answer; false if there is none. request is what Add got in Request. Time,
// rights and limits are not checked again, because Add checked them. It returns ErrOtherRequest of package
// schedules if a different request made that schedule.
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
	c.trySetTimer(ctx, s) // an attempt that was cut off may not have set it
	c.tellWatchers(s, bus.StateAdded)
	return s, true, nil
}

// Cancel removes a schedule. It returns ErrNone of package schedules if there is none with that id.
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

// admit returns the rights with which a person may schedule something at an address now, or an error that says
// why they may not.
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

// zoneOf returns the time zone with that name. Without a name, it returns the zone of the conversation, the
// person or the configuration.
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

// keep stores a schedule with the times that its When gives, and sets its timer.
func (c *Scheduler) keep(ctx context.Context, s schedules.Schedule, zone *time.Location) (schedules.Schedule, error) {
	if err := schedules.CheckText(s.Text); err != nil {
		return schedules.Schedule{}, err
	}
	limits := c.Limits()
	s, err := s.Plan(s.When, zone, time.Now(), limits.MinInterval)
	if err != nil {
		return schedules.Schedule{}, err
	}
	if s, err = c.Table.Add(ctx, s, limits.MaxPerPerson); err != nil {
		return schedules.Schedule{}, err
	}
	c.Point("schedule:added")
	c.trySetTimer(ctx, s)
	c.tellWatchers(s, bus.StateAdded)
	return s, nil
}

// trySetTimer sets the timer of a schedule that is already stored. If that fails, the schedule's slot is only
// late: the sweep finds it when it is overdue.
func (c *Scheduler) trySetTimer(ctx context.Context, s schedules.Schedule) {
	if err := c.setTimer(ctx, s); err != nil {
		c.Log.Warn("a schedule has no timer yet", slog.String("schedule", s.ID), slog.Any("error", err))
	}
}

// Change changes a schedule, and sets its timer. Its errors include ErrNone, ErrOver and a *InvalidError of
// package schedules.
func (c *Scheduler) Change(ctx context.Context, id string, to schedules.Change) (schedules.Schedule, error) {
	for {
		was, err := c.Table.Get(ctx, id)
		if err != nil {
			return schedules.Schedule{}, err
		}
		now, err := was.Changed(to, time.Now(), c.Limits().MinInterval)
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

// Say sends a schedule's text to its agent now, in addition to its slots, and returns the id of that message.
// Repeated calls with the same run send it only once. Its errors include ErrNone, ErrOver, ErrNotNow and
// ErrNotAdmitted of package schedules, and bus.ErrFull.
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
	if err := c.publish(ctx, s, at, caller, message, time.Now()); err != nil {
		return "", s, err
	}
	c.Log.Info("a schedule is said because somebody asks for it", slog.String("schedule", s.ID), slog.String("session", s.Session), slog.String("message", message))
	c.Fired(RanOnRequest, 1)
	return message, s, nil
}

// publish publishes a schedule's text to its session, under an id that is the same for each attempt.
func (c *Scheduler) publish(ctx context.Context, s schedules.Schedule, at bus.Address, caller bus.Caller, id string, due time.Time) error {
	return bus.PublishInbound(ctx, c.Bus, s.Session, caller.Mail(bus.Inbound{
		ID: id, Kind: bus.Scheduled, At: at, Text: s.Text, SentAt: due, Schedule: s.ID,
	}), false)
}
