package subscriptions

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// A row is an event in the queue of one subscription, as PostgreSQL reads it from JSON.
type row struct {
	Ord          int    `json:"ord"`
	Subscription string `json:"subscription"`
	ID           string `json:"id"`
	Type         string `json:"type"`
	Session      string `json:"session"`
	Entry        int64  `json:"entry"`
	At           int64  `json:"at"`
	Data         string `json:"data"`
}

// rowsOf returns the rows for events: one for each subscription that wants the event.
func (t *Table) rowsOf(events []Event) (rows []row, err error) {
	w := t.wanted.Load()
	if w == nil {
		return nil, nil
	}
	for _, e := range events {
		names := w.byType[e.Type]
		if len(names) == 0 {
			continue
		}
		if e.Data.Session != "" {
			e.Data.Agent = sessions.AgentOf(e.Data.Session)
		}
		data, err := plainjson.Marshal(e.Data)
		if err != nil {
			return nil, fmt.Errorf("encode event %s: %w", e.Type, err)
		}
		for _, name := range names {
			rows = append(rows, row{len(rows), name, e.ID, e.Type, sqldb.Text(e.Data.Session), e.Entry, e.At.UnixMicro(), string(data)})
		}
	}
	return rows, nil
}

// AddIn records events within a transaction. The caller calls Added once that is durable.
func (t *Table) AddIn(tx *sqldb.Tx, events ...Event) error {
	rows, err := t.rowsOf(events)
	if err != nil {
		return err
	}
	for _, r := range rows {
		_, err := tx.Exec("INSERT INTO subscription_events (subscription, id, type, session, entry, at, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
			r.Subscription, r.ID, r.Type, r.Session, r.Entry, r.At, r.Data)
		if err != nil {
			return fmt.Errorf("record event %s: %w", r.Type, err)
		}
	}
	return nil
}

// Clause returns, for PostgreSQL, a clause that records events if the clause with the name after, which comes before
// it, returns a row. Its arguments are numbered from next on. There is none if nobody wants the events. The caller
// calls Added once the statement is durable.
func (t *Table) Clause(after string, events []Event, next int) (text string, args []any, err error) {
	rows, err := t.rowsOf(events)
	if err != nil || len(rows) == 0 {
		return "", nil, err
	}
	raw, err := plainjson.Marshal(rows)
	if err != nil {
		return "", nil, fmt.Errorf("encode events: %w", err)
	}
	return fmt.Sprintf(`, told AS (INSERT INTO subscription_events (subscription, id, type, session, entry, at, data)
		SELECT e.subscription, e.id, e.type, e.session, e.entry, e.at, e.data
		FROM (SELECT 1 FROM %s LIMIT 1) AS there, json_to_recordset($%d::text::json)
			AS e (ord INT, subscription TEXT, id TEXT, type TEXT, session TEXT, entry BIGINT, at BIGINT, data TEXT)
		ORDER BY e.ord)`, after, next), []any{string(raw)}, nil
}

// A runFunc is one of the database's ways of running one statement.
type runFunc func(ctx context.Context, query string, args []any, dest ...any) (int64, error)

// Exec carries out one statement of this database, which changes at most one row. If it has changed one, it has also
// recorded the event. It returns how many rows were changed.
func (t *Table) Exec(ctx context.Context, e Event, query string, args []any) (int64, error) {
	single := func(ctx context.Context, query string, args []any, dest ...any) (int64, error) {
		if len(dest) > 0 {
			return 0, t.db.Get(ctx, query, args, dest...)
		}
		return t.db.Exec(ctx, query, args...)
	}
	return t.ExecBy(ctx, single, e, query, args)
}

// ExecBy does what Exec does, by one of the ways in which the database runs one statement.
func (t *Table) ExecBy(ctx context.Context, run runFunc, e Event, query string, args []any) (n int64, err error) {
	if !t.Wants(e.Type) {
		return run(ctx, query, args)
	}
	if t.db.IsPostgres() {
		told, more, err := t.Clause("changed", []Event{e}, len(args)+1)
		if err == nil {
			_, err = run(ctx, "WITH changed AS ("+query+" RETURNING 1)"+told+" SELECT count(*) FROM changed", slices.Concat(args, more), &n)
		}
		if err != nil {
			return 0, err
		}
	} else {
		err = t.db.Write(ctx, func(tx *sqldb.Tx) error {
			if n, err = tx.Exec(query, args...); err != nil || n == 0 {
				return err
			}
			return t.AddIn(tx, e)
		})
		if err != nil {
			return 0, err
		}
	}
	t.Added(int(n))
	return n, nil
}

// Add records events in a write of its own.
func (t *Table) Add(ctx context.Context, events ...Event) error {
	types := make([]string, len(events))
	for i, e := range events {
		types[i] = e.Type
	}
	if !t.Wants(types...) {
		return nil
	}
	if err := t.db.Write(ctx, func(tx *sqldb.Tx) error { return t.AddIn(tx, events...) }); err != nil {
		return err
	}
	t.Added(len(events))
	return nil
}

// RecordChannel records that a channel is in that state: up or down. After an error, a repeated call for the same state
// records the same event, because the first one may have been stored all the same.
func (t *Table) RecordChannel(ctx context.Context, name, state string) error {
	e := Event{ID: NewID(rand.Text()), Type: ChannelDown, At: time.Now(), Data: Data{ID: name, State: state}}
	if state == "up" {
		e.Type = ChannelUp
	}
	if failed, ok := t.unstoredChannels.Load(name); ok && failed.(Event).Type == e.Type {
		e = failed.(Event)
	}
	err := t.Add(ctx, e)
	if err != nil {
		t.unstoredChannels.Store(name, e)
	} else {
		t.unstoredChannels.Delete(name)
	}
	return err
}

// Added notes that n events were recorded durably, and rings for whoever posts them.
func (t *Table) Added(n int) {
	if n == 0 {
		return
	}
	if ring := t.onAdded.Load(); ring != nil {
		(*ring)()
	}
	if t.addedCount.Add(int64(n)) >= eventsPerTrim {
		t.addedCount.Store(0)
		t.trimUnattended()
	}
}

// ErrFenced says that another process posts for the subscription now.
var ErrFenced = errors.New("another process posts for this subscription")

// A Queue has the events that wait for one subscriber, for the one process that posts them.
type Queue struct {
	table *Table
	name  string
	fence int64
}

// A Waiting is an event in a queue.
type Waiting struct {
	Event
	number int64
}

// Take makes this process the one that posts for a subscription, and returns what is known about it: earlier ones can
// no longer change anything.
func (t *Table) Take(ctx context.Context, name string) (*Queue, State, error) {
	q, s := &Queue{table: t, name: name}, State{Name: name}
	var failing, retry int64
	err := t.db.Get(ctx, `INSERT INTO subscriptions (name, fence, failing, tries, retry_at, problem, accepted, dropped, dropped_at)
		VALUES (?, 1, 0, 0, 0, '', 0, 0, 0) ON CONFLICT (name) DO UPDATE SET fence = subscriptions.fence + 1
		RETURNING fence, failing, tries, retry_at, place`, []any{name}, &q.fence, &failing, &s.Tries, &retry, &s.Place)
	if err != nil {
		return nil, s, fmt.Errorf("take the events for subscription %s: %w", name, err)
	}
	s.Failing, s.RetryAt = timeOf(failing), timeOf(retry)
	return q, s, nil
}

// Next returns the events that come next, at most `most` of them. It returns ErrFenced if another process posts them.
func (q *Queue) Next(ctx context.Context, most int) (next []Waiting, err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrFenced) {
			err = fmt.Errorf("read the events for subscription %s: %w", q.name, err)
		}
	}()
	rows, err := q.table.db.Read.QueryContext(ctx, `SELECT n, id, type, entry, at, data FROM subscription_events
		WHERE subscription = ? AND EXISTS (SELECT 1 FROM subscriptions WHERE name = ? AND fence = ?) ORDER BY n LIMIT ?`, q.name, q.name, q.fence, most)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var w Waiting
		var at int64
		var data string
		if err := rows.Scan(&w.number, &w.ID, &w.Type, &w.Entry, &at, &data); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(data), &w.Data); err != nil {
			return nil, err
		}
		w.At = timeOf(at)
		next = append(next, w)
	}
	if err := rows.Err(); err != nil || len(next) > 0 {
		return next, err
	}
	return nil, q.check(ctx)
}

// check returns ErrFenced if another process posts for the subscription.
func (q *Queue) check(ctx context.Context) error {
	var fence int64
	err := q.table.db.Read.QueryRowContext(ctx, "SELECT fence FROM subscriptions WHERE name = ?", q.name).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) || err == nil && fence != q.fence {
		return ErrFenced
	}
	return err
}

// IsDue reports whether an event that Next has returned is still to be posted: it may have been erased or dropped since.
// It returns ErrFenced if another process posts by now. A caller asks right before it posts, because it may have stood
// still for any time.
func (q *Queue) IsDue(ctx context.Context, w Waiting) (bool, error) {
	var fence, there int64
	err := q.table.db.Read.QueryRowContext(ctx, "SELECT fence, (SELECT count(*) FROM subscription_events WHERE n = ? AND id = ?) FROM subscriptions WHERE name = ?",
		w.number, w.ID, q.name).Scan(&fence, &there)
	if errors.Is(err, sql.ErrNoRows) || err == nil && fence != q.fence {
		return false, ErrFenced
	}
	if err != nil {
		return false, fmt.Errorf("look for event %s of subscription %s: %w", w.ID, q.name, err)
	}
	return there > 0, nil
}

// Remove removes events that the subscriber has accepted. It returns ErrFenced, and removes none, if another
// process posts by now.
func (q *Queue) Remove(ctx context.Context, events ...Waiting) error {
	fenced := false
	err := q.table.db.Write(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec("UPDATE subscriptions SET "+resetFailure+", accepted = ? WHERE name = ? AND fence = ?",
			time.Now().UnixMicro(), q.name, q.fence)
		if fenced = n == 0; err != nil || fenced {
			return err
		}
		for _, e := range events {
			if _, err := tx.Exec("DELETE FROM subscription_events WHERE n = ? AND id = ?", e.number, e.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return q.outcome(err, fenced)
}

// RecordRefusal records why the first event was not accepted, when it is posted again, and where it was posted; see
// State.Place. It returns ErrFenced if another process posts by now.
func (q *Queue) RecordRefusal(ctx context.Context, problem string, again time.Time, place string) error {
	n, err := q.table.db.Exec(ctx, `UPDATE subscriptions SET failing = CASE WHEN failing = 0 THEN CAST(? AS BIGINT) ELSE failing END, tries = tries + 1,
		retry_at = ?, problem = ?, place = ? WHERE name = ? AND fence = ?`, time.Now().UnixMicro(), again.UnixMicro(), sqldb.Text(problem), place, q.name, q.fence)
	return q.outcome(err, n == 0)
}

// ClearRefusal records that no event is refused anymore, if none waits: the one that was refused was erased.
func (q *Queue) ClearRefusal(ctx context.Context) error {
	_, err := q.table.db.Exec(ctx, "UPDATE subscriptions SET "+resetFailure+" WHERE name = ? AND fence = ? AND "+nothingWaitsCondition, q.name, q.fence)
	return q.outcome(err, false)
}

// Parts of SQL statements that change rows of subscriptions.
const (
	resetFailure          = "failing = 0, tries = 0, retry_at = 0, problem = '', place = ''"
	nothingWaitsCondition = "NOT EXISTS (SELECT 1 FROM subscription_events e WHERE e.subscription = subscriptions.name)"
)

func (q *Queue) outcome(err error, fenced bool) error {
	if err != nil {
		return fmt.Errorf("record what became of events for subscription %s: %w", q.name, err)
	}
	if fenced {
		return ErrFenced
	}
	return nil
}

// A State says how a subscription does.
type State struct {
	Name    string
	Waiting int       // how many events wait
	Oldest  time.Time // when the first of them happened
	Failing time.Time // since when nothing was accepted although something waits; zero if that is not so
	Tries   int       // how often the first event was refused
	RetryAt time.Time
	Problem string // why it was refused
	// Place identifies where the refused event was posted, so that a changed URL is tried at once. Only Take sets it.
	Place     string
	Accepted  time.Time // when an event was accepted last
	Dropped   int64     // how many events were dropped so far
	DroppedAt time.Time // when that was last
}

// State returns how a subscription does.
func (t *Table) State(ctx context.Context, name string) (State, error) {
	s := State{Name: name}
	var oldest, failing, retry, accepted, dropped int64
	err := t.db.Read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM subscription_events WHERE subscription = ?),
		coalesce((SELECT at FROM subscription_events WHERE subscription = ? ORDER BY n LIMIT 1), 0)`, name, name).Scan(&s.Waiting, &oldest)
	if err == nil {
		err = t.db.Read.QueryRowContext(ctx, "SELECT failing, tries, retry_at, problem, accepted, dropped, dropped_at FROM subscriptions WHERE name = ?", name).Scan(
			&failing, &s.Tries, &retry, &s.Problem, &accepted, &s.Dropped, &dropped)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return s, fmt.Errorf("look up subscription %s: %w", name, err)
	}
	if s.Waiting == 0 { // what was refused was erased
		failing, s.Tries, retry, s.Problem = 0, 0, 0, ""
	}
	s.Problem = sqldb.Untext(s.Problem)
	s.Oldest, s.Failing, s.RetryAt, s.Accepted, s.DroppedAt = timeOf(oldest), timeOf(failing), timeOf(retry), timeOf(accepted), timeOf(dropped)
	return s, nil
}

func timeOf(stamp int64) time.Time {
	if stamp == 0 {
		return time.Time{}
	}
	return time.UnixMicro(stamp).UTC()
}

// EraseSession removes what waits of a session, and returns how many rows that were.
func EraseSession(tx *sqldb.Tx, session string) (int64, error) {
	return tx.Exec("DELETE FROM subscription_events WHERE session = ? AND session <> ''", sqldb.Text(session))
}
