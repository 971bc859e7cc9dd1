package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/agent/asks"
	"parley/agent/blocks"
	"parley/agent/excerpt"
	"parley/agent/journal"
	"parley/agent/spans"
	"parley/agent/task"
	"parley/agent/transcript"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// announce asks people what a parked turn waits for. Each ask is stored, along with the time at which it
// expires, and then published where people are asked. If the process dies meanwhile, the next one does all of
// it again, under the same ids. Only then are the turn's messages settled and the session released.
func (s lifecycle) announce(ctx context.Context, id string) error {
	t, err := s.Fold(id)
	if err != nil {
		return err
	}
	s.recordChanges(ctx, id) // what people change while the turn waits isn't the turn's doing
	for _, a := range t.OpenAsks() {
		if err := s.announceOne(ctx, t, a); err != nil {
			return err
		}
	}
	spans.Record(s.Session, t)
	if err := s.Journal.Append(ctx, journal.NewEntry(t.ID, sessions.KindPublished, nil)); err != nil {
		return err
	}
	s.Point("park:published")
	s.Log.Info("turn waits", slog.String("turn", t.ID), slog.String("agent", s.Agent.Name), slog.Int("asks", len(t.OpenAsks())))
	if slices.ContainsFunc(t.OpenAsks(), func(a *turn.Ask) bool { return a.Kind != task.Kind }) { // while sub-agents work, nobody has to do anything
		parked := bus.Event{Type: bus.TurnParked, Causes: t.Causes}
		if !slices.ContainsFunc(t.OpenAsks(), func(a *turn.Ask) bool { return a.Kind != sessions.AskNode }) {
			parked.Kind = bus.KindNode
		}
		s.Emit(t, parked)
	}
	return nil
}

// announceOne announces one ask: it hands a task to its sub-agent, records which node the turn waits for, or asks
// people.
func (s lifecycle) announceOne(ctx context.Context, t *turn.Turn, a *turn.Ask) error {
	if err := s.Lease.Held(ctx); err != nil {
		return fmt.Errorf("before asking: %w", err)
	}
	switch {
	case a.Kind == task.Kind && s.Config.SubAgents != nil:
		if err := s.Config.SubAgents.Start(ctx, a.ForCall.Delegated.ID); err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
		s.Point("park:handed")
	case a.Kind == sessions.AskNode && s.Config.NodeWaits != nil:
		if err := openNodeWait(ctx, s.Session, t, a); err != nil {
			return err
		}
		return tellAboutNode(ctx, s, t, a)
	case a.Kind == sessions.AskNode:
	case a.Kind != task.Kind && s.Config.Asks != nil:
		return s.openAsk(ctx, t, a)
	}
	return nil
}

// openAsk stores an ask where every channel finds it, and publishes it to people. It skips addresses to which the ask
// can never be sent.
func (s lifecycle) openAsk(ctx context.Context, t *turn.Turn, a *turn.Ask) error {
	v := s.viewOf(t, a)
	if err := s.Config.Asks.Open(ctx, v.Ask); err != nil {
		return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	s.Point("park:opened")
	for i, to := range v.ToldAddresses(s.HasNoPeople()) {
		out := bus.Outbound{ID: fmt.Sprintf("%s#ask/%d", a.ID, i), To: to, Turn: t.ID, Subject: a.ID, Expires: a.Expires}
		if to == v.At {
			out.ReplyTo = t.Route.ReplyTo
		}
		out.Text, out.Buttons = v.Message(to, s.CommandPrefix(to), s.Redactor().Text)
		if v.GetsFileAt(to) {
			if err := s.showCall(ctx, v, to); err != nil {
				return err
			}
			out.Otherwise = &bus.Otherwise{Unsent: v.FileID(to)}
			out.Otherwise.Text, out.Otherwise.Buttons = v.Unshown(to, s.CommandPrefix(to))
		}
		err := s.publish(ctx, out)
		if errors.Is(err, bus.ErrInvalid) { // people can still be asked elsewhere, over HTTP and by the CLI
			s.Log.Warn("a request cannot be sent to an address")
			err = nil
		}
		if err != nil {
			return err
		}
	}
	s.Point("park:asked")
	s.Emit(t, bus.Event{Type: bus.Asked, Call: a.Call, Tool: a.ForCall.Use.Name, Ask: &v.Ask})
	return nil
}

// tellAboutNode tells the person which node a turn waits for, the first time that the call waits.
func tellAboutNode(ctx context.Context, s lifecycle, t *turn.Turn, a *turn.Ask) error {
	if a.ForCall.NodeWaits > 1 || s.HasNoPeople() {
		return nil
	}
	to := t.Route.People()
	err := s.publish(ctx, bus.Outbound{ID: a.ID + "#ask/0", To: to, ReplyTo: t.Route.ReplyTo, Turn: t.ID, Text: textNodeAway(a.Ask, s.CommandPrefix(to))})
	if errors.Is(err, bus.ErrInvalid) { // the conversation's own answer says so then
		err = nil
	}
	return err
}

// showCall publishes the file that shows the whole of a long call at an address. It is published before the
// message with the buttons, which is sent without buttons if the file doesn't arrive. A file that the bus will never
// accept is left out.
func (s lifecycle) showCall(ctx context.Context, v asks.View, to bus.Address) error {
	err := s.publish(ctx, bus.Outbound{ID: v.FileID(to), To: to, Expires: v.Expires, Ahead: true, File: v.File()})
	if errors.Is(err, bus.ErrInvalid) {
		s.Log.Warn("a call is too long to be shown at an address", slog.String("ask", v.ID))
		err = nil
	}
	s.Point("park:shown")
	return err
}

// viewOf returns an ask in the form in which it is stored and people see it: with everything that it covers,
// and without secrets.
func (s lifecycle) viewOf(t *turn.Turn, a *turn.Ask) asks.View {
	places, err := asks.Places(a.Ask)
	if err != nil {
		s.Log.Error("the addresses of a request cannot be read", slog.Any("error", err))
	}
	v := asks.View{Ask: blocks.ShowAsk(a.Ask, a.ForCall.Use, s.Redactor())}
	v.Session, v.Turn, v.Person, v.Made = s.Key(), t.ID, t.Person, t.ParkedAt
	v.At, v.Asked = t.Route.People(), places
	if t.Parent() != "" {
		v.SubAgent = s.Agent.Name
	}
	if a.Kind == bus.AskApproval {
		v.Once = s.isEarlier(t)
		v.Filed, v.ShowsAll, v.Presses = excerpt.IsLong(v.Excerpt().Text()), s.Config.ShowsWholeTexts, s.Config.Presses
	}
	return v
}

// isEarlier reports whether a turn belongs to a conversation that /new has ended.
func (s lifecycle) isEarlier(t *turn.Turn) bool {
	summary, _ := transcript.NewestSummary(s.Journal.Records())
	return t.FirstEntry <= summary.Covers && summary.Turn != t.ID
}

// currentParked returns the waiting turn that new mail belongs to; nil if there is none. A turn from before a
// /new doesn't count, because the new conversation continues beside it.
func (s lifecycle) currentParked() (*turn.Turn, error) {
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

// withdraw ends a turn's open asks and waits when the turn ends, for example by /stop. People are told that approvals
// and answers are no longer needed. Tasks of sub-agents are left to the function finish.
func (s lifecycle) withdraw(ctx context.Context, t *turn.Turn) error {
	for _, a := range t.OpenAsks() {
		if a.Kind == task.Kind {
			continue // finish ends these
		}
		if a.Kind == sessions.AskNode {
			if err := closeNodeWait(ctx, s.Session, a.ID); err != nil {
				return err
			}
			continue
		}
		if s.Config.Asks == nil {
			continue
		}
		of, err := s.Config.Asks.Withdraw(ctx, a.ID)
		if err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
		if err := s.showEnd(ctx, t, a, of); err != nil {
			return err
		}
	}
	return nil
}

// showEnd changes the messages of an ask: they say how it ended and who decided, and lose their buttons.
func (s lifecycle) showEnd(ctx context.Context, t *turn.Turn, a *turn.Ask, of bus.Ask) error {
	of.Kind = a.Kind
	if err := s.addToAsk(ctx, t, a, "ended", asks.EndText(of)); err != nil {
		return err
	}
	s.Point("ask:shown")
	e := bus.Event{Type: bus.AskResolved, Call: a.Call, Tool: a.ForCall.Use.Name, Ask: &of}
	s.Emit(t, e)
	return nil
}

// showStaleApproval changes the messages of an ask: they say that the approved call doesn't run because something
// has changed.
func (s lifecycle) showStaleApproval(ctx context.Context, t *turn.Turn, a *turn.Ask) error {
	of := bus.Ask{Kind: a.Kind, State: a.Ended.State, Answer: bus.Answer{Text: a.Ended.Answer, By: bus.Person{ID: a.By, Name: a.Ended.Name}}}
	return s.addToAsk(ctx, t, a, "overtaken", asks.StaleApprovalText(of))
}

// addToAsk publishes the messages of an ask again, with more text at the end. They replace the earlier ones.
func (s lifecycle) addToAsk(ctx context.Context, t *turn.Turn, a *turn.Ask, name, more string) error {
	v := s.viewOf(t, a)
	for i, to := range v.ToldAddresses(s.HasNoPeople()) {
		out := bus.Outbound{ID: fmt.Sprintf("%s#%s/%d", a.ID, name, i), To: to, Turn: t.ID, Subject: a.ID, Text: v.Text(to) + more}
		if err := s.publish(ctx, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
			return err
		}
	}
	return nil
}

// waitReasonText tells people at an address what a turn waits for, and with which commands they can answer.
func (s lifecycle) waitReasonText(t *turn.Turn, at bus.Address) string {
	p := s.CommandPrefix(at)
	var waits []string
	for _, a := range t.OpenAsks() {
		if a.Kind == task.Kind {
			waits = append(waits, fmt.Sprintf("the sub-agent `%s`", a.ForCall.Delegated.Agent))
		} else if a.Kind == sessions.AskNode {
			waits = append(waits, textNode(a.Ask))
		} else if a.Kind == bus.AskQuestion {
			waits = append(waits, fmt.Sprintf("an answer to my question (`%sanswer %s WORDS`)", p, a.ID))
		} else {
			waits = append(waits, fmt.Sprintf("approval of `%s` (owners and approvers: `%sapprove %s` or `%sdeny %s`)", a.ForCall.Use.Name, p, a.ID, p, a.ID))
		}
	}
	return strings.Join(waits, ", and for ")
}

// parkedTurns returns the turns of the session that wait for people, sub-agents or nodes.
func (s lifecycle) parkedTurns() ([]*turn.Turn, error) {
	var parked []*turn.Turn
	for _, id := range parkedIDs(s.Journal.Current()) {
		t, err := s.Fold(id)
		if err != nil {
			return nil, err
		}
		if t.Parked {
			parked = append(parked, t)
		}
	}
	return parked, nil
}

// parkedIDs returns the ids of the turns that are parked. Most sessions have none; checking this first avoids
// folding their turns.
func parkedIDs(records []journal.Record) []string {
	var ids []string
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case sessions.KindTurnParked:
			ids = append(ids, r.Turn)
		case sessions.KindTurnUnparked, sessions.KindTurnDone:
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == r.Turn })
		}
	}
	return ids
}

// findAsk returns the ask with an id and the turn that waits for it; nil if no turn does.
func (s lifecycle) findAsk(id string) (*turn.Turn, *turn.Ask, error) {
	parked, err := s.parkedTurns()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range parked {
		for _, a := range t.Asks {
			if a.ID == id {
				return t, a, nil
			}
		}
	}
	return nil, nil, nil
}
