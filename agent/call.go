package agent

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// codeRepeated marks the result of a call that was refused because it had been
// made too often.
const codeRepeated = string(tools.PermissionDenied)

func newCallID() string { return "c" + strings.ToLower(rand.Text()[:15]) }

// safeArgs keeps what the model wrote as JSON, whatever it is.
func safeArgs(args json.RawMessage) json.RawMessage {
	if json.Valid(args) {
		return args
	}
	raw, err := json.Marshal(string(args))
	if err != nil { // a string always marshals
		panic(err)
	}
	return raw
}

// runCalls runs the calls of a step that have no result: side by side where all
// of them are pure, else in order, and then only as long as their sender says
// nothing new.
func (v *visit) runCalls(ctx context.Context, t *turn, calls []*call) error {
	for _, c := range calls {
		if v.effect(t, c) != tools.Pure || len(calls) == 1 {
			return v.inOrder(ctx, t, calls)
		}
	}
	began := time.Now()
	free := make(chan struct{}, max(1, v.agent.MaxParallelTools))
	errs := make([]error, len(calls))
	took := make([]time.Duration, len(calls))
	var running sync.WaitGroup
	for i, c := range calls {
		running.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			start := time.Now()
			errs[i] = v.call(ctx, t, c)
			took[i] = time.Since(start)
		})
	}
	running.Wait()
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	v.w.cfg.Observer.Batch(min(len(calls), cap(free)), max(0, sum-time.Since(began)))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return v.warn(ctx, t, calls)
}

func (v *visit) inOrder(ctx context.Context, t *turn, calls []*call) error {
	for i, c := range calls {
		if i > 0 && c.attempts == 0 && v.agent.Steer && len(v.in.steering(t)) > 0 {
			return v.skip(ctx, t, calls[i:])
		}
		if err := v.call(ctx, t, c); err != nil {
			return err
		}
	}
	return v.warn(ctx, t, calls)
}

// skip gives calls that have not begun a result, because there is news that the
// model is to see first.
func (v *visit) skip(ctx context.Context, t *turn, calls []*call) error {
	var entries []sessions.Entry
	for _, c := range calls {
		e := tools.Errorf(tools.Cancelled, "Not run: a new message came first. Call again if it is still wanted.")
		entries = append(entries, resultEntry(t, c, e.Result().Content, e))
	}
	return v.j.append(ctx, entries...)
}

// warn tells the model of calls that lead nowhere.
func (v *visit) warn(ctx context.Context, t *turn, calls []*call) error {
	t, err := fold(t.id, v.j.all())
	if err != nil {
		return err
	}
	for _, c := range calls {
		if t.repeats(c) == repeatWarn {
			text := fmt.Sprintf("You have called %s %d times with the same arguments and the same result. Try something else.", c.use.Name, repeatWarn)
			return v.j.append(ctx, entry(t.id, sessions.KindNotice, sessions.Notice{Code: noticeRepeated, Text: text}))
		}
	}
	return nil
}

func (v *visit) effect(t *turn, c *call) tools.Effect {
	tool, ok := v.agent.Tools.Lookup(c.use.Name)
	if !ok {
		return tools.Pure // it only gets an error
	}
	use := v.toolCall(t, c)
	if args, _, bad := v.agent.Tools.Check(use); bad == nil {
		use.Args = args
	}
	return tools.EffectOf(tool, use)
}

func (v *visit) toolCall(t *turn, c *call) tools.Call {
	return tools.Call{
		ID: c.id, Key: c.key(t.id), Name: c.use.Name, Args: c.use.Args, Attempt: c.attempts + 1,
		Turn: t.id, Session: v.lease.Claim().Key, Agent: v.agent.Name,
		Person: t.person, Called: t.called, Owner: t.route.Owner, At: t.route.At.String(),
		Progress: func(text string) {
			v.emit(t, bus.Event{Type: bus.ToolProgress, Tool: c.use.Name, Call: c.id, Delta: text})
		},
	}
}

// call is what every tool call passes, in this order; each step is here and
// nowhere else. Only errors that end the visit or the turn are returned: a call
// that fails is a result.
func (v *visit) call(ctx context.Context, t *turn, c *call) error {
	began := time.Now()
	use := v.toolCall(t, c)
	known, doubt, err := v.settled(ctx, c, use) // cut off before: by effect, whatever is allowed now
	if err != nil {
		return err
	}
	var tool tools.Tool
	if known == nil {
		known = &outcome{}
		tool, known.note, known.failed = v.admit(ctx, t, c, &use) // resolve, repair and validate, guard
		if known.failed != nil && doubt {
			known.failed = unknownOutcome(use.Name, "It cannot be run again: "+known.failed.Message)
		}
	}
	v.emit(t, bus.Event{Type: bus.ToolStart, Tool: use.Name, Call: c.id, Delta: brief(use.Args)})

	if tool != nil {
		if use.Held, err = v.started(ctx, t, c, use); err != nil { // C4, then Held
			return err
		}
		known.result, known.failed = v.attempt(ctx, tool, use)
		use.Held = time.Time{}
		if ctx.Err() != nil {
			return context.Cause(ctx) // no result: whoever goes on judges it by its effect
		}
		v.w.cfg.Point("c5:before")
	}
	content := v.shape(ctx, use, known) // redact, truncate
	if err := v.j.append(ctx, resultEntry(t, c, content, known.failed)); err != nil {
		return err
	}
	v.w.cfg.Point("c5")
	v.told(t, c, known.failed, time.Since(began)) // audit, metrics, event
	return nil
}

// admit resolves the tool, mends and checks the arguments and asks the guard.
func (v *visit) admit(ctx context.Context, t *turn, c *call, use *tools.Call) (tools.Tool, string, *tools.Error) {
	tool, ok := v.agent.Tools.Lookup(use.Name)
	if !ok && v.agent.Known != nil {
		if other, known := v.agent.Known.Lookup(use.Name); known {
			return nil, "", tools.Errorf(tools.PermissionDenied, "%s needs the capability %q, which this agent does not have: the operator grants it in [agents.%s] capabilities.",
				use.Name, other.Spec().Permission, v.agent.Name)
		}
	}
	args, note, failed := v.agent.Tools.Check(*use)
	if failed != nil {
		return nil, "", failed
	}
	use.Args = args
	if c.attempts == 0 && t.repeats(c) >= repeatRefuse-1 {
		return nil, "", tools.Errorf(tools.Code(codeRepeated), "Refused: the same call has had the same result %d times in this turn. Try something else or conclude.", repeatRefuse-1)
	}
	if v.agent.Guard != nil {
		if failed := v.agent.Guard(ctx, *use); failed != nil {
			return nil, "", failed
		}
	}
	return tool, note, nil
}

// outcome is what came of a call.
type outcome struct {
	result tools.Result
	note   string // what was repaired in its arguments
	failed *tools.Error
}

func unknownOutcome(name, more string) *tools.Error {
	text := fmt.Sprintf("OUTCOME UNKNOWN: the process was cut off while %s ran, so it may have had its effect. Inspect before repeating it.", name)
	return tools.Errorf(tools.OutcomeUnknown, "%s", strings.TrimSpace(text+" "+more))
}

// settled finds out what became of a call that was cut off, by its effect alone:
// what the agent may do now, and which tools it has, says nothing about what has
// happened. A nil outcome means that the call is to run, for the first time or
// again; doubt says that it may have had its effect already.
func (v *visit) settled(ctx context.Context, c *call, use tools.Call) (known *outcome, doubt bool, err error) {
	if c.attempts == 0 {
		return nil, false, nil
	}
	unknown := &outcome{failed: unknownOutcome(use.Name, "")}
	tool, args, ok := v.whatever(use)
	if !ok {
		return unknown, false, nil
	}
	use.Args = args
	switch tools.EffectOf(tool, use) {
	case tools.Pure:
		return nil, false, nil
	case tools.Idempotent:
		return nil, true, nil
	case tools.Reconcilable:
		r, ok := tool.(tools.Reconciler)
		if !ok {
			return unknown, false, nil
		}
		if err := v.lease.Held(ctx); err != nil {
			return nil, false, fmt.Errorf("before reconciling: %w", err)
		}
		result, done, err := r.Reconcile(ctx, use)
		switch {
		case ctx.Err() != nil:
			return nil, false, context.Cause(ctx)
		case err != nil:
			return unknown, false, nil
		case done:
			return &outcome{result: result}, false, nil
		}
		return nil, false, nil
	}
	return unknown, false, nil
}

// whatever finds the tool of a call, be it granted or not, and the arguments that
// it would be run with.
func (v *visit) whatever(use tools.Call) (tools.Tool, json.RawMessage, bool) {
	for _, set := range []*tools.Set{v.agent.Tools, v.agent.Known} {
		if set == nil {
			continue
		}
		if tool, ok := set.Lookup(use.Name); ok {
			args, _, bad := set.Check(use)
			return tool, args, bad == nil
		}
	}
	return nil, nil, false
}

// started is C4, and then the question whether the session is still ours: what
// is not written is not done, and what is not ours is not done. It returns when
// it asked.
func (v *visit) started(ctx context.Context, t *turn, c *call, use tools.Call) (held time.Time, err error) {
	v.w.cfg.Point("c4:before")
	e := entry(t.id, sessions.KindToolStarted, sessions.ToolStarted{Attempt: use.Attempt})
	e.Call = c.id
	if err := v.j.append(ctx, e); err != nil {
		return held, err
	}
	v.w.cfg.Point("c4")
	held = time.Now()
	if err := v.lease.Held(ctx); err != nil {
		return held, fmt.Errorf("before running %s: %w", use.Name, err)
	}
	v.w.cfg.Point("c4:held")
	return held, nil
}

// maxResult is the most of a result that a model is shown, in bytes.
const maxResult = 65536

// shape makes of a result what the model sees. What is cut is kept whole.
func (v *visit) shape(ctx context.Context, use tools.Call, o *outcome) json.RawMessage {
	content := o.result.Content
	if o.failed != nil {
		content = o.failed.Result().Content
	}
	if v.agent.Redact != nil {
		content = v.agent.Redact(content)
	}
	limit := min(maxResult, v.agent.ContextTokens*bytesPerToken/4)
	if len(content) > limit {
		where := ""
		if v.agent.Keep != nil {
			path, err := v.agent.Keep(ctx, use, content)
			if err != nil {
				v.slog.Warn("keeping a long result failed", slog.String("tool", use.Name), slog.Any("error", err))
			}
			where = path
		}
		content, _ = tools.Truncate(content, limit, where)
	}
	return tools.Annotate(content, o.note)
}

func resultEntry(t *turn, c *call, content json.RawMessage, failed *tools.Error) sessions.Entry {
	r := sessions.ToolResult{Content: content}
	if failed != nil {
		r.Code = string(failed.Code)
	}
	e := entry(t.id, sessions.KindToolResult, r)
	e.Call = c.id
	return e
}

// told reports a call that has its result.
func (v *visit) told(t *turn, c *call, failed *tools.Error, d time.Duration) {
	result := "ok"
	e := bus.Event{Type: bus.ToolEnd, Tool: c.use.Name, Call: c.id}
	if failed != nil {
		result = string(failed.Code)
		e.Error = &bus.Failure{Code: result, Message: failed.Message}
	}
	name := c.use.Name
	if _, ok := v.agent.Tools.Lookup(name); !ok {
		name = "unknown"
	}
	v.w.cfg.Observer.Tool(name, result, d)
	v.slog.Info("tool call", slog.String("turn", t.id), slog.String("call", c.id), slog.String("tool", name),
		slog.String("person", t.person), slog.String("result", result), slog.Duration("took", d), slog.Int("args_bytes", len(c.use.Args)))
	v.emit(t, e)
}

// brief is a call's arguments as a line of progress shows them.
func brief(args json.RawMessage) string {
	var values map[string]any
	if json.Unmarshal(args, &values) != nil {
		return ""
	}
	for _, name := range []string{"path", "pattern", "query", "url", "command", "chat_id"} {
		if s, ok := values[name].(string); ok {
			if r := []rune(s); len(r) > 60 {
				return string(r[:60]) + "…"
			}
			return s
		}
	}
	return ""
}
