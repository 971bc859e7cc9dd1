package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

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

// announce asks people what a parked turn waits for. Each ask is put into the book with
// its timer, and then published where people are asked. If that is cut off, all of it is
// done again, under the same ids. Only then are the turn's messages settled and the
// session released.
func (s *session) announce(ctx context.Context, id string) error {
	t, err := fold(id, s.journal.Records())
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

// announceOne hands out the task of one ask, or opens the ask.
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

// openAsk puts one ask into the book and publishes it.
func (s *session) openAsk(ctx context.Context, t *turn, a *ask) error {
	of := s.bookAsk(t, a)
	if err := s.cfg.Asks.Open(ctx, of); err != nil {
		return fmt.Errorf("%w: %w", errBusAway, err)
	}
	s.point("park:opened")
	for i, to := range s.toldAddresses(t, a) {
		out := s.askMessage(t, a, to)
		out.ID = fmt.Sprintf("%s#ask/%d", a.ID, i)
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
	s.emit(t, bus.Event{Type: bus.Asked, Call: a.Call, Tool: a.call.use.Name, Ask: &of})
	return nil
}

// bookAsk returns an ask in the form of the book and of people: with all it is about,
// and without secrets.
func (s *session) bookAsk(t *turn, a *ask) bus.Ask {
	of := bus.Ask{
		ID: a.ID, Kind: a.Kind, Session: s.key(), Turn: t.id, Call: a.Call, Person: t.person,
		Reason: s.redactor().Text(a.Reason), Hash: a.Hash, Question: s.redactor().Text(a.Question), Choices: a.Choices,
		At: t.route.people(), Asked: s.askedAddresses(a), Made: t.parkedAt, Expires: a.Expires, State: bus.AskOpen,
	}
	if a.Kind == bus.AskApproval {
		of.Once = s.isEarlier(t)
		of.Tool, of.Arguments = a.call.use.Name, a.call.use.Args
		if a.Args != nil {
			of.Arguments = a.Args
		}
		of.Arguments = quote.EscapeHidden(s.redactor().JSON(of.Arguments))
	}
	return of
}

// askedAddresses returns the addresses to which an ask goes instead of the conversation;
// nil if it goes to that.
func (s *session) askedAddresses(a *ask) []bus.Address {
	if a.Places == nil {
		return nil
	}
	var to []bus.Address
	if err := json.Unmarshal(a.Places, &to); err != nil {
		s.slog.Error("the addresses of a request cannot be read")
	}
	return to
}

// toldAddresses returns all addresses at which people are told of an ask. The
// conversation is one, if people take part in it.
func (s *session) toldAddresses(t *turn, a *ask) []bus.Address {
	places := []bus.Address{t.route.people()}
	if s.isDeserted() {
		places = nil
	}
	for _, to := range s.askedAddresses(a) {
		if to != t.route.people() {
			places = append(places, to)
		}
	}
	return places
}

// isAskedAt reports whether people at an address are asked, and not only told that
// others are.
func (s *session) isAskedAt(t *turn, a *ask, at bus.Address) bool {
	asked := s.askedAddresses(a)
	if len(asked) == 0 {
		return at == t.route.people()
	}
	return slices.Contains(asked, at)
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

// withdraw ends the open asks of a turn that is ended from outside, and tells people.
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

// askMessage returns the message about an ask for one address: the question with its
// buttons, or that others are asked.
func (s *session) askMessage(t *turn, a *ask, to bus.Address) bus.Outbound {
	out := bus.Outbound{To: to, Turn: t.id, Subject: a.ID, Expires: a.Expires}
	if to == t.route.people() {
		out.ReplyTo = t.route.ReplyTo
	}
	p := s.commandPrefix(to)
	until := "until " + a.Expires.UTC().Format("2006-01-02 15:04 UTC")
	switch {
	case a.Kind == bus.AskQuestion:
		how := fmt.Sprintf("_(Your next words here are the answer, or %sanswer %s WORDS anywhere, %s.)_", p, a.ID, until)
		if t.parent() != "" { // words here are for the agent that has handed out the task
			how = fmt.Sprintf("_(Say `%sanswer %s WORDS`, here or anywhere, %s.)_", p, a.ID, until)
		}
		out.Text = s.askText(t, a, to) + "\n\n" + how
		for i, choice := range a.Choices {
			out.Buttons = append(out.Buttons, bus.Button{Label: s.redactor().Text(choice), Says: fmt.Sprintf("/%s %s %d", cmdAnswer, a.ID, i+1)})
		}
	case !s.isAskedAt(t, a, to):
		out.Text = s.askText(t, a, to) + "\n\n" + "_(Those who may approve it are asked elsewhere, " + until + ".)_"
	default:
		out.Text = s.askText(t, a, to) + "\n\n" + fmt.Sprintf("Owners and approvers decide, %s, also from other chats:\n\n- `%sapprove %s`\n- `%sapprove %s session`: also when exactly this is called again in this conversation\n- `%sdeny %s REASON`",
			until, p, a.ID, p, a.ID, p, a.ID)
		out.Buttons = []bus.Button{
			{Label: "Approve", Says: fmt.Sprintf("/%s %s", cmdApprove, a.ID)},
			{Label: "For this conversation", Says: fmt.Sprintf("/%s %s %s", cmdApprove, a.ID, bus.ApproveSession)},
			{Label: "Deny", Says: fmt.Sprintf("/%s %s", cmdDeny, a.ID)},
		}
	}
	return out
}

// askText returns the text of an ask without how to answer. Outside of the conversation
// it names the person and the conversation.
func (s *session) askText(t *turn, a *ask, to bus.Address) string {
	if a.Kind == bus.AskQuestion {
		var b strings.Builder
		if t.parent() != "" {
			fmt.Fprintf(&b, "The sub-agent `%s` asks:\n\n", s.agent.Name)
		}
		b.WriteString(a.Question)
		for i, choice := range a.Choices {
			fmt.Fprintf(&b, "\n%d. %s", i+1, choice)
		}
		return b.String()
	}
	of := s.bookAsk(t, a)
	if !s.isAskedAt(t, a, to) {
		return fmt.Sprintf("I wait for somebody to approve `%s`.", of.Tool)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**`%s` needs an approval**", of.Tool)
	if t.parent() != "" {
		fmt.Fprintf(&b, ", for the sub-agent `%s`", s.agent.Name)
	}
	if to != t.route.people() {
		fmt.Fprintf(&b, ", for `%s` in `%s`", quote.Inline(t.person), quote.Inline(t.route.people().String()))
	}
	if a.Reason != "" {
		fmt.Fprintf(&b, " (%s)", a.Reason)
	}
	b.WriteString(":\n\n" + quote.Arguments(of.Arguments))
	return b.String()
}

// showEnd changes the messages of an ask: they say how it has ended and who decided, and
// lose their buttons.
func (s *session) showEnd(ctx context.Context, t *turn, a *ask, of bus.Ask) error {
	of.Kind = a.Kind
	more := "\n\n**" + capitalize(of.Ending()) + ".**"
	if reason := of.Answer.Reason; reason != "" {
		more += "\n\n" + quote.Reason(reason)
	}
	if err := s.addToAsk(ctx, t, a, "ended", more); err != nil {
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
	return s.addToAsk(ctx, t, a, "overtaken", "\n\n**"+capitalize(of.Ending())+", and not run:** a file, the directory or the arguments have changed since it was asked.")
}

// addToAsk publishes the messages of an ask again, with more text at the end. These
// replace the earlier ones.
func (s *session) addToAsk(ctx context.Context, t *turn, a *ask, name, more string) error {
	for i, to := range s.toldAddresses(t, a) {
		out := bus.Outbound{ID: fmt.Sprintf("%s#%s/%d", a.ID, name, i), To: to, Turn: t.id, Subject: a.ID, Text: s.askText(t, a, to) + more}
		if err := s.publish(ctx, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
			return err
		}
	}
	return nil
}

// capitalize returns a text with its first letter as a capital.
func capitalize(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// awaitedText returns in words what a turn waits for.
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

// suspend records that a turn stops in good order, because the process ends or no model
// answers. The turn's next resume is then not counted as one after a crash.
func (r *turnRun) suspend(ctx context.Context, t *turn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := r.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindSuspended, nil)); err != nil {
		r.slog.Warn("noting the suspension failed", slog.Any("error", err))
	}
}

// awaitModel has a turn wait until a model may answer again, and tells the person once. It
// returns an error that puts the session's mail off. No worker is held meanwhile.
func (r *turnRun) awaitModel(ctx context.Context, t *turn, away *awayError) error {
	err := r.publish(ctx, bus.Outbound{
		ID: bus.DerivedID(t.id, "#away"), To: t.route.At, ReplyTo: t.route.ReplyTo, // the same each time, so it arrives once
		Text: fmt.Sprintf("The model cannot be reached or is too busy. I keep trying until %s UTC and answer then; %sstop ends it at once.",
			away.until.UTC().Format("2006-01-02 15:04"), r.commandPrefix(t.route.At)),
	})
	if err != nil && !errors.Is(err, bus.ErrInvalid) {
		return err
	}
	r.suspend(ctx, t)
	return away
}
