// Package calls runs the tool calls of a turn.
//
// calls.go takes a call through its stages in order, and audits it; decide.go decides whether a call runs, with
// which arguments, and whether a person has to approve it; judge.go has a model judge it; order.go sorts the calls
// of a step; share.go divides among them how much of their results the model is shown.
package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent"
	"parley/agent/audit"
	"parley/agent/excerpt"
	"parley/agent/journal"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// A Runner runs the tool calls of a session's turns. The guard, and the hooks before and after a call, belong to it; tools
// don't know them.
type Runner struct {
	*turn.Session
	Tools *tools.Set // the turn's
	// guard decides about each call before it runs; nil allows all calls.
	guard  func(ctx context.Context, call tools.Call) tools.Verdict
	before []func(ctx context.Context, call tools.Call) tools.Verdict
	after  []func(ctx context.Context, call tools.Call, result tools.Result) tools.ResultReview
	// checkLease returns an error if the lease is lost. It is called right before a tool runs.
	checkLease func(ctx context.Context) error
	// redact removes secrets from results, and from the texts that others are shown of a call.
	redact agent.Redactor
	// storeLongResult stores a result that is too long for the model; if nil, such results are not stored.
	storeLongResult func(ctx context.Context, call tools.Call, content json.RawMessage) (path string, err error)
	// askJudge asks the model that judges calls.
	askJudge AskJudge
	// notifyStaleApproval tells people that an approved call does not run because something has changed.
	notifyStaleApproval func(ctx context.Context, t *turn.Turn, a *turn.Ask) error
	// HandedOut are the tasks that were prepared, by the id of their call.
	HandedOut map[string]sessions.Delegated
	// PromptUntrusted reports that strangers may have written some of the memory that the model reads.
	PromptUntrusted bool

	lastPayer atomic.Pointer[turn.Payer] // the person whose call was counted last; nil for none
}

// NewRunner makes a runner for a session's turns, with these tools. notifyStaleApproval tells people that an
// approved call does not run because something has changed; askJudge asks the model that judges calls.
func NewRunner(s *turn.Session, set *tools.Set, notifyStaleApproval func(context.Context, *turn.Turn, *turn.Ask) error, askJudge AskJudge) *Runner {
	return &Runner{Session: s, Tools: set, guard: s.Agent.Guard, before: s.Agent.Before, after: s.Agent.After, checkLease: s.Lease.Held, redact: s.Redactor(), storeLongResult: s.Agent.StoreLongResult,
		notifyStaleApproval: notifyStaleApproval, askJudge: askJudge, HandedOut: map[string]sessions.Delegated{}}
}

// A Prepared is a call of a turn with everything that is known before it runs.
type Prepared struct {
	*turn.Call
	input   tools.Call      // what the tool gets, with repaired or changed arguments
	args    json.RawMessage // the arguments as the guard and the hooks got them
	note    string          // what the model is told beside the result, such as how its arguments were changed
	tool    tools.Tool      // nil if no tool has that name
	Granted bool            // whether the agent has the tool
	invalid *tools.Error    // why the arguments don't fit, or that there is no such tool; nil if the call is valid
	// flushProgress reports the progress that was held back.
	flushProgress    func()
	CallsAhead       []*Prepared    // the open calls of the same answer that run before it
	Share            *Share         // limits how much of the results of this step the model is shown
	Effect           tools.Effect   // the effect of running the call once more; Pure without a tool
	verdict          tools.Decision // what the guard decided, or the model that judges calls
	rule             string         // sessions.DetailJudged or DetailRateLimited if that decided; otherwise ""
	failureUntrusted bool           // the failure of the call may repeat what strangers wrote
	spendingKeys     []string       // what the call uses up if it runs without approval
	// approvedHash is the hash that a person has approved; "" if no approval was needed.
	approvedHash string
	approver     string // who approved it
	// approvalStale reports that something covered by the approval changed before the call could run.
	approvalStale bool
	postponed     *tools.Postponed // says which device the call has to wait for; nil if it has run
}

// addNote adds to the note that the model gets beside the call's result.
func (p *Prepared) addNote(note string) {
	if note == "" {
		return
	}
	if p.note != "" {
		p.note += "; "
	}
	p.note += note
}

// Prepare finds the tool of a call, and repairs and validates its arguments. It also finds a tool that the
// agent no longer has: the agent may have had it when the call began. A call that has begun keeps the arguments
// that it began with. untrusted reports that the model may have read what strangers wrote.
func (r *Runner) Prepare(t *turn.Turn, c *turn.Call, untrusted bool) *Prepared {
	p := &Prepared{Call: c, Effect: tools.Pure, input: tools.Call{
		ID: c.ID, Key: c.Key(t.ID), Name: c.Use.Name, Args: c.Use.Args, Attempt: c.Attempts + 1,
		Turn: t.ID, Session: r.Key(), Agent: r.Agent.Name, Parent: t.Parent(),
		Person: t.Person, PersonName: t.PersonName, Owner: t.Route.Owner, Address: t.Route.People().String(), Private: t.Route.IsPrivate(), Scheduled: t.Scheduled,
		Untrusted: untrusted,
		Seen: func(address string) tools.Sighting {
			quotes := func(tool string) bool { return r.Tools.Quotes(tool) || r.Agent.KnownTools.Quotes(tool) }
			return transcript.FindAddress(r.Journal.Records(), t.ID, c.EntryNumber, address, quotes)
		},
	}}
	p.input.Spent = func() tools.Spending { return r.spending(t, p) }
	p.input.Progress, p.flushProgress = r.newProgress(t, c)
	set := r.Tools
	p.tool, p.Granted = set.Lookup(c.Use.Name)
	if !p.Granted && r.Agent.KnownTools != nil {
		if tool, known := r.Agent.KnownTools.Lookup(c.Use.Name); known {
			p.tool, set = tool, r.Agent.KnownTools
		}
	}
	if c.NodeWait != nil {
		p.input.WaitsUntil = c.NodeWait.Expires
	}
	if c.Started.Args != nil {
		p.input.Args, p.note = c.Started.Args, c.Started.Note
	}
	args, note, invalid := set.Check(p.input)
	if p.invalid = invalid; invalid == nil {
		p.input.Args = args
		p.addNote(note)
	}
	p.args = p.input.Args
	if p.tool != nil {
		p.Effect, p.input.Touches = tools.EffectOf(p.tool, p.input), p.tool.Spec().Touches
	}
	return p
}

// spending returns what other calls of the conversation have used up, and which of the calls ahead of this one
// in the same answer may still begin without anybody's approval.
func (r *Runner) spending(t *turn.Turn, p *Prepared) tools.Spending {
	records := r.Journal.Records()
	var s tools.Spending
	s.Turn, s.All = transcript.Spent(records, t.ID, p.ID)
	begun := map[string]bool{}
	for _, record := range records {
		switch record.Data.(type) {
		case sessions.ToolStarted, sessions.ToolResult, sessions.Delegated:
			begun[record.Call] = true
		}
	}
	for _, other := range p.CallsAhead {
		if !begun[other.ID] && other.Granted && other.invalid == nil && other.Ask == nil {
			s.PendingCalls = append(s.PendingCalls, tools.Call{Name: other.input.Name, Args: other.args, Touches: other.input.Touches})
		}
	}
	return s
}

// newProgress returns two functions that report a call's progress to watchers: tell is called with each text,
// and rest at the end of the call. Watchers see each text at once and whole, because it counts as a complete
// line. Only what could be the beginning of a secret of several lines is held back, until the next call of tell
// or rest.
func (r *Runner) newProgress(t *turn.Turn, c *turn.Call) (tell func(text string), rest func()) {
	var mu sync.Mutex
	next := r.redact.Stream()
	say := func(piece string, last bool) {
		mu.Lock()
		defer mu.Unlock()
		if text := strings.TrimSuffix(next(piece, last), "\n"); text != "" {
			r.Emit(t, bus.Event{Type: bus.ToolProgress, Tool: c.Use.Name, Call: c.ID, Delta: text})
		}
	}
	return func(text string) { say(text+"\n", false) }, func() { say("", true) }
}

// write appends entries of a call to the log. Those of a pure call share a flush with the entries that follow:
// after a crash the call may run again, whatever the log says about it.
func (p *Prepared) write(ctx context.Context, j *journal.Journal, entries ...sessions.Entry) error {
	if p.Effect == tools.Pure {
		return j.AppendSoon(ctx, entries...)
	}
	return j.Append(ctx, entries...)
}

// Run takes a call through all its stages in order; each stage is called here and nowhere else. It returns an
// error only if that ends the run or the turn; the failure of a call is a result. If the turn first has to wait
// for people, for a sub-agent or for a node, Run doesn't run the call and returns the ask.
func (r *Runner) Run(ctx context.Context, t *turn.Turn, p *Prepared) (*sessions.Ask, error) {
	began := time.Now()
	out, maybeDone, err := r.reconcile(ctx, p) // the outcome of an earlier holder's attempt, regardless of what is allowed now
	if err != nil {
		return nil, err
	}
	execute := false
	ran := out != nil && out.Failed == nil // an earlier holder's attempt
	if out == nil {
		failed, ask, err := r.decide(ctx, t, p, maybeDone) // granted, valid, not repeated, guard, before-hooks, judged, approved
		if err != nil || ask != nil {
			return ask, err
		}
		out = &turn.Outcome{Failed: failed, Result: tools.Result{Untrusted: p.failureUntrusted}}
		execute = out.Failed == nil
		if out.Failed != nil && maybeDone {
			out.Failed = unknownOutcome(p.input.Name, "It cannot be run again: "+out.Failed.Message)
		}
	}
	r.Emit(t, bus.Event{Type: bus.ToolStart, Tool: p.input.Name, Call: p.ID, Delta: excerpt.Gist(r.redact.JSON(p.shownArgs()))})

	if execute {
		if out, ran, err = r.execute(ctx, t, p); err != nil {
			return nil, err
		}
		if p.postponed != nil && r.Config.NodeWaits != nil && ctx.Err() == nil {
			return r.newNodeWait(p), nil
		}
	}
	if ran && ctx.Err() == nil {
		out = r.review(ctx, p, out) // after-hooks
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // write no result: the next holder judges the call by its effect
	}
	if p.approvalStale && p.Ask.IsApproved() {
		if err := r.notifyStaleApproval(ctx, t, p.Ask); err != nil {
			return nil, err
		}
	}
	if execute {
		r.Point("c5:before")
	}
	if err := r.record(ctx, t, p, out); err != nil {
		return nil, err
	}
	took := time.Since(began)
	r.auditCall(t, p, out, execute, took)
	r.report(t, p, out.Failed, took) // metrics, event
	return nil, nil
}

// record writes the result of a call (C5), and shows it to watchers.
func (r *Runner) record(ctx context.Context, t *turn.Turn, p *Prepared, out *turn.Outcome) error {
	r.hidePictures(ctx, p, out)
	content := r.shapeResult(ctx, p, out) // redact, truncate
	kept := content
	if out.Result.StoredContent != nil {
		kept = tools.Annotate(r.redact.JSON(out.Result.StoredContent), p.note)
	}
	if err := p.write(ctx, r.Journal, turn.ResultEntries(t, p.Call, kept, out)...); err != nil {
		return err
	}
	if out.Result.StoredContent != nil {
		r.Journal.ShowResult(p.ID, content)
	}
	r.Point("c5")
	r.Session.ShowResult(t, p.Call, kept, out)
	return nil
}

// execute records the start of a call (C4), checks the lease and the approval, and runs the tool. ran reports
// whether the tool ran: it doesn't if what was approved has changed.
func (r *Runner) execute(ctx context.Context, t *turn.Turn, p *Prepared) (out *turn.Outcome, ran bool, err error) {
	if err := r.recordFiles(ctx, p); err != nil {
		return nil, false, err
	}
	if p.input.HeldAt, err = r.recordStart(ctx, t, p); err != nil { // C4, then Held
		return nil, false, err
	}
	p.input.CheckLease, p.input.Approved = r.checkLease, p.approvedHash != ""
	defer func() { p.input.HeldAt, p.input.CheckLease = time.Time{}, nil }()
	if failed := r.stillApproved(ctx, p); failed != nil {
		return &turn.Outcome{Failed: failed}, false, nil
	}
	came := runOnce(ctx, r.Log, p.tool, p.input)
	p.flushProgress()
	p.postponed = came.postponed
	return &turn.Outcome{Result: came.result, Failed: came.failed}, true, nil
}

// recordFiles records the session's files before a call that may change them. The time this takes doesn't count
// as the call's. If the files can't be recorded, the call runs anyway, and its result says that the changes
// can't be undone.
func (r *Runner) recordFiles(ctx context.Context, p *Prepared) error {
	if p.Effect == tools.Pure || r.Config.History == nil {
		return nil
	}
	if err := r.checkLease(ctx); err != nil { // another process may have erased the session meanwhile
		return fmt.Errorf("before noting the files: %w", err)
	}
	err := r.Config.History.Begin(ctx, p.input)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Log.Error("what a turn changes in its workspace is not kept, so that it cannot be undone", slog.String("turn", p.input.Turn), slog.Any("error", err))
		p.addNote("what this changed cannot be undone with /undo: the files could not be noted before")
	}
	return nil
}

func unknownOutcome(name, more string) *tools.Error {
	text := fmt.Sprintf("OUTCOME UNKNOWN: the process was cut off while %s ran, so it may have had its effect. Inspect before repeating it.", name)
	return tools.Errorf(tools.OutcomeUnknown, "%s", strings.TrimSpace(text+" "+more))
}

// reconcile decides what happened to a call that was cut off. It looks only at the call's effect, because the agent's
// present permissions say nothing about the past. If out is nil, the call has to run, for the first time or again;
// maybeDone reports that it may have had its effect already.
func (r *Runner) reconcile(ctx context.Context, p *Prepared) (out *turn.Outcome, maybeDone bool, err error) {
	if p.Attempts == 0 {
		return nil, false, nil
	}
	unknown := &turn.Outcome{Failed: unknownOutcome(p.input.Name, "")}
	if p.tool == nil || p.invalid != nil {
		return unknown, false, nil
	}
	switch p.Effect {
	case tools.Pure:
		return nil, false, nil
	case tools.Idempotent:
		return nil, true, nil
	case tools.Reconcilable:
		tool, ok := p.tool.(tools.Reconciler)
		if !ok {
			return unknown, false, nil
		}
		if err := r.checkLease(ctx); err != nil {
			return nil, false, fmt.Errorf("before reconciling: %w", err)
		}
		result, done, err := tool.Reconcile(ctx, p.input)
		switch {
		case ctx.Err() != nil:
			return nil, false, context.Cause(ctx)
		case err != nil:
			return unknown, false, nil
		case done:
			return &turn.Outcome{Result: result}, false, nil
		}
		return nil, false, nil
	}
	return unknown, false, nil
}

// recordStart writes the start of a call (C4), and then checks the lease. A tool runs only after both: a call that is
// not in the log must not happen, and after the lease is lost the next holder may run the same call. It returns the
// time of the check.
func (r *Runner) recordStart(ctx context.Context, t *turn.Turn, p *Prepared) (held time.Time, err error) {
	r.Point("c4:before")
	started := sessions.ToolStarted{Attempt: p.input.Attempt, IsPure: p.Effect == tools.Pure}
	if p.note != "" { // the arguments may not be those that the model wrote
		started.Args, started.Note = p.input.Args, p.note
	}
	if p.approvedHash == "" { // a call that a person has approved isn't counted
		started.Allowances = p.spendingKeys
	}
	e := journal.NewEntry(t.ID, sessions.KindToolStarted, started)
	e.Call = p.ID
	if err := p.write(ctx, r.Journal, e); err != nil {
		return held, err
	}
	p.Started.Allowances, p.Started.IsPure = started.Allowances, started.IsPure
	r.Point("c4")
	held = time.Now()
	if err := r.checkLease(ctx); err != nil {
		return held, fmt.Errorf("before running %s: %w", p.input.Name, err)
	}
	r.Point("c4:held")
	return held, nil
}

// hidePictures removes the pictures from a result if the log must not record them, and tells the model. The
// call is over, so no error here ends the run.
func (r *Runner) hidePictures(ctx context.Context, p *Prepared, out *turn.Outcome) {
	if len(out.Result.Pictures) == 0 || r.Agent.MayNote == nil {
		return
	}
	why, err := r.Agent.MayNote(ctx)
	if err != nil {
		why = "it is not known whether an older release still serves"
	}
	if why != "" {
		out.Result.Pictures = nil
		p.addNote("its pictures cannot be shown now: " + why)
	}
}

// shapeResult returns a result in the form that the model sees. If it shortens the result, it first stores the
// whole one, if the agent stores results.
func (r *Runner) shapeResult(ctx context.Context, p *Prepared, o *turn.Outcome) json.RawMessage {
	content := r.redact.JSON(o.Content())
	limit := p.Share.Take(len(content))
	if len(content) > limit {
		where := ""
		if r.storeLongResult != nil && o.Result.StoredContent == nil {
			call := p.input
			call.Untrusted = call.Untrusted || o.Result.Untrusted
			path, err := r.storeLongResult(ctx, call, content)
			if err != nil {
				r.Log.Warn("keeping a long result failed", slog.String("tool", p.input.Name), slog.Any("error", err))
			}
			where = path
		}
		o.NoteWhole(tools.Annotate(content, p.note))
		content, _ = tools.Truncate(content, limit, where)
	}
	return tools.Annotate(content, p.note)
}

// report tells the log, metrics and watchers about a call that has its result. The log and the metrics get
// "unknown" as the name of a tool that the agent doesn't have, because a model can make up any name.
func (r *Runner) report(t *turn.Turn, p *Prepared, failed *tools.Error, d time.Duration) {
	result := turn.ResultCode(failed)
	e := bus.Event{Type: bus.ToolEnd, Tool: p.Use.Name, Call: p.ID}
	if failed != nil {
		e.Error = &bus.Failure{Code: result, Message: r.redact.Text(failed.Message)}
	}
	name := p.Use.Name
	if !p.Granted {
		name = "unknown"
	}
	r.Config.Observer.Tool(name, result, d)
	r.Log.Info("tool call", slog.String("turn", t.ID), slog.String("call", p.ID), slog.String("tool", name),
		slog.String("person", t.Person), slog.String("result", result), slog.Duration("took", d), slog.Int("args_bytes", len(p.Use.Args)))
	r.Emit(t, e)
}

// shownArgs returns the call's arguments as JSON, even if the model didn't write valid JSON.
func (p *Prepared) shownArgs() json.RawMessage {
	if p.invalid != nil { // the arguments are as the model wrote them
		return tools.AsJSON(p.input.Args)
	}
	return p.input.Args
}

// verdictOf returns the decision about a call for the audit: the guard's, or that of the checks before it. It returns
// "" if nothing was decided now, because an earlier process began the call and the call's effect alone decides what
// happens to it.
func (p *Prepared) verdictOf(executed bool, failed *tools.Error) tools.Decision {
	switch {
	case executed:
		return cmp.Or(p.verdict, tools.Allow) // a call that was asked about was approved
	case failed == nil || failed.Code == tools.OutcomeUnknown:
		return ""
	}
	return cmp.Or(p.verdict, tools.Deny)
}

// auditCall records a call that was run or refused.
func (r *Runner) auditCall(t *turn.Turn, p *Prepared, out *turn.Outcome, executed bool, took time.Duration) {
	r.Audit(t, p.Call, sessions.AuditRecord{
		Detail: p.decidedBy(), Arguments: p.shownArgs(), Verdict: string(p.verdictOf(executed, out.Failed)), Result: turn.ResultCode(out.Failed),
		ExitCode: audit.ExitCode(out.Result.Content), Bytes: int64(len(out.Result.Content)), Elapsed: took.Milliseconds(),
	})
}
