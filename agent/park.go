package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// park is the line by which a turn begins to wait: what it waits for is in the log
// before anybody is asked. A question has begun by it (C4); an approved call begins
// when it runs.
func (r *turnRun) park(ctx context.Context, t *turn, asks []sessions.Ask) error {
	var entries []sessions.Entry
	for _, a := range asks {
		if a.Kind != bus.AskQuestion {
			continue
		}
		e := journal.NewEntry(t.id, sessions.KindToolStarted, sessions.ToolStarted{Attempt: 1})
		e.Call = a.Call
		entries = append(entries, e)
	}
	entries = append(entries, journal.NewEntry(t.id, sessions.KindTurnParked, sessions.TurnParked{Asks: asks}))
	r.point("park:before")
	if err := r.journal.Append(ctx, entries...); err != nil {
		return err
	}
	r.point("park")
	return errParked
}

// announce asks people what a parked turn waits for: each ask goes into the book with
// its timer, and then the question to where people are asked. Whoever is cut off in
// between does all of it again, under the same ids. Only then are the turn's messages
// settled, and nobody holds the session any more.
func (s *session) announce(ctx context.Context, id string) error {
	t, err := fold(id, s.journal.Records())
	if err != nil {
		return err
	}
	for _, a := range t.openAsks() {
		if err := s.openAsk(ctx, t, a); err != nil {
			return err
		}
	}
	if err := s.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindPublished, nil)); err != nil {
		return err
	}
	s.point("park:published")
	s.emit(t, bus.Event{Type: bus.TurnParked})
	return nil
}

func (s *session) openAsk(ctx context.Context, t *turn, a *ask) error {
	if err := s.lease.Held(ctx); err != nil {
		return fmt.Errorf("before asking: %w", err)
	}
	of := s.describe(t, a)
	if err := s.cfg.Asks.Open(ctx, of); err != nil {
		return fmt.Errorf("%w: %w", errBusAway, err)
	}
	s.point("park:opened")
	for i, to := range s.places(t, a) {
		out := s.askMessage(t, a, to)
		out.ID = fmt.Sprintf("%s#ask/%d", a.ID, i)
		err := s.publish(ctx, out)
		if errors.Is(err, bus.ErrInvalid) { // it cannot be asked there; another place, HTTP and the command line are left
			s.slog.Warn("a request cannot be said at an address")
			err = nil
		}
		if err != nil {
			return err
		}
	}
	s.point("park:asked")
	s.emit(t, bus.Event{Type: bus.Asked, Call: a.Call, Tool: a.call.use.Name, Ask: &of})
	return nil
}

// describe is an ask as the book keeps it and people see it.
func (s *session) describe(t *turn, a *ask) bus.Ask {
	of := bus.Ask{
		ID: a.ID, Kind: a.Kind, Session: s.key(), Turn: t.id, Call: a.Call, Person: t.person,
		Reason: s.redactor().Text(a.Reason), Hash: a.Hash, Question: s.redactor().Text(a.Question), Choices: a.Choices,
		At: t.route.At, Asked: s.asked(a), Made: t.parkedAt, Expires: a.Expires, State: bus.AskOpen,
	}
	if a.Kind == bus.AskApproval {
		of.Tool, of.Arguments = a.call.use.Name, a.call.use.Args
		if a.Args != nil {
			of.Arguments = a.Args
		}
		of.Arguments = s.redactor().JSON(of.Arguments)
	}
	return of
}

// asked are the addresses to which approvals go instead of the conversation.
func (s *session) asked(a *ask) []bus.Address {
	if a.Places == nil {
		return nil
	}
	var to []bus.Address
	if err := json.Unmarshal(a.Places, &to); err != nil {
		s.slog.Error("the addresses of a request cannot be read")
	}
	return to
}

// places are where people are told of an ask: the conversation is always one.
func (s *session) places(t *turn, a *ask) []bus.Address {
	places := []bus.Address{t.route.At}
	for _, to := range s.asked(a) {
		if to != t.route.At {
			places = append(places, to)
		}
	}
	return places
}

// isAskedAt tells whether people are asked at an address, and not only told that others are.
func (s *session) isAskedAt(t *turn, a *ask, at bus.Address) bool {
	asked := s.asked(a)
	if len(asked) == 0 {
		return at == t.route.At
	}
	return slices.Contains(asked, at)
}

// resumeParked goes on with a turn that waits: if whoever parked it was cut off
// before people were asked, they are asked now. It is not resumed.
func (r *sessionRun) resumeParked(ctx context.Context, t *turn) error {
	switch {
	case t.stopped:
		return r.finish(ctx, t, &ending{state: sessions.TurnCancelled})
	case t.announced || r.cfg.Asks == nil:
		return nil
	}
	return r.announce(ctx, t.id)
}

// endStopped ends the turns that wait and were stopped.
func (r *sessionRun) endStopped(ctx context.Context) error {
	parked, err := r.parkedTurns()
	if err != nil {
		return err
	}
	for _, t := range parked {
		if !t.stopped {
			continue
		}
		if err := r.finish(ctx, t, &ending{state: sessions.TurnCancelled}); err != nil && !errors.Is(err, errUnsendable) {
			return err
		}
	}
	return nil
}

// parkedTurns are the turns of the session that wait.
func (s *session) parkedTurns() ([]*turn, error) {
	records := s.journal.Records()
	var parked []*turn
	for _, id := range parkedIDs(records) {
		t, err := fold(id, records)
		if err != nil {
			return nil, err
		}
		if t.parked {
			parked = append(parked, t)
		}
	}
	return parked, nil
}

// parkedIDs are the turns that have been parked and not unparked since. Most
// sessions have none, so nothing is folded to find that out.
func parkedIDs(records []journal.Record) []string {
	var ids []string
	for _, r := range records {
		switch r.Kind {
		case sessions.KindTurnParked:
			ids = append(ids, r.Turn)
		case sessions.KindTurnUnparked, sessions.KindTurnDone:
			for i, id := range ids {
				if id == r.Turn {
					ids = append(ids[:i], ids[i+1:]...)
					break
				}
			}
		}
	}
	return ids
}

// withdraw ends the open asks of a turn that is ended from outside.
func (s *session) withdraw(ctx context.Context, t *turn) error {
	if s.cfg.Asks == nil {
		return nil
	}
	for _, a := range t.openAsks() {
		of, err := s.cfg.Asks.Withdraw(ctx, a.ID)
		if err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
		if err := s.showEnd(ctx, t, a, of); err != nil {
			return err
		}
	}
	return nil
}
