// Package jobs runs commands in the background: they continue after the turn that starts them, until they end,
// are stopped, or this process ends.
//
// A job has an id made from its call's id, a row in the store, and a hold on the bus under the name job/ID. The
// row is written before the job is started, so an interrupted call finds the job that it started. A process
// that loses the hold ends the job. The process that gets the hold next finds a row that says "running", and
// reports the job as lost. The job's end is first written to the row, then published to the session under an id
// made from the job's, and then recorded as reported; if a process dies in between, the next holder does the
// rest.
//
// A job on a node runs there, whatever dies here: the process that has its hold waits for its end, and the process that gets
// the hold next goes on waiting.
//
// jobs.go starts jobs; run.go runs one to its end, and node.go waits for one on a node; watch.go ends the jobs of this process that others have
// stopped, and finds jobs whose process is gone; tell.go reports how a job ended; backend.go answers questions
// about jobs.
package jobs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
	"parley/tools/jobs"
	"parley/tools/nodes"
	"parley/tools/plainjson"
	"parley/tools/sandbox"
	"parley/tools/shell"
)

// A Bus carries the messages that report the ends of jobs. It also gives out the holds: a job runs only while
// its process has the job's hold on the bus.
type Bus interface {
	bus.Bus
	bus.Holder
	bus.Emitter
}

// Settings are the operator's settings for jobs.
type Settings struct {
	Limits  sessions.JobLimits
	MaxTime time.Duration // how long a job may take
	Write   bool          // whether jobs may write to all of their workspace
}

// Config holds the parts that a Runner works with.
type Config struct {
	Store    sessions.Jobs
	Bus      Bus
	Sandbox  sandbox.Sandbox // if nil, no jobs are run here
	Nodes    nodes.JobBackend
	Settings func() Settings
	// Place returns where the commands of a call run: the folder, and what the commands may read and write.
	Place func(ctx context.Context, call tools.Call) (sandbox.Place, error)
	// Create makes a file in a session's workspace, and opens it for writing.
	Create func(ctx context.Context, session, path string) (*os.File, error)
	// Networked reports whether the command of a call can reach any network.
	Networked func(call tools.Call) bool
	// Changed is called when a job may have changed files of a session.
	Changed func(call tools.Call)
	// Redact removes secrets from a text.
	Redact func(text string) string
	// Admit decides whether the person for whom a job ran may still talk to the bot.
	Admit bus.Admit
	// Ready returns why no job may be started now; "" if jobs may.
	Ready func(ctx context.Context) (why string, err error)
	// ReadyOnNodes returns why no job may be started on a node now.
	ReadyOnNodes func(ctx context.Context) (why string, err error)
	// Audit, if set, records in the audit that a job has ended.
	Audit func(ctx context.Context, r sessions.AuditRecord) error
	// Point, if set, is called at each step after which a test may kill the process.
	Point func(name string)
	Log   *slog.Logger
}

// maxAtOnce is the most jobs that one process runs at the same time.
const maxAtOnce = 50

// A Runner runs commands in the background, and reports the ends of jobs whose process has died.
type Runner struct {
	cfg           Config
	checkStopsNow chan struct{} // wakes endStopped: this process has asked a job to end
	ready         chan struct{} // closed once Run has started

	mu          sync.Mutex
	jobsContext context.Context //nolint:containedctx // of all jobs; it is Run's, which waits for them
	running     map[string]context.CancelCauseFunc
	closing     bool
	jobs        sync.WaitGroup
}

// New makes a Runner. It starts jobs only while Run is running.
func New(cfg Config) *Runner {
	if cfg.Point == nil {
		cfg.Point = func(string) {}
	}
	return &Runner{cfg: cfg, checkStopsNow: make(chan struct{}, 1), ready: make(chan struct{}), running: map[string]context.CancelCauseFunc{}}
}

// CountRunning returns the number of jobs that run in this process.
func (r *Runner) CountRunning() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.running)
}

// The reasons for ending a job before its program ends, besides its time limit and the loss of its hold.
var (
	errStopped   = errors.New("somebody stopped the job")
	errForgotten = errors.New("the job was forgotten")
	errDrained   = errors.New("the process that ran the job has ended")
)

// jobIDFor returns the id of the job that a call starts. It is the same for each attempt of the call.
func jobIDFor(call tools.Call) string {
	sum := sha256.Sum256([]byte(call.Session + "\x00" + call.Key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLength])
}

const idLength = 10

// startedJSON is the result of a call that started a job.
type startedJSON struct {
	Node    string `json:"node,omitempty"` // on which it runs
	ID      string `json:"job_id"`
	State   string `json:"state"`
	Folder  string `json:"folder"`
	File    string `json:"output_file"`
	Until   string `json:"until"` // when the job is ended at the latest
	Message string `json:"message"`
}

func startedResult(j sessions.Job) startedJSON {
	return startedJSON{routeOf(j).Node, j.ID, j.State, jobs.Folder(j.ID), jobs.File(j.ID), j.Deadline.UTC().Format(time.RFC3339),
		textContinues}
}

// Start implements shell.Background: it starts a job for a call, or returns the job that an earlier attempt
// started.
func (r *Runner) Start(ctx context.Context, call tools.Call, o shell.Order) (any, error) {
	if r.cfg.Sandbox == nil {
		return nil, tools.Errorf(tools.ExecutionFailed, "nothing can be run in the background here")
	}
	return r.start(ctx, call, order{Order: o}, r.cfg.Ready, func() (runFunc, error) {
		place, err := r.cfg.Place(ctx, call)
		if err != nil {
			return nil, err
		}
		return func(ctx, _ context.Context, j sessions.Job, set Settings) {
			c := place.Command(append([]string{"sh", "-c", `exec "$0" "$@" 2>&1`}, o.Args...)...) // both streams as one, in order
			c.WritableDir, c.WritesAll = jobs.Folder(j.ID), set.Write
			r.run(ctx, j, call, c)
		}, nil
	})
}

// An order asks for a job.
type order struct {
	shell.Order
	node string // on which the job is to run; "" means here
}

// A runFunc runs a job to its end. held is the context of the job's hold; ctx also ends when the job has to end.
type runFunc func(ctx, held context.Context, j sessions.Job, set Settings)

// start starts a job for a call, or returns the job that an earlier attempt started. prepare returns the function that
// runs the job, or the reason why it can't run.
func (r *Runner) start(ctx context.Context, call tools.Call, o order, ready func(context.Context) (string, error), prepare func() (runFunc, error)) (any, error) {
	if call.Parent != "" { // nobody would get the job's report
		return nil, tools.Errorf(tools.PermissionDenied, "a sub-agent can't run anything in the background: leave background out")
	}
	if result, known, err := r.Started(ctx, call); known || err != nil {
		return result, err
	}
	if why, err := ready(ctx); err != nil || why != "" {
		return nil, errors.Join(err, tools.Errorf(tools.ExecutionFailed, "nothing can be run in the background now: %s", cmp.Or(why, "it is not known which processes serve")))
	}
	set := r.cfg.Settings()
	if o.Timeout > set.MaxTime {
		return nil, tools.Errorf(tools.InvalidArgs, "a job may take %s at most: ask for less, or leave timeout out", set.MaxTime)
	}
	run, err := prepare()
	if err != nil {
		return nil, err
	}
	j, err := r.newJob(call, o, set)
	if err != nil {
		return nil, err
	}
	return r.launch(ctx, j, set, run)
}

// launch records a job, and has it run in this process.
func (r *Runner) launch(ctx context.Context, j sessions.Job, set Settings, run runFunc) (any, error) {
	base, err := r.joinRun(ctx)
	if err != nil {
		return nil, err
	}
	began := false
	defer func() {
		if !began {
			r.jobs.Done()
		}
	}()
	held, release, err := r.hold(ctx, base, j.ID)
	if err != nil {
		return nil, fmt.Errorf("the job could not be started: %w", err)
	}
	r.cfg.Point("job:held")
	if err := r.begin(ctx, j, set); err != nil {
		release()
		if errors.Is(err, sessions.ErrJobKnown) {
			known, err := r.cfg.Store.Job(ctx, j.ID)
			return startedResult(known), err
		}
		return nil, err
	}
	r.cfg.Point("job:begun")
	r.tellWatchers(j)
	began = true
	ctx = r.register(held, j.ID)
	go func() {
		defer r.jobs.Done()
		defer release()
		defer r.deregister(j.ID)
		run(ctx, held, j, set)
	}()
	return startedResult(j), nil
}

// newJob returns the record of the job that a call asks for.
func (r *Runner) newJob(call tools.Call, o order, set Settings) (sessions.Job, error) {
	at, err := bus.ParseAddress(call.Address)
	if err != nil {
		return sessions.Job{}, tools.Errorf(tools.ExecutionFailed, "nothing can be run in the background from here, because its end could not be told: %v", err)
	}
	where := route{At: at, Name: call.PersonName, Offline: !r.cfg.Networked(call)}
	if o.node != "" {
		where.nodeRoute = nodeRoute{Node: o.node, Ordered: o.Line, Approved: call.Approved, WritesAll: set.Write}
	}
	to, err := plainjson.Marshal(where)
	if err != nil { // texts and a boolean always marshal
		panic(err)
	}
	now := time.Now()
	return sessions.Job{
		ID: jobIDFor(call), Session: call.Session, Person: call.Person, Agent: call.Agent, Turn: call.Turn, Call: call.ID, Tool: call.Name,
		Route: to, Command: tools.Clip(r.cfg.Redact(o.Line), maxCommand), Untrusted: call.Untrusted,
		Started: now, Deadline: now.Add(cmp.Or(o.Timeout, set.MaxTime)), State: sessions.JobRunning,
	}, nil
}

// maxCommand is how many bytes of a job's command line are kept in its record.
const maxCommand = 1000

// joinRun waits until Run has started, adds a job to those that Run waits for when it ends, and returns the context
// of all jobs. It returns an error for the model if this process is shutting down, or has maxAtOnce jobs.
func (r *Runner) joinRun(ctx context.Context) (context.Context, error) {
	select {
	case <-r.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closing:
		return nil, tools.Errorf(tools.ExecutionFailed, "this process is shutting down and starts no jobs: try again")
	case len(r.running) >= maxAtOnce:
		return nil, tools.Errorf(tools.ExecutionFailed, "%d jobs run in this process, which is the most that may: try again later", maxAtOnce)
	}
	r.jobs.Add(1)
	return r.jobsContext, nil
}

// hold acquires a job's hold, without which the job must not run. It waits for the hold until the call's ctx
// ends; the hold itself may last until base ends. The returned context ends when the hold is lost.
func (r *Runner) hold(ctx, base context.Context, id string) (context.Context, func(), error) {
	waiting, cancel := context.WithCancelCause(base)
	given := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	held, release, err := r.cfg.Bus.Hold(waiting, holdName(id))
	if err != nil {
		given()
		cancel(nil)
		return nil, nil, err
	}
	if !given() { // the call has ended in the meantime
		release()
		cancel(nil)
		return nil, nil, context.Cause(ctx)
	}
	return held, func() { release(); cancel(nil) }, nil
}

func holdName(id string) string { return "job/" + id }

// begin writes the record of a job that is about to start. If the call is over by then, it returns an error and
// the job is not started, because whoever ended the turn has already stopped the turn's jobs, and would miss
// this one.
func (r *Runner) begin(ctx context.Context, j sessions.Job, set Settings) error {
	err := r.cfg.Store.BeginJob(ctx, j, set.Limits)
	limit, full := errors.AsType[*sessions.JobLimitError](err)
	switch {
	case full:
		return tools.Errorf(tools.ExecutionFailed, "%v: wait for one to end, or end one with job_stop", limit)
	case errors.Is(err, sessions.ErrJobKnown):
		return err
	case errors.Is(err, sessions.ErrNotFound):
		return tools.Errorf(tools.ExecutionFailed, "this conversation was forgotten meanwhile, so nothing was started")
	case err != nil:
		return fmt.Errorf("the job could not be recorded, so it was not started: %w", err)
	case ctx.Err() == nil:
		return nil
	}
	j.State, j.Detail, j.Ended, j.Told = sessions.JobStopped, "the turn ended before the job was started", time.Now(), true
	_, err = r.cfg.Store.EndJob(context.WithoutCancel(ctx), j)
	return errors.Join(context.Cause(ctx), err)
}

// Started implements shell.Background: it returns the job that an earlier attempt of a call started; false if
// there is none.
func (r *Runner) Started(ctx context.Context, call tools.Call) (any, bool, error) {
	j, err := r.cfg.Store.Job(ctx, jobIDFor(call))
	if errors.Is(err, sessions.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return startedResult(j), true, nil
}
