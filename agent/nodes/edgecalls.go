package nodes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/mqtt"
	"parley/tools/plainjson"
)

const (
	// maxStall is how long a process may take between recording that a call is sent and publishing it. If it takes
	// longer, the call is not published, and its outcome counts as unknown: its waiter may have continued.
	maxStall = 10 * time.Second
	// elapsedSlack is by how much a command's reported run time may exceed the age of its call. The agent's clock may
	// differ.
	elapsedSlack = 10 * time.Second
)

// An edgeLoad is an agent's load: its calls, as the store has them.
type edgeLoad struct {
	open       []stored.Call        // all calls that have not ended
	running    int                  // how many were sent, and may still run
	lateUntil  map[string]time.Time // by tool: until when its late call may be reported
	waiting    []stored.Call        // those that were not sent
	nextChange time.Time            // when the first of these times is over
}

// loadOf sorts the agent's open calls. forgotten are the calls that can't be reported anymore.
func (e *edge) loadOf(open []stored.Call, now time.Time) (l edgeLoad, forgotten []stored.Call) {
	l = edgeLoad{open: open, lateUntil: map[string]time.Time{}, nextChange: now.Add(edgeRecheckEvery)}
	for _, c := range open {
		due := c.SentAt.Add(c.Timeout + outcomeGrace)
		end := due.Add(e.cfg.Timing.LateReport)
		switch {
		case c.SentAt.IsZero():
			l.waiting = append(l.waiting, c)
		case now.Before(due):
			l.running++
			l.wakeAt(due)
		case now.Before(end):
			l.lateUntil[c.Tool] = end
			l.wakeAt(end)
		default:
			forgotten = append(forgotten, c)
		}
	}
	return l, forgotten
}

func (l *edgeLoad) wakeAt(at time.Time) {
	if at.Before(l.nextChange) {
		l.nextChange = at
	}
}

// serveCalls sends the agent the calls that it may get now, and ends those that can't be reported anymore. It returns
// the time until there may be more to do.
func (e *edge) serveCalls(ctx context.Context) time.Duration {
	now := time.Now()
	open, err := e.cfg.Edges.OpenWithoutKey(ctx, e.name)
	if err != nil {
		if ctx.Err() == nil {
			e.log().Warn("a node's calls cannot be read now", slog.Any("error", err))
		}
		return storeRetryDelay
	}
	l, forgotten := e.loadOf(open, now)
	for _, c := range forgotten {
		e.endCall(ctx, c, nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, textNoAnswer, c.Tool, e.name)})
	}
	if e.isLinked {
		l.wakeAt(e.lastHeard.Add(e.cfg.Timing.Silence))
		for _, c := range l.waiting {
			if !e.reportsNameCalls && l.running > 0 { // one at a time
				break
			}
			if until, late := l.lateUntil[c.Tool]; late && !e.reportsNameCalls {
				e.endCall(ctx, c, nodes.Outcome{Status: nodes.NotRun, Error: tools.Errorf(tools.ExecutionFailed, textEarlierCall, c.Tool, e.name, sinceText(until))})
				continue
			}
			switch err := e.send(ctx, c); {
			case err != nil:
				return storeRetryDelay
			case e.connection() == nil:
				return edgeRecheckEvery // a new connection rings
			}
			l.running++
			l.wakeAt(time.Now().Add(c.Timeout + outcomeGrace))
		}
	}
	return max(time.Until(l.nextChange), 10*time.Millisecond)
}

// send publishes a call, once: the call is first recorded as sent, and a call that is recorded as sent is never
// published again, even if the attempt fails. It returns an error if the call can't be recorded as sent now.
func (e *edge) send(ctx context.Context, c stored.Call) error {
	conn := e.connection()
	if conn == nil {
		return nil
	}
	began := time.Now()
	c, err := e.Service.cfg.Calls.Send(ctx, c.ID, e.Service.cfg.Process, began)
	switch {
	case errors.Is(err, stored.ErrUnknown): // erased
		return nil
	case errors.Is(err, stored.ErrOther):
		notify(e.check)
		return err
	case err != nil:
		e.log().Warn("a node's calls cannot be sent now", slog.Any("error", err))
		return err
	case !c.Ended.IsZero():
		return nil
	}
	e.Service.cfg.Point("edge:recorded")
	// The call stays unpublished if it is too late, or if this process has lost the broker since.
	if ctx.Err() != nil || time.Since(began) > maxStall {
		e.log().Warn("a call was recorded as sent and not sent", slog.String("call", c.ID))
		return nil
	}
	if err := conn.Send(ctx, e.name, mqtt.Command{ID: c.ID, Tool: c.Tool, Parameters: c.Args, Timeout: c.Timeout}); err != nil {
		e.log().Warn("it is not known whether the MQTT broker has taken a call", slog.String("call", c.ID), slog.Any("error", err))
	}
	e.Service.cfg.Point("edge:published")
	return nil
}

// recordReport records how a call has ended. It drops a report that belongs to no call of the agent.
func (e *edge) recordReport(ctx context.Context, m mqtt.Message) {
	if m.TooLarge {
		e.recordTooLargeReport(ctx)
		return
	}
	r, err := mqtt.ParseReport(m.Payload)
	if err != nil {
		return // agents also report other events
	}
	open, err := e.openCalls(ctx)
	if err != nil {
		return
	}
	c, found := callOfReport(r, open)
	if !found {
		if e.floodLogLimit.Allow() {
			e.log().Info("a report of an edge agent belongs to no call of it")
		}
		return
	}
	e.reportsNameCalls = r.RequestID == c.ID
	out, err := r.Outcome()
	if err != nil {
		e.log().Warn("a report of an edge agent can't be recorded", slog.Any("error", err))
		return
	}
	e.endCall(ctx, c, checkedOutcome(&out))
}

// recordTooLargeReport ends the agent's call after a report that is too large to read, if only one call is possible.
func (e *edge) recordTooLargeReport(ctx context.Context) {
	open, err := e.openCalls(ctx)
	if err != nil {
		return
	}
	open = slices.DeleteFunc(open, func(c stored.Call) bool { return c.SentAt.IsZero() })
	if len(open) == 1 {
		e.endCall(ctx, open[0], nodes.Outcome{Status: nodes.Failed, Error: tools.Errorf(tools.ExecutionFailed, textTooLarge, nodes.MaxResult)})
	}
}

// openCalls returns the agent's calls that have not ended. It tries again until the store answers, or ctx is done.
func (e *edge) openCalls(ctx context.Context) ([]stored.Call, error) {
	for {
		open, err := e.cfg.Edges.OpenWithoutKey(ctx, e.name)
		if err == nil || !e.pause(ctx, storeRetryDelay) {
			return open, err
		}
		e.log().Warn("a node's calls cannot be read now", slog.Any("error", err))
	}
}

// callOfReport returns the call that a report is about. If the report names a call, it is that call or none. Otherwise
// it is the only sent call of the report's tool, unless that call began after the reported command.
func callOfReport(r mqtt.Report, open []stored.Call) (c stored.Call, found bool) {
	for _, one := range open {
		if one.SentAt.IsZero() {
			continue
		}
		if r.RequestID != "" {
			if one.ID == r.RequestID {
				return one, true
			}
			continue
		}
		if one.Tool != r.Tool || r.Took() > time.Since(one.SentAt)+elapsedSlack {
			continue
		}
		if found {
			return stored.Call{}, false
		}
		c, found = one, true
	}
	return c, found
}

// endCall records how a call has ended, and wakes its waiters. It tries again until the store answers, or ctx is done.
func (e *edge) endCall(ctx context.Context, c stored.Call, out nodes.Outcome) {
	raw, err := plainjson.Marshal(out)
	if err != nil {
		e.log().Warn("how a call has ended can't be recorded", slog.Any("error", err))
		return
	}
	for {
		_, err := e.Service.cfg.Calls.End(ctx, c.ID, raw, time.Now())
		if err == nil || errors.Is(err, stored.ErrUnknown) {
			e.emit(callEnded, e.name, c.ID, "")
			return
		}
		if !e.pause(ctx, storeRetryDelay) {
			return
		}
		e.log().Warn("it cannot be recorded how a call has ended; trying again", slog.Any("error", err))
	}
}
