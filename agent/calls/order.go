package calls

import (
	"slices"

	"parley/agent/turn"
	"parley/tools"
)

// Sort sorts the open calls of a step into the order in which they run: the order in which the model wrote
// them, except that each call runs after those that it depends on (see tools.Spec.After). It tells each call
// which calls run ahead of it. dependent reports whether any of them depends on another call of the step, so
// that they can't run in parallel.
func Sort(t *turn.Turn, open []*Prepared) (sorted []*Prepared, dependent bool) {
	rest := slices.Clone(open)
	for len(rest) > 0 {
		next := slices.IndexFunc(rest, func(p *Prepared) bool {
			return !slices.ContainsFunc(rest, func(other *Prepared) bool { return p.dependsOn(other.Call) })
		})
		p := rest[max(next, 0)] // if each waits for another, the model's order stays
		rest = slices.Delete(rest, max(next, 0), max(next, 0)+1)
		p.CallsAhead = slices.Clip(sorted)
		sorted = append(sorted, p)
		dependent = dependent || slices.ContainsFunc(stepOf(t), p.dependsOn)
	}
	return sorted, dependent
}

// Readiness finds out whether a call can run now, once those ahead of it have run; t is the turn as it is by
// then. ready is false while a call that it depends on waits for people. failed says that such a call has
// failed, so that this one must not run.
func (p *Prepared) Readiness(t *turn.Turn) (ready bool, failed *tools.Error) {
	for _, c := range stepOf(t) {
		switch {
		case !p.dependsOn(c):
		case c.Result != nil && c.Result.Code != "":
			return false, tools.Errorf(tools.Cancelled, "Not run: it runs after %s, which failed in the same step. Call it again if it is still wanted.", c.Use.Name)
		case c.Result == nil && slices.ContainsFunc(p.CallsAhead, func(other *Prepared) bool { return other.ID == c.ID }):
			return false, nil
		}
	}
	return true, nil
}

// IsDependent reports whether the call's tool runs after other tools.
func (p *Prepared) IsDependent() bool { return p.tool != nil && len(p.tool.Spec().After) > 0 }

// dependsOn reports whether the call runs after c, another call of the step.
func (p *Prepared) dependsOn(c *turn.Call) bool {
	return p.IsDependent() && c.ID != p.ID && slices.Contains(p.tool.Spec().After, c.Use.Name)
}

// stepOf returns the calls of a turn's newest step.
func stepOf(t *turn.Turn) []*turn.Call {
	if len(t.Steps) == 0 {
		return nil
	}
	return t.Steps[len(t.Steps)-1].Calls
}
