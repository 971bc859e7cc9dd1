package calls

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/asks"
	"parley/agent/task"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// In a turn, the model is warned once the same call has had the same result RepeatWarn times. The call is
// refused if it would be the one with number RepeatRefuse.
const (
	RepeatWarn   = 3
	RepeatRefuse = 5
)

// decide returns why a call must not run, or the ask whose end the turn has to wait for first. If it returns
// neither, the call runs. maybeDone reports that an earlier attempt may have had its effect.
func (r *Runner) decide(ctx context.Context, t *turn.Turn, p *Prepared, maybeDone bool) (*tools.Error, *sessions.Ask, error) {
	if failed := r.precheck(t, p); failed != nil {
		return failed, nil, nil
	}
	d := &decision{Prepared: p, maybeDone: maybeDone}
	if failed := r.consult(ctx, d); failed != nil {
		return failed, nil, nil
	}
	if failed, err := r.countCall(ctx, t, d); failed != nil || err != nil {
		return failed, nil, err
	}
	if failed, err := r.judge(ctx, t, d); failed != nil || err != nil {
		return failed, nil, err
	}
	if failed, ask, err := r.questionOf(ctx, p); failed != nil || ask != nil || err != nil {
		return failed, ask, err // asking a question needs no approval
	}
	if d.ask || p.Ask.IsApproved() {
		if failed, ask, err := r.decideApproval(ctx, p, d.why, maybeDone); failed != nil || ask != nil || err != nil {
			return failed, ask, err
		}
	}
	return r.prepareTask(ctx, p)
}

// questionOf returns the ask of a call whose tool only asks people a question, or the call's failure: its question is
// invalid, or nobody can be asked. For other calls it returns nothing.
func (r *Runner) questionOf(ctx context.Context, p *Prepared) (*tools.Error, *sessions.Ask, error) {
	q, isQuestion, err := tools.QuestionOf(p.tool, p.input)
	if !isQuestion {
		return nil, nil, nil
	}
	if err != nil {
		return asToolError(err), nil, nil
	}
	if r.Config.Asks == nil || r.HasNoPeople() {
		return tools.Errorf(tools.PermissionDenied, "Nobody can be asked from here: end the turn with the question instead."), nil, nil
	}
	why, err := r.whyCannotAsk(ctx)
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		return tools.Errorf(tools.PermissionDenied, "Nobody can be asked now: %s. End the turn with the question instead.", why), nil, nil
	}
	a := r.newAsk(p, bus.AskQuestion)
	a.Question, a.Choices = q.Text, q.Choices
	return nil, a, nil
}

// asToolError returns the failure of a call whose tool rejects its arguments.
func asToolError(err error) *tools.Error {
	if known, ok := err.(*tools.Error); ok { //nolint:errorlint // tools return it unwrapped
		return known
	}
	return tools.Errorf(tools.InvalidArgs, "%v", err)
}

// whyCannotAsk returns why nobody can be asked now, or "" if people can be asked.
func (r *Runner) whyCannotAsk(ctx context.Context) (string, error) {
	why, err := r.Config.Asks.Ready(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	return why, nil
}

// newAsk makes an ask to people about a call.
func (r *Runner) newAsk(p *Prepared, kind string) *sessions.Ask {
	return &sessions.Ask{
		ID: asks.ID(r.Key(), p.input.Key), Call: p.ID, Kind: kind,
		Expires: time.Now().Add(r.Approvals().Expires).UTC().Truncate(time.Second),
	}
}

// newNodeWait makes the ask by which the turn waits for the device that is to run a call.
func (r *Runner) newNodeWait(p *Prepared) *sessions.Ask {
	return &sessions.Ask{
		ID: asks.NodeWaitID(r.Key(), p.input.Key, p.NodeWaits), Call: p.ID, Kind: sessions.AskNode,
		Node: p.postponed.Node, AnyOfNodes: p.postponed.Alternatives, Since: p.postponed.Since.UTC().Truncate(time.Second), Expires: p.postponed.Until.UTC().Truncate(time.Millisecond),
	}
}

// prepareTask prepares the task that a call hands to a sub-agent, and returns the ask by which the turn waits
// for it, or the call's failure if the task can't be handed out. For other calls it returns nothing.
func (r *Runner) prepareTask(ctx context.Context, p *Prepared) (*tools.Error, *sessions.Ask, error) {
	d, given, err := tools.TaskOf(p.tool, p.input)
	switch {
	case !given:
		return nil, nil, nil
	case err != nil:
		return asToolError(err), nil, nil
	case r.Config.SubAgents == nil:
		return tools.Errorf(tools.PermissionDenied, "There are no sub-agents here: do it yourself."), nil, nil
	}
	if err := r.checkLease(ctx); err != nil {
		return nil, nil, fmt.Errorf("before preparing a task: %w", err)
	}
	of, err := r.Config.SubAgents.Prepare(ctx, p.input, d)
	switch refused, isRefused := errors.AsType[*tools.Error](err); {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case isRefused:
		return refused, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	r.Point("task:prepared")
	if p.approvedHash == "" {
		of.Allowances = p.spendingKeys
	}
	r.HandedOut[p.ID] = of
	return nil, &sessions.Ask{ID: task.MailID(of.ID), Call: p.ID, Kind: task.Kind}, nil
}

// precheck returns why a call is refused even before the guard is asked; nil if it isn't.
func (r *Runner) precheck(t *turn.Turn, p *Prepared) *tools.Error {
	switch {
	case p.tool != nil && !p.Granted:
		return tools.Errorf(tools.PermissionDenied, "%s needs the capability %q, which this agent does not have: the operator grants it in [agents.%s] capabilities.",
			p.input.Name, p.tool.Spec().Permission, r.Agent.Name)
	case p.invalid != nil:
		return p.invalid
	case p.Attempts == 0 && t.CountRepeats(p.Call) >= RepeatRefuse-1:
		return tools.Errorf(tools.Code(turn.CodeRepeated), "Refused: the same call has had the same result %d times in this turn. Try something else or conclude.", RepeatRefuse-1)
	}
	return nil
}

// maxChanges is how many times in a row the guard may change the arguments of a call.
const maxChanges = 3

// A decision collects what the guard (the operator's rules) and the hooks decide about a call before it runs.
type decision struct {
	*Prepared
	maybeDone bool   // an earlier attempt may have had its effect
	ask       bool   // a person has to approve the call
	why       string // why, for people; "" if no reason is given
}

// consult asks the guard and the hooks about a call. It returns why the call must not run, or nil. If they
// change the arguments, the new ones have to fit the schema and to pass the guard.
func (r *Runner) consult(ctx context.Context, d *decision) *tools.Error {
	if refused := r.askGuard(ctx, d); refused != nil {
		return refused
	}
	for _, hook := range r.before {
		changed, refused := r.applyVerdict(d, hook(ctx, d.input))
		if refused == nil && changed {
			refused = r.askGuard(ctx, d)
		}
		if refused != nil {
			return refused
		}
	}
	return nil
}

// askGuard asks the guard about a call, and again each time it changes the arguments, up to maxChanges times. It
// returns why the call must not run, or nil. A guard that changes the arguments more often refuses the call.
func (r *Runner) askGuard(ctx context.Context, d *decision) *tools.Error {
	if r.guard == nil {
		return nil
	}
	for range maxChanges + 1 {
		changed, refused := r.applyVerdict(d, r.guard(ctx, d.input))
		if refused != nil || !changed {
			return refused
		}
	}
	return tools.Errorf(tools.PermissionDenied, "%s was not run: the operator's rules change its arguments without an end.", d.input.Name)
}

// applyVerdict applies a decision of the guard or a hook to a call. changed reports whether that changed the
// call's arguments; refused is why the call must not run, or nil.
func (r *Runner) applyVerdict(d *decision, v tools.Verdict) (changed bool, refused *tools.Error) {
	d.verdict = cmp.Or(v.Decision, d.verdict)
	if v.Spends != nil {
		d.spendingKeys = v.Spends
	}
	switch v.Decision {
	case tools.Deny:
		return false, tools.Errorf(tools.PermissionDenied, "%s", cmp.Or(v.Reason, d.input.Name+" was refused by the operator's rules."))
	case tools.Ask:
		d.ask, d.why = true, cmp.Or(d.why, v.Reason)
	}
	return r.changeArgs(d.Prepared, v, d.maybeDone)
}

// changeArgs replaces a call's arguments with those that the operator's rules want, and reports whether they
// differ. refused is why the call must not run with them, or nil.
func (r *Runner) changeArgs(p *Prepared, v tools.Verdict, maybeDone bool) (changed bool, refused *tools.Error) {
	if v.Args == nil {
		return false, nil
	}
	with := p.input
	with.Args = v.Args
	args, note, invalid := r.Tools.Check(with)
	switch {
	case invalid != nil:
		return false, tools.Errorf(tools.PermissionDenied, "%s was not run: the operator's rules changed its arguments to some that do not fit: %s", p.input.Name, invalid.Message)
	case bytes.Equal(args, p.input.Args):
		return false, nil
	case maybeDone:
		return false, tools.Errorf(tools.PermissionDenied, "The operator's rules want other arguments than it was begun with.")
	}
	p.input.Args = args
	p.Effect = tools.EffectOf(p.tool, p.input)
	said := "the operator's rules changed the arguments to " + string(args)
	if v.Reason != "" {
		said = fmt.Sprintf("the operator's rules changed the arguments (%s) to %s", v.Reason, args)
	}
	p.addNote(said)
	p.addNote(note)
	return true, nil
}

// Untrusted reports whether the model may have read text written by strangers when it asked for a call.
func (r *Runner) Untrusted(ctx context.Context, t *turn.Turn, c *turn.Call) bool {
	return r.PromptUntrusted || transcript.Untrusted(r.Journal.Records(), t.ID, c.EntryNumber) ||
		r.Agent.Untrusted != nil && r.Agent.Untrusted(ctx, r.Key())
}

// review calls the hooks with the outcome of a call that ran, and returns the outcome with their changes. If a hook
// rejects the result, or makes no JSON of it, the outcome is a failure without it.
func (r *Runner) review(ctx context.Context, p *Prepared, out *turn.Outcome) *turn.Outcome {
	for _, hook := range r.after {
		result := out.Result
		if out.Failed != nil {
			result = tools.Result{Content: out.Failed.Result().Content, Untrusted: out.Result.Untrusted}
		}
		said := hook(ctx, p.input, result)
		withheld := tools.Result{Untrusted: out.Result.Untrusted} // the reason may quote the result
		switch {
		case said.Rejected:
			return &turn.Outcome{Result: withheld, Failed: tools.Errorf(tools.PermissionDenied, "%s ran, and what came of it is withheld: %s. Do not run it again for that.", p.input.Name, cmp.Or(said.Reason, "the operator's rules say so"))}
		case said.Content == nil:
		case !json.Valid(said.Content):
			return &turn.Outcome{Result: withheld, Failed: tools.Errorf(tools.PermissionDenied, "%s ran, and what came of it is withheld: the operator's rules made no JSON of it. Do not run it again for that.", p.input.Name)}
		default:
			failed := out.Failed
			if failed != nil {
				failed = tools.Errorf(failed.Code, "the operator's rules changed what the model is told of it")
			}
			out = &turn.Outcome{Result: tools.Result{Content: said.Content, Untrusted: out.Result.Untrusted, StoredContent: out.Result.StoredContent}, Failed: failed, Changed: true}
		}
	}
	return out
}

// decideApproval decides about a call that needs approval. The call runs if somebody approved it, once or for
// the whole session, and nothing has changed since; if something has changed, it fails. Otherwise people are asked.
// If that isn't possible, or if an interrupted attempt may already have run, the call fails.
func (r *Runner) decideApproval(ctx context.Context, p *Prepared, why string, maybeDone bool) (*tools.Error, *sessions.Ask, error) {
	var like string
	if p.Ask.IsApproved() {
		like = p.Ask.Hash
	}
	sum, err := r.approvalHash(ctx, p, like)
	if err != nil && p.Ask.IsApproved() {
		return p.errChanged(), nil, nil // a call that cannot be compared counts as changed
	}
	if err != nil {
		return tools.Errorf(tools.ExecutionFailed, "%s needs approval, and what is to be approved cannot be looked at: %v", p.input.Name, err), nil, nil
	}
	if p.Ask.IsApproved() {
		if p.Ask.Hash != sum {
			return p.errChanged(), nil, nil
		}
		p.approvedHash, p.approver = sum, p.Ask.By
		return nil, nil, nil
	}
	if r.Config.Asks == nil {
		return asks.NeedsApproval(p.input.Name, why, "who cannot be asked from here"), nil, nil
	}
	by, granted, err := r.Config.Asks.Granted(ctx, r.Key(), sum)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	if granted {
		p.approvedHash, p.approver = sum, by
		return nil, nil, nil
	}
	if maybeDone {
		return asks.NeedsApproval(p.input.Name, why, "who is not asked about a call that was cut off"), nil, nil
	}
	refused, err := r.whyCannotAsk(ctx)
	if err != nil {
		return nil, nil, err
	}
	if refused != "" {
		return asks.NeedsApproval(p.input.Name, why, "who cannot be asked now: "+refused), nil, nil
	}
	if r.HasNoPeople() && len(r.Approvals().To) == 0 {
		return asks.NeedsApproval(p.input.Name, why, "who cannot be asked from here: the operator has not set [approvals] to"), nil, nil
	}
	a := r.newAsk(p, bus.AskApproval)
	a.Hash, a.Reason = sum, why
	if !bytes.Equal(p.input.Args, p.Use.Args) {
		a.Args = p.input.Args
	}
	showing := tools.ShowingOf(ctx, p.tool, p.input)
	a.Shown, a.ShownOf = showing.Text, showing.ShownArgs
	a.Places = asks.EncodePlaces(r.Approvals().To)
	if r.Config.Approvers != nil {
		a.Approvers = r.Config.Approvers(p.input)
	}
	return nil, a, nil
}

// errChanged marks the call as changed since its approval, and returns its failure.
func (p *Prepared) errChanged() *tools.Error {
	p.approvalStale = true
	return asks.Changed(p.input.Name)
}

// stillApproved checks an approval once more right before the call runs. It returns an error if something has
// changed.
func (r *Runner) stillApproved(ctx context.Context, p *Prepared) *tools.Error {
	if p.approvedHash == "" {
		return nil
	}
	if sum, err := r.approvalHash(ctx, p, p.approvedHash); err != nil || sum != p.approvedHash {
		return p.errChanged()
	}
	return nil
}

// approvalHash returns a hash of everything that an approval covers: the tool with its version, its arguments,
// the session, the directory, and those of its files that the call may read. like is the hash that it will be
// compared with; "" for a new ask.
func (r *Runner) approvalHash(ctx context.Context, p *Prepared, like string) (string, error) {
	var on asks.InputsHash
	if r.Agent.HashInput != nil {
		var mode *string
		if like != "" {
			known := asks.ModeOf(like)
			mode = &known
		}
		var err error
		if on, err = r.Agent.HashInput(ctx, p.input, mode); err != nil {
			return "", err
		}
	}
	if version := p.tool.Spec().Version; version != nil {
		var err error
		if on.Version, err = version(); err != nil {
			return "", fmt.Errorf("find out the version of %s: %w", p.input.Name, err)
		}
	}
	return asks.Hash(p.input, on), nil
}

// RenewHashes computes the hashes of the asks about a step's calls again, after all other calls of the step have run,
// so that files that these wrote don't count as changed. If that fails, the old hash stays, and the call may count as
// changed. It does nothing for a single call.
func (r *Runner) RenewHashes(ctx context.Context, calls []*Prepared, of []*sessions.Ask) {
	if len(calls) < 2 {
		return
	}
	for i, a := range of {
		if a == nil || a.Kind != bus.AskApproval {
			continue
		}
		sum, err := r.approvalHash(ctx, calls[i], "")
		if err != nil {
			r.Log.Warn("what is to be approved cannot be looked at again", slog.String("call", a.Call), slog.Any("error", err))
			continue
		}
		a.Hash = sum
	}
}

// countCall counts a call for its person, if the operator limits the number of such calls, and returns why it must not
// run if the limit is reached. It comes after the rules and the hooks, so that calls that they refuse aren't counted,
// and before anybody is asked about the call. A call that has begun, or that a person has approved, was counted before.
func (r *Runner) countCall(ctx context.Context, t *turn.Turn, d *decision) (*tools.Error, error) {
	if r.Agent.CountCall == nil || d.Attempts > 0 || d.Ask.IsApproved() {
		return nil, nil
	}
	var unknown error // why it is unknown for whom the call is counted
	refused, err := r.Agent.CountCall(ctx, d.input, func(ctx context.Context) (person string, err error) {
		person, err = r.accountOf(ctx, t.Person)
		unknown = err
		return person, err
	})
	if refused != nil {
		d.verdict, d.rule = tools.Deny, sessions.DetailRateLimited
	}
	r.Point("rate:counted")
	switch {
	case err == nil, unknown != nil:
		return refused, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("%w: %w", turn.ErrBusAway, err)
}

// accountOf returns the account under which a person's calls are counted, while the lease is held: otherwise another
// process may have erased the person meanwhile.
func (r *Runner) accountOf(ctx context.Context, person string) (string, error) {
	of, err := r.PayerOf(ctx, person, r.lastPayer.Load())
	if err != nil {
		return "", err
	}
	r.lastPayer.Store(&of)
	if err := r.checkLease(ctx); err != nil {
		return "", fmt.Errorf("before counting the call: %w", err)
	}
	return of.Account, nil
}
