// Package figures computes the statistics of a turn when it ends: how long it took, and how its tool calls
// went.
package figures

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/agent/turn"
	"parley/sessions"
)

// Of returns the statistics of an agent's turn that is about to end with these entries. It counts all
// calls of tools that don't exist under one name, because a model may make up any number of names.
func Of(a *agent.Agent, t *turn.Turn, ending []sessions.Entry) *sessions.TurnFigures {
	f := &sessions.TurnFigures{TookMS: max(0, (time.Since(t.Started) - t.WaitingTime()).Milliseconds()), FirstMS: t.FirstMS, Task: len(t.Tasks) > 0}
	for _, e := range ending {
		if e.Kind != sessions.KindUsage || e.Turn != t.ID {
			continue
		}
		if used, err := sessions.Decode[sessions.Usage](e); err == nil {
			f.FirstMS = cmp.Or(f.FirstMS, used.FirstMS)
		}
	}
	outcomes := t.Outcomes(ending)
	counts := map[sessions.CallsCount]int{}
	for _, step := range t.Steps {
		for _, c := range step.Calls {
			counts[sessions.CallsCount{Tool: a.ToolName(c.Use.Name), Outcome: outcomes[c.ID]}]++
		}
	}
	for one, n := range counts {
		one.N = n
		f.Calls = append(f.Calls, one)
	}
	slices.SortFunc(f.Calls, func(a, b sessions.CallsCount) int {
		return cmp.Or(strings.Compare(a.Tool, b.Tool), strings.Compare(a.Outcome, b.Outcome))
	})
	return f
}

// OfEnded returns what metrics count of a turn that has ended.
func OfEnded(t *turn.Turn) agent.EndedTurn {
	ended := agent.EndedTurn{Result: t.Done.State, Took: time.Since(t.Started) - t.WaitingTime(), Steps: t.ModelCalls}
	if t.Done.State == sessions.TurnCompleted && t.IsAwaited() {
		ended.Answer = ended.Took
		if !t.SaidAt.IsZero() && t.SaidAt.Before(t.Started) { // the platform's clock may be ahead
			ended.Answer += t.Started.Sub(t.SaidAt)
		}
	}
	outcomes, succeeded := t.Outcomes(nil), map[string]bool{} // succeeded: by tool, in later steps
	for _, step := range slices.Backward(t.Steps) {
		for _, c := range step.Calls {
			if outcome := outcomes[c.ID]; outcome != sessions.CallFailed && outcome != sessions.CallTimeout {
				continue
			}
			if succeeded[c.Use.Name] {
				ended.Recovered++
			} else {
				ended.Unrecovered++
			}
		}
		for _, c := range step.Calls {
			if outcomes[c.ID] == sessions.CallOK {
				succeeded[c.Use.Name] = true
			}
		}
	}
	return ended
}
