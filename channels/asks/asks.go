// Package asks accepts people's answers to the questions of parked turns.
//
// The book decides: of all answers to one ask, from any channel, it accepts one, atomically. Then mail with an id
// derived from the ask's tells the ask's session. If a process dies between the two, the book contains an ended ask
// that the session's log does not; Run then tells the session later.
//
// timers.go ends asks that have expired.
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

// grantLifetime is how long an approval for a whole session is valid.
const grantLifetime = 24 * time.Hour

// A Service handles asks in one process: it opens them, accepts answers and ends asks that have expired.
type Service struct {
	Bus  bus.Bus
	Book channels.Asks
	// MayPark returns why no ask can be opened now; "" if one can. If MayPark is nil, one always can.
	MayPark func(ctx context.Context) (why string, err error)
	// Sends says whether the file of an ask has arrived.
	Sends Sends
	// ShowsAll reports whether a channel shows texts of any length in full; nil means that none does.
	ShowsAll func(channel string) bool
	// OnEnded, if set, is called with the result of each ask that ended in this process:
	// approved, session, denied, answered, expired or withdrawn.
	OnEnded func(result string)
	Log     *slog.Logger
}

// Sends knows what became of messages, as channels.Sends does.
type Sends interface {
	Lookup(ctx context.Context, id string) (channels.Send, error)
}

// Ready returns why no ask can be opened now; "" if one can.
func (d *Service) Ready(ctx context.Context) (why string, err error) {
	if d.MayPark == nil {
		return "", nil
	}
	return d.MayPark(ctx)
}

// Open records an ask and sets the timer that lets it expire. It may be repeated.
func (d *Service) Open(ctx context.Context, ask bus.Ask) error {
	if err := d.Book.OpenAsk(ctx, ask); err != nil {
		return err
	}
	return d.setTimer(ctx, ask)
}

// setTimer publishes the timer that lets the ask expire.
func (d *Service) setTimer(ctx context.Context, ask bus.Ask) error {
	t := bus.Timer{Kind: bus.AskTimer, ID: ask.ID, Session: ask.Session, Person: ask.Person}
	return bus.PublishTimer(ctx, d.Bus, t, ask.Expires)
}

// Answer submits somebody's answer to an ask, and returns the ask as it is afterward. Its errors are bus.ErrNoAsk,
// bus.ErrMayNotAnswer, bus.ErrBadAnswer, bus.ErrNotShown and bus.ErrDecided; after any other error nobody knows
// whether the answer was accepted, and the caller repeats it.
func (d *Service) Answer(ctx context.Context, id string, answer bus.Answer) (bus.Ask, error) {
	ask, err := d.Book.LookupAsk(ctx, id)
	if err != nil {
		return bus.Ask{}, err
	}
	if !ask.MayAnswer(answer.By) {
		return ask, bus.ErrMayNotAnswer
	}
	if !ask.Accepts(answer) {
		return ask, bus.ErrBadAnswer
	}
	if err := d.checkAllShown(ctx, ask, answer); err != nil {
		return ask, err
	}
	was := ask.State
	ask, ours, err := d.Book.EndAsk(ctx, id, bus.AskAnswered, answer)
	if err != nil {
		return ask, err
	}
	if !ours && ask.State == bus.AskOpen { // the answer is too late
		if ask, err = d.endAsk(ctx, id, bus.AskExpired); err != nil {
			return ask, err
		}
	}
	// Tell the session even if somebody else's answer was accepted: the process that accepted it may have died
	// before it did so.
	if err := d.notifySession(ctx, ask); err != nil {
		return ask, err
	}
	if !ours {
		return ask, bus.ErrDecided
	}
	if was == bus.AskOpen {
		d.reportResult(ask)
	}
	return ask, nil
}

// checkAllShown returns bus.ErrNotShown if an answer approves a call that is too long for a message, and the chat of
// the answer has not shown all of the call: nobody was asked there, or the file with the whole call has not
// arrived.
func (d *Service) checkAllShown(ctx context.Context, ask bus.Ask, answer bus.Answer) error {
	if ask.Kind != bus.AskApproval || !ask.Filed || ask.State != bus.AskOpen || answer.Text == bus.Deny {
		return nil
	}
	if answer.At == (bus.Address{}) { // programs and the command line are given the whole call
		return nil
	}
	for _, at := range ask.AskedAt() {
		if at.Channel != answer.At.Channel || at.Chat != answer.At.Chat {
			continue
		}
		if d.ShowsAll != nil && d.ShowsAll(at.Channel) {
			return nil
		}
		if d.Sends == nil {
			continue
		}
		file, err := d.Sends.Lookup(ctx, ask.FileID(at))
		if err != nil && !errors.Is(err, channels.ErrNoSend) {
			return fmt.Errorf("look for what was shown of ask %s: %w", ask.ID, err)
		}
		if file.HasSentFile() {
			return nil
		}
	}
	return bus.ErrNotShown
}

// Withdraw ends an ask whose answer nobody needs anymore, and returns it. If an answer has already been accepted, it
// stands. An ask that the book does not have counts as withdrawn.
func (d *Service) Withdraw(ctx context.Context, id string) (bus.Ask, error) {
	ask, err := d.endAsk(ctx, id, bus.AskWithdrawn)
	if errors.Is(err, bus.ErrNoAsk) { // nobody has been asked yet, or the ask has been forgotten
		return bus.Ask{ID: id, State: bus.AskWithdrawn}, nil
	}
	return ask, err
}

// endAsk ends an open ask without an answer, in the given state, and returns it. If the ask has already ended,
// endAsk leaves it unchanged and returns it.
func (d *Service) endAsk(ctx context.Context, id, state string) (bus.Ask, error) {
	ask, ours, err := d.Book.EndAsk(ctx, id, state, bus.Answer{})
	if ours {
		d.reportResult(ask)
	}
	return ask, err
}

// notifySession tells the ask's session how the ask ended, unless it is open or was withdrawn: whoever withdraws an
// ask knows that. It returns nil if the bus will never accept the message.
func (d *Service) notifySession(ctx context.Context, ask bus.Ask) error {
	if ask.State == bus.AskOpen || ask.State == bus.AskWithdrawn {
		return nil
	}
	if err := bus.PublishAnswer(ctx, d.Bus, ask); err != nil && !errors.Is(err, bus.ErrInvalid) {
		return fmt.Errorf("tell the session of ask %s: %w", ask.ID, err)
	}
	return nil
}

// reportResult logs how an ask ended and calls OnEnded with the result.
func (d *Service) reportResult(ask bus.Ask) {
	result := ask.State
	if ask.State == bus.AskAnswered && ask.Kind == bus.AskApproval {
		result = map[string]string{bus.Approve: "approved", bus.ApproveSession: "session", bus.Deny: "denied"}[ask.Answer.Text]
	}
	d.Log.Info("an ask has ended", slog.String("ask", ask.ID), slog.String("kind", ask.Kind), slog.String("session", ask.Session),
		slog.String("result", result), slog.String("by", ask.Answer.By.ID))
	if d.OnEnded != nil {
		d.OnEnded(result)
	}
}

// NoteTold records in the book that the session's log contains the end of an ask, so that Run does not tell the
// session again.
func (d *Service) NoteTold(ctx context.Context, id string) error { return d.Book.NoteTold(ctx, id) }

// Granted reports whether the call with that hash was approved for the whole session and the approval is still
// valid, and who gave it.
func (d *Service) Granted(ctx context.Context, session, hash string) (by string, ok bool, err error) {
	return d.Book.Granted(ctx, session, hash, time.Now().Add(-grantLifetime))
}

// EndGrants ends all approvals for a whole session, including those that open asks may still get.
func (d *Service) EndGrants(ctx context.Context, session string) error {
	return d.Book.EndGrants(ctx, session)
}
