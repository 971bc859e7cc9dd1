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
	// maxStall is how long a process may take from recording that a call is sent until it publishes it. If it stood still for
	// longer, the call is not published, and counts as one whose outcome nobody knows: whoever waited may have gone on.
	maxStall = 10 * time.Second
	// elapsedSlack is by how much a command may have taken longer, as its report says, than the call is old: the agent's clock
	// is another one.
	elapsedSlack = 10 * time.Second
)

// A load is what an agent has been given, as the store has it.
type load struct {
	open    []stored.Call        // all calls that have not ended
	running int                  // how many were sent, and may still run
	late    map[string]time.Time // tools of calls that are late, and until when each may be reported
	waiting []stored.Call        // those that were not sent
	next    time.Time            // when one of these becomes something else
}

// loadOf sorts the agent's open calls. Those that nobody can report anymore are in forgotten.
func (e *edge) loadOf(open []stored.Call, now time.Time) (l load, forgotten []stored.Call) {
	l = load{open: open, late: map[string]time.Time{}, next: now.Add(edgeLookAgain)}
	for _, c := range open {
		due := c.SentAt.Add(c.Timeout + outcomeGrace)
		end := due.Add(e.cfg.Timing.Late)
		switch {
		case c.SentAt.IsZero():
			l.waiting = append(l.waiting, c)
		case now.Before(due):
			l.running++
			l.wakeAt(due)
		case now.Before(end):
			l.late[c.Tool] = end
			l.wakeAt(end)
		default:
			forgotten = append(forgotten, c)
		}
	}
	return l, forgotten
}

func (l *load) wakeAt(at time.Time) {
	if at.Before(l.next) {
		l.next = at
	}
}

// serveCalls sends the agent those of its calls that it may get now, and ends those that nobody reports anymore. It returns
// after how long there is something to do again.
func (e *edge) serveCalls(ctx context.Context) time.Duration {
	now := time.Now()
	open, err := e.cfg.Edges.OpenWithoutKey(ctx, e.name)
	if err != nil {
		if ctx.Err() == nil {
			e.log().Warn("a node's calls cannot be read now", slog.Any("error", err))
		}
		return storeAgain
	}
	l, forgotten := e.loadOf(open, now)
	for _, c := range forgotten {
		e.end(ctx, c, nodes.Outcome{Status: nodes.Unknown, Error: tools.Errorf(tools.OutcomeUnknown, textNoAnswer, c.Tool, e.name)})
	}
	if e.linked {
		l.wakeAt(e.heard.Add(e.cfg.Timing.Silence))
		for _, c := range l.waiting {
			if !e.tells && l.running > 0 { // one at a time
				break
			}
			if until, late := l.late[c.Tool]; late && !e.tells {
				e.end(ctx, c, nodes.Outcome{Status: nodes.NotRun, Error: tools.Errorf(tools.ExecutionFailed, textEarlierCall, c.Tool, e.name, sinceText(until))})
				continue
			}
			switch err := e.send(ctx, c); {
			case err != nil:
				return storeAgain
			case e.connection() == nil:
				return edgeLookAgain // the next connection rings
			}
			l.running++
			l.wakeAt(time.Now().Add(c.Timeout + outcomeGrace))
		}
	}
	return max(time.Until(l.next), 10*time.Millisecond)
}

// send publishes a call, once: the call is recorded as sent before, and a call that is recorded as sent is never published
// again, whatever becomes of the attempt. It returns an error if the call can't be recorded as sent now.
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
		poke(e.check)
		return err
	case err != nil:
		e.log().Warn("a node's calls cannot be sent now", slog.Any("error", err))
		return err
	case !c.Ended.IsZero():
		return nil
	}
	e.Service.cfg.Point("edge:recorded")
	// It stays unsent if it is too late, or this process has lost the broker in between.
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

// report records how a call has ended. What belongs to no call of the agent is dropped.
func (e *edge) report(ctx context.Context, m mqtt.Message) {
	if m.TooLarge {
		e.tooLarge(ctx)
		return
	}
	r, err := mqtt.ParseReport(m.Payload)
	if err != nil {
		return // agents report other things, too
	}
	open, err := e.openCalls(ctx)
	if err != nil {
		return
	}
	c, found := belongsTo(r, open)
	if !found {
		if e.noted.Allow() {
			e.log().Info("a report of an edge agent belongs to no call of it")
		}
		return
	}
	e.tells = r.RequestID == c.ID
	out, err := r.Outcome()
	if err != nil {
		e.log().Warn("a report of an edge agent can't be recorded", slog.Any("error", err))
		return
	}
	e.end(ctx, c, plausible(&out))
}

// tooLarge ends the agent's call with a report that is too large to read, if it can only be one call's.
func (e *edge) tooLarge(ctx context.Context) {
	open, err := e.openCalls(ctx)
	if err != nil {
		return
	}
	open = slices.DeleteFunc(open, func(c stored.Call) bool { return c.SentAt.IsZero() })
	if len(open) == 1 {
		e.end(ctx, open[0], nodes.Outcome{Status: nodes.Failed, Error: tools.Errorf(tools.ExecutionFailed, textTooLarge, nodes.MaxResult)})
	}
}

// openCalls returns the agent's calls that have not ended. It tries until the store answers, or ctx is done.
func (e *edge) openCalls(ctx context.Context) ([]stored.Call, error) {
	for {
		open, err := e.cfg.Edges.OpenWithoutKey(ctx, e.name)
		if err == nil || !e.pause(ctx, storeAgain) {
			return open, err
		}
		e.log().Warn("a node's calls cannot be read now", slog.Any("error", err))
	}
}

// belongsTo returns the call that a report is of. A report that names one is of that call or none. Another one is of the only
// call of its tool that was sent, unless that call has begun after what the report is about.
func belongsTo(r mqtt.Report, open []stored.Call) (c stored.Call, found bool) {
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

// end records how a call has ended, and rings for whoever waits. It tries until the store answers, or ctx is done.
func (e *edge) end(ctx context.Context, c stored.Call, out nodes.Outcome) {
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
		if !e.pause(ctx, storeAgain) {
			return
		}
		e.log().Warn("it cannot be recorded how a call has ended; trying again", slog.Any("error", err))
	}
}
