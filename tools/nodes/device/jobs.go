package device

import (
	"context"
	"encoding/json"
	"time"

	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

const (
	maxJobs    = 32                 // that run at once
	maxJobTime = 7 * 24 * time.Hour // whatever the server says
)

// isJob reports whether a call is a job, which runs in addition to all other calls and for as long as it takes.
func (r *runner) isJob(f wire.Frame) bool { return f.Tool == nodes.JobTool && r.node.Job != nil }

// jobLimit returns how long a job may run.
func jobLimit(milliseconds int64) time.Duration {
	if milliseconds <= 0 || milliseconds > maxJobTime.Milliseconds() {
		return maxJobTime
	}
	return time.Duration(milliseconds) * time.Millisecond
}

// toolFor returns the tool of a call, the arguments for it, and a note for the model about them.
func (r *runner) toolFor(call tools.Call) (tool tools.Tool, args json.RawMessage, note string, wrong *tools.Error) {
	if call.Name == nodes.JobTool && r.node.Job != nil {
		return r.node.Job, call.Args, "", nil
	}
	if args, note, wrong = r.node.Tools.Check(call); wrong != nil {
		return nil, nil, "", wrong
	}
	tool, _ = r.node.Tools.Lookup(call.Name) // Check has found it
	return tool, args, note, nil
}

// asCommand returns a call in the form that rules check: for a job, the call of its command.
func asCommand(call tools.Call) tools.Call {
	var args nodes.JobArgs
	if call.Name != nodes.JobTool || json.Unmarshal(call.Args, &args) != nil {
		return call // the tool refuses such arguments
	}
	raw, err := plainjson.Marshal(map[string]string{"command": args.Command})
	if err != nil { // texts always marshal
		panic(err)
	}
	touch := call.Touch()
	call.Name, call.Args, call.Touches = nodes.Shell, raw, tools.TouchesAlways(touch)
	return call
}

// startJob runs a job in addition to all other calls; false if there are too many.
func (r *runner) startJob(ctx context.Context, f wire.Frame) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.jobs >= maxJobs {
		return false
	}
	running, cancel := context.WithCancelCause(ctx)
	r.pending[f.ID] = &pending{frame: f, cancel: cancel}
	r.jobs++
	go func() { // wait waits for it
		defer r.noteEnd()
		r.run(running, f)
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pending, f.ID)
		r.jobs--
	}()
	return true
}

// report sends a call's progress report to the server, and remembers the last report of a job.
func (r *runner) report(id, text string) {
	r.mu.Lock()
	if p := r.pending[id]; p != nil && r.isJob(p.frame) {
		p.report = text
	}
	r.mu.Unlock()
	r.outbox.report(id, text)
}

// reportJobs is called when a link begins: it tells the server which jobs run here. The server ends those that it
// doesn't know, because their conversation was erased.
func (r *runner) reportJobs() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.pending {
		if r.isJob(p.frame) {
			r.outbox.report(id, p.report)
		}
	}
}

// endJobs ends all jobs.
func (r *runner) endJobs() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pending {
		if r.isJob(p.frame) {
			p.cancel(errCancelled)
		}
	}
}
