// Package asks takes what people answer to the questions of parked turns.
//
// The book decides: of all the answers to one ask, from whatever channel, one is
// taken, in one step. Then the ask's session is told by mail that has the ask's own
// id. Whoever dies between the two leaves an ask in the book of which the log does
// not know, and Run tells the session later.
//
// timers.go lets asks expire.
package asks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
)

// grantLives is how long an approval for a session lasts.
const grantLives = 24 * time.Hour

// A Desk opens asks, takes the answers and lets asks expire.
type Desk struct {
	Bus  bus.Bus
	Book channels.Asks
	// MayPark says why nobody can be asked now; "" where somebody can. Nil is always.
	MayPark func(ctx context.Context) (why string, err error)
	// Ended, if set, is told how an ask has ended here: approved, session, denied,
	// answered, expired or withdrawn.
	Ended func(result string)
	Log   *slog.Logger
}

// Ready says why nobody can be asked now; "" where somebody can.
func (d *Desk) Ready(ctx context.Context) (why string, err error) {
	if d.MayPark == nil {
		return "", nil
	}
	return d.MayPark(ctx)
}

// Open records an ask and has it expire in time. It may be called again.
func (d *Desk) Open(ctx context.Context, ask bus.Ask) error {
	if err := d.Book.OpenAsk(ctx, ask); err != nil {
		return err
	}
	return d.setTimer(ctx, ask)
}

func (d *Desk) setTimer(ctx context.Context, ask bus.Ask) error {
	t := bus.Timer{Kind: bus.AskTimer, ID: ask.ID, Session: ask.Session, Person: ask.Person}
	return bus.PublishTimer(ctx, d.Bus, t, ask.Expires)
}

// Answer takes what somebody says to an ask, and returns the ask as it is then. Its
// errors are bus.ErrNoAsk, bus.ErrMayNotAnswer, bus.ErrBadAnswer and bus.ErrDecided;
// any other means that it is not known whether the answer was taken: give it again.
func (d *Desk) Answer(ctx context.Context, id string, answer bus.Answer) (bus.Ask, error) {
	ask, err := d.Book.LookupAsk(ctx, id)
	if err != nil {
		return bus.Ask{}, err
	}
	if !ask.MayAnswer(answer.By) {
		return ask, bus.ErrMayNotAnswer
	}
	if !ask.Takes(answer) {
		return ask, bus.ErrBadAnswer
	}
	was := ask.State
	ask, ours, err := d.Book.EndAsk(ctx, id, bus.AskAnswered, answer)
	if err != nil {
		return ask, err
	}
	if !ours && ask.State == bus.AskOpen { // it is late
		if ask, err = d.end(ctx, id, bus.AskExpired); err != nil {
			return ask, err
		}
	}
	// Also where somebody else has decided: they may not have come to this.
	if err := d.tell(ctx, ask); err != nil {
		return ask, err
	}
	if !ours {
		return ask, bus.ErrDecided
	}
	if was == bus.AskOpen {
		d.report(ask)
	}
	return ask, nil
}

// Withdraw ends an ask whose answer nobody needs any more, and returns it. An answer
// that was taken before stands.
func (d *Desk) Withdraw(ctx context.Context, id string) (bus.Ask, error) {
	ask, err := d.end(ctx, id, bus.AskWithdrawn)
	if errors.Is(err, bus.ErrNoAsk) { // nobody was asked yet, or it was forgotten
		return bus.Ask{ID: id, State: bus.AskWithdrawn}, nil
	}
	return ask, err
}

// end ends an ask without an answer, if it is open.
func (d *Desk) end(ctx context.Context, id, state string) (bus.Ask, error) {
	ask, ours, err := d.Book.EndAsk(ctx, id, state, bus.Answer{})
	if ours {
		d.report(ask)
	}
	return ask, err
}

// tell tells the ask's session how the ask has ended. Who withdraws one knows.
func (d *Desk) tell(ctx context.Context, ask bus.Ask) error {
	if ask.State == bus.AskOpen || ask.State == bus.AskWithdrawn {
		return nil
	}
	if err := bus.PublishAnswer(ctx, d.Bus, ask); err != nil && !errors.Is(err, bus.ErrInvalid) {
		return fmt.Errorf("tell the session of ask %s: %w", ask.ID, err)
	}
	return nil
}

func (d *Desk) report(ask bus.Ask) {
	result := ask.State
	if ask.State == bus.AskAnswered && ask.Kind == bus.AskApproval {
		result = map[string]string{bus.Approve: "approved", bus.ApproveSession: "session", bus.Deny: "denied"}[ask.Answer.Text]
	}
	d.Log.Info("an ask has ended", slog.String("ask", ask.ID), slog.String("kind", ask.Kind), slog.String("session", ask.Session),
		slog.String("result", result), slog.String("by", ask.Answer.By.ID))
	if d.Ended != nil {
		d.Ended(result)
	}
}

// Told notes that the session's log has how an ask has ended.
func (d *Desk) Told(ctx context.Context, id string) error { return d.Book.NoteTold(ctx, id) }

// Granted tells whether what has that hash was approved for the session and still is,
// and by whom.
func (d *Desk) Granted(ctx context.Context, session, hash string) (by string, ok bool, err error) {
	return d.Book.Granted(ctx, session, hash, time.Now().Add(-grantLives))
}

// EndGrants ends what was approved for a session, also by asks that are open now.
func (d *Desk) EndGrants(ctx context.Context, session string) error {
	return d.Book.EndGrants(ctx, session)
}
