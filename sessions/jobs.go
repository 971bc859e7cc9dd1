package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The states of a job. All but the first are for good.
const (
	JobRunning = "running"
	JobExited  = "exited"  // its program ended by itself
	JobStopped = "stopped" // somebody wanted it to end
	JobKilled  = "killed"  // it took more than it may: time, memory, disk
	JobFailed  = "failed"  // its program could not be run
	JobLost    = "lost"    // the process that ran it is gone, or did not get at the bus
)

// A Job is a command that runs in the background: beyond the turn that started it.
type Job struct {
	// ID is made of the call that started it: the same call starts one job.
	ID      string
	Session string
	Person  string // on whose behalf
	Agent   string
	Turn    string
	Call    string
	Tool    string
	// Route is where its end is told, as its runner encoded it.
	Route json.RawMessage
	// Command is what it runs, redacted, and cut if it is long.
	Command string
	// Untrusted says that the model that started it had read what strangers may have written.
	Untrusted bool
	Started   time.Time
	Deadline  time.Time

	// Stop is the cause for which somebody wants it to end; "" while nobody does.
	Stop string
	// Output is the end of what it has printed so far, redacted, and Printed how many
	// bytes that was in all.
	Output  string
	Printed int64

	State    string
	ExitCode *int      // of JobExited
	Detail   string    // why it ended, in words
	Ended    time.Time // zero while it runs
	// Told says that its session was told of its end.
	Told bool
}

// An OpenJob is what is asked of a job again and again while it runs.
type OpenJob struct{ ID, State, Stop string }

// JobLimits bounds how many jobs run at once.
type JobLimits struct{ Session, Person int }

// A JobLimitError says that as many jobs run as may.
type JobLimitError struct {
	Person bool // for the person in all conversations; else for the session
	Most   int
}

// Error tells the limit.
func (e *JobLimitError) Error() string {
	of := "conversation"
	if e.Person {
		of = "person"
	}
	return fmt.Sprintf("%d jobs run for this %s, which is the most that may", e.Most, of)
}

// ErrJobKnown says that a job of that id was begun before.
var ErrJobKnown = errors.New("the job was begun before")

// Jobs keeps what is known of jobs where every process finds it.
type Jobs interface {
	// BeginJob records a job as running, before it is started. ErrJobKnown if there is
	// one of that id, a *JobLimitError if there is no room for it, ErrNotFound if its
	// session is not there: it was erased.
	BeginJob(ctx context.Context, j Job, most JobLimits) error
	// Job looks up a job; ErrNotFound if there is none.
	Job(ctx context.Context, id string) (Job, error)
	// JobsOf lists a session's jobs, the newest first, at most limit.
	JobsOf(ctx context.Context, session string, limit int) ([]Job, error)
	// RunningJobs lists a session's jobs that run.
	RunningJobs(ctx context.Context, session string) ([]Job, error)
	// OpenJobs lists the jobs of all sessions that run, or whose end nobody was told of.
	OpenJobs(ctx context.Context) ([]OpenJob, error)
	// StopJobs asks for the end of the session's jobs that run, or of one of them, and
	// returns how many were asked to end for that cause: the same again gives the same.
	StopJobs(ctx context.Context, session, id, cause string) (int, error)
	// NoteOutput records what a running job has printed.
	NoteOutput(ctx context.Context, id, output string, printed int64) error
	// EndJob records how a job ended: State, ExitCode, Detail, Ended, Output, Printed and
	// Told. It is false if the job has ended already, or is not known any more.
	EndJob(ctx context.Context, j Job) (bool, error)
	// NoteJobTold records that the session was told of a job's end.
	NoteJobTold(ctx context.Context, id string) error
}
