package subagents

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/sessions/subscriptions"
)

// Migration is the SQL that adds the table of tasks to a schema; {bytes} is replaced by a text type that
// sorts by bytes. Times are microseconds since 1970; 0 means none.
const Migration = `
CREATE TABLE tasks (
	id        {bytes} PRIMARY KEY,
	parent    {bytes} NOT NULL,   -- the key of the session that has handed it out
	session   {bytes} NOT NULL,   -- the key of the session that works on it
	agent     TEXT NOT NULL,
	person    {bytes} NOT NULL,
	turn      TEXT NOT NULL,
	call      TEXT NOT NULL,
	title     TEXT NOT NULL,
	awaited   BIGINT NOT NULL,
	mail      TEXT NOT NULL,      -- JSON; empty once it has ended
	route     TEXT NOT NULL,      -- JSON: where the report goes
	started   BIGINT NOT NULL,
	state     TEXT NOT NULL,
	stop      TEXT NOT NULL,      -- why it is to end
	report    TEXT NOT NULL,
	untrusted BIGINT NOT NULL,
	ended     BIGINT NOT NULL,
	told      BIGINT NOT NULL,
	dropped   BIGINT NOT NULL     -- the session is to be erased
);
CREATE INDEX tasks_by_parent ON tasks (parent, started);
CREATE INDEX tasks_by_session ON tasks (session, started);
CREATE INDEX tasks_by_person ON tasks (person);
CREATE INDEX tasks_open ON tasks (started) WHERE told = 0 OR dropped = 1;
`

const taskColumns = "id, parent, session, agent, person, turn, call, title, awaited, mail, route, started, state, stop, report, untrusted, ended, told"

// openCondition is an SQL condition for tasks that have not ended.
const openCondition = "state IN ('prepared', 'running')"

// A Table stores tasks in a database. Several processes may use the same one at a time.
type Table struct {
	DB     *sqldb.DB
	Events *subscriptions.Table // records for subscribers that tasks begin and end
}

// event returns the event that a task is in a state, which is final unless it is Running.
func event(t Task, state string, at time.Time) subscriptions.Event {
	what := subscriptions.TaskEnded
	if state == Running {
		what = subscriptions.TaskBegun
	}
	return subscriptions.Event{
		ID: subscriptions.NewID("task", t.ID, what), Type: what, At: at,
		Data: subscriptions.Data{Session: t.Parent, Turn: t.Turn, Call: t.Call, ID: t.ID, State: state, TaskSession: t.Session},
	}
}

// hash returns a short text that replaces another one in an id or a key.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:16])
}

// ID returns the id of the task that a call of a session hands out.
func ID(session, call string) string { return hash(session + "\x00" + call) }

// taskLifetime is how long a task's words are kept after its end, and its record if its session no longer exists.
const taskLifetime = 30 * 24 * time.Hour

// Prepare records a task that is not handed out yet. It returns ErrKnown if a task with that id exists, a
// *LimitError if the parent already has most open tasks, and sessions.ErrNotFound if the parent does not
// exist because it was erased.
func (t Table) Prepare(ctx context.Context, task Task, most int) error {
	var known, there, running int64
	err := t.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if t.DB.IsPostgres() { // only one process counts at a time
			if _, err := tx.Exec("LOCK TABLE tasks IN SHARE ROW EXCLUSIVE MODE"); err != nil {
				return err
			}
		}
		for _, count := range []struct {
			query string
			of    string
			n     *int64
		}{
			{"SELECT count(*) FROM tasks WHERE id = ?", task.ID, &known},
			{"SELECT count(*) FROM sessions WHERE key = ?", task.Parent, &there},
			{"SELECT count(*) FROM tasks WHERE parent = ? AND " + openCondition, task.Parent, &running},
		} {
			if err := tx.Get(count.query, []any{sqldb.Text(count.of)}, count.n); err != nil {
				return err
			}
		}
		if known > 0 || there == 0 || running >= int64(most) {
			return nil
		}
		if _, err := EraseEndedBefore(tx, time.Now().Add(-taskLifetime)); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO tasks ("+taskColumns+", dropped) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'prepared', '', '', 0, 0, 0, 0)",
			append(texts(task.ID, task.Parent, task.Session, task.Agent, task.Person, task.Turn, task.Call, task.Title),
				toInt(task.Awaited), sqldb.Text(string(task.Mail)), sqldb.Text(string(task.Route)), task.Started.UnixMicro())...)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("record task %s: %w", task.ID, err)
	case known > 0:
		return ErrKnown
	case there == 0:
		return sessions.ErrNotFound
	case running >= int64(most):
		return &LimitError{Limit: most}
	}
	return nil
}

// Discard ends a task that was never handed out, and marks its session for erasure, because files may already have
// been copied there. It changes nothing if the task was handed out or has ended.
func (t Table) Discard(ctx context.Context, id string) error {
	return t.exec(ctx, "discard a task", "UPDATE tasks SET state = 'cancelled', told = 1, dropped = 1, ended = ?, mail = '', title = '' WHERE id = ? AND state = 'prepared'",
		time.Now().UnixMicro(), sqldb.Text(id))
}

// Start records that a task is handed out. It changes nothing if the task was handed out
// before or has ended.
func (t Table) Start(ctx context.Context, id string) error {
	const start = "UPDATE tasks SET state = 'running' WHERE id = ? AND state = 'prepared'"
	if !t.Events.Wants(subscriptions.TaskBegun) {
		return t.exec(ctx, "start a task", start, sqldb.Text(id))
	}
	task, err := t.Get(ctx, id) // whose it is matters only to subscribers
	if errors.Is(err, ErrNone) {
		return nil
	}
	if err == nil {
		_, err = t.Events.Exec(ctx, event(task, Running, time.Now()), start, []any{sqldb.Text(id)})
	}
	if err != nil {
		return fmt.Errorf("start a task: %w", err)
	}
	return nil
}

// Get returns a task; ErrNone if there is none of that id.
func (t Table) Get(ctx context.Context, id string) (Task, error) {
	return t.one(ctx, "id = ?", sqldb.Text(id))
}

// Newest returns the newest task that a session works on, or has worked on; ErrNone if the session is not
// a sub-agent's.
func (t Table) Newest(ctx context.Context, session string) (Task, error) {
	return t.one(ctx, "session = ? ORDER BY started DESC, id DESC LIMIT 1", sqldb.Text(session))
}

// Of returns the tasks that a session has handed out, the newest first, at most limit, without those whose sessions
// are to be erased.
func (t Table) Of(ctx context.Context, parent string, limit int) ([]Task, error) {
	return t.list(ctx, "parent = ? AND dropped = 0 ORDER BY started DESC, id DESC LIMIT ?", sqldb.Text(parent), limit)
}

// OpenOf returns the tasks of a session that have not ended.
func (t Table) OpenOf(ctx context.Context, parent string) ([]Task, error) {
	return t.list(ctx, "parent = ? AND "+openCondition+" ORDER BY started, id", sqldb.Text(parent))
}

// How long a task may wait to be handed out. By then, a turn that wants it is over or has handed it out.
// A turn hands out a task at once, unless it will wait for it: then it may make other calls first.
const (
	abandonedAfter        = 2 * time.Minute
	abandonedAwaitedAfter = time.Hour // of one that its turn waits for
)

// Untold returns the tasks of all sessions that were handed out, or have ended, before a time, and whose end was
// not reported to the parent. It also returns those that nobody hands out anymore, because they were asked to end
// or their turns went on without them.
func (t Table) Untold(ctx context.Context, before time.Time) ([]Task, error) {
	at := before.UnixMicro()
	return t.list(ctx, `told = 0 AND (state = 'running' AND started < ? OR ended > 0 AND ended < ?
		OR state = 'prepared' AND (stop <> '' AND started < ? OR awaited = 0 AND started < ? OR started < ?)) ORDER BY started, id`,
		at, at, at, before.Add(-abandonedAfter).UnixMicro(), before.Add(-abandonedAwaitedAfter).UnixMicro())
}

// Running counts the running tasks of all sessions.
func (t Table) Running(ctx context.Context) (n int, err error) {
	if err := t.DB.Read.QueryRowContext(ctx, "SELECT count(*) FROM tasks WHERE told = 0 AND state = 'running'").Scan(&n); err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	return n, nil
}

// Stop asks open tasks of a session (parent) to end: the task with that id; or the tasks of that turn
// that it waits for or has not handed out; or all if both are "". It returns those that were asked to end
// for this cause; a repeated call returns them again.
func (t Table) Stop(ctx context.Context, parent, id, turn, cause string) ([]Task, error) {
	// A task that Stop returned before may have ended meanwhile, so that it is not "prepared" anymore.
	const which = "parent = ? AND (? = '' OR id = ?) AND (? = '' OR turn = ? AND (awaited = 1 OR state <> 'running'))"
	args := texts(parent, id, id, turn, turn)
	if err := t.exec(ctx, "stop tasks", "UPDATE tasks SET stop = ? WHERE "+which+" AND stop = '' AND "+openCondition, append(texts(cause), args...)...); err != nil {
		return nil, err
	}
	return t.list(ctx, which+" AND stop = ? ORDER BY started, id", append(args, sqldb.Text(cause))...)
}

// End records how a task ended: State, Report, Untrusted, Ended and Told. It returns false if the task is
// no longer in the state was, because it was handed out or has ended meanwhile, or if its record is gone.
func (t Table) End(ctx context.Context, task Task, was string) (bool, error) {
	n, err := t.Events.Exec(ctx, event(task, task.State, task.Ended),
		"UPDATE tasks SET state = ?, report = ?, untrusted = ?, ended = ?, told = ?, mail = '' WHERE id = ? AND state = ? AND "+openCondition,
		[]any{task.State, sqldb.Text(task.Report), toInt(task.Untrusted), task.Ended.UnixMicro(), toInt(task.Told), sqldb.Text(task.ID), was})
	if err != nil {
		return false, fmt.Errorf("end task %s: %w", task.ID, err)
	}
	return n > 0, nil
}

// NoteTold records that the parent got the report on a task. It changes nothing if the task has not ended.
func (t Table) NoteTold(ctx context.Context, id string) error {
	return t.exec(ctx, "note that the end of a task is told", "UPDATE tasks SET told = 1 WHERE id = ? AND NOT "+openCondition, sqldb.Text(id))
}

// Drop marks for erasure the sub-agents' sessions that work, or have worked, for a session, except those for whose
// reports a turn waits. It asks those that are still working to end.
func (t Table) Drop(ctx context.Context, parent, cause string) error {
	return t.exec(ctx, "drop tasks", `UPDATE tasks SET dropped = 1, told = 1, stop = CASE WHEN stop = '' THEN CAST(? AS TEXT) ELSE stop END
		WHERE parent = ? AND session NOT IN (SELECT session FROM tasks WHERE parent = ? AND awaited = 1 AND told = 0)`, texts(cause, parent, parent)...)
}

// Dropped returns the keys of the sessions that are marked for erasure.
func (t Table) Dropped(ctx context.Context) (keys []string, err error) {
	return t.keys(ctx, "SELECT DISTINCT session FROM tasks WHERE dropped = 1 ORDER BY session")
}

// Forget removes the records of the tasks on which a session has worked.
func (t Table) Forget(ctx context.Context, session string) error {
	return t.exec(ctx, "forget tasks", "DELETE FROM tasks WHERE session = ?", sqldb.Text(session))
}

// SessionsFor returns the keys of the sub-agents' sessions that work, or have worked, for one of these
// sessions, or on behalf of a person if person is not "". A key may be among them more than once.
func (t Table) SessionsFor(ctx context.Context, person string, parents ...string) ([]string, error) {
	var all []string
	if person != "" {
		found, err := t.keys(ctx, "SELECT DISTINCT session FROM tasks WHERE person = ? ORDER BY session", sqldb.Text(person))
		if err != nil {
			return nil, err
		}
		all = found
	}
	for _, parent := range parents {
		found, err := t.keys(ctx, "SELECT DISTINCT session FROM tasks WHERE parent = ? ORDER BY session", sqldb.Text(parent))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// EraseSession deletes the tasks that a session handed out, and those that it worked on and whose parents have been
// told how they ended. Of the other tasks that it worked on, open ones become lost, and ended ones keep their state.
// EraseSession erases the texts of both, and the sweep tells their parents later. It returns the number of changed rows.
func (t Table) EraseSession(tx *sqldb.Tx, session string) (int64, error) {
	n, err := tx.Exec("DELETE FROM tasks WHERE parent = ? OR (session = ? AND told = 1 AND NOT "+openCondition+")", texts(session, session)...)
	if err != nil {
		return 0, err
	}
	if err := t.recordLost(tx, "session = ?", session); err != nil {
		return 0, err
	}
	lost, err := tx.Exec("UPDATE tasks SET state = CASE WHEN "+openCondition+" THEN 'lost' ELSE state END, report = '', title = '', mail = '', ended = ? WHERE session = ?",
		time.Now().UnixMicro(), sqldb.Text(session))
	return n + lost, err
}

// recordLost records for subscribers that the open tasks for which the SQL condition is true are about to be lost. Nobody
// else ends them before that. Nothing rings for these events: they are found a little later.
func (t Table) recordLost(tx *sqldb.Tx, condition, of string) error {
	if !t.Events.Wants(subscriptions.TaskEnded) {
		return nil
	}
	query := "SELECT id, parent, session, turn, call FROM tasks WHERE " + condition + " AND " + openCondition + " ORDER BY started, id"
	if t.DB.IsPostgres() {
		query += " FOR UPDATE"
	}
	rows, err := tx.Query(query, sqldb.Text(of))
	if err != nil {
		return err
	}
	var lost []subscriptions.Event
	for rows.Next() {
		var k Task
		if err := rows.Scan(&k.ID, &k.Parent, &k.Session, &k.Turn, &k.Call); err != nil {
			return errors.Join(err, rows.Close())
		}
		for _, text := range []*string{&k.ID, &k.Parent, &k.Session, &k.Turn, &k.Call} {
			*text = sqldb.Untext(*text)
		}
		lost = append(lost, event(k, Lost, time.Now()))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	return t.Events.AddIn(tx, lost...)
}

// ErasePerson deletes the tasks that were handed out on a person's behalf, and returns
// their number. The open ones are lost.
func (t Table) ErasePerson(tx *sqldb.Tx, person string) (int64, error) {
	if err := t.recordLost(tx, "person = ?", person); err != nil {
		return 0, err
	}
	return tx.Exec("DELETE FROM tasks WHERE person = ?", sqldb.Text(person))
}

// EraseEndedBefore erases the words (title and report) of the tasks that ended before a time, and marks their
// sessions for erasure if these have no log, because they may have files. The sessions of the other tasks stay:
// whoever erases the parent session finds them by these rows. It returns the number of rows that have changed.
func EraseEndedBefore(tx *sqldb.Tx, before time.Time) (int64, error) {
	const old = "told = 1 AND dropped = 0 AND ended > 0 AND ended < ?"
	emptied, err := tx.Exec("UPDATE tasks SET title = '', report = '' WHERE "+old+" AND (title <> '' OR report <> '')", before.UnixMicro())
	if err != nil {
		return 0, err
	}
	gone, err := tx.Exec("UPDATE tasks SET dropped = 1 WHERE "+old+" AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.key = tasks.session)", before.UnixMicro())
	return gone + emptied, err
}

func (t Table) exec(ctx context.Context, what, query string, args ...any) error {
	if _, err := t.DB.Exec(ctx, query, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// one returns the first task for which the SQL condition is true; ErrNone if there is none.
func (t Table) one(ctx context.Context, condition string, args ...any) (Task, error) {
	found, err := t.list(ctx, condition, args...)
	if err == nil && len(found) == 0 {
		err = ErrNone
	}
	if err != nil {
		return Task{}, err
	}
	return found[0], nil
}

// list returns the tasks for which the SQL condition is true.
func (t Table) list(ctx context.Context, condition string, args ...any) (all []Task, err error) {
	rows, err := t.DB.Read.QueryContext(ctx, "SELECT "+taskColumns+" FROM tasks WHERE "+condition, args...)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var k Task
		var mail, route string
		var awaited, started, untrusted, ended, told int64
		err := rows.Scan(&k.ID, &k.Parent, &k.Session, &k.Agent, &k.Person, &k.Turn, &k.Call, &k.Title, &awaited, &mail, &route, &started,
			&k.State, &k.Stop, &k.Report, &untrusted, &ended, &told)
		if err != nil {
			return nil, fmt.Errorf("read tasks: %w", err)
		}
		for _, text := range []*string{&k.ID, &k.Parent, &k.Session, &k.Agent, &k.Person, &k.Turn, &k.Call, &k.Title, &mail, &route, &k.Stop, &k.Report} {
			*text = sqldb.Untext(*text)
		}
		if mail != "" {
			k.Mail = json.RawMessage(mail)
		}
		k.Route = json.RawMessage(route)
		k.Awaited, k.Untrusted, k.Told, k.Started = awaited == 1, untrusted == 1, told == 1, time.UnixMicro(started).UTC()
		if ended > 0 {
			k.Ended = time.UnixMicro(ended).UTC()
		}
		all = append(all, k)
	}
	return all, rows.Err()
}

// keys returns the first column of a query.
func (t Table) keys(ctx context.Context, query string, args ...any) (all []string, err error) {
	rows, err := t.DB.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, fmt.Errorf("read tasks: %w", err)
		}
		all = append(all, sqldb.Untext(key))
	}
	return all, rows.Err()
}

// texts returns texts as arguments of a query.
func texts(all ...string) []any {
	args := make([]any, len(all))
	for i, text := range all {
		args[i] = sqldb.Text(text)
	}
	return args
}

func toInt(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
