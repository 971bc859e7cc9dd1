package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/agent/asks"
	"parley/agent/delegation"
	"parley/agent/journal"
	"parley/agent/quote"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
)

// park writes that a turn begins to wait, and for which asks, before anybody is asked.
// It returns errParked. A question counts as begun with that entry (C4); a call that
// needs an approval begins when it is approved and runs.
func (r *turnRun) park(ctx context.Context, t *turn, asks []sessions.Ask) error {
	var entries []sessions.Entry
	for _, a := range asks {
		if a.Kind == delegation.Kind {
			e := journal.NewEntry(t.id, sessions.KindDelegated, r.calls.delegated[a.Call])
			e.Call = a.Call
			entries = append(entries, e)
		}
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

// announce asks people what a parked turn waits for. Each ask is stored, with the time at
// which it ends by itself, and then published where people are asked. If the process dies
// meanwhile, the next does all of it again, under the same ids. Only then are the turn's messages settled and the
// session released.
func (s *session) announce(ctx context.Context, id string) error {
	t, err := s.fold(id)
	if err != nil {
		return err
	}
	s.recordChanges(ctx, id) // what people change meanwhile is not the turn's
	for _, a := range t.openAsks() {
		if err := s.announceOne(ctx, t, a); err != nil {
			return err
		}
	}
	if err := s.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindPublished, nil)); err != nil {
		return err
	}
	s.point("park:published")
	if slices.ContainsFunc(t.openAsks(), func(a *ask) bool { return a.Kind != delegation.Kind }) { // while sub-agents work, nobody has to do anything
		s.emit(t, bus.Event{Type: bus.TurnParked, Causes: t.causes})
	}
	return nil
}

// announceOne asks one thing: it hands a task to its sub-agent, or asks people.
func (s *session) announceOne(ctx context.Context, t *turn, a *ask) error {
	if err := s.lease.Held(ctx); err != nil {
		return fmt.Errorf("before asking: %w", err)
	}
	switch {
	case a.Kind == delegation.Kind && s.cfg.Tasks != nil:
		if err := s.cfg.Tasks.Start(ctx, a.call.delegated.ID); err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
		s.point("park:handed")
	case a.Kind != delegation.Kind && s.cfg.Asks != nil:
		return s.openAsk(ctx, t, a)
	}
	return nil
}

// openAsk stores one ask where every channel finds it, and tells people of it.
func (s *session) openAsk(ctx context.Context, t *turn, a *ask) error {
	v := s.viewOf(t, a)
	if err := s.cfg.Asks.Open(ctx, v.Ask); err != nil {
		return fmt.Errorf("%w: %w", errBusAway, err)
	}
	s.point("park:opened")
	for i, to := range v.ToldAddresses(s.isDeserted()) {
		out := bus.Outbound{ID: fmt.Sprintf("%s#ask/%d", a.ID, i), To: to, Turn: t.id, Subject: a.ID, Expires: a.Expires}
		if to == v.At {
			out.ReplyTo = t.route.ReplyTo
		}
		out.Text, out.Buttons = v.Message(to, s.commandPrefix(to), s.redactor().Text)
		err := s.publish(ctx, out)
		if errors.Is(err, bus.ErrInvalid) { // it cannot be asked there; other places, HTTP and the command line remain
			s.slog.Warn("a request cannot be said at an address")
			err = nil
		}
		if err != nil {
			return err
		}
	}
	s.point("park:asked")
	s.emit(t, bus.Event{Type: bus.Asked, Call: a.Call, Tool: a.call.use.Name, Ask: &v.Ask})
	return nil
}

// viewOf returns an ask in the form in which it is stored and people see it: with all it
// is about, and without secrets.
func (s *session) viewOf(t *turn, a *ask) asks.View {
	places, err := asks.Places(a.Ask)
	if err != nil {
		s.slog.Error("the addresses of a request cannot be read", slog.Any("error", err))
	}
	v := asks.View{Ask: bus.Ask{
		ID: a.ID, Kind: a.Kind, Session: s.key(), Turn: t.id, Call: a.Call, Person: t.person,
		Reason: s.redactor().Text(a.Reason), Hash: a.Hash, Question: s.redactor().Text(a.Question), Choices: a.Choices,
		At: t.route.People(), Asked: places, Made: t.parkedAt, Expires: a.Expires, State: bus.AskOpen,
	}}
	if t.parent() != "" {
		v.SubAgent = s.agent.Name
	}
	if a.Kind == bus.AskApproval {
		v.Once = s.isEarlier(t)
		v.Tool, v.Arguments = a.call.use.Name, a.call.use.Args
		if a.Args != nil {
			v.Arguments = a.Args
		}
		v.Arguments = quote.EscapeHidden(s.redactor().JSON(v.Arguments))
	}
	return v
}

// isEarlier reports whether a turn belongs to a conversation that a /new has ended.
func (s *session) isEarlier(t *turn) bool {
	summary, _ := transcript.NewestSummary(s.journal.Records())
	return t.firstEntry <= summary.Covers && summary.Turn != t.id
}

// currentParked returns the waiting turn to which new mail belongs; nil if there is
// none. A turn from before a /new does not count, because the new conversation goes on
// beside it.
func (s *session) currentParked() (*turn, error) {
	parked, err := s.parkedTurns()
	if err != nil {
		return nil, err
	}
	for _, t := range parked {
		if !s.isEarlier(t) {
			return t, nil
		}
	}
	return nil, nil
}

// withdraw ends the open asks of a turn that ends before people have answered, for
// example by /stop, and tells them that nobody needs the answers any more.
func (s *session) withdraw(ctx context.Context, t *turn) error {
	if s.cfg.Asks == nil {
		return nil
	}
	for _, a := range t.openAsks() {
		if a.Kind == delegation.Kind {
			continue // finish ends these
		}
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

// showEnd changes the messages of an ask: they say how it has ended and who decided, and
// lose their buttons.
func (s *session) showEnd(ctx context.Context, t *turn, a *ask, of bus.Ask) error {
	of.Kind = a.Kind
	if err := s.addToAsk(ctx, t, a, "ended", asks.EndText(of)); err != nil {
		return err
	}
	s.point("ask:shown")
	e := bus.Event{Type: bus.AskResolved, Call: a.Call, Tool: a.call.use.Name, Ask: &of}
	s.emit(t, e)
	return nil
}

// showOvertaken changes the messages of an ask: they say that the approved call does not
// run, because something has changed.
func (s *session) showOvertaken(ctx context.Context, t *turn, a *ask) error {
	of := bus.Ask{Kind: a.Kind, State: a.ended.State, Answer: bus.Answer{Text: a.ended.Answer, By: bus.Person{ID: a.by, Name: a.ended.Name}}}
	return s.addToAsk(ctx, t, a, "overtaken", asks.OvertakenText(of))
}

// addToAsk publishes the messages of an ask again, with more text at the end. These
// replace the earlier ones.
func (s *session) addToAsk(ctx context.Context, t *turn, a *ask, name, more string) error {
	v := s.viewOf(t, a)
	for i, to := range v.ToldAddresses(s.isDeserted()) {
		out := bus.Outbound{ID: fmt.Sprintf("%s#%s/%d", a.ID, name, i), To: to, Turn: t.id, Subject: a.ID, Text: v.Text(to) + more}
		if err := s.publish(ctx, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
			return err
		}
	}
	return nil
}

// awaitedText returns, for people at an address, what a turn waits for, and with which
// commands they answer it.
func (s *session) awaitedText(t *turn, at bus.Address) string {
	p := s.commandPrefix(at)
	var waits []string
	for _, a := range t.openAsks() {
		if a.Kind == delegation.Kind {
			waits = append(waits, fmt.Sprintf("the sub-agent `%s`", a.call.delegated.Agent))
		} else if a.Kind == bus.AskQuestion {
			waits = append(waits, fmt.Sprintf("an answer to my question (`%sanswer %s WORDS`)", p, a.ID))
		} else {
			waits = append(waits, fmt.Sprintf("an approval of `%s` (`%sapprove %s` or `%sdeny %s`, by owners and approvers)", a.call.use.Name, p, a.ID, p, a.ID))
		}
	}
	return strings.Join(waits, ", and for ")
}

// suspend records that a turn stops in good order, because the process ends, no model answers,
// or what the turn needs is away. The turn's next resume is then not counted as one after a crash.
func (r *turnRun) suspend(ctx context.Context, t *turn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := r.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindSuspended, nil)); err != nil {
		r.slog.Warn("noting the suspension failed", slog.Any("error", err))
	}
}

// awaitModel has a turn wait until a model may answer again, and tells the person once. It
// returns an error that puts the session's mail off. No worker is held meanwhile.
func (r *turnRun) awaitModel(ctx context.Context, t *turn, away *modelUnavailable) error {
	r.suspend(ctx, t) // first, so that the wait counts as no crash even if nobody can be told now
	err := r.publish(ctx, bus.Outbound{
		ID: bus.DerivedID(t.id, "#away"), To: t.route.At, ReplyTo: t.route.ReplyTo, // the same each time, so it arrives once
		Text: fmt.Sprintf("The model cannot be reached or is too busy. I keep trying until %s UTC and answer then; %sstop ends it at once.",
			away.until.UTC().Format("2006-01-02 15:04"), r.commandPrefix(t.route.At)),
	})
	if err != nil && !errors.Is(err, bus.ErrInvalid) {
		return err
	}
	return away
}
