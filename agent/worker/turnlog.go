package worker

import (
	"context"
	"log/slog"
	"time"

	"parley/agent/spans"
	"parley/agent/turn"
	"parley/sessions"
)

// This file reports turns to operators, in the server's log, in the audit and as spans: ids and figures, never what
// people wrote, unless the operator wants that in spans.

// logBeginning logs that a turn has begun.
func (s lifecycle) logBeginning(t *turn.Turn) {
	s.Log.Info("turn begins", slog.String("turn", t.ID), slog.String("agent", s.Agent.Name), slog.String("model", s.Agent.Model.Info().Name),
		slog.String("person", t.Person), slog.Int("messages", len(t.Causes)))
}

// auditEnd records the end of a turn in the audit: as a refusal, if a rule kept the turn from doing
// anything. used is what the turn has used. If again is true, an earlier holder may already have done so; then a
// refusal isn't recorded.
func (s lifecycle) auditEnd(t *turn.Turn, used sessions.AuditUse, again bool) {
	if s.Config.QueueAudit == nil || again && t.Done.Refused { // a refusal would be counted twice
		return
	}
	record := sessions.AuditRecord{At: t.Ended, By: t.Person, Agent: s.Agent.Name, Session: s.Key(), Turn: t.ID, Elapsed: s.workingTime(t).Milliseconds(), MayBeRecorded: again}
	if t.Done.Refused {
		record.Kind, record.Result = sessions.AuditRefusal, t.Done.Code
		record.Address, record.Messages = t.Route.At.String(), t.Causes
	} else {
		record.Kind, record.Result, record.Detail, record.Used = sessions.AuditTurn, t.Done.State, t.Done.Code, &used
	}
	s.Config.QueueAudit(record)
}

// workingTime returns how long a turn has worked, not counting the time that it waited for people.
func (s lifecycle) workingTime(t *turn.Turn) time.Duration {
	return t.Ended.Sub(t.Started) - t.WaitingTime()
}

// reportEnd logs how a turn has just ended, and has that recorded in the audit.
func (s lifecycle) reportEnd(t *turn.Turn) {
	used := s.usageOf(t)
	s.logEnd(t, used)
	s.auditEnd(t, used, false)
	spans.Record(s.Session, t)
}

// logEnd logs how a turn ended, and what it used.
func (s lifecycle) logEnd(t *turn.Turn, used sessions.AuditUse) {
	if t.Done.Refused {
		s.Log.Info("message refused", slog.String("id", t.ID), slog.String("turn", t.ID), slog.String("person", t.Person), slog.String("rule", t.Done.Code))
		return
	}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("turn", t.ID), slog.String("state", t.Done.State), slog.String("agent", s.Agent.Name), slog.String("model", used.Model),
		slog.Int("model_calls", used.ModelCalls), slog.Int("calls", used.Calls), slog.Int64("input", used.Input), slog.Int64("output", used.Output),
		slog.Duration("took", s.workingTime(t).Round(time.Millisecond)),
	}
	if used.Cost != nil {
		attrs = append(attrs, slog.Int64("microdollars", *used.Cost))
	}
	if waited := t.WaitingTime(); waited > 0 {
		attrs = append(attrs, slog.Duration("waited", waited.Round(time.Millisecond)))
	}
	if t.Done.Code != "" {
		level, attrs = slog.LevelWarn, append(attrs, slog.String("code", t.Done.Code))
	}
	s.Log.LogAttrs(context.Background(), level, "turn ended", attrs...)
}

// usageOf adds up what a turn has used, as far as the journal knows. The cost is that of the calls whose price is
// known; nil if there are none.
func (s lifecycle) usageOf(t *turn.Turn) sessions.AuditUse {
	used := sessions.AuditUse{Model: s.Agent.Model.Info().Name, ModelCalls: t.ModelCalls}
	for _, step := range t.Steps {
		used.Calls += len(step.Calls)
	}
	for _, r := range s.Journal.Since(t.FirstEntry) {
		u, ok := r.Data.(sessions.Usage)
		if !ok || r.Turn != t.ID && r.Turn != "" { // unused answers belong to no turn
			continue
		}
		used.Input, used.Output = used.Input+u.Input, used.Output+u.Output
		if r.Turn == t.ID {
			used.Model = u.Model
		}
		if u.Cost != nil {
			sum := *u.Cost
			if used.Cost != nil {
				sum += *used.Cost
			}
			used.Cost = &sum
		}
	}
	return used
}
