package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/agent/budget"
	"parley/agent/llm"
	"parley/agent/model"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// titleWithin is how long a model may take to make a title. The session shows as worked on meanwhile.
const titleWithin = 10 * time.Second

// errMoreMail says that no title is made because somebody has said something.
var errMoreMail = errors.New("more mail has come")

// An untitled is a conversation whose first turn this run has answered.
type untitled struct {
	entry int64 // the number of the first words' entry
	said  string
	turn  *turn.Turn
}

// noteFirstAnswer notes, if the agent has a model for titles, that a turn has answered the first words of
// the conversation. A turn ends once, so a title is asked for once at most: a run that is cut off before
// it has one leaves the first words.
func (r *sessionRun) noteFirstAnswer(id string) {
	if r.Agent.Titles == nil {
		return
	}
	for _, record := range r.Journal.Records() {
		switch said := record.Data.(type) {
		case sessions.Summary:
			if said.Text != "" { // of a conversation that began before it
				return
			}
		case sessions.User:
			if sessions.FirstWords(said.Text) == "" {
				continue
			}
			if record.Turn != id {
				return
			}
			t, err := r.Fold(id)
			if err == nil && t.Done != nil && t.Done.State == sessions.TurnCompleted && t.Route.At.Channel != bus.SubAgents {
				r.untitled = &untitled{record.N, said.Text, t}
			}
			return
		}
	}
}

// title gives the conversation a title by a model if its first turn is answered and nothing else is to be
// done. It ends as soon as more mail comes. It counts as no turn: the person's other conversations go on.
func (r *sessionRun) title(ctx context.Context) error {
	first := r.untitled
	if r.untitled = nil; first == nil {
		return nil
	}
	switch _, err := r.turns.leaveCount(ctx); {
	case errors.Is(err, bus.ErrFenced):
		return err
	case err != nil:
		return nil // the first words stay
	}
	if r.Agent.MayTitle != nil {
		if may, err := r.Agent.MayTitle(ctx); err != nil || !may {
			return nil //nolint:nilerr // the first words stay
		}
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asking, end := context.WithTimeout(asking, titleWithin)
	defer end()
	go func() {
		select {
		case <-r.inbox.onMail():
			cancel(errMoreMail)
		case <-r.closing:
			cancel(errShutdown)
		case <-asking.Done():
		}
	}()
	r.Point("title:ask")
	title, err := r.shared.askers.NewForTitles(r.Session).Title(asking, first.turn, first.said, first.turn.ReplyText())
	r.Point("title:made")
	if err == nil && title != "" {
		err = r.Journal.SetTitle(ctx, first.entry, title)
	}
	if err == nil || asking.Err() != nil && ctx.Err() == nil || isNoTitle(err) {
		if err != nil {
			r.Log.Info("no model has made a title", slog.Any("error", err))
		}
		return nil
	}
	return err
}

// isNoTitle reports whether an error says that no model has made a title, and nothing else is wrong.
func isNoTitle(err error) bool {
	_, failed := errors.AsType[*llm.Error](err)
	_, ended := errors.AsType[*turn.Ending](err)
	_, taken := errors.AsType[*budget.TakenError](err)
	return failed || ended || taken || errors.Is(err, model.ErrUnreserved) || errors.Is(err, errors.ErrUnsupported)
}
