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

// explainRefusal tells a chat that an answer to it will not come, where the platform has
// taken offence at the answer and not at the chat. It has an id of its own, made
// of the answer's, so it is said once; and no session, so that nothing is said of
// what becomes of it.
func (d *delivery) explainRefusal(work context.Context, code string) error {
	if d.out.Session == "" || d.out.Told != nil || len(d.out.Fallback) > 0 || !d.isAboutContent(code) {
		return nil
	}
	text := "I had an answer here"
	for i := range d.record.Parts {
		if d.settled(i) {
			text = "There is more to this answer"
		}
	}
	text += ", but it cannot be shown: " + d.reasonInWords(code) + ". Please ask again, perhaps for something shorter or plainer."
	out := bus.Outbound{ID: bus.DerivedID(d.record.ID, "#excuse"), To: d.out.To, Text: text, At: time.Now()}
	err := d.publish(work, out)
	switch {
	case err == nil:
	case errors.Is(err, bus.ErrInvalid):
		d.Log.Error("chat cannot be told that its answer was refused", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	default:
		d.Log.Warn("chat could not be told that its answer was refused", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return later(storageWait)
	}
	d.point("send:excused")
	return nil
}

// isAboutContent tells of a code that another message could still be sent to the
// same place.
func (d *delivery) isAboutContent(code string) bool {
	switch code {
	case expired, gaveUp, uncertain, badAddress:
		return false
	}
	return channels.RefusalOf(d.Channel, code) == ""
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
