// Package schedules sends agents the texts that people have scheduled for them, when they are due.
//
// A slot of a schedule is handled in these steps, each of which any process may repeat: its timer is due, or
// the sweep finds that it should have been; the table records that the slot has begun, along with the slot
// after it; the message with the slot's own id is published to the session, and the timer of the next slot is
// set; and the table records that the slot has ended. The session's log refuses a second turn for the same id.
//
// schedules.go fires schedules; change.go makes, changes and runs them on request; backend.go is what the tool
// uses.
package schedules

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/schedules"
)

const (
	sweepEvery = time.Minute
	// sweepAge is how long a process that has received a slot's timer may take before the sweep handles the
	// slot.
	sweepAge = 15 * time.Second
	// timerHorizon is how near a slot must be to get a timer, so that the bus isn't filled with timers that are due in
	// years. Every renewEvery, the slots that have come near enough get their timers, and so do slots whose
	// timer the bus has lost.
	timerHorizon = 26 * time.Hour
	renewEvery   = time.Hour
	// lateAfter is how late a slot may be before people are told.
	lateAfter = 5 * time.Minute
	fullRetry = 30 * time.Second // when to try again if the session's mailbox is full
)

// What happened to a slot at its time, for metrics and events.
const (
	Fired        = "fired"
	NoAccess     = "no_access" // the schedule's person may no longer talk to the bot
	Missed       = "missed"    // no process ran at that time; only for metrics
	RanOnRequest = "asked"     // it was sent on request, in addition to its slots; only for metrics
	Failed       = "failed"    // the text can never be sent; only for events
)

// Limits are the limits of schedules and their default time zone, as configured now.
type Limits struct {
	MaxPerPerson int           // how many schedules one person may have
	MinInterval  time.Duration // the shortest allowed time between two slots
	Zone         string        // for a conversation that has none of its own
}

// MachineZone returns the name of this machine's time zone; "UTC" if it has none.
func MachineZone() string {
	name := os.Getenv("TZ")
	if name == "" {
		link, _ := os.Readlink("/etc/localtime") // on some systems it isn't a link
		_, name, _ = strings.Cut(link, "zoneinfo/")
	}
	if !schedules.IsZone(name) {
		return "UTC"
	}
	return name
}

// A Bus carries the texts of schedules, their timers, and events for watchers.
type Bus interface {
	bus.Bus
	bus.Emitter
}

// Config holds the parts that a Scheduler works with.
type Config struct {
	Bus    Bus
	Table  schedules.Table
	Limits func() Limits
	Admit  bus.Admit
	// Zone returns a person's time zone if their platform knows it, otherwise "". It may be nil.
	Zone func(ctx context.Context, person string) string
	// Ready returns, for the model, why nothing can be scheduled now, or "" if schedules can be made.
	Ready func(ctx context.Context) (why string, err error)
	// Fired, if set, is called with what happened to slots, and how many there were.
	Fired func(result string, n int)
	Log   *slog.Logger
	// Point, if set, is called between the steps, where a test may kill the process.
	Point func(name string)
}

// A Scheduler publishes each text that people have scheduled for agents when it is due.
type Scheduler struct{ Config }

// New makes a Scheduler.
func New(c Config) *Scheduler {
	if c.Fired == nil {
		c.Fired = func(string, int) {}
	}
	if c.Zone == nil {
		c.Zone = func(context.Context, string) string { return "" }
	}
	if c.Point == nil {
		c.Point = func(string) {}
	}
	return &Scheduler{c}
}

// Run handles overdue schedules and renews the timers of schedules, until ctx is done. Several processes may
// run it at the same time. Fire handles timers that are due.
func (c *Scheduler) Run(ctx context.Context) error {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	renewed := time.Time{}
	for {
		renew := time.Since(renewed) >= renewEvery
		if err := c.sweep(ctx, renew); err != nil {
			if ctx.Err() == nil {
				c.Log.Warn("schedules could not be looked through; trying again", slog.Any("error", err))
			}
		} else if renew {
			renewed = time.Now()
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// sweep handles the slots that are overdue because their timer was not handled; if renew is true, it also
// renews timers and removes old schedules.
func (c *Scheduler) sweep(ctx context.Context, renew bool) error {
	now := time.Now()
	if renew {
		if err := c.Table.Prune(ctx, now); err != nil {
			return err
		}
		soon, err := c.Table.DueBefore(ctx, now.Add(timerHorizon))
		if err != nil {
			return err
		}
		for _, s := range soon {
			if err := c.setTimer(ctx, s); err != nil {
				return err
			}
		}
	}
	late, err := c.Table.DueBefore(ctx, now.Add(-sweepAge))
	if err != nil {
		return err
	}
	for _, s := range late {
		if _, err := c.fire(ctx, s.ID); err != nil && ctx.Err() == nil { // the others don't wait for it
			c.Log.Warn("a schedule could not be fired; trying again", slog.String("schedule", s.ID), slog.Any("error", err))
		}
	}
	return nil
}

// setTimer publishes the timer of a schedule's next slot, if the slot is near enough.
func (c *Scheduler) setTimer(ctx context.Context, s schedules.Schedule) error {
	if s.Next.IsZero() || s.Next.After(time.Now().Add(timerHorizon)) {
		return nil
	}
	t := bus.Timer{Kind: bus.ScheduleTimer, ID: s.ID, Slot: s.Next.Unix(), Session: s.Session, Person: s.Person}
	return bus.PublishTimer(ctx, c.Bus, t, s.Next)
}

// Fire handles a timer of the kind bus.ScheduleTimer that is due. If again is not 0, the caller must call Fire
// again after that time.
func (c *Scheduler) Fire(ctx context.Context, t bus.Timer) (again time.Duration, err error) {
	return c.fire(ctx, t.ID)
}

// fire handles the slot that is due in the schedule with this id. If no slot is due, it only sets the timer; if
// there is no such schedule, it does nothing. If again is not 0, the caller must try again after that time.
func (c *Scheduler) fire(ctx context.Context, id string) (again time.Duration, err error) {
	for {
		s, err := c.Table.Get(ctx, id)
		if errors.Is(err, schedules.ErrNone) { // it was canceled or forgotten
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if s.Slot.IsZero() {
			now, due, err := s.Due(time.Now())
			if err != nil {
				return 0, err
			}
			if !due {
				return 0, c.setTimer(ctx, s)
			}
			c.Point("schedule:begin")
			ours, err := c.Table.BeginSlot(ctx, s, now)
			if err != nil {
				return 0, err
			}
			c.Point("schedule:begun")
			if !ours {
				continue // somebody else has moved on: look again
			}
			s = now
		}
		result, err := c.publishSlot(ctx, s)
		if errors.Is(err, bus.ErrFull) {
			return fullRetry, nil // this slot waits; slots that come due in the meantime are missed, and people are told so
		} else if err != nil {
			return 0, err
		}
		c.Point("schedule:said")
		if err := c.setTimer(ctx, s); err != nil {
			return 0, err
		}
		if err := c.Table.EndSlot(ctx, s, result); err != nil {
			return 0, err
		}
		c.Point("schedule:ended")
		c.tellWatchers(s, result)
	}
}

// publishSlot publishes a slot's text to its session, and tells people which slots were missed, if the
// schedule's person may talk to the bot now. It returns what happened to the slot.
func (c *Scheduler) publishSlot(ctx context.Context, s schedules.Schedule) (result string, err error) {
	at, err := bus.ParseAddress(s.Address)
	if err != nil {
		return "", err
	}
	caller, ok, err := c.Admit(ctx, bus.Person{ID: s.Person, Name: s.PersonName}, at)
	if err != nil {
		return "", fmt.Errorf("judge who has made schedule %s: %w", s.ID, err)
	}
	log := c.Log.With(slog.String("schedule", s.ID), slog.String("session", s.Session), slog.String("person", s.Person), slog.Time("slot", s.Slot))
	if !ok {
		log.Warn("a schedule is passed over: its person may not talk to the bot now")
		c.Fired(NoAccess, 1)
		return NoAccess, nil
	}
	if err := c.tellMissed(ctx, s, at); err != nil {
		return "", err
	}
	err = c.publish(ctx, s, at, caller, s.SlotID(), s.Slot)
	if errors.Is(err, bus.ErrInvalid) {
		log.Error("a schedule can never be said", slog.Any("error", err))
		return Failed, nil
	}
	if err != nil {
		return "", err
	}
	log.Info("a schedule is due", slog.Int("missed", s.MissedSlots))
	c.Fired(Fired, 1)
	return Fired, nil
}

// tellWatchers tells those who watch the server what happened to a schedule.
func (c *Scheduler) tellWatchers(s schedules.Schedule, state string) {
	c.Bus.Emit(bus.Event{Type: bus.ScheduleMoved, Session: s.Session, News: &bus.News{ID: s.ID, State: state}})
}

// tellMissed tells people, once, that slots were missed before this one, or that this one is late. The text of
// this slot, which replaces all missed ones, is published afterwards.
func (c *Scheduler) tellMissed(ctx context.Context, s schedules.Schedule, at bus.Address) error {
	late := time.Since(s.Slot)
	if s.MissedSlots == 0 && late < lateAfter {
		return nil
	}
	err := bus.PublishOutbound(ctx, c.Bus, bus.Outbound{
		ID: MissedID(s.ID, s.Slot), To: at, Session: s.Session, Text: missedText(s), At: time.Now(),
	})
	if err != nil && !errors.Is(err, bus.ErrInvalid) {
		return err
	}
	c.Fired(Missed, s.MissedSlots)
	return nil
}

// MissedID returns the id of the message that tells people what was missed before a slot.
func MissedID(id string, slot time.Time) string {
	return bus.DerivedID(schedules.SlotID(id, slot), "#missed")
}

// missedText returns the text of the message with the id MissedID.
func missedText(s schedules.Schedule) string {
	form := "2006-01-02 15:04 MST"
	if s.Slot.Second()+s.MissedFrom.Second() > 0 {
		form = "2006-01-02 15:04:05 MST"
	}
	in := func(t time.Time) string {
		if zone, err := time.LoadLocation(s.Zone); err == nil {
			t = t.In(zone)
		}
		return t.Format(form)
	}
	if s.MissedSlots == 0 {
		return fmt.Sprintf("Schedule `%s` was due at %s, but I couldn't run it then. I'm running it now.", s.ID, in(s.Slot))
	}
	times := "once"
	if s.MissedSlots > 1 {
		times = fmt.Sprintf("%d times", s.MissedSlots)
	}
	if s.MissedSlots == schedules.MaxMissed {
		times = "more times than I can count"
	}
	return fmt.Sprintf("Schedule `%s` (%s) has been due %s since %s, but I couldn't run it. I'm running it once now, for %s.", s.ID, s.When, times, in(s.MissedFrom), in(s.Slot))
}
