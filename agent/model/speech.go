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

// A Reader has the voice of a session's agent read aloud a text of a turn that has ended. The person pays for it as for
// the turn: the cost is reserved before, and recorded after.
type Reader struct {
	costs
	turn    *turn.Turn // a turn for the reading, separate from the turn that has ended
	reading agent.Reading
	cost    *llm.Answer // the cost of the reading; nil until there is one
}

// NewReader returns a Reader for a turn of the session.
func (m *Askers) NewReader(s *turn.Session, t *turn.Turn, what agent.Reading) *Reader {
	own := s.WithoutTurnState()
	own.Payer = s.Payer
	return &Reader{costs: m.New(own).costs, turn: &turn.Turn{ID: what.Message, Person: t.Person, Route: t.Route}, reading: what}
}

// Find returns the recording that an earlier holder of the session has made; nil if there is none, or if it was sent. Its
// cost is not in the log yet, because End records that together with the end of the reading.
func (r *Reader) Find(ctx context.Context) (found *bus.FileRef, sent bool, err error) {
	found, sent, err = r.Agent.Voice.Find(ctx, r.reading)
	if found != nil || sent {
		r.cost = r.usage(false)
	}
	return found, sent, err
}

// usage returns the cost of the reading. If the cost is unknown, it contains tokens, because sums report a missing cost
// only for calls with tokens.
func (r *Reader) usage(estimated bool) *llm.Answer {
	model, micro, known := r.Agent.Voice.Price(r.reading.Words)
	used := llm.Usage{Cost: micro, Priced: known, Estimated: estimated || !known}
	if !known {
		used.Input = int64(len(r.reading.Words)/transcript.BytesPerToken) + 1
	}
	return &llm.Answer{Model: model, Usage: used}
}

// Record makes the recording within a time, after Reserve has reserved its cost. If there is no recording, the error is
// an *agent.UnreadError that says why. Any other error ends the run, which is then tried again.
func (r *Reader) Record(ctx context.Context, within time.Duration) (bus.FileRef, error) {
	r.Point("aloud:ask")
	if err := r.Lease.Held(ctx); err != nil {
		return bus.FileRef{}, fmt.Errorf("before reading an answer aloud: %w", err)
	}
	asking, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	file, err := r.Agent.Voice.Record(asking, r.reading)
	unread, isUnread := errors.AsType[*agent.UnreadError](err)
	if err == nil || ctx.Err() != nil || isUnread && unread.Paid { // the fate of a request that was cut off is unknown
		r.cost = r.usage(err != nil)
		r.Reservations.Spend(r.cost.Usage)
	}
	r.Point("aloud:made")
	return file, err
}

// Reserve reserves the cost of the reading. All of it counts as spent once the model is asked. It returns an
// *agent.UnreadError if too little is left.
func (r *Reader) Reserve(ctx context.Context) error {
	if err := r.findAccount(ctx, r.turn); err != nil {
		return err
	}
	all := budget.Amount{Micro: r.usage(false).Usage.Cost}
	err := r.Reservations.Take(ctx, r.reservationName(r.turn.ID, 1), budget.Call{All: all, OnceSent: all}, r.bounds(r.turn.Person, ""))
	if over, ok := errors.AsType[*budget.OverError](err); ok {
		return &agent.UnreadError{Code: "over_budget", Why: textNoMoney, Err: over}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreserved, err)
	}
	return nil
}

// End writes the entries with which the reading ends. The same write records and settles the cost, unless that is done.
func (r *Reader) End(ctx context.Context, entries ...sessions.Entry) error {
	if r.cost != nil {
		entries = append(entries, r.usageEntry("", r.turn.Person, *r.cost, 0))
	}
	done, err := r.AppendWith(ctx, r.Reservations.Settlement(), turn.DurableAtOnce, entries...)
	if err != nil {
		return err
	}
	r.Reservations.Settled(done)
	if r.cost != nil {
		r.emitUsed(r.turn, *r.cost)
	}
	r.cost = nil
	return nil
}

// Close settles the reservation if End has not, because the reading was cut off.
func (r *Reader) Close(ctx context.Context) { r.Reservations.Settle(ctx) }
