package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/agent/asks"
	"parley/agent/delegation"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// How often the same call may have the same result in a turn before it gets a warning,
// and before it is refused.
const (
	repeatWarn   = 3
	repeatRefuse = 5
)

// A callRunner runs the tool calls of a session's turns. Its fields decide about a call
// and handle the result; the tools know none of them.
type callRunner struct {
	*session
	tools *tools.Set // the turn's
	// guard decides about each call before it runs; nil: all are allowed.
	guard  func(ctx context.Context, use tools.Call) tools.Verdict
	before []func(ctx context.Context, use tools.Call) tools.Verdict
	after  []func(ctx context.Context, use tools.Call, result tools.Result) tools.Review
	// held returns an error if the lease is lost. It is called right before a tool runs.
	held func(ctx context.Context) error
	// redact takes secrets out of results, and of what others are told of a call.
	redact Redactor
	// keep stores a result that is too long for the model; nil: it is not stored.
	keep func(ctx context.Context, use tools.Call, content json.RawMessage) (path string, err error)
	// delegated are the tasks that were prepared, by call.
	delegated map[string]sessions.Delegated
	// promptUntrusted reports that strangers may have written some of the turn's prompt.
	promptUntrusted bool
}

func newCallRunner(s *session, set *tools.Set) *callRunner {
	return &callRunner{session: s, tools: set, guard: s.agent.Guard, before: s.agent.Before, after: s.agent.After, held: s.lease.Held, redact: s.redactor(), keep: s.agent.Keep, delegated: map[string]sessions.Delegated{}}
}

// A preparedCall is a call of a turn, with what is known before it runs.
type preparedCall struct {
	*call
	input   tools.Call   // the input of the tool, with repaired or changed arguments
	note    string       // what was repaired or changed in the arguments
	tool    tools.Tool   // nil if no tool has that name
	granted bool         // the agent has the tool
	invalid *tools.Error // the arguments do not fit, or there is no such tool; nil if all is well
	// flushProgress reports the rest of the progress that was held back.
	flushProgress func()
	effect        tools.Effect   // of running the call once more; Pure without a tool
	verdict       tools.Decision // the guard's
	// approved is the hash of what somebody has approved; "" if no approval was needed.
	approved string
	approver string // who approved it
	// overtaken reports that what was approved has changed before the call could run.
	overtaken bool
}

// addNote adds to the note that tells the model how its arguments were changed.
func (p *preparedCall) addNote(note string) {
	if note == "" {
		return
	}
	if p.note != "" {
		p.note += "; "
	}
	p.note += note
}

// decide returns why a call must not run, or the ask to people that has to come first.
// If it returns neither, the call runs. maybeDone reports that an earlier attempt may
// have had its effect.
func (r *callRunner) decide(ctx context.Context, t *turn, p *preparedCall, maybeDone bool) (*tools.Error, *sessions.Ask, error) {
	if failed := r.precheck(t, p); failed != nil {
		return failed, nil, nil
	}
	d := &decision{preparedCall: p, maybeDone: maybeDone}
	if failed := r.consult(ctx, d); failed != nil {
		return failed, nil, nil
	}
	if failed, ask, err := r.questionOf(ctx, p); failed != nil || ask != nil || err != nil {
		return failed, ask, err // asking a question needs no approval
	}
	if d.ask || p.ask.isApproved() {
		if failed, ask, err := r.decideApproval(ctx, p, d.why, maybeDone); failed != nil || ask != nil || err != nil {
			return failed, ask, err
		}
	}
	return r.delegate(ctx, p)
}

// questionOf returns the ask of a call whose tool only asks people; nil for other calls.
func (r *callRunner) questionOf(ctx context.Context, p *preparedCall) (*tools.Error, *sessions.Ask, error) {
	q, isQuestion, err := tools.QuestionOf(p.tool, p.input)
	if !isQuestion {
		return nil, nil, nil
	}
	if err != nil {
		return asToolError(err), nil, nil
	}
	if r.cfg.Asks == nil || r.isDeserted() {
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

// asToolError returns the failure of a call whose arguments its tool does not accept.
func asToolError(err error) *tools.Error {
	if known, ok := err.(*tools.Error); ok { //nolint:errorlint // tools return it unwrapped
		return known
	}
	return tools.Errorf(tools.InvalidArgs, "%v", err)
}

// whyCannotAsk returns why nobody can be asked now; "" if people can be asked.
func (r *callRunner) whyCannotAsk(ctx context.Context) (string, error) {
	why, err := r.cfg.Asks.Ready(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	return why, nil
}

// newAsk makes an ask to people about a call.
func (r *callRunner) newAsk(p *preparedCall, kind string) *sessions.Ask {
	return &sessions.Ask{
		ID: asks.ID(r.key(), p.input.Key), Call: p.id, Kind: kind,
		Expires: time.Now().Add(r.approvals().Expires).UTC().Truncate(time.Second),
	}
}

// delegate prepares the task that a call hands to a sub-agent, and returns the ask by which
// the turn waits for it; nil for other calls.
func (r *callRunner) delegate(ctx context.Context, p *preparedCall) (*tools.Error, *sessions.Ask, error) {
	d, delegates, err := tools.DelegationOf(p.tool, p.input)
	switch {
	case !delegates:
		return nil, nil, nil
	case err != nil:
		return asToolError(err), nil, nil
	case r.cfg.Tasks == nil:
		return tools.Errorf(tools.PermissionDenied, "There are no sub-agents here: do it yourself."), nil, nil
	}
	if err := r.held(ctx); err != nil {
		return nil, nil, fmt.Errorf("before preparing a task: %w", err)
	}
	of, err := r.cfg.Tasks.Prepare(ctx, p.input, d)
	switch refused, isRefused := errors.AsType[*tools.Error](err); {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case isRefused:
		return refused, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", errBusAway, err)
	}
	r.point("task:prepared")
	r.delegated[p.id] = of
	return nil, &sessions.Ask{ID: delegation.MailID(of.ID), Call: p.id, Kind: delegation.Kind}, nil
}

// precheck returns why a call is refused before the guard is asked; nil if it is not.
func (r *callRunner) precheck(t *turn, p *preparedCall) *tools.Error {
	switch {
	case p.tool != nil && !p.granted:
		return tools.Errorf(tools.PermissionDenied, "%s needs the capability %q, which this agent does not have: the operator grants it in [agents.%s] capabilities.",
			p.input.Name, p.tool.Spec().Permission, r.agent.Name)
	case p.invalid != nil:
		return p.invalid
	case p.attempts == 0 && t.countRepeats(p.call) >= repeatRefuse-1:
		return tools.Errorf(tools.Code(codeRepeated), "Refused: the same call has had the same result %d times in this turn. Try something else or conclude.", repeatRefuse-1)
	}
	return nil
}

// maxChanges is how many times the guard may change the arguments of one call.
const maxChanges = 3

// A decision collects what the operator's rules (the guard) and the hooks say of a call
// before it runs.
type decision struct {
	*preparedCall
	maybeDone bool   // an earlier attempt may have had its effect
	ask       bool   // a person has to approve the call
	why       string // the reason for that, for people; "" if none is given
}

// consult asks the guard and the hooks about a call. It returns why the call must not
// run, or nil. Changed arguments have to fit the schema and to pass the guard.
func (r *callRunner) consult(ctx context.Context, d *decision) *tools.Error {
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

// askGuard asks the guard again until it does not change the arguments.
func (r *callRunner) askGuard(ctx context.Context, d *decision) *tools.Error {
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

// applyVerdict applies what the guard or a hook has decided about a call. changed reports
// whether that changed the call's arguments; refused is why the call must not run, or nil.
func (r *callRunner) applyVerdict(d *decision, v tools.Verdict) (changed bool, refused *tools.Error) {
	d.verdict = cmp.Or(v.Decision, d.verdict)
	switch v.Decision {
	case tools.Deny:
		return false, tools.Errorf(tools.PermissionDenied, "%s", cmp.Or(v.Reason, d.input.Name+" was refused by the operator's rules."))
	case tools.Ask:
		d.ask, d.why = true, cmp.Or(d.why, v.Reason)
	}
	return r.changeArgs(d.preparedCall, v, d.maybeDone)
}

// changeArgs gives a call the arguments that the operator's rules want in place of its
// own, and reports whether they differ. refused is why the call must not run with them.
func (r *callRunner) changeArgs(p *preparedCall, v tools.Verdict, maybeDone bool) (changed bool, refused *tools.Error) {
	if v.Args == nil {
		return false, nil
	}
	with := p.input
	with.Args = v.Args
	args, note, invalid := r.tools.Check(with)
	switch {
	case invalid != nil:
		return false, tools.Errorf(tools.PermissionDenied, "%s was not run: the operator's rules changed its arguments to some that do not fit: %s", p.input.Name, invalid.Message)
	case bytes.Equal(args, p.input.Args):
		return false, nil
	case maybeDone:
		return false, tools.Errorf(tools.PermissionDenied, "The operator's rules want other arguments than it was begun with.")
	}
	p.input.Args = args
	p.effect = tools.EffectOf(p.tool, p.input)
	said := "the operator's rules changed the arguments to " + string(args)
	if v.Reason != "" {
		said = fmt.Sprintf("the operator's rules changed the arguments (%s) to %s", v.Reason, args)
	}
	p.addNote(said)
	p.addNote(note)
	return true, nil
}

// untrusted reports whether the model had read text of strangers when it asked for a
// call.
func (r *callRunner) untrusted(ctx context.Context, t *turn, c *call) bool {
	return r.promptUntrusted || transcript.Untrusted(r.journal.Records(), t.id, c.asked) ||
		r.agent.Untrusted != nil && r.agent.Untrusted(ctx, r.key())
}

// review calls the hooks with the outcome of a call that ran, and returns the outcome
// after their changes.
func (r *callRunner) review(ctx context.Context, p *preparedCall, out *outcome) *outcome {
	for _, hook := range r.after {
		result := out.result
		if out.failed != nil {
			result = tools.Result{Content: out.failed.Result().Content, Untrusted: out.result.Untrusted}
		}
		said := hook(ctx, p.input, result)
		withheld := tools.Result{Untrusted: out.result.Untrusted} // the reason may quote the result
		switch {
		case said.Rejected:
			return &outcome{result: withheld, failed: tools.Errorf(tools.PermissionDenied, "%s ran, and what came of it is withheld: %s. Do not run it again for that.", p.input.Name, cmp.Or(said.Reason, "the operator's rules say so"))}
		case said.Content == nil:
		case !json.Valid(said.Content):
			return &outcome{result: withheld, failed: tools.Errorf(tools.PermissionDenied, "%s ran, and what came of it is withheld: the operator's rules made no JSON of it. Do not run it again for that.", p.input.Name)}
		default:
			failed := out.failed
			if failed != nil {
				failed = tools.Errorf(failed.Code, "the operator's rules changed what the model is told of it")
			}
			out = &outcome{result: tools.Result{Content: said.Content, Untrusted: out.result.Untrusted, Kept: out.result.Kept}, failed: failed, changed: true}
		}
	}
	return out
}

// decideApproval decides about a call that needs an approval. The call runs if it was
// approved, alone or for the session, and nothing has changed since. Otherwise people
// are asked, if they can be.
func (r *callRunner) decideApproval(ctx context.Context, p *preparedCall, why string, maybeDone bool) (*tools.Error, *sessions.Ask, error) {
	sum, err := r.approvalHash(ctx, p)
	if err != nil {
		return tools.Errorf(tools.ExecutionFailed, "%s needs an approval, and what is to be approved cannot be looked at: %v", p.input.Name, err), nil, nil
	}
	if p.ask.isApproved() {
		if p.ask.Hash != sum {
			return p.errChanged(), nil, nil
		}
		p.approved, p.approver = sum, p.ask.by
		return nil, nil, nil
	}
	if r.cfg.Asks == nil {
		return asks.NeedsApproval(p.input.Name, why, "who cannot be asked from here"), nil, nil
	}
	by, granted, err := r.cfg.Asks.Granted(ctx, r.key(), sum)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errBusAway, err)
	}
	if granted {
		p.approved, p.approver = sum, by
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
	if r.isDeserted() && len(r.approvals().To) == 0 {
		return asks.NeedsApproval(p.input.Name, why, "who cannot be asked from here: the operator has not set [approvals] to"), nil, nil
	}
	a := r.newAsk(p, bus.AskApproval)
	a.Hash, a.Reason = sum, why
	if !bytes.Equal(p.input.Args, p.use.Args) {
		a.Args = p.input.Args
	}
	a.Places = asks.EncodePlaces(r.approvals().To)
	return nil, a, nil
}

// errChanged marks the call as one that was overtaken, and returns its failure.
func (p *preparedCall) errChanged() *tools.Error {
	p.overtaken = true
	return asks.Changed(p.input.Name)
}

// stillApproved checks an approval once more right before the call runs. It returns an
// error if something has changed.
func (r *callRunner) stillApproved(ctx context.Context, p *preparedCall) *tools.Error {
	if p.approved == "" {
		return nil
	}
	if sum, err := r.approvalHash(ctx, p); err != nil || sum != p.approved {
		return p.errChanged()
	}
	return nil
}

// approvalHash returns a hash of everything that an approval is about: the tool, its
// arguments, the session, and the files and directory that the arguments name.
func (r *callRunner) approvalHash(ctx context.Context, p *preparedCall) (string, error) {
	named := ""
	if r.agent.HashInput != nil {
		var err error
		if named, err = r.agent.HashInput(ctx, p.input); err != nil {
			return "", err
		}
	}
	return asks.Hash(p.input, named), nil
}
