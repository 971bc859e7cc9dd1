package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// The states of a job. All but the first are final.
const (
	JobRunning = "running"
	JobExited  = "exited"  // its program ended by itself
	JobStopped = "stopped" // somebody asked for its end
	JobKilled  = "killed"  // the job was ended because it exceeded a limit
	JobFailed  = "failed"  // its program could not be run
	JobLost    = "lost"    // the process that ran it is gone, or could not reach the bus
)

// A Job is a command that runs in the background and can outlive the turn that started it.
type Job struct {
	// ID is derived from the call that started the job, so the same call starts only one job.
	ID      string
	Session string
	Person  string // the person on whose behalf it runs
	Agent   string
	Turn    string
	Call    string
	Tool    string
	// Route is where the job's end is reported, encoded by the code that runs jobs.
	Route json.RawMessage
	// Command is the command that the job runs, redacted, and cut if it is long.
	Command string
	// Untrusted says that the model that started the job had read something that strangers may have
	// written.
	Untrusted bool
	Started   time.Time
	Deadline  time.Time

	// Stop names what asked the job to end; "" if nothing has.
	Stop string
	// Output is the last part of what the job has printed so far, redacted, and Printed the number of
	// bytes that it has printed in all. In a list, a job has no Output.
	Output  string
	Printed int64

	State    string
	ExitCode *int      // the exit code, for a job that is JobExited
	Detail   string    // why it ended, in words
	Ended    time.Time // zero while it runs
	// Told says that the job's end was reported to its session.
	Told bool
}

// An OpenJob contains the few fields of a job that are looked up again and again while it runs.
type OpenJob struct{ ID, State, Stop string }

// JobLimits limits how many jobs may run at once for a session and for a person.
type JobLimits struct{ Session, Person int }

// A JobLimitError says that the maximum number of jobs is already running.
type JobLimitError struct {
	Person bool // whether it is a person's limit, over all conversations; otherwise it is that of a session
	Limit  int
}

// Error returns a message that names the limit.
func (e *JobLimitError) Error() string {
	of := "conversation"
	if e.Person {
		of = "person"
	}
	return fmt.Sprintf("too many jobs are running for this %s: the limit is %d", of, e.Limit)
}

// ErrJobKnown says that a job with that id was started before.
var ErrJobKnown = errors.New("the job was begun before")

// Jobs stores the records of jobs in a place that every process can read.
type Jobs interface {
	// BeginJob records a job as running, before it is started. It returns ErrJobKnown if a job with that
	// id exists, a *JobLimitError if the limits do not allow another job, and ErrNotFound if its session
	// does not exist because it was erased.
	BeginJob(ctx context.Context, j Job, most JobLimits) error
	// Job looks up a job; ErrNotFound if there is none.
	Job(ctx context.Context, id string) (Job, error)
	// JobsOf lists a session's jobs, the newest first, at most limit.
	JobsOf(ctx context.Context, session string, limit int) ([]Job, error)
	// RunningJobs lists the running jobs of a session.
	RunningJobs(ctx context.Context, session string) ([]Job, error)
	// OpenJobs lists the jobs of all sessions that are running, or whose end has not been reported yet.
	OpenJobs(ctx context.Context) ([]OpenJob, error)
	// StopJobs asks the session's running jobs to end, or only the job with that id if id is not "".
	// cause names what asks for it and is stored in Job.Stop. StopJobs returns how many jobs were asked
	// to end for that cause, so a repeated call returns the same number.
	StopJobs(ctx context.Context, session, id, cause string) (int, error)
	// NoteOutput records what a running job has printed.
	NoteOutput(ctx context.Context, id, output string, printed int64) error
	// EndJob records how a job ended: State, ExitCode, Detail, Ended, Output, Printed and
	// Told. It returns false if the job has ended already, or its record is gone.
	EndJob(ctx context.Context, j Job) (bool, error)
	// NoteJobTold records that the job's end was reported to its session.
	NoteJobTold(ctx context.Context, id string) error
}
