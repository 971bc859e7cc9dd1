package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
)

// told lets the session of a chat know what was told there on somebody's behalf,
// so that a reply finds an agent that knows what it is about. It is published
// once the message is known to have arrived, and before its mail is settled: who
// is cut off here publishes it again, under the same id.
func (l *letter) told(work context.Context) (verdict, bool) {
	if l.out.Told == nil || l.Hears == nil || len(l.send.Parts) == 0 || l.send.State() != Sent {
		return verdict{}, true
	}
	at, err := l.replyAddress(work)
	if fault := faultOf(err); err != nil && fault.Fault != Rejected && !l.worn() {
		return l.again(work, fault), false
	}
	session, ok := l.Hears(at)
	if err != nil || !ok {
		return verdict{}, true
	}
	err = publishNotice(work, l.Bus, session, toldNotice(l.send, l.out.Told, at))
	switch {
	case errors.Is(err, bus.ErrInvalid):
		l.Log.Error("what was told cannot be noted in its session", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
	case err != nil:
		l.Log.Warn("what was told could not be noted in its session", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
		return later(outOfOrder), false
	}
	l.point("send:told")
	return verdict{}, true
}

// replyAddress is where a reply to the message would be said.
func (l *letter) replyAddress(work context.Context) (bus.Address, error) {
	r, ok := replier(l.Channel)
	if !ok {
		return l.to, nil
	}
	ctx, cancel := context.WithTimeout(work, l.delivery.Timeout)
	defer cancel()
	at, err := r.ReplyAddress(ctx, l.to, l.send.Parts[0].PlatformID)
	if err != nil {
		return bus.Address{}, fmt.Errorf("look for where a reply would be said: %w", err)
	}
	return at, nil
}

// toldNotice is what the session learns. Its text is for releases that do not
// show quotes.
func toldNotice(send Send, told *bus.Telling, at bus.Address) bus.Inbound {
	return bus.Inbound{
		ID: noticeID(send.ID, "#told"), Kind: bus.Notice, At: at, SentAt: time.Now(),
		Text: fmt.Sprintf("You have told this chat something on behalf of %s.", told.For.ID),
		Quotes: []bus.Quote{{
			Kind: bus.Told, From: told.For, Chat: told.At.String(), At: send.At, Text: told.Words,
		}},
	}
}

// noticeID names what a session is told about a message: the same however often.
func noticeID(id, suffix string) string {
	return id[:min(len(id), bus.MaxID-len(suffix))] + suffix
}

// publishNotice puts a notice into a session's mailbox. It is urgent, so that a
// full mailbox does not keep it out.
func publishNotice(ctx context.Context, b bus.Bus, session string, notice bus.Inbound) error {
	body, err := notice.Encode()
	if err != nil {
		return fmt.Errorf("encode notice %s: %w", notice.ID, err)
	}
	err = b.Publish(ctx, bus.InboundTopic, bus.Message{ID: notice.ID, Key: session, Urgent: true, Body: body})
	if err != nil {
		return fmt.Errorf("publish notice %s: %w", notice.ID, err)
	}
	return nil
}
