package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
)

// A sessionNotice is the stage that tells a chat's session what was posted there on somebody's behalf or by an
// operator, so that a reply reaches an agent that knows what it refers to. It publishes this notice once the
// message is known to have arrived, and before its mail is settled: after a crash in between, the notice is
// published again under the same id.
type sessionNotice struct {
	channel     channels.Channel
	bus         bus.Bus
	sessionAt   func(ctx context.Context, at bus.Address) (session string, err error) // see Dispatcher.SessionAt
	retryPolicy *retryPolicy
	point       func(string)
	log         *slog.Logger
}

func (t *sessionNotice) run(_, work context.Context, d *delivery) error {
	switch {
	case d.out.Told == nil:
		return nil
	case d.out.Told.Operator:
		return t.tellOfOperator(work, d)
	case t.sessionAt == nil || !d.hasArrived():
		return nil
	}
	at, err := t.replyAddress(work, d)
	if fault := channels.FaultOf(err); err != nil && fault.Fault != channels.Rejected && !t.retryPolicy.triedLongEnough(d) {
		return t.retryPolicy.retryLater(work, d, fault)
	}
	if err != nil {
		return nil
	}
	session, err := t.sessionAt(work, at)
	if err != nil {
		t.log.Warn("the session that is to know what was told could not be looked up", slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	if session == "" {
		return nil
	}
	return t.publish(work, d, session, tellingNotice(d.record, d.out.Told, at))
}

// tellOfOperator tells the session that the message names what an operator has said in its conversation, even if
// nobody can tell whether all of it has arrived: the agent must not answer as if nobody had spoken.
func (t *sessionNotice) tellOfOperator(work context.Context, d *delivery) error {
	if d.out.Session == "" || !d.mayHaveArrived() {
		return nil
	}
	notice := tellingNotice(d.record, d.out.Told, d.to)
	notice.Text, notice.Of, notice.Quotes[0].Chat, notice.Quotes[0].Operator = textOperatorSaid, d.out.Told.Post, "", true
	if !d.hasArrived() {
		notice.Text = textOperatorMayHaveSaid
	}
	return t.publish(work, d, d.out.Session, notice)
}

// publish publishes a notice to a session. If the bus is down, the message is tried again later.
func (t *sessionNotice) publish(work context.Context, d *delivery, session string, notice bus.Inbound) error {
	err := bus.PublishNotice(work, t.bus, session, notice)
	switch {
	case errors.Is(err, bus.ErrInvalid):
		t.log.Error("what was told cannot be noted in its session", slog.String("id", d.record.ID), slog.Any("error", err))
	case err != nil:
		t.log.Warn("what was told could not be noted in its session", slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	t.point("send:told")
	return nil
}

// replyAddress returns the address at which a reply to the message would appear.
func (t *sessionNotice) replyAddress(work context.Context, d *delivery) (bus.Address, error) {
	r, ok := channels.AsReplier(t.channel)
	if !ok {
		return d.to, nil
	}
	ctx, cancel := context.WithTimeout(work, t.retryPolicy.policy.Timeout)
	defer cancel()
	at, err := r.ReplyAddress(ctx, d.to, d.firstSent())
	if err != nil {
		return bus.Address{}, fmt.Errorf("look for where a reply would be said: %w", err)
	}
	return at, nil
}

// tellingNotice returns the notice for the session. Its text is for releases that do not show quotes.
func tellingNotice(send channels.Send, told *bus.Telling, at bus.Address) bus.Inbound {
	return bus.Inbound{
		ID: bus.ToldID(send.ID), Kind: bus.Notice, At: at, SentAt: time.Now(),
		Text: fmt.Sprintf(textToldOnBehalf, told.For.ID),
		Quotes: []bus.Quote{{
			Kind: bus.Told, From: told.For, Chat: told.At.String(), At: send.At, Text: told.Words, Own: told.Own,
		}},
	}
}
