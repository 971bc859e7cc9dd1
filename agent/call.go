package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/agent/attempt"
	"parley/agent/audit"
	"parley/agent/journal"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// prepare finds the tool of a call, and repairs and validates its arguments. It also
// finds a tool that the agent does not have: the agent may have had it when the call was
// begun. A call that was begun keeps the arguments that it was begun with.
func (r *callRunner) prepare(t *turn, c *call, untrusted bool) *preparedCall {
	p := &preparedCall{call: c, effect: tools.Pure, input: tools.Call{
		ID: c.id, Key: c.key(t.id), Name: c.use.Name, Args: c.use.Args, Attempt: c.attempts + 1,
		Turn: t.id, Session: r.key(), Agent: r.agent.Name, Parent: t.parent(),
		Person: t.person, Called: t.personName, Owner: t.route.Owner, At: t.route.People().String(), Private: t.route.IsPrivate(), Scheduled: t.scheduled,
		Untrusted: untrusted,
		Seen: func(text string, brings func(string) bool) bool {
			return transcript.Holds(r.journal.Records(), t.id, c.asked, text, brings)
		},
	}}
	p.input.Progress, p.flushProgress = r.newProgress(t, c)
	set := r.tools
	p.tool, p.granted = set.Lookup(c.use.Name)
	if !p.granted && r.agent.Known != nil {
		if tool, known := r.agent.Known.Lookup(c.use.Name); known {
			p.tool, set = tool, r.agent.Known
		}
	}
	if c.started.Args != nil {
		p.input.Args, p.note = c.started.Args, c.started.Note
	}
	args, note, invalid := set.Check(p.input)
	if p.invalid = invalid; invalid == nil {
		p.input.Args = args
		p.addNote(note)
	}
	if p.tool != nil {
		p.effect = tools.EffectOf(p.tool, p.input)
	}
	return p
}

// newProgress returns functions that report to watchers how far a call is. tell holds
// back text that could be the beginning of a secret until more text comes, or until rest
// is called at the end of the call.
func (r *callRunner) newProgress(t *turn, c *call) (tell func(text string), rest func()) {
	var mu sync.Mutex
	next := r.redact.Stream()
	say := func(piece string, last bool) {
		mu.Lock()
		defer mu.Unlock()
		if text := next(piece, last); text != "" {
			r.emit(t, bus.Event{Type: bus.ToolProgress, Tool: c.use.Name, Call: c.id, Delta: text})
		}
	}
	return func(text string) { say(text, false) }, func() { say("", true) }
}

// write appends entries of a call to the log. Those of a pure one share a flush with what
// follows: after a crash it may run again, whatever the log knows of it.
func (p *preparedCall) write(ctx context.Context, j *journal.Journal, entries ...sessions.Entry) error {
	if p.effect == tools.Pure {
		return j.AppendSoon(ctx, entries...)
	}
	return j.Append(ctx, entries...)
}

// run takes a call through all its stages in order; each stage is called here and
// nowhere else. It returns an error only if that ends the run or the turn; the failure
// of a call is a result. If people have to be asked about the call, run does nothing and
// returns the ask.
func (r *callRunner) run(ctx context.Context, t *turn, p *preparedCall) (*sessions.Ask, error) {
	began := time.Now()
	out, maybeDone, err := r.reconcile(ctx, p) // the outcome of an earlier holder's attempt, regardless of what is allowed now
	if err != nil {
		return nil, err
	}
	execute := false
	ran := out != nil && out.failed == nil // an earlier holder's attempt
	if out == nil {
		failed, ask, err := r.decide(ctx, t, p, maybeDone) // granted, valid, not repeated, guard, before-hooks, approved
		if err != nil || ask != nil {
			return ask, err
		}
		out = &outcome{failed: failed}
		execute = out.failed == nil
		if out.failed != nil && maybeDone {
			out.failed = unknownOutcome(p.input.Name, "It cannot be run again: "+out.failed.Message)
		}
	}
	r.emit(t, bus.Event{Type: bus.ToolStart, Tool: p.input.Name, Call: p.id, Delta: progressLine(r.redact.JSON(p.shownArgs()))})

	if execute {
		if out, ran, err = r.execute(ctx, t, p); err != nil {
			return nil, err
		}
	}
	if ran && ctx.Err() == nil {
		out = r.review(ctx, p, out) // after-hooks
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // write no result: the next holder judges the call by its effect
	}
	if p.overtaken && p.ask.isApproved() {
		if err := r.showOvertaken(ctx, t, p.ask); err != nil {
			return nil, err
		}
	}
	if execute {
		r.point("c5:before")
	}
	r.hidePictures(ctx, p, out)
	content := r.shapeResult(ctx, p, out) // redact, truncate
	kept := content
	if out.result.Kept != nil {
		kept = tools.Annotate(r.redact.JSON(out.result.Kept), p.note)
	}
	if err := p.write(ctx, r.journal, resultEntries(t, p.call, kept, out)...); err != nil {
		return nil, err
	}
	if out.result.Kept != nil {
		r.journal.ShowResult(p.id, content)
	}
	r.point("c5")
	took := time.Since(began)
	r.auditCall(t, p, out, execute, took)
	r.report(t, p, out.failed, took) // metrics, event
	return nil, nil
}

// execute records the start of a call (C4), checks the lease and the approval, and runs
// the tool. ran reports whether the tool ran.
func (r *callRunner) execute(ctx context.Context, t *turn, p *preparedCall) (out *outcome, ran bool, err error) {
	if err := r.recordFiles(ctx, p); err != nil {
		return nil, false, err
	}
	if p.input.Held, err = r.recordStart(ctx, t, p); err != nil { // C4, then Held
		return nil, false, err
	}
	defer func() { p.input.Held = time.Time{} }()
	if failed := r.stillApproved(ctx, p); failed != nil {
		return &outcome{failed: failed}, false, nil
	}
	out = &outcome{}
	out.result, out.failed = attempt.Run(ctx, r.slog, p.tool, p.input)
	p.flushProgress()
	return out, true, nil
}

// recordFiles records the session's files before a call that may change them. That does
// not count as the call's own time. If it fails, the call runs all the same, and its
// result says that the changes cannot be undone.
func (r *callRunner) recordFiles(ctx context.Context, p *preparedCall) error {
	if p.effect == tools.Pure || r.cfg.History == nil {
		return nil
	}
	if err := r.held(ctx); err != nil { // forgotten content must not be copied again
		return fmt.Errorf("before noting the files: %w", err)
	}
	err := r.cfg.History.Begin(ctx, p.input)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.slog.Error("what a turn changes in its workspace is not kept, so that it cannot be undone", slog.String("turn", p.input.Turn), slog.Any("error", err))
		p.addNote("what this changed cannot be undone with /undo: the files could not be noted before")
	}
	return nil
}

func unknownOutcome(name, more string) *tools.Error {
	text := fmt.Sprintf("OUTCOME UNKNOWN: the process was cut off while %s ran, so it may have had its effect. Inspect before repeating it.", name)
	return tools.Errorf(tools.OutcomeUnknown, "%s", strings.TrimSpace(text+" "+more))
}

// reconcile decides what became of a call that was cut off. It goes by the call's effect
// alone, because what the agent may do now says nothing about what has happened. If out
// is nil, the call is to run, for the first time or again; maybeDone reports that it may
// have had its effect already.
func (r *callRunner) reconcile(ctx context.Context, p *preparedCall) (out *outcome, maybeDone bool, err error) {
	if p.attempts == 0 {
		return nil, false, nil
	}
	unknown := &outcome{failed: unknownOutcome(p.input.Name, "")}
	if p.tool == nil || p.invalid != nil {
		return unknown, false, nil
	}
	switch p.effect {
	case tools.Pure:
		return nil, false, nil
	case tools.Idempotent:
		return nil, true, nil
	case tools.Reconcilable:
		tool, ok := p.tool.(tools.Reconciler)
		if !ok {
			return unknown, false, nil
		}
		if err := r.held(ctx); err != nil {
			return nil, false, fmt.Errorf("before reconciling: %w", err)
		}
		result, done, err := tool.Reconcile(ctx, p.input)
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

// recordStart writes the start of a call (C4), and then checks the lease. A tool runs
// only after both: what is not in the log must not happen, and after the lease is lost
// the next holder may run the same call. It returns the time of the check.
func (r *callRunner) recordStart(ctx context.Context, t *turn, p *preparedCall) (held time.Time, err error) {
	r.point("c4:before")
	started := sessions.ToolStarted{Attempt: p.input.Attempt}
	if p.note != "" { // the arguments are not those that the model wrote
		started.Args, started.Note = p.input.Args, p.note
	}
	e := journal.NewEntry(t.id, sessions.KindToolStarted, started)
	e.Call = p.id
	if err := p.write(ctx, r.journal, e); err != nil {
		return held, err
	}
	r.point("c4")
	held = time.Now()
	if err := r.held(ctx); err != nil {
		return held, fmt.Errorf("before running %s: %w", p.input.Name, err)
	}
	r.point("c4:held")
	return held, nil
}

// hidePictures removes the pictures of a result if the log must not record them, and
// tells the model. The call is over; therefore no error here ends the run.
func (r *callRunner) hidePictures(ctx context.Context, p *preparedCall, out *outcome) {
	if len(out.result.Pictures) == 0 || r.agent.MayNote == nil {
		return
	}
	why, err := r.agent.MayNote(ctx)
	if err != nil {
		why = "it is not known whether an older release still serves"
	}
	if why != "" {
		out.result.Pictures = nil
		p.addNote("its pictures cannot be shown now: " + why)
	}
}

// shapeResult returns a result in the form that the model sees. If it is shortened, the
// whole result is kept.
func (r *callRunner) shapeResult(ctx context.Context, p *preparedCall, o *outcome) json.RawMessage {
	content := r.redact.JSON(o.content())
	limit := r.resultLimit()
	if len(content) > limit {
		where := ""
		if r.keep != nil && o.result.Kept == nil {
			use := p.input
			use.Untrusted = use.Untrusted || o.result.Untrusted
			path, err := r.keep(ctx, use, content)
			if err != nil {
				r.slog.Warn("keeping a long result failed", slog.String("tool", p.input.Name), slog.Any("error", err))
			}
			where = path
		}
		content, _ = tools.Truncate(content, limit, where)
	}
	return tools.Annotate(content, p.note)
}

// report reports to the log, metrics and watchers a call that has its result. Metrics
// get "unknown" in place of a name that is no tool's, because a model can make up any
// name.
func (r *callRunner) report(t *turn, p *preparedCall, failed *tools.Error, d time.Duration) {
	result := resultCode(failed)
	e := bus.Event{Type: bus.ToolEnd, Tool: p.use.Name, Call: p.id}
	if failed != nil {
		e.Error = &bus.Failure{Code: result, Message: r.redact.Text(failed.Message)}
	}
	name := p.use.Name
	if !p.granted {
		name = "unknown"
	}
	r.cfg.Observer.Tool(name, result, d)
	r.slog.Info("tool call", slog.String("turn", t.id), slog.String("call", p.id), slog.String("tool", name),
		slog.String("person", t.person), slog.String("result", result), slog.Duration("took", d), slog.Int("args_bytes", len(p.use.Args)))
	r.emit(t, e)
}

// progressLine returns the argument that tells watchers best what a call does, such as
// its path or its command, in at most 60 characters; "" if it has none of these.
func progressLine(args json.RawMessage) string {
	for _, name := range []string{"path", "pattern", "query", "url", "command", "chat_id"} {
		var text string
		if value := tools.Member(args, name); len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
			continue
		}
		if r := []rune(text); len(r) > 60 {
			return string(r[:60]) + "…"
		}
		return text
	}
	return ""
}

// shownArgs returns the call's arguments as JSON, even if the model wrote no JSON.
func (p *preparedCall) shownArgs() json.RawMessage {
	if p.invalid != nil { // the arguments are as the model wrote them
		return tools.AsJSON(p.input.Args)
	}
	return p.input.Args
}

const (
	// maxAudited is the greatest size of the arguments in an audit record, in bytes.
	maxAudited = 4096
	// auditTime bounds how long the write of a record may take.
	auditTime = 10 * time.Second
)

// verdictOf returns for the audit what was decided about a call: by the guard, or by the
// checks before it. It is "" if nothing was decided now, because an earlier process had
// begun the call and its kind of effect alone says what became of it.
func (p *preparedCall) verdictOf(executed bool, failed *tools.Error) tools.Decision {
	switch {
	case executed:
		return cmp.Or(p.verdict, tools.Allow) // a call that was asked about was approved
	case failed == nil || failed.Code == tools.OutcomeUnknown:
		return ""
	}
	return cmp.Or(p.verdict, tools.Deny)
}

// auditCall records a call that was run or refused.
func (r *callRunner) auditCall(t *turn, p *preparedCall, out *outcome, executed bool, took time.Duration) {
	by := p.approver
	if p.ask.isApproved() { // even if the approval came too late
		by = p.ask.by
	}
	r.audit(t, p.call, sessions.AuditRecord{
		Detail: by, Arguments: p.shownArgs(), Verdict: string(p.verdictOf(executed, out.failed)), Result: resultCode(out.failed),
		ExitCode: audit.ExitCode(out.result.Content), Bytes: int64(len(out.result.Content)), Elapsed: took.Milliseconds(),
	})
}

// audit records a call whose result is in the log. It comes after C5, because what is
// not in the log has not happened. The record is written beside the turn, and before the
// turn says anything: it may share the flush of the turn's end. If the process dies between C5 and
// the write, the record is lost, but the log has the call and its result.
func (s *session) audit(t *turn, c *call, r sessions.AuditRecord) {
	if s.cfg.Audit == nil {
		return
	}
	r.At, r.Kind, r.By = time.Now(), sessions.AuditTool, t.person
	r.Agent, r.Session, r.Turn, r.Call, r.Tool = s.agent.Name, s.key(), t.id, c.id, c.use.Name
	if r.Arguments == nil {
		r.Arguments = tools.AsJSON(c.use.Args)
	}
	r.Arguments, _ = tools.Shorten(s.redactor().JSON(r.Arguments), maxAudited, "")
	s.trail.Record(r)
}

// writeAudit writes a record. If that fails, the call stays done; the failure is logged
// and counted. The end of a run does not end the write.
func (s *session) writeAudit(r sessions.AuditRecord) {
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	if err := s.cfg.Audit(ctx, r); err != nil {
		s.cfg.Observer.AuditLost()
		s.slog.Error("a tool call is in the log and not in the audit", slog.String("turn", r.Turn), slog.String("call", r.Call),
			slog.String("tool", r.Tool), slog.Any("error", err))
	}
}

// resultCode returns how a call has ended, for logs and metrics: "ok", or the code of its
// failure.
func resultCode(failed *tools.Error) string {
	if failed == nil {
		return "ok"
	}
	return string(failed.Code)
}
