package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/agent/model"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// titleTimeout is how long a model may take to make a title. Meanwhile the session shows as being worked on.
const titleTimeout = 10 * time.Second

// errMoreMail is why askOutsideTurns ends its work when more mail arrives.
var errMoreMail = errors.New("more mail has come")

// An untitledConversation is a conversation whose first turn this run has answered.
type untitledConversation struct {
	firstEntry int64 // the number of the entry with the first words
	firstWords string
	turn       *turn.Turn
}

// noteFirstAnswer remembers that a turn has answered the first words of the conversation, if the agent has a
// model for titles. A turn ends only once, so a title is asked for at most once: if the run is cut off before
// it has a title, the first words stay.
func (r *sessionRun) noteFirstAnswer(id string) {
	if r.Agent.Titles == nil {
		return
	}
	for _, record := range r.Journal.Records() {
		switch said := record.Data.(type) {
		case sessions.Summary:
			if said.Text != "" { // the conversation began earlier, with these words
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
				r.untitled = &untitledConversation{record.N, said.Text, t}
			}
			return
		}
	}
}

// title has a model give the conversation a title if its first turn is answered and there is nothing else to
// do. It stops as soon as more mail arrives. It doesn't count as a turn: the person's other conversations
// continue.
func (r *sessionRun) title(ctx context.Context) error {
	first := r.untitled
	if r.untitled = nil; first == nil {
		return nil
	}
	failed, err := r.askOutsideTurns(ctx, titleTimeout, func(asking context.Context) error {
		if r.Agent.MayTitle != nil {
			if may, err := r.Agent.MayTitle(ctx); err != nil || !may {
				return nil //nolint:nilerr // the first words stay
			}
		}
		r.Point("title:ask")
		title, err := model.Title(asking, r.shared.askers.NewForTitles(r.Session), first.turn, first.firstWords, first.turn.ReplyText())
		r.Point("title:made")
		if err == nil && title != "" {
			err = r.Journal.SetTitle(ctx, first.firstEntry, title)
		}
		return err
	})
	if failed != nil {
		r.Log.Info("no model has made a title", slog.Any("error", failed))
	}
	return err
}

// askOutsideTurns does work that asks a model and that nobody waits for. The context asking ends after the time
// within, when more mail arrives, and when the process should end. The work doesn't count as a turn, so the
// person's other conversations continue. failed is why the work was not done; the session isn't tried again
// because of that. err ends the run.
func (r *sessionRun) askOutsideTurns(ctx context.Context, within time.Duration, work func(asking context.Context) error) (failed, err error) {
	switch _, err := r.turns.stopCounting(ctx); {
	case errors.Is(err, bus.ErrFenced):
		return nil, err
	case err != nil:
		return err, nil
	}
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	asking, end := context.WithTimeout(asking, within)
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
	err = work(asking)
	if err != nil && (asking.Err() != nil && ctx.Err() == nil || model.IsNoAnswer(err)) {
		return err, nil
	}
	return nil, err
}
