package schedules

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/sessions/sqldb"
	"parley/sessions/subscriptions"
)

// Migration is the SQL that adds the tables of schedules to a schema; {bytes} is replaced by a text type
// that sorts by bytes. Times are microseconds since 1970; 0 means none.
const Migration = `
CREATE TABLE schedules (
	id          {bytes} PRIMARY KEY,
	session     {bytes} NOT NULL,
	person      {bytes} NOT NULL,    -- who made it
	called      TEXT NOT NULL,       -- what their platform calls them
	address     TEXT NOT NULL,       -- of the conversation
	due         TEXT NOT NULL,       -- when, in words
	zone        TEXT NOT NULL,
	words       TEXT NOT NULL,       -- what is said to the agent
	made        BIGINT NOT NULL,
	next        BIGINT NOT NULL,     -- the next slot
	slot        BIGINT NOT NULL,     -- the slot that is being brought to its end
	missed      BIGINT NOT NULL,     -- how many slots before it nobody has seen
	missed_from BIGINT NOT NULL
);
CREATE INDEX schedules_by_session ON schedules (session);
CREATE INDEX schedules_by_person ON schedules (person);
CREATE INDEX schedules_by_slot ON schedules (slot, next);
CREATE TABLE time_zones (
	session {bytes} PRIMARY KEY,
	zone    TEXT NOT NULL            -- of the conversation
);
`

// PauseMigration is the SQL that allows schedules to be paused, and to be made by requests.
const PauseMigration = `
ALTER TABLE schedules ADD COLUMN paused BIGINT NOT NULL DEFAULT 0;   -- since when; next is never then
ALTER TABLE schedules ADD COLUMN request TEXT NOT NULL DEFAULT '';   -- a hash of the one that has made it
`

// pausedSlot is the stored next slot of a paused schedule: the end of the year 9999. A process of an older
// release, which does not know that schedules can be paused, treats it as one that is not due yet.
const pausedSlot = 253_402_300_799_000_000

// A Table stores schedules in a database. Several processes may use the same one at a
// time.
type Table struct {
	DB     *sqldb.DB
	Events *subscriptions.Table // records what happens to schedules for subscribers
}

// event returns the event that something has happened to a schedule.
func event(s Schedule, what, state string) subscriptions.Event {
	return subscriptions.Event{ID: subscriptions.NewID(rand.Text()), Type: what, At: time.Now(), Data: subscriptions.Data{Session: s.Session, ID: s.ID, State: state}}
}

// Add stores a schedule and returns it. If there is already one with its id, Add returns that one, or
// ErrOtherRequest if another request made it. It returns ErrTooMany if the person already has most other
// schedules.
func (t Table) Add(ctx context.Context, s Schedule, most int) (Schedule, error) {
	var have int
	var added bool
	err := t.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if t.DB.IsPostgres() { // only one process counts at a time
			if _, err := tx.Exec("LOCK TABLE schedules IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		err := tx.Get("SELECT count(*) FROM schedules WHERE person = ? AND id <> ? AND slot + next > 0", textArgs(s.Person, s.ID), &have)
		if err != nil || have >= most {
			return err
		}
		n, err := tx.Exec(`INSERT INTO schedules (id, session, person, called, address, due, zone, words, request, made, next, slot, missed, missed_from)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0) ON CONFLICT (id) DO NOTHING`,
			append(textArgs(s.ID, s.Session, s.Person, s.PersonName, s.Address, s.When, s.Zone, s.Text, s.Request), sqldb.Micros(s.MadeAt), sqldb.Micros(s.Next))...)
		if added = err == nil && n > 0; !added {
			return err
		}
		return t.Events.AddIn(tx, event(s, subscriptions.ScheduleAdded, "added"))
	})
	if err != nil {
		return Schedule{}, fmt.Errorf("keep a schedule: %w", err)
	}
	if have >= most {
		return Schedule{}, ErrTooMany
	}
	if added && t.Events.Wants(subscriptions.ScheduleAdded) {
		t.Events.Added(1)
	}
	kept, err := t.Get(ctx, s.ID)
	if err == nil && kept.Request != s.Request {
		return Schedule{}, ErrOtherRequest
	}
	return kept, err
}

// Replace stores a changed schedule: was is the schedule before, and now what Changed has returned for
// it. It returns false, and changes nothing, if the stored schedule is no longer the same as was.
func (t Table) Replace(ctx context.Context, was, now Schedule) (bool, error) {
	args := append(textArgs(now.Text, now.When, now.Zone), sqldb.Micros(now.MadeAt), nextOf(now), sqldb.Micros(now.PausedAt))
	n, err := t.Events.Exec(ctx, event(now, subscriptions.ScheduleChanged, "changed"),
		"UPDATE schedules SET words = ?, due = ?, zone = ?, made = ?, next = ?, paused = ? WHERE "+unchangedCondition, append(args, unchangedArgs(was)...))
	if err != nil {
		return false, fmt.Errorf("change schedule %s: %w", was.ID, err)
	}
	return n > 0, nil
}

// unchangedCondition is the condition for a schedule that still has the values of unchangedArgs. It compares
// everything that a change may affect, so it also notices changes by a process of an older release.
const unchangedCondition = "id = ? AND words = ? AND due = ? AND zone = ? AND made = ? AND next = ? AND paused = ?"

func unchangedArgs(was Schedule) []any {
	return append(textArgs(was.ID, was.Text, was.When, was.Zone), sqldb.Micros(was.MadeAt), nextOf(was), sqldb.Micros(was.PausedAt))
}

// nextOf returns the next slot of a schedule in the form in which the table stores it.
func nextOf(s Schedule) int64 {
	if !s.PausedAt.IsZero() {
		return pausedSlot
	}
	return sqldb.Micros(s.Next)
}

// Get returns a schedule, even one that is over; ErrNone if there is none with that id.
func (t Table) Get(ctx context.Context, id string) (Schedule, error) {
	found, err := t.list(ctx, "id = ?", textArgs(id)...)
	if err != nil {
		return Schedule{}, err
	}
	if len(found) == 0 {
		return Schedule{}, ErrNone
	}
	return found[0], nil
}

// List returns the schedules of a session that are not over, or those of all sessions if session is "",
// in the order of their next slots.
func (t Table) List(ctx context.Context, session string) ([]Schedule, error) {
	if session == "" {
		return t.list(ctx, "slot + next > 0")
	}
	return t.list(ctx, "session = ? AND slot + next > 0", textArgs(session)...)
}

// Page returns at most limit of the schedules that List returns. after is the Cursor of the last one on
// the previous page; "" means the first page.
func (t Table) Page(ctx context.Context, session, after string, limit int) ([]Schedule, error) {
	condition, args := "slot + next > 0", []any{}
	if session != "" {
		condition, args = condition+" AND session = ?", textArgs(session)
	}
	if after != "" {
		at, id, _ := strings.Cut(after, ".")
		next, err := strconv.ParseInt(at, 10, 64)
		if err != nil || id == "" {
			return nil, Invalid("after", `give the previous page's "next"`)
		}
		condition, args = condition+" AND (next > ? OR next = ? AND id > ?)", append(args, next, next, sqldb.Text(id))
	}
	return t.find(ctx, condition+" ORDER BY next, id LIMIT ?", append(args, limit)...)
}

// Cursor returns the schedule's place in the list that Page returns.
func (s Schedule) Cursor() string { return strconv.FormatInt(nextOf(s), 10) + "." + s.ID }

// NextDue returns the schedules of all sessions that are due next, at most limit, and how many there are
// that are neither over nor paused. Slots that are due but not done yet come first.
func (t Table) NextDue(ctx context.Context, limit int) (next []Schedule, count int, err error) {
	err = t.DB.Read.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM schedules WHERE slot > 0) + (SELECT count(*) FROM schedules WHERE slot = 0 AND next > 0 AND paused = 0)").Scan(&count)
	if err != nil {
		return nil, 0, fmt.Errorf("count schedules: %w", err)
	}
	if count == 0 {
		return nil, 0, nil
	}
	next, err = t.list(ctx, "id IN (SELECT id FROM schedules WHERE slot > 0 ORDER BY slot LIMIT ?) OR id IN (SELECT id FROM schedules WHERE slot = 0 AND next > 0 AND paused = 0 ORDER BY next LIMIT ?)", limit, limit)
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(next, func(a, b Schedule) int { return a.DueSince().Compare(b.DueSince()) })
	return next[:min(len(next), limit)], count, nil
}

// OfPerson returns the schedules of a person that are not over.
func (t Table) OfPerson(ctx context.Context, person string) ([]Schedule, error) {
	return t.list(ctx, "person = ? AND slot + next > 0", textArgs(person)...)
}

// DueBefore returns the schedules whose current or next slot is before a time.
func (t Table) DueBefore(ctx context.Context, at time.Time) ([]Schedule, error) {
	return t.list(ctx, "slot > 0 AND slot < ? OR slot = 0 AND next > 0 AND next < ?", sqldb.Micros(at), sqldb.Micros(at))
}

// BeginSlot records that work on a slot begins: was is the schedule before, and now is the one that Due
// returned for it. It returns false if another process has begun the slot, if anything about the schedule
// was changed, even if it is only the text, or if the schedule no longer exists.
func (t Table) BeginSlot(ctx context.Context, was, now Schedule) (bool, error) {
	args := []any{sqldb.Micros(now.Slot), now.MissedSlots, sqldb.Micros(now.MissedFrom), sqldb.Micros(now.Next)}
	n, err := t.DB.Exec(ctx, "UPDATE schedules SET slot = ?, missed = ?, missed_from = ?, next = ? WHERE slot = 0 AND "+unchangedCondition, append(args, unchangedArgs(was)...)...)
	if err != nil {
		return false, fmt.Errorf("begin a slot of %s: %w", now.ID, err)
	}
	return n > 0, nil
}

// EndSlot records that the work on a slot is done, with what became of it: SlotFired, or why it began no turn. If there
// is no next slot, the schedule is over then.
func (t Table) EndSlot(ctx context.Context, s Schedule, result string) error {
	e := event(s, subscriptions.ScheduleFailed, result)
	if result == SlotFired {
		e.Type, e.Data.Turn = subscriptions.ScheduleFired, s.SlotID()
	}
	_, err := t.Events.Exec(ctx, e, "UPDATE schedules SET slot = 0, missed = 0, missed_from = 0 WHERE id = ? AND slot = ?", []any{sqldb.Text(s.ID), sqldb.Micros(s.Slot)})
	if err != nil {
		return fmt.Errorf("end a slot of %s: %w", s.ID, err)
	}
	return nil
}

// SlotFired says that a slot's text was sent to its agent.
const SlotFired = "fired"

// finishedLifetime is how long after its creation a schedule that is over is kept, so that a
// caller whose Add was interrupted still finds it.
const finishedLifetime = 2 * 24 * time.Hour

// Prune removes the schedules that are over and were made long ago.
func (t Table) Prune(ctx context.Context, now time.Time) error {
	if _, err := t.DB.Exec(ctx, "DELETE FROM schedules WHERE slot = 0 AND next = 0 AND made < ?", sqldb.Micros(now.Add(-finishedLifetime))); err != nil {
		return fmt.Errorf("remove schedules that are over: %w", err)
	}
	return nil
}

// Remove removes a schedule; ErrNone if there is none with that id.
func (t Table) Remove(ctx context.Context, id string) error {
	s := Schedule{ID: id}
	if t.Events.Wants(subscriptions.ScheduleCancelled) { // only then it matters whose it is
		var err error
		if s, err = t.Get(ctx, id); err != nil {
			return err
		}
	}
	n, err := t.Events.Exec(ctx, event(s, subscriptions.ScheduleCancelled, "cancelled"), "DELETE FROM schedules WHERE id = ?", textArgs(id))
	if err != nil {
		return fmt.Errorf("remove schedule %s: %w", id, err)
	}
	if n == 0 {
		return ErrNone
	}
	return nil
}

// SetZone records the time zone of a session.
func (t Table) SetZone(ctx context.Context, session, zone string) error {
	_, err := t.DB.Exec(ctx, `INSERT INTO time_zones (session, zone) VALUES (?, ?)
		ON CONFLICT (session) DO UPDATE SET zone = excluded.zone`, textArgs(session, zone)...)
	if err != nil {
		return fmt.Errorf("note a time zone: %w", err)
	}
	return nil
}

// Zone returns the time zone that was recorded for a session; "" if there is none.
func (t Table) Zone(ctx context.Context, session string) (zone string, err error) {
	err = t.DB.Read.QueryRowContext(ctx, "SELECT coalesce(max(zone), '') FROM time_zones WHERE session = ?", textArgs(session)...).Scan(&zone)
	if err != nil {
		return "", fmt.Errorf("look up a time zone: %w", err)
	}
	return sqldb.Untext(zone), nil
}

// EraseSession deletes the schedules and the time zone of a session, and returns the number of deleted
// rows.
func EraseSession(tx *sqldb.Tx, session string) (int64, error) {
	n, err := tx.Exec("DELETE FROM schedules WHERE session = ?", textArgs(session)...)
	if err != nil {
		return 0, err
	}
	zones, err := tx.Exec("DELETE FROM time_zones WHERE session = ?", textArgs(session)...)
	return n + zones, err
}

// ErasePerson deletes the schedules that a person has made, and returns their number.
func ErasePerson(tx *sqldb.Tx, person string) (int64, error) {
	return tx.Exec("DELETE FROM schedules WHERE person = ?", textArgs(person)...)
}

// list returns the schedules for which the SQL condition is true, in the order of their next slots; find leaves the
// order to its caller.
func (t Table) list(ctx context.Context, condition string, args ...any) ([]Schedule, error) {
	return t.find(ctx, "("+condition+") ORDER BY next, id", args...)
}

// find returns the schedules for which an SQL condition is true. An ORDER BY and a LIMIT may follow the
// condition.
func (t Table) find(ctx context.Context, condition string, args ...any) (all []Schedule, err error) {
	rows, err := t.DB.Read.QueryContext(ctx, `SELECT id, session, person, called, address, due, zone, words, request, made, next, slot, missed, missed_from, paused
		FROM schedules WHERE `+condition, args...)
	if err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s Schedule
		var made, next, slot, from, paused int64
		held := []*string{&s.ID, &s.Session, &s.Person, &s.PersonName, &s.Address, &s.When, &s.Zone, &s.Text, &s.Request}
		if err := rows.Scan(held[0], held[1], held[2], held[3], held[4], held[5], held[6], held[7], held[8], &made, &next, &slot, &s.MissedSlots, &from, &paused); err != nil {
			return nil, fmt.Errorf("read schedules: %w", err)
		}
		for _, text := range held {
			*text = sqldb.Untext(*text)
		}
		s.MadeAt, s.Next, s.Slot, s.MissedFrom, s.PausedAt = sqldb.FromMicros(made), sqldb.FromMicros(next), sqldb.FromMicros(slot), sqldb.FromMicros(from), sqldb.FromMicros(paused)
		if paused != 0 {
			s.Next = time.Time{}
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read schedules: %w", err)
	}
	return all, nil
}

// textArgs encodes strings as arguments of a statement.
func textArgs(list ...string) []any {
	held := make([]any, len(list))
	for i, s := range list {
		held[i] = sqldb.Text(s)
	}
	return held
}
