package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/agent/llm"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// A Reader has the voice of a session's agent read something aloud that belongs to a turn that has ended. The person pays
// for it as for the turn: the cost is set aside before, and recorded after.
type Reader struct {
	costs
	turn *turn.Turn // stands for the reading, apart from the turn that has ended
	what agent.Reading
	used *llm.Answer // what the reading has cost; nil as long as it has cost nothing
}

// NewReader returns a Reader for a turn of the session.
func (m *Askers) NewReader(s *turn.Session, t *turn.Turn, what agent.Reading) *Reader {
	own := s.Aside()
	own.Payer = s.Payer
	return &Reader{costs: m.New(own).costs, turn: &turn.Turn{ID: what.Message, Person: t.Person, Route: t.Route}, what: what}
}

// Find returns the recording that an earlier holder of the session has made; nil if there is none, or if it was sent. Its
// cost is not in the log yet, because End records that together with the end of the reading.
func (r *Reader) Find(ctx context.Context) (found *bus.FileRef, sent bool, err error) {
	found, sent, err = r.Agent.Voice.Find(ctx, r.what)
	if found != nil || sent {
		r.used = r.usage(false)
	}
	return found, sent, err
}

// usage returns what the reading costs. If nobody knows, it has tokens, because a sum of costs says only of calls with tokens
// that their cost is missing.
func (r *Reader) usage(estimated bool) *llm.Answer {
	model, micro, known := r.Agent.Voice.Price(r.what.Words)
	used := llm.Usage{Cost: micro, Priced: known, Estimated: estimated || !known}
	if !known {
		used.Input = int64(len(r.what.Words)/transcript.BytesPerToken) + 1
	}
	return &llm.Answer{Model: model, Usage: used}
}

// Record makes the recording within a time, once Reserve has set aside what it costs. An *agent.UnreadError says why there is
// none; any other error ends the run, which is then tried again.
func (r *Reader) Record(ctx context.Context, within time.Duration) (bus.FileRef, error) {
	r.Point("aloud:ask")
	if err := r.Lease.Held(ctx); err != nil {
		return bus.FileRef{}, fmt.Errorf("before reading an answer aloud: %w", err)
	}
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	file, err := r.Agent.Voice.Record(asking, r.what)
	unread, isUnread := errors.AsType[*agent.UnreadError](err)
	if err == nil || ctx.Err() != nil || isUnread && unread.Paid { // what becomes of a request that was cut off, nobody knows
		r.used = r.usage(err != nil)
		r.Reservations.Spend(r.used.Usage)
	}
	r.Point("aloud:made")
	return file, err
}

// Reserve sets aside what the reading costs. All of it is spent once the model is asked. An *agent.UnreadError says that too
// little is left.
func (r *Reader) Reserve(ctx context.Context) error {
	if err := r.findAccount(ctx, r.turn); err != nil {
		return err
	}
	all := budget.Amount{Micro: r.usage(false).Usage.Cost}
	err := r.Reservations.Take(ctx, r.reservationName(r.turn.ID, 1), budget.Call{All: all, Sent: all}, r.bounds(r.turn.Person, ""))
	if over, ok := errors.AsType[*budget.OverError](err); ok {
		return &agent.UnreadError{Code: "over_budget", Why: textNoMoney, Err: over}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreserved, err)
	}
	return nil
}

// End writes entries to the log with which the reading ends. The same write records and settles what it has cost, unless an
// earlier one has.
func (r *Reader) End(ctx context.Context, entries ...sessions.Entry) error {
	if r.used != nil {
		entries = append(entries, r.usageEntry("", r.turn.Person, *r.used, 0))
	}
	done, err := r.AppendWith(ctx, r.Reservations.Settlement(), turn.AtOnce, entries...)
	if err != nil {
		return err
	}
	r.Reservations.Settled(done)
	if r.used != nil {
		r.emitUsed(r.turn, *r.used)
	}
	r.used = nil
	return nil
}

// Close settles what End has not settled, because the reading was cut off before.
func (r *Reader) Close(ctx context.Context) { r.Reservations.Settle(ctx) }
