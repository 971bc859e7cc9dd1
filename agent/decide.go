package agent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"parley/agent/transcript"
	"parley/tools"
)

// refusal says why a call is not to run; nil lets it run. maybeDone says that an
// earlier attempt may have had its effect.
func (r *callRunner) refusal(ctx context.Context, t *turn, p *preparedCall, maybeDone bool) *tools.Error {
	switch {
	case p.tool != nil && !p.granted:
		return tools.Errorf(tools.PermissionDenied, "%s needs the capability %q, which this agent does not have: the operator grants it in [agents.%s] capabilities.",
			p.input.Name, p.tool.Spec().Permission, r.agent.Name)
	case p.invalid != nil:
		return p.invalid
	case p.attempts == 0 && t.repeats(p.call) >= repeatRefuse-1:
		return tools.Errorf(tools.Code(codeRepeated), "Refused: the same call has had the same result %d times in this turn. Try something else or conclude.", repeatRefuse-1)
	case r.guard != nil:
		return r.askGuard(ctx, p, maybeDone)
	}
	return nil
}

// maxChanges is how often the arguments of one call may be changed.
const maxChanges = 3

// askGuard has the guard decide about a call. Where it changes the arguments, they
// have to fit the schema and to pass the guard once more.
func (r *callRunner) askGuard(ctx context.Context, p *preparedCall, maybeDone bool) *tools.Error {
	ask, why := false, ""
	for range maxChanges + 1 {
		v := r.guard(ctx, p.input)
		if v.Decision == tools.Deny {
			return tools.Errorf(tools.PermissionDenied, "%s", cmp.Or(v.Reason, p.input.Name+" was refused by the operator's rules."))
		}
		if v.Decision == tools.Ask {
			ask, why = true, cmp.Or(v.Reason, why)
		}
		changed, refused := r.change(p, v, maybeDone)
		switch {
		case refused != nil:
			return refused
		case !changed && ask:
			return needsApproval(p.input.Name, why)
		case !changed:
			return nil
		}
	}
	return tools.Errorf(tools.PermissionDenied, "%s was not run: the operator's rules change its arguments without an end.", p.input.Name)
}

// needsApproval says that a call needs a person, and that none can be asked.
func needsApproval(name, why string) *tools.Error {
	if why != "" {
		why = " (" + why + ")"
	}
	return tools.Errorf(tools.PermissionDenied, "%s needs the approval of an owner%s, who cannot be asked from here yet. Nothing was done: go on without it, or say what should be done by hand.", name, why)
}

// change gives a call the arguments of a verdict, and tells whether they are others.
func (r *callRunner) change(p *preparedCall, v tools.Verdict, maybeDone bool) (changed bool, refused *tools.Error) {
	if v.Args == nil {
		return false, nil
	}
	with := p.input
	with.Args = v.Args
	args, note, invalid := r.agent.Tools.Check(with)
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

// untrusted tells whether the model that asked for a call had read what nobody here
// vouches for.
func (r *callRunner) untrusted(ctx context.Context, c *call) bool {
	return transcript.Untrusted(r.journal.Records(), c.asked) ||
		r.agent.Untrusted != nil && r.agent.Untrusted(ctx, r.key())
}

// addNote adds to what the model is told of its arguments.
func (p *preparedCall) addNote(note string) {
	if note == "" {
		return
	}
	if p.note != "" {
		p.note += "; "
	}
	p.note += note
}
