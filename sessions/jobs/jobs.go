// Package jobs stores the records of commands that run in the background: who started them, how they are doing,
// and how they ended.
package jobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/sessions/subscriptions"
)

// endedJobRetention is how long the record of a job is kept after its end.
const endedJobRetention = 30 * 24 * time.Hour

// Migration creates the table of running and ended jobs. A missing text or time is stored as "".
const Migration = `
CREATE TABLE jobs (
	id        TEXT PRIMARY KEY,
	session   {bytes} NOT NULL, -- its key
	person    TEXT NOT NULL,
	agent     TEXT NOT NULL,
	turn      TEXT NOT NULL,
	call      TEXT NOT NULL,
	tool      TEXT NOT NULL,
	route     TEXT NOT NULL,    -- JSON
	command   TEXT NOT NULL,
	untrusted BIGINT NOT NULL,
	started   TEXT NOT NULL,
	deadline  TEXT NOT NULL,
	stop      TEXT NOT NULL,    -- why it is to end
	output    TEXT NOT NULL,
	printed   BIGINT NOT NULL,
	state     TEXT NOT NULL,
	exit_code TEXT NOT NULL,
	detail    TEXT NOT NULL,
	ended     TEXT NOT NULL,
	told      BIGINT NOT NULL
);

CREATE INDEX jobs_session ON jobs (session, started);
CREATE INDEX jobs_person ON jobs (person);
CREATE INDEX jobs_ended ON jobs (ended);
CREATE INDEX jobs_open ON jobs (started) WHERE told = 0;
`

// jobColumns are the columns of a job, and listedColumns those of a job in a list, which omits the long
// output.
const (
	jobColumns    = beforeOutput + "output" + afterOutput
	listedColumns = beforeOutput + "''" + afterOutput
	beforeOutput  = "id, session, person, agent, turn, call, tool, route, command, untrusted, started, deadline, stop, "
	afterOutput   = ", printed, state, exit_code, detail, ended, told"
)

// A Table stores the records of jobs in a database. It implements [sessions.Jobs] and [sessions.JobLister].
type Table struct {
	db            *sqldb.DB
	subscriptions *subscriptions.Table
}

// NewTable returns the table in a database that has its Migration. What begins and ends is also recorded for
// subscribers.
func NewTable(db *sqldb.DB, events *subscriptions.Table) *Table { return &Table{db, events} }

// BeginJob records a job; see [sessions.Jobs]. It counts and records in one statement, and such
// statements run one after another, so that two jobs cannot both take the last place.
func (s *Table) BeginJob(ctx context.Context, j sessions.Job, most sessions.JobLimits) error {
	if err := s.beginJob(ctx, j, most); err != nil {
		return fmt.Errorf("begin job %s: %w", j.ID, err)
	}
	return nil
}

func (s *Table) beginJob(ctx context.Context, j sessions.Job, most sessions.JobLimits) error {
	if _, err := s.db.Exec(ctx, "DELETE FROM jobs WHERE told = 1 AND ended < ?", sqldb.FormatTime(time.Now().Add(-endedJobRetention))); err != nil {
		return err
	}
	key, person := sqldb.Text(j.Session), sqldb.Text(j.Person)
	n, err := s.subscriptions.ExecBy(ctx, s.db.InTurn, jobEvent(j, subscriptions.JobBegun, "running", j.Started), `
		INSERT INTO jobs (`+jobColumns+`)
		SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
			CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), '', '', 0, 'running', '', '', '', 0
		WHERE EXISTS (SELECT 1 FROM sessions WHERE key = ?)
			AND (SELECT count(*) FROM jobs WHERE session = ? AND state = 'running') < ?
			AND (SELECT count(*) FROM jobs WHERE person = ? AND state = 'running') < ?
		ON CONFLICT (id) DO NOTHING`,
		[]any{
			sqldb.Text(j.ID), key, person, sqldb.Text(j.Agent), sqldb.Text(j.Turn), sqldb.Text(j.Call), sqldb.Text(j.Tool),
			sqldb.Text(string(j.Route)), sqldb.Text(j.Command), boolToInt(j.Untrusted), sqldb.FormatTime(j.Started), sqldb.FormatTime(j.Deadline),
			key, key, int64(most.Session), person, int64(most.Person),
		})
	if err != nil || n > 0 {
		return err
	}
	return s.whyNotBegun(ctx, j, most)
}

// whyNotBegun finds out why a job was not recorded, and returns that error.
func (s *Table) whyNotBegun(ctx context.Context, j sessions.Job, most sessions.JobLimits) error {
	var known, there, running int64
	key := sqldb.Text(j.Session)
	err := s.db.Read.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM jobs WHERE id = ?), (SELECT count(*) FROM sessions WHERE key = ?),
		(SELECT count(*) FROM jobs WHERE session = ? AND state = 'running')`, sqldb.Text(j.ID), key, key).Scan(&known, &there, &running)
	switch {
	case err != nil:
		return err
	case known > 0:
		return sessions.ErrJobKnown
	case there == 0:
		return sessions.ErrNotFound
	case running >= int64(most.Session):
		return &sessions.JobLimitError{Limit: most.Session}
	}
	return &sessions.JobLimitError{Person: true, Limit: most.Person}
}

func boolToInt(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// Job looks up a job; see [sessions.Jobs].
func (s *Table) Job(ctx context.Context, id string) (sessions.Job, error) {
	j, err := scanJob(s.db.Read.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM jobs WHERE id = ?", sqldb.Text(id)).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Job{}, fmt.Errorf("look up job %s: %w", id, err)
	}
	return j, nil
}

// JobsOf lists jobs of a session; see [sessions.Jobs].
func (s *Table) JobsOf(ctx context.Context, session string, limit int) ([]sessions.Job, error) {
	return s.listJobs(ctx, "WHERE session = ? ORDER BY started DESC, id DESC LIMIT ?", sqldb.Text(session), max(0, limit))
}

// RunningJobs lists the running jobs of a session; see [sessions.Jobs].
func (s *Table) RunningJobs(ctx context.Context, session string) ([]sessions.Job, error) {
	return s.listJobs(ctx, "WHERE session = ? AND state = 'running' ORDER BY started", sqldb.Text(session))
}

// OpenJobs lists jobs of all sessions; see [sessions.Jobs].
func (s *Table) OpenJobs(ctx context.Context) (list []sessions.OpenJob, err error) {
	found, err := s.db.Read.QueryContext(ctx, "SELECT id, state, stop FROM jobs WHERE told = 0 ORDER BY started, id")
	if err != nil {
		return nil, fmt.Errorf("list open jobs: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var j sessions.OpenJob
		if err := found.Scan(&j.ID, &j.State, &j.Stop); err != nil {
			return nil, fmt.Errorf("list open jobs: %w", err)
		}
		j.ID, j.Stop = sqldb.Untext(j.ID), sqldb.Untext(j.Stop)
		list = append(list, j)
	}
	return list, found.Err()
}

// AllRunningJobs lists the running jobs of all sessions; see [sessions.JobLister]. Its condition excludes
// jobs whose end was reported, which do not run anyway, so that an index can serve it.
func (s *Table) AllRunningJobs(ctx context.Context, limit int) (all sessions.RunningJobs, err error) {
	err = s.db.Read.QueryRowContext(ctx, "SELECT count(*) FROM jobs WHERE told = 0 AND state = 'running'").Scan(&all.Count)
	if err != nil {
		return all, fmt.Errorf("count running jobs: %w", err)
	}
	if all.Count > 0 {
		all.Jobs, err = s.listJobs(ctx, "WHERE told = 0 AND state = 'running' ORDER BY started LIMIT ?", max(0, limit))
	}
	return all, err
}

// EndedJobs lists the ended jobs of all sessions; see [sessions.JobLister].
func (s *Table) EndedJobs(ctx context.Context, limit int) ([]sessions.Job, error) {
	return s.listJobs(ctx, "WHERE ended > '' ORDER BY ended DESC LIMIT ?", max(0, limit))
}

// listJobs returns the jobs that clauses, a query's WHERE and ORDER BY, select, without their output.
func (s *Table) listJobs(ctx context.Context, clauses string, args ...any) (list []sessions.Job, err error) {
	found, err := s.db.Read.QueryContext(ctx, "SELECT "+listedColumns+" FROM jobs "+clauses, args...)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		j, err := scanJob(found.Scan)
		if err != nil {
			return nil, fmt.Errorf("list jobs: %w", err)
		}
		list = append(list, j)
	}
	return list, found.Err()
}

// scanJob reads a job's row.
func scanJob(scan func(dest ...any) error) (j sessions.Job, err error) {
	var route, started, deadline, code, ended string
	var untrusted, told int64
	err = scan(&j.ID, &j.Session, &j.Person, &j.Agent, &j.Turn, &j.Call, &j.Tool, &route, &j.Command, &untrusted, &started, &deadline,
		&j.Stop, &j.Output, &j.Printed, &j.State, &code, &j.Detail, &ended, &told)
	if err != nil {
		return j, err
	}
	for _, text := range []*string{&j.ID, &j.Session, &j.Person, &j.Agent, &j.Turn, &j.Call, &j.Tool, &route, &j.Command, &j.Stop, &j.Output, &j.Detail} {
		*text = sqldb.Untext(*text)
	}
	if route != "" {
		j.Route = json.RawMessage(route)
	}
	j.Untrusted, j.Told = untrusted == 1, told == 1
	if j.Started, err = sqldb.ParseTime(started); err != nil {
		return j, err
	}
	if j.Deadline, err = sqldb.ParseTime(deadline); err != nil {
		return j, err
	}
	if ended != "" {
		if j.Ended, err = sqldb.ParseTime(ended); err != nil {
			return j, err
		}
	}
	if code != "" {
		n, err := strconv.Atoi(code)
		if err != nil {
			return j, err
		}
		j.ExitCode = &n
	}
	return j, nil
}

// StopJobs asks jobs to end; see [sessions.Jobs].
func (s *Table) StopJobs(ctx context.Context, session, id, cause string) (n int, err error) {
	key, job, why := sqldb.Text(session), sqldb.Text(id), sqldb.Text(cause)
	err = s.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec("UPDATE jobs SET stop = ? WHERE session = ? AND (? = '' OR id = ?) AND state = 'running' AND stop = ''", why, key, job, job)
		if err != nil {
			return err
		}
		return tx.Get("SELECT count(*) FROM jobs WHERE session = ? AND (? = '' OR id = ?) AND stop = ?", []any{key, job, job, why}, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("stop jobs of %s: %w", session, err)
	}
	return n, nil
}

// NoteOutput records a job's output; see [sessions.Jobs].
func (s *Table) NoteOutput(ctx context.Context, id, output string, printed int64) error {
	_, err := s.db.Group(ctx, "UPDATE jobs SET output = ?, printed = ? WHERE id = ? AND state = 'running'", []any{sqldb.Text(output), printed, sqldb.Text(id)})
	if err != nil {
		return fmt.Errorf("note the output of job %s: %w", id, err)
	}
	return nil
}

// EndJob records the end of a job; see [sessions.Jobs].
func (s *Table) EndJob(ctx context.Context, j sessions.Job) (bool, error) {
	code := ""
	if j.ExitCode != nil {
		code = strconv.Itoa(*j.ExitCode)
	}
	n, err := s.subscriptions.Exec(ctx, jobEvent(j, subscriptions.JobEnded, j.State, j.Ended),
		"UPDATE jobs SET state = ?, exit_code = ?, detail = ?, ended = ?, output = ?, printed = ?, told = ? WHERE id = ? AND state = 'running'",
		[]any{j.State, code, sqldb.Text(j.Detail), sqldb.FormatTime(j.Ended), sqldb.Text(j.Output), j.Printed, boolToInt(j.Told), sqldb.Text(j.ID)})
	if err != nil {
		return false, fmt.Errorf("end job %s: %w", j.ID, err)
	}
	return n > 0, nil
}

// jobEvent returns the event that a job has begun or ended.
func jobEvent(j sessions.Job, what, state string, at time.Time) subscriptions.Event {
	return subscriptions.Event{
		ID: subscriptions.NewID("job", j.ID, what), Type: what, At: at,
		Data: subscriptions.Data{Session: j.Session, Turn: j.Turn, ID: j.ID, Tool: j.Tool, State: state},
	}
}

// NoteJobTold records that a job's end was reported; see [sessions.Jobs].
func (s *Table) NoteJobTold(ctx context.Context, id string) error {
	if _, err := s.db.Exec(ctx, "UPDATE jobs SET told = 1 WHERE id = ? AND state <> 'running'", sqldb.Text(id)); err != nil {
		return fmt.Errorf("note that the end of job %s is told: %w", id, err)
	}
	return nil
}
