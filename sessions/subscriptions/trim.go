package subscriptions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// What is kept for a subscriber: at most MaxWaiting events, and while it accepts nothing, none older than MaxAge.
const (
	MaxWaiting = 10_000
	MaxAge     = 3 * 24 * time.Hour
)

// extraDropped is how many more events are dropped than there are too many, so that each new event does not drop another
// one.
const extraDropped = MaxWaiting / 10

// eventsPerTrim is after how many recorded events a process itself drops the oldest ones of subscriptions that have far more than
// Trim would leave, because no process posts for them (see trimUnattended).
const eventsPerTrim = 1000

// limits say how many events may wait, and how old they may become.
type limits struct {
	maxWaiting int64
	maxAge     time.Duration
	// onlyIfFailing says that old events are dropped only while the subscriber refuses something: they have waited for
	// it, and not for a server that was down or had a wrong clock.
	onlyIfFailing bool
}

// Trim drops the oldest events of a subscription if more than MaxWaiting wait, or if they are older than MaxAge and the
// subscriber accepts nothing, and returns how many it has dropped. An event of the type EventsDropped takes their
// place. If one is there already, it is replaced by one with the same From that counts both.
func (t *Table) Trim(ctx context.Context, name string, now time.Time) (dropped int64, err error) {
	err = t.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		dropped, err = t.trimIn(tx, name, now, limits{MaxWaiting, MaxAge, true})
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("drop events for subscription %s: %w", name, err)
	}
	return dropped, nil
}

// trimUnattended drops the oldest events of subscriptions for which no process posts, which it sees by twice the limits of
// Trim. Nobody waits for it.
func (t *Table) trimUnattended() {
	w := t.wanted.Load()
	if w == nil {
		return
	}
	t.db.Start(func(tx *sqldb.Tx) error {
		for _, name := range w.names {
			if _, err := t.trimIn(tx, name, time.Now(), limits{2 * MaxWaiting, 2 * MaxAge, false}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *Table) trimIn(tx *sqldb.Tx, name string, now time.Time, l limits) (dropped int64, err error) {
	// It creates or locks the row, so that nobody else drops or posts meanwhile.
	var failing int64
	err = tx.Get(`INSERT INTO subscriptions (name, fence, failing, tries, retry_at, problem, accepted, dropped, dropped_at)
		VALUES (?, 0, 0, 0, 0, '', 0, 0, 0) ON CONFLICT (name) DO UPDATE SET fence = subscriptions.fence RETURNING failing`, []any{name}, &failing)
	if err != nil {
		return 0, err
	}
	oldest := now.Add(-l.maxAge)
	if l.onlyIfFailing && failing == 0 {
		oldest = time.Time{}
	}
	last, err := lastTooMany(tx, name, oldest, l.maxWaiting)
	if err != nil || last == 0 {
		return 0, err
	}
	d, err := dropUpTo(tx, name, last, now)
	if err != nil || d.dropped == 0 {
		return 0, err
	}
	data, err := plainjson.Marshal(Data{Count: d.unpostedCount, From: d.from, To: d.to})
	if err != nil {
		return 0, fmt.Errorf("encode what was dropped: %w", err)
	}
	id := NewID("dropped", name, d.from.Format(time.RFC3339Nano), d.to.Format(time.RFC3339Nano), fmt.Sprint(d.unpostedCount))
	_, err = tx.Exec("UPDATE subscription_events SET id = ?, type = ?, session = '', entry = 0, at = ?, data = ? WHERE n = ? AND subscription = ?",
		id, EventsDropped, now.UnixMicro(), string(data), last, name)
	if err == nil {
		_, err = tx.Exec("UPDATE subscriptions SET dropped = dropped + ?, dropped_at = ? WHERE name = ?", d.dropped, now.UnixMicro(), name)
	}
	return d.dropped, err
}

// lastTooMany returns the number of the last event that has to be dropped; 0 if none has to. Too old are the first
// events up to the first that is not from before oldest: one with an old time that is among newer ones, because its
// process had a wrong clock or it was found late, takes none of them along.
func lastTooMany(tx *sqldb.Tx, name string, oldest time.Time, most int64) (last int64, err error) {
	var count int64
	err = tx.Get(`SELECT (SELECT count(*) FROM subscription_events WHERE subscription = ?),
		(SELECT coalesce(max(n), 0) FROM subscription_events WHERE subscription = ? AND at < ? AND type <> ?
			AND n < coalesce((SELECT min(n) FROM subscription_events WHERE subscription = ? AND at >= ? AND type <> ?), ?))`,
		[]any{name, name, oldest.UnixMicro(), EventsDropped, name, oldest.UnixMicro(), EventsDropped, int64(math.MaxInt64)}, &count, &last)
	if err != nil || count <= most {
		return last, err
	}
	var byCount int64
	err = tx.Get("SELECT n FROM subscription_events WHERE subscription = ? ORDER BY n LIMIT 1 OFFSET ?", []any{name, count - most + extraDropped - 1}, &byCount)
	return max(last, byCount), err
}

// A droppedEvents says what was dropped, now and before.
type droppedEvents struct {
	dropped       int64 // now
	unpostedCount int64 // since the last event that was posted
	from, to      time.Time
}

// dropUpTo deletes the events of a subscription up to the one with that number, which it leaves for the caller to
// replace.
func dropUpTo(tx *sqldb.Tx, name string, last int64, now time.Time) (d droppedEvents, err error) {
	rows, err := tx.Query("SELECT type, at, data FROM subscription_events WHERE subscription = ? AND n <= ? ORDER BY n", name, last)
	if err != nil {
		return d, err
	}
	for rows.Next() {
		var w Waiting
		var at int64
		var data string
		if err := rows.Scan(&w.Type, &at, &data); err != nil {
			return d, errors.Join(err, rows.Close())
		}
		w.At = timeOf(at)
		if err := d.add(w, data); err != nil {
			return d, errors.Join(err, rows.Close())
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || d.dropped == 0 {
		return d, err
	}
	if d.from.IsZero() {
		d.from = now
	}
	_, err = tx.Exec("DELETE FROM subscription_events WHERE subscription = ? AND n < ?", name, last)
	return d, err
}

// Sweep deletes what waits for subscriptions that were removed from the settings, once it is older than MaxAge. Then it
// also forgets how they did, so that later ones of the same names begin anew. It keeps their fences.
func (t *Table) Sweep(ctx context.Context, now time.Time) error {
	w := t.wanted.Load()
	if w == nil {
		return nil
	}
	oldest := now.Add(-MaxAge).UnixMicro()
	var wanted []any
	for _, name := range w.names {
		wanted = append(wanted, name)
	}
	list := "('')"
	if len(w.names) > 0 {
		list = "(?" + strings.Repeat(", ?", len(w.names)-1) + ")"
	}
	_, err := t.db.Exec(ctx, "DELETE FROM subscription_events WHERE at < ? AND subscription NOT IN "+list, append([]any{oldest}, wanted...)...)
	if err == nil {
		_, err = t.db.Exec(ctx, "UPDATE subscriptions SET "+resetFailure+`, accepted = 0, dropped = 0, dropped_at = 0
			WHERE failing < ? AND retry_at < ? AND accepted < ? AND dropped_at < ? AND failing + accepted + dropped > 0 AND `+nothingWaitsCondition+" AND name NOT IN "+list,
			append([]any{oldest, oldest, oldest, oldest}, wanted...)...)
	}
	if err != nil {
		return fmt.Errorf("delete what is left of subscriptions that are gone: %w", err)
	}
	return nil
}

// add counts an event that is dropped. One of the type EventsDropped stands for those that it counts.
func (d *droppedEvents) add(w Waiting, data string) error {
	n, from, to := int64(1), w.At, w.At
	if w.Type == EventsDropped {
		if err := json.Unmarshal([]byte(data), &w.Data); err != nil {
			return err
		}
		n, from, to = w.Data.Count, w.Data.From, w.Data.To
	} else {
		d.dropped++
	}
	d.unpostedCount += n
	if d.from.IsZero() {
		d.from = from
	}
	if to.After(d.to) {
		d.to = to
	}
	return nil
}
