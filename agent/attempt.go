package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"parley/tools"
)

// leaveAfter is how long a pure call has to come back once its time is over.
const leaveAfter = 250 * time.Millisecond

// attempt runs a tool once under its deadline. A pure call that does not come back
// then is left to itself, and what it still brings is dropped: nothing depends on
// it. Any other is waited for, since nobody else may know what it does.
func (r *caller) attempt(ctx context.Context, tool tools.Tool, use tools.Call) (tools.Result, *tools.Error) {
	limit := deadline(tool.Spec(), use.Args)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if tools.EffectOf(tool, use) != tools.Pure {
		return r.perform(ctx, tool, use, limit)
	}
	var left atomic.Bool
	if progress := use.Progress; progress != nil {
		use.Progress = func(text string) {
			if !left.Load() {
				progress(text)
			}
		}
	}
	came := make(chan outcome, 1)
	go func() {
		result, failed := r.perform(ctx, tool, use, limit)
		came <- outcome{result: result, failed: failed}
	}()
	select {
	case o := <-came:
		return o.result, o.failed
	case <-ctx.Done():
	}
	timer := time.NewTimer(leaveAfter)
	defer timer.Stop()
	select {
	case o := <-came:
		return o.result, o.failed
	case <-timer.C:
	}
	left.Store(true)
	r.slog.Warn("a tool did not come back in time and is left to itself", slog.String("tool", use.Name), slog.String("call", use.ID))
	return tools.Result{}, tools.Errorf(tools.Timeout, "%s took longer than %s and was given up.", use.Name, limit)
}

// perform runs a tool and says what came of it.
func (r *caller) perform(ctx context.Context, tool tools.Tool, use tools.Call, limit time.Duration) (result tools.Result, failed *tools.Error) {
	defer func() {
		if p := recover(); p != nil {
			r.slog.Error("panic in a tool", slog.String("tool", use.Name), slog.String("stack", string(debug.Stack())))
			failed = tools.Errorf(tools.ExecutionFailed, "%s crashed. It may work with other arguments.", use.Name)
		}
	}()
	result, err := tool.Run(ctx, use)
	if err == nil {
		return result, nil
	}
	if known, ok := errors.AsType[*tools.Error](err); ok {
		return result, known
	}
	if errors.Is(err, context.DeadlineExceeded) {
		if tools.EffectOf(tool, use) == tools.Once {
			return result, tools.Errorf(tools.Timeout, "%s took longer than %s and was cut off. It may have had its effect: inspect before repeating it.", use.Name, limit)
		}
		return result, tools.Errorf(tools.Timeout, "%s took longer than %s.", use.Name, limit)
	}
	return result, tools.Errorf(tools.ExecutionFailed, "%v", err)
}

// deadline is how long a call may take: what it asks for as its timeout, in
// seconds and within the tool's bounds, or else the tool's default.
func deadline(s tools.Spec, args json.RawMessage) time.Duration {
	limit, most := s.Timeout, s.MaxTimeout
	if limit <= 0 {
		limit = 10 * time.Second
	}
	if most <= 0 {
		most = max(limit, time.Minute)
	}
	var asked struct {
		Timeout float64 `json:"timeout"`
	}
	if err := json.Unmarshal(args, &asked); err == nil && asked.Timeout > 0 {
		limit = time.Duration(min(asked.Timeout, most.Seconds()) * float64(time.Second))
	}
	return min(limit, most)
}
