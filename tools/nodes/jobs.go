package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/plainjson"
)

// Jobs is the capability of a node that can run commands in the background. A node of an older release doesn't have it.
const Jobs = "jobs"

// JobTool is the tool by which the server has such a node run a job. No node offers it, and no offered tool can have
// this name, so an older node refuses it. The node's rules check the command as a call of Shell instead.
const JobTool = Shell + "/job"

// Shell is the name of the tool that runs commands.
const Shell = "exec_shell"

// JobArgs are the arguments of JobTool.
type JobArgs struct {
	ID      string `json:"job"` // names the folder in which the job writes
	Command string `json:"command"`
	// WritesAll says that the job may write to all of the node's folder.
	WritesAll bool `json:"writes_all,omitempty"`
}

// A JobReport is a job's output so far: its last part, and how much there is in all.
type JobReport struct {
	Output  string `json:"output"`
	Printed int64  `json:"printed"`
}

// A JobEnd is the result of JobTool: how the job's command has ended.
type JobEnd struct {
	JobReport
	ExitCode int    `json:"exit_code"`
	Killed   string `json:"killed,omitempty"` // why the command was ended (sandbox.Reason); "" if it ended by itself
}

// MaxReport is how many bytes a report of a running call may have.
const MaxReport = 2000

// maxEscape is how many bytes JSON needs at most for one byte of a text.
const maxEscape = 6

// Text returns the report as JSON of at most MaxReport bytes. It has less of the output if need be.
func (r JobReport) Text() string {
	r.Output = strings.ToValidUTF8(r.Output[max(0, len(r.Output)-MaxReport):], "")
	for {
		raw, err := plainjson.Marshal(r)
		if err != nil { // a text and a number always marshal
			panic(err)
		}
		if len(raw) <= MaxReport {
			return string(raw)
		}
		cut := min(len(r.Output), max(1, (len(raw)-MaxReport)/maxEscape))
		r.Output = strings.ToValidUTF8(r.Output[cut:], "")
	}
}

// ReadJobReport reads what Text has written; false if it is something else.
func ReadJobReport(text string) (r JobReport, ok bool) {
	return r, json.Unmarshal([]byte(text), &r) == nil && r.Printed >= 0
}

// A Job is a command that a node runs, and that continues after the call that starts it.
type Job struct {
	JobArgs
	Node    string
	Started time.Time
	Limit   time.Duration // how long the command may run
	// Session, Person, Agent and Turn are those of the call that starts the job. Approved says that a person has
	// approved it.
	Session, Person, Agent, Turn string
	Approved                     bool
}

// ErrJobLost is returned if a job's node was removed, or hasn't reported the job's end for too long.
var ErrJobLost = errors.New("it is not known how the job has ended")

// A JobBackend runs jobs on nodes. Its errors are for the model.
type JobBackend interface {
	// CheckJob returns why no job of a call can be started on a node now; nil if one can.
	CheckJob(ctx context.Context, node string, call tools.Call) error
	// RunJob gives a job to its node unless that was done before, and waits until it has ended, even while the node is
	// away. The outcome's content is a JobEnd. After stop is closed, the node is told to end the job, and the outcome
	// says so. If ctx ends, the job continues, the next call of RunJob waits for it, and the error is ctx's. Any other
	// error except ErrJobLost means that there is no such job.
	RunJob(ctx context.Context, j Job, stop <-chan struct{}, report func(JobReport)) (Outcome, error)
	// DropJob has the node end a job whose conversation was erased: at once if it is here, or when it is back.
	DropJob(j Job)
	// TrustsJobs reports whether what jobs print on a node is trusted.
	TrustsJobs(ctx context.Context, node string) bool
}

// A Starter starts the command of a call as a job on a node. Its result and its error are for the model.
type Starter func(ctx context.Context, node string, call tools.Call, command string, limit time.Duration) (any, error)
