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

// noteInSession lets the session of a chat know what was told there on somebody's behalf,
// so that a reply finds an agent that knows what it is about. It is published
// once the message is known to have arrived, and before its mail is settled: who
// is cut off here publishes it again, under the same id.
func (d *delivery) noteInSession(work context.Context) error {
	if d.out.Told == nil || d.SessionAt == nil || len(d.record.Parts) == 0 || d.record.State() != channels.Sent {
		return nil
	}
	at, err := d.replyAddress(work)
	if fault := channels.FaultOf(err); err != nil && fault.Fault != channels.Rejected && !d.triedLongEnough() {
		return d.retryLater(work, fault)
	}
	session, ok := d.SessionAt(at)
	if err != nil || !ok {
		return nil
	}
	err = bus.PublishNotice(work, d.Bus, session, toldNotice(d.record, d.out.Told, at))
	switch {
	case errors.Is(err, bus.ErrInvalid):
		d.Log.Error("what was told cannot be noted in its session", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	case err != nil:
		d.Log.Warn("what was told could not be noted in its session", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return later(storageWait)
	}
	d.point("send:told")
	return nil
}

// replyAddress is where a reply to the message would be said.
func (d *delivery) replyAddress(work context.Context) (bus.Address, error) {
	r, ok := channels.AsReplier(d.Channel)
	if !ok {
		return d.to, nil
	}
	ctx, cancel := context.WithTimeout(work, d.policy.Timeout)
	defer cancel()
	at, err := r.ReplyAddress(ctx, d.to, d.record.Parts[0].PlatformID)
	if err != nil {
		return bus.Address{}, fmt.Errorf("look for where a reply would be said: %w", err)
	}
	return at, nil
}

// toldNotice is what the session learns. Its text is for releases that do not
// show quotes.
func toldNotice(send channels.Send, told *bus.Telling, at bus.Address) bus.Inbound {
	return bus.Inbound{
		ID: bus.DerivedID(send.ID, "#told"), Kind: bus.Notice, At: at, SentAt: time.Now(),
		Text: fmt.Sprintf("You have told this chat something on behalf of %s.", told.For.ID),
		Quotes: []bus.Quote{{
			Kind: bus.Told, From: told.For, Chat: told.At.String(), At: send.At, Text: told.Words,
		}},
	}
}

// TellSession is a Dispatcher's Notify that tells the session which said a
// message that it was not delivered. The notice has an id of its own made of
// the message's, so it arrives once.
func TellSession(b bus.Bus) func(ctx context.Context, out bus.Outbound, reason string) error {
	return func(ctx context.Context, out bus.Outbound, reason string) error {
		if out.Session == "" {
			return nil
		}
		return bus.PublishNotice(ctx, b, out.Session, bus.Inbound{
			ID:     bus.DerivedID(out.ID, "#undelivered"),
			Kind:   bus.Notice,
			At:     out.To,
			Text:   fmt.Sprintf("A message to %s was not delivered: %s.", out.To, reason),
			SentAt: time.Now(),
		})
	}
}
