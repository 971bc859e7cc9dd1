// Package figures says what is counted of a turn when it ends: how long it took, and how its calls of tools went.
package figures

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/agent/turn"
	"parley/sessions"
	"parley/tools"
)

// Of returns what is counted of a turn of an agent that is about to end with these entries. Only names of tools that
// there are get into the counts: a model may make up any number of others.
func Of(a *agent.Agent, t *turn.Turn, ending []sessions.Entry) *sessions.TurnFigures {
	f := &sessions.TurnFigures{TookMS: max(0, (time.Since(t.Started) - t.WaitingTime()).Milliseconds()), FirstMS: t.FirstMS, Task: len(t.Tasks) > 0}
	late := map[string]sessions.ToolResult{}
	for _, e := range ending {
		switch e.Kind {
		case sessions.KindUsage:
			if used, err := sessions.Decode[sessions.Usage](e); err == nil && e.Turn == t.ID {
				f.FirstMS = cmp.Or(f.FirstMS, used.FirstMS)
			}
		case sessions.KindToolResult:
			if result, err := sessions.Decode[sessions.ToolResult](e); err == nil {
				late[e.Call] = result
			}
		}
	}
	counts := map[sessions.CallsCount]int{}
	for _, step := range t.Steps {
		for _, c := range step.Calls {
			result, ended := late[c.ID]
			if c.Result != nil {
				result, ended = *c.Result, true
			}
			one := sessions.CallsCount{Tool: toolName(a, c.Use.Name), Outcome: sessions.CallCancelled}
			if ended {
				one.Outcome = outcomeOf(tools.Code(result.Code))
			}
			counts[one]++
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

// toolName returns the name of a tool if there is one, and sessions.OtherTool if a model has made it up.
func toolName(a *agent.Agent, name string) string {
	for _, set := range []*tools.Set{a.Tools, a.Known} {
		if set == nil {
			continue
		}
		if _, known := set.Lookup(name); known {
			return name
		}
	}
	return sessions.OtherTool
}

// outcomeOf returns how a call has ended, as it is counted.
func outcomeOf(code tools.Code) string {
	switch code {
	case "":
		return sessions.CallOK
	case tools.PermissionDenied:
		return sessions.CallDenied
	case tools.Timeout:
		return sessions.CallTimeout
	case tools.Cancelled:
		return sessions.CallCancelled
	case tools.OutcomeUnknown:
		return sessions.CallUnknown
	}
	return sessions.CallFailed
}
