package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/wire"
)

const (
	maxRunning      = 8
	maxQueued       = 256
	maxWaiting      = 16 << 20 // bytes of the arguments of all calls that wait
	maxID           = 200      // bytes of a call's id; longer ones are ignored
	maxReport       = nodes.MaxReport
	maxErrorMessage = 4000 // bytes of an error
	// maxContent is how long a result may be, in bytes: the outcome has other fields, too.
	maxContent = nodes.MaxResult - 8<<10
)

// errCancelled is the cause of the end of a call's context if the server has canceled the call. Tools only see that
// their context has ended.
var errCancelled = fmt.Errorf("the call was cancelled: %w", context.Canceled)

// A pending is a call that waits or runs.
type pending struct {
	frame  wire.Frame
	cancel context.CancelCauseFunc // nil as long as the call waits
	report string                  // the last one of a job
}

// A runner runs calls. Running and waiting calls are in pending; the journal has the others that it remembers.
type runner struct {
	node    Node
	journal *journal
	outbox  *outbox

	mu      sync.Mutex
	pending map[string]*pending
	waiting []*pending // in order
	workers int
	jobs    int           // that run
	ended   chan struct{} // has an element if a worker has ended
}

func newRunner(n Node, j *journal) *runner {
	return &runner{node: n, journal: j, outbox: newOutbox(j, n.Log), pending: map[string]*pending{}, ended: make(chan struct{}, 1)}
}

// handle does what a frame asks for. Calls run until ctx ends, which outlives the link.
func (r *runner) handle(ctx context.Context, f wire.Frame) {
	if f.ID == "" || len(f.ID) > maxID {
		return
	}
	switch f.Type {
	case wire.Call:
		r.call(ctx, f)
	case wire.Cancel:
		r.cancel(f.ID)
	case wire.Ack:
		if err := r.journal.acknowledge(f.ID); err != nil {
			r.node.Log.Warn("the journal cannot be written", slog.Any("error", err))
		}
		r.node.Point("device:acked")
	}
}

// call runs a call, or sends its outcome again if it ran before.
func (r *runner) call(ctx context.Context, f wire.Frame) {
	isPending := r.isPending(f.ID)
	stage, pure := r.journal.stageOf(f.ID) // in this order: a call that is neither pending nor ended was cut off
	if isPending && (stage == stageUnknown || stage == stageStarted) {
		return // its result will come
	}
	switch stage {
	case stageEnded:
		r.outbox.result(f.ID)
		return
	case stageStarted:
		if !pure || !r.isPure(f) {
			r.finish(f.ID, nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, textCutOff, f.Tool)})
			return
		}
	case stageAcknowledged:
		r.outbox.sendUnrecorded(f.ID, nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, textLost, f.Tool)})
		return
	case stageUnknown:
	}
	start := r.enqueue
	if r.isJob(f) {
		start = r.startJob
	}
	if !start(ctx, f) {
		r.finish(f.ID, notRun(tools.ExecutionFailed, textTooMany))
	}
}

func notRun(code tools.Code, format string, args ...any) nodes.Outcome {
	return nodes.Outcome{Status: nodes.NotRun, Error: tools.Errorf(code, format, args...)}
}

// isPure reports whether a call changes nothing.
func (r *runner) isPure(f wire.Frame) bool {
	tool, ok := r.node.Tools.Lookup(f.Tool)
	return ok && tools.EffectOf(tool, callOf(f)) == tools.Pure
}

// callOf returns the call in a frame.
func callOf(f wire.Frame) tools.Call {
	return tools.Call{ID: f.ID, Key: f.ID, Name: f.Tool, Args: f.Args, Attempt: 1, Approved: f.Approved}
}

func (r *runner) isPending(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending[id] != nil
}

// enqueue has a worker run a call; false if too many wait.
func (r *runner) enqueue(ctx context.Context, f wire.Frame) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := len(f.Args)
	for _, p := range r.waiting {
		size += len(p.frame.Args)
	}
	if len(r.waiting) >= maxQueued || size > maxWaiting {
		return false
	}
	p := &pending{frame: f}
	r.pending[f.ID] = p
	r.waiting = append(r.waiting, p)
	if r.workers < maxRunning {
		r.workers++
		go r.work(ctx) // wait waits for it
	}
	return true
}

// work runs calls until none waits, or ctx ends.
func (r *runner) work(ctx context.Context) {
	defer r.noteEnd()
	for {
		f, running, done := r.takeNext(ctx)
		if done == nil {
			return
		}
		r.run(running, f)
		done()
	}
}

// noteEnd tells wait that a worker, or a job, has ended.
func (r *runner) noteEnd() {
	select {
	case r.ended <- struct{}{}:
	default:
	}
}

// takeNext takes the next waiting call, with a context that ends when the call has to end. The caller calls done after
// the call. If no call waits, done is nil, and this worker has ended.
func (r *runner) takeNext(ctx context.Context) (f wire.Frame, running context.Context, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 || ctx.Err() != nil {
		r.workers--
		return f, nil, nil
	}
	p := r.waiting[0]
	r.waiting = slices.Delete(r.waiting, 0, 1)
	running, cancel := context.WithCancelCause(ctx)
	p.cancel = cancel
	return p.frame, running, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.pending, p.frame.ID)
	}
}

// cancel ends a call. A call that never began here is recorded as canceled, so that it is not run if it arrives late.
func (r *runner) cancel(id string) {
	isRunning := r.cancelPending(id)
	switch stage, pure := r.journal.stageOf(id); {
	case isRunning && stage != stageEnded: // its result will come
	case stage == stageUnknown, stage == stageStarted && pure:
		r.finish(id, notRun(tools.Cancelled, textNotBegun))
	case stage == stageStarted:
		r.finish(id, nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, textCutOff, "the call")})
	case stage == stageEnded:
		r.outbox.result(id)
	}
}

// cancelPending ends a running call, or takes a waiting call out of the queue. It returns true if the call will report
// its outcome itself.
func (r *runner) cancelPending(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[id]
	switch {
	case p == nil:
		return false
	case p.cancel != nil:
		p.cancel(errCancelled)
		return true
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(one *pending) bool { return one == p })
	delete(r.pending, id)
	return false
}

// finish records an outcome, and sends it.
func (r *runner) finish(id string, out nodes.Outcome) {
	if err := r.journal.end(id, out); err != nil {
		// The outcome is sent anyway. If this process dies before the server has it, it counts as unknown.
		r.node.Log.Error("an outcome cannot be recorded", slog.String("call", id), slog.Any("error", err))
	}
	r.node.Point("device:ended")
	r.outbox.result(id)
}

// run runs a call, and records its outcome. If the node is stopped before the call has begun, or during a pure call,
// nothing is recorded, and the call runs when it comes again.
func (r *runner) run(ctx context.Context, f wire.Frame) {
	began := time.Now()
	out := r.attempt(ctx, f)
	out.Milliseconds = time.Since(began).Milliseconds()
	if isStopped(ctx) && (out.Status == nodes.NotRun || out.Status != nodes.Done && r.isPure(f)) {
		r.outbox.dropReport(f.ID)
		return
	}
	if out.Error != nil {
		out.Error = tools.Errorf(out.Error.Code, "%s", tools.Clip(out.Error.Message, maxErrorMessage))
	}
	r.finish(f.ID, out)
	r.node.Log.Info("a call has ended", slog.String("call", f.ID), slog.String("tool", f.Tool), slog.String("status", string(out.Status)), slog.Duration("took", time.Since(began)))
}

// isStopped reports whether a call's context has ended because the node is stopped.
func isStopped(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errCancelled)
}

// attempt decides about a call and runs it. Before the call begins, that is recorded in the journal.
func (r *runner) attempt(ctx context.Context, f wire.Frame) nodes.Outcome {
	call := callOf(f)
	tool, args, note, wrong := r.toolFor(call)
	if wrong != nil {
		return notRun(wrong.Code, "%s", wrong.Message)
	}
	call.Args, call.Touches = args, tool.Spec().Touches
	call.Progress = func(text string) {
		if ctx.Err() == nil {
			r.report(f.ID, tools.Clip(text, maxReport))
		}
	}
	if denied := r.decide(ctx, asCommand(call)); denied != nil {
		r.node.Log.Info("a call is denied", slog.String("call", f.ID), slog.String("tool", f.Tool))
		return nodes.Outcome{Status: nodes.NotRun, Error: denied}
	}
	if ctx.Err() != nil {
		return notRun(tools.Cancelled, textNotBegun)
	}
	pure := tools.EffectOf(tool, call) == tools.Pure
	if err := r.journal.start(f.ID, pure); err != nil {
		r.node.Log.Error("the journal cannot be written, so no call is run", slog.Any("error", err))
		return notRun(tools.ExecutionFailed, textNoRecord)
	}
	r.node.Point("device:started")
	limit := limitOf(tool.Spec(), args, f.Timeout)
	if r.isJob(f) {
		limit = jobLimit(f.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, err := r.perform(ctx, tool, call)
	r.node.Point("device:ran")
	if err != nil {
		return nodes.Outcome{Status: nodes.Failed, Error: failure(ctx, err, f.Tool, limit, pure)}
	}
	content, _ := tools.Truncate(tools.Annotate(tools.AsJSON(result.Content), note), maxContent, "")
	return nodes.Outcome{Status: nodes.Done, Content: content}
}

// decide returns why a call may not run; nil if it may.
func (r *runner) decide(ctx context.Context, call tools.Call) *tools.Error {
	if r.node.Decide != nil {
		switch v := r.node.Decide(ctx, call); v.Decision {
		case tools.Deny:
			return tools.Errorf(tools.PermissionDenied, "%s", v.Reason)
		case tools.Ask:
			return tools.Errorf(tools.PermissionDenied, textNoOneToAsk, v.Reason)
		}
	}
	if r.node.NeedsApproval == nil || call.Approved { // an older server never says that a person has approved
		return nil
	}
	if v := r.node.NeedsApproval(ctx, call); v.Decision == tools.Ask || v.Decision == tools.Deny {
		return tools.Errorf(tools.PermissionDenied, textNotApproved, v.Reason)
	}
	return nil
}

// perform runs a tool, and turns a panic into an error, so that other calls continue.
func (r *runner) perform(ctx context.Context, tool tools.Tool, call tools.Call) (result tools.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.node.Log.Error("panic in a tool", slog.String("tool", call.Name), slog.String("stack", string(debug.Stack())))
			err = tools.Errorf(tools.ExecutionFailed, textCrashed, call.Name)
		}
	}()
	return tool.Run(ctx, call) //nolint:wrapcheck // it is for the model
}

// failure returns the error for the model about a call that had begun.
func failure(ctx context.Context, err error, tool string, limit time.Duration, pure bool) *tools.Error {
	if known, ok := errors.AsType[*tools.Error](err); ok {
		return known
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCancelled):
		return tools.Errorf(tools.Cancelled, textCancelled, tool)
	case errors.Is(cause, context.DeadlineExceeded) && pure:
		return tools.Errorf(tools.Timeout, textTimeoutPure, tool, limit)
	case errors.Is(cause, context.DeadlineExceeded):
		return tools.Errorf(tools.Timeout, textTimeout, tool, limit)
	case cause != nil:
		return tools.Errorf(tools.Cancelled, textStopped, tool)
	}
	return tools.Errorf(tools.ExecutionFailed, "%v", err)
}

// wait waits until all workers have ended, which they do soon after the contexts of their calls; false if they don't in
// time.
func (r *runner) wait(most time.Duration) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		r.mu.Lock()
		left := r.workers + r.jobs
		r.mu.Unlock()
		if left == 0 {
			return true
		}
		select {
		case <-r.ended:
		case <-late.C:
			return false
		}
	}
}
