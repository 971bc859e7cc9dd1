// Package ongoing serves what goes on outside the turns of a conversation: the commands that run in the background,
// and the tasks that agents have handed to sub-agents.
package ongoing

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// Jobs knows the commands that run in the background, and stops them.
type Jobs struct {
	Kept KeptJobs
	// Stop asks a job to end, whichever process runs it.
	Stop func(ctx context.Context, j sessions.Job) error
}

// KeptJobs are the stored jobs; see package sqlstore.
type KeptJobs interface {
	sessions.JobLister
	Job(ctx context.Context, id string) (sessions.Job, error)
	JobsOf(ctx context.Context, session string, limit int) ([]sessions.Job, error)
	EndedJobs(ctx context.Context, limit int) ([]sessions.Job, error)
}

// A Readable returns nil if a caller may read the session with that key, or a refusal. "" means all sessions.
type Readable func(ctx context.Context, c exchange.Caller, session string) error

// JobRoutes returns the routes for jobs.
func JobRoutes(jobs Jobs, may Readable) []exchange.Route {
	b := jobsHandler{jobs, may}
	return []exchange.Route{
		{Pattern: "GET /v1/jobs", May: mayReadJobs, Serve: b.list},
		{Pattern: "GET /v1/jobs/{id}", May: mayReadJobs, Serve: b.show},
		{Pattern: "DELETE /v1/jobs/{id}", May: exchange.Caller.IsAdmin, Serve: b.stop, Audit: sessions.AuditJob, Result: "stop"},
	}
}

// jobsHandler serves the jobs.
type jobsHandler struct {
	Jobs
	may Readable
}

// mayReadJobs reports whether the caller may see any jobs at all.
func mayReadJobs(c exchange.Caller) bool { return c.MayReadAll() || c.MayReadOwn() }

// A ListedJob is a job in the API's JSON.
type ListedJob struct {
	ID       string     `json:"id"`
	Session  string     `json:"session"`
	Person   string     `json:"person"`
	Agent    string     `json:"agent"`
	Turn     string     `json:"turn"` // the turn that started it
	Call     string     `json:"call"` // the call in that turn
	Tool     string     `json:"tool"`
	Command  string     `json:"command"`
	State    string     `json:"state"`
	Stopping bool       `json:"stopping"` // whether somebody has asked it to end, and it is still running
	Started  time.Time  `json:"started"`
	Deadline time.Time  `json:"deadline"`
	Ended    *time.Time `json:"ended,omitempty"`
	ExitCode *int       `json:"exit_code,omitempty"`
	Detail   string     `json:"detail,omitempty"`
	Printed  int64      `json:"printed"`
	Output   string     `json:"output,omitempty"` // the last part, if a single job is requested
}

func listedJobOf(j sessions.Job) ListedJob {
	return ListedJob{
		ID: j.ID, Session: j.Session, Person: j.Person, Agent: j.Agent, Turn: j.Turn, Call: j.Call, Tool: j.Tool, Command: j.Command, State: j.State,
		Stopping: j.State == sessions.JobRunning && j.Stop != "", Started: j.Started.UTC(), Deadline: j.Deadline.UTC(),
		Ended: exchange.SomeTime(j.Ended), ExitCode: j.ExitCode, Detail: j.Detail, Printed: j.Printed,
	}
}

// list answers with the running jobs, followed by those that have ended, the newest first; or with all jobs of a
// session, the newest first. A caller who may not read everything has to name a session.
func (b jobsHandler) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	session := r.URL.Query().Get("session")
	if err := b.may(r.Context(), w.Caller, session); err != nil {
		return err
	}
	found, err := b.find(r.Context(), session, limit+1)
	if err != nil {
		return err
	}
	page := struct {
		Jobs []ListedJob `json:"jobs"`
		More bool        `json:"more"`
	}{Jobs: []ListedJob{}, More: len(found) > limit}
	for _, j := range found[:min(len(found), limit)] {
		page.Jobs = append(page.Jobs, listedJobOf(j))
	}
	return w.JSON(http.StatusOK, page)
}

// find returns at most limit jobs: of a session, the newest first, or, for "", of all sessions, the running ones first.
func (b jobsHandler) find(ctx context.Context, session string, limit int) ([]sessions.Job, error) {
	if session != "" {
		return b.Kept.JobsOf(ctx, session, limit)
	}
	open, err := b.Kept.AllRunningJobs(ctx, limit)
	if err != nil || len(open.Jobs) >= limit {
		return open.Jobs, err
	}
	ended, err := b.Kept.EndedJobs(ctx, limit-len(open.Jobs))
	return append(open.Jobs, ended...), err
}

// named returns the job that a request's path names; jobs that the caller may not see don't exist for it.
func (b jobsHandler) named(w *exchange.Answer, r *http.Request) (sessions.Job, error) {
	w.ID = r.PathValue("id")
	j, err := b.Kept.Job(r.Context(), w.ID)
	if err == nil {
		err = b.may(r.Context(), w.Caller, j.Session)
	}
	if errors.Is(err, sessions.ErrNotFound) || exchange.IsRefusal(err) {
		err = exchange.NotFound("there's no such job: GET /v1/jobs lists those that are running, and those that ended in the last 30 days")
	}
	return j, err
}

// show answers with a job and the end of its output.
func (b jobsHandler) show(w *exchange.Answer, r *http.Request) error {
	j, err := b.named(w, r)
	if err != nil {
		return err
	}
	one := listedJobOf(j)
	one.Output = j.Output
	return w.JSON(http.StatusOK, one)
}

// stop asks a job to end. The process that runs the job ends it, and the job's session gets a notice.
func (b jobsHandler) stop(w *exchange.Answer, r *http.Request) error {
	j, err := b.named(w, r)
	if err != nil {
		return err
	}
	if j.State != sessions.JobRunning {
		return exchange.Conflict("ended", "this job has already ended")
	}
	if err := b.Stop(r.Context(), j); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
