// Package jobs provides the tools with which an agent lists, reads and stops the commands that it
// runs in the background.
//
// exec_shell and spawn start a job. Its state is stored where every process can read it, so any
// process that holds the session can answer.
package jobs

import (
	"context"
	"time"

	"parley/tools"
)

// A Status describes the state of a job.
type Status struct {
	ID       string `json:"job_id"`
	State    string `json:"state"` // running, or how the job ended: exited, stopped, killed, failed, lost
	ExitCode *int   `json:"exit_code,omitempty"`
	Detail   string `json:"detail,omitempty"` // why the job ended
	Command  string `json:"command"`
	Started  string `json:"started"`
	Seconds  int64  `json:"seconds"` // how long the job has run
	Printed  int64  `json:"printed_bytes"`
	Folder   string `json:"folder"` // a folder in the workspace, or on the node, the only one that the job writes to
	File     string `json:"output_file"`
	Node     string `json:"node,omitempty"` // on which it runs
	Foreign  bool   `json:"-"`              // what it prints is written by strangers, because nobody trusts the node
}

// A Backend looks up and stops the background commands of sessions, for the tools. Its errors are
// for the model.
type Backend interface {
	// List returns a session's jobs, the newest first.
	List(ctx context.Context, session string) ([]Status, error)
	// Find returns the status of a session's job, and the end of its output.
	Find(ctx context.Context, session, id string) (Status, string, error)
	// Stop asks a session's job to end, and waits a limited time until it has.
	Stop(ctx context.Context, session, id string) (Status, error)
}

// New makes the tools job_status, job_output and job_stop.
func New(d Backend) []tools.Tool {
	return []tools.Tool{
		tools.New(tools.Spec{
			Name: "job_status", Effect: tools.Pure, Permission: tools.Shell, Touches: tools.TouchesNothing(),
			Description: "Say how the jobs of this conversation stand, or one of them: the commands that exec_shell and spawn run in the background. There is no need to wait by asking again: the end of a job is told here by itself.",
		}, func(ctx context.Context, call tools.Call, args statusArgs) (any, error) {
			if args.Job != "" {
				status, _, err := d.Find(ctx, call.Session, args.Job)
				return status, err
			}
			all, err := d.List(ctx, call.Session)
			return map[string][]Status{"jobs": all}, err
		}),
		tools.New(tools.Spec{
			Name: "job_output", Effect: tools.Pure, Permission: tools.Shell,
			Touches:     tools.TouchesAlways(tools.Touch{Reads: tools.AnyFiles{}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}), // a job prints what it reads
			Description: "Show the end of what a job has printed so far, standard output and error together. Its output_file has all of it from the beginning, as far as that is kept: read_file and grep show that.",
		}, func(ctx context.Context, call tools.Call, args jobArgs) (any, error) {
			status, text, err := d.Find(ctx, call.Session, args.Job)
			if status.Foreign {
				return tools.Untrusted{Value: output{status, text}}, err
			}
			return output{status, text}, err
		}),
		tools.New(tools.Spec{
			Name: "job_stop", Effect: tools.Idempotent, Permission: tools.Shell, Timeout: 20 * time.Second, Touches: tools.TouchesNothing(),
			Description: "End a job with all that it has started.",
		}, func(ctx context.Context, call tools.Call, args jobArgs) (any, error) {
			return d.Stop(ctx, call.Session, args.Job)
		}),
	}
}

type statusArgs struct {
	Job string `json:"job_id,omitempty" jsonschema:"the job; all of this conversation if left out"`
}

type jobArgs struct {
	Job string `json:"job_id" jsonschema:"the job"`
}

type output struct {
	Status
	Output string `json:"output"`
}
