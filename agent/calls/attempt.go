package calls

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"parley/tools"
)

// lateResultGrace is how long after its deadline a pure call may still return a result that counts.
const lateResultGrace = 250 * time.Millisecond

// An outcome is a call's result or its failure. With a failure, the result only says whether strangers may have
// written parts of the failure.
type outcome struct {
	result tools.Result
	failed *tools.Error
	// postponed is set, together with failed, if the call has to wait for a device.
	postponed *tools.Postponed
}

// failedWith returns the outcome of a call that failed with this code and text.
func failedWith(code tools.Code, format string, args ...any) outcome {
	return outcome{failed: tools.Errorf(code, format, args...)}
}

// runOnce runs a tool once, within its deadline. If a pure call doesn't return in time, runOnce stops waiting
// for it and drops its result, because nothing depends on it. It waits for any other call, because no other
// process can find out what the call does. The result beside a failure is marked as untrusted if the failure
// may quote strangers.
func runOnce(ctx context.Context, log *slog.Logger, tool tools.Tool, call tools.Call) outcome {
	limit := tool.Spec().TimeoutFor(call.Args)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if tools.EffectOf(tool, call) != tools.Pure {
		return perform(ctx, log, tool, call, limit)
	}
	var left atomic.Bool
	if progress := call.Progress; progress != nil {
		call.Progress = func(text string) {
			if !left.Load() {
				progress(text)
			}
		}
	}
	came := make(chan outcome, 1)
	go func() {
		came <- perform(ctx, log, tool, call, limit)
	}()
	select {
	case out := <-came:
		return out
	case <-ctx.Done():
	}
	timer := time.NewTimer(lateResultGrace)
	defer timer.Stop()
	select {
	case out := <-came:
		return out
	case <-timer.C:
	}
	left.Store(true)
	log.Warn("a tool did not come back in time and is left to itself", slog.String("tool", call.Name), slog.String("call", call.ID))
	return failedWith(tools.Timeout, "%s took longer than %s and was given up.", call.Name, limit)
}

// perform runs a tool without a deadline of its own, and turns a panic or an error into
// a failure.
func perform(ctx context.Context, log *slog.Logger, tool tools.Tool, call tools.Call, limit time.Duration) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a tool", slog.String("tool", call.Name), slog.String("stack", string(debug.Stack())))
			out = failedWith(tools.ExecutionFailed, "%s crashed. It may work with other arguments.", call.Name)
		}
	}()
	result, err := tool.Run(ctx, call)
	if err == nil {
		return outcome{result: result}
	}
	defer func() { out.result = tools.Result{Untrusted: result.Untrusted} }()
	if known, ok := errors.AsType[*tools.Error](err); ok {
		later, _ := errors.AsType[*tools.Postponed](err)
		return outcome{failed: known, postponed: later}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		if tools.EffectOf(tool, call) == tools.Once {
			return failedWith(tools.Timeout, "%s took longer than %s and was cut off. It may have had its effect: inspect before repeating it.", call.Name, limit)
		}
		return failedWith(tools.Timeout, "%s took longer than %s.", call.Name, limit)
	}
	return failedWith(tools.ExecutionFailed, "%v", err)
}
