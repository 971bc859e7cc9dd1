package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// What follows a message's id in the ids of those that its delivery publishes.
const (
	excuseSuffix = "#excuse"
	fileSuffix   = "#file/"
	wholeSuffix  = "#whole"
)

// notices tells sessions and chats what became of a message. The id of each notice is derived from the message's
// id, so the notice arrives only once, however often it is published.
type notices struct {
	channel channels.Channel
	bus     bus.Bus
	notify  func(ctx context.Context, out bus.Outbound, reason string) error // see Dispatcher.Notify
	point   func(string)
	log     *slog.Logger
}

// tellSessionUndelivered tells the message's session, through Dispatcher.Notify, that the message was given up.
func (n *notices) tellSessionUndelivered(work context.Context, d *delivery, code string) error {
	if n.notify == nil {
		return nil
	}
	out := d.out
	out.ID = d.record.ID
	if err := n.notify(work, out, code); err != nil && !errors.Is(err, bus.ErrInvalid) {
		n.log.Warn("session could not be told", slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	return nil
}

// tellChatRefused tells a chat that an answer will not come, if the platform has refused the answer's content but not the
// chat, and the answer has no fallback. This notice has no session, so nobody is told if it can't be sent either.
func (n *notices) tellChatRefused(work context.Context, d *delivery, code string) error {
	if d.out.Session == "" || d.out.Told != nil || len(d.out.Fallback) > 0 || !isAboutContent(n.channel, code) {
		return nil
	}
	more := false
	for i := range d.record.Parts {
		more = more || d.isSettled(i)
	}
	text := textNotShown(more, reasonInWords(n.channel, code))
	out := bus.Outbound{ID: bus.DerivedID(d.record.ID, excuseSuffix), To: d.out.To, Text: text, At: time.Now()}
	err := publish(work, n.bus, d, out)
	switch {
	case err == nil:
	case errors.Is(err, bus.ErrInvalid):
		n.log.Error("chat cannot be told that its answer was refused", slog.String("id", d.record.ID), slog.Any("error", err))
	default:
		n.log.Warn("chat could not be told that its answer was refused", slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	n.point("send:excused")
	return nil
}

// isAboutContent reports whether a code means that only this message's content is refused, so that another message
// could still be sent to the same place.
func isAboutContent(ch channels.Channel, code string) bool {
	switch code {
	case codeExpired, codeGivenUp, codeUnknownOutcome, codeBadAddress:
		return false
	}
	return channels.RefusalOf(ch, code) == ""
}

// tellFileLeftOut tells the session that sent a message, and the chat, that the file of a part was left out.
func (n *notices) tellFileLeftOut(work context.Context, d *delivery, part int, file, why string) error {
	id := bus.DerivedID(d.record.ID, fmt.Sprint(fileSuffix, part))
	if d.out.Session != "" {
		err := bus.PublishNotice(work, n.bus, d.out.Session, bus.Inbound{
			ID: id, Kind: bus.Notice, At: d.out.To, SentAt: time.Now(),
			Text: fmt.Sprintf(textFileLeftOut, file, d.out.To, why),
		})
		if err != nil && !errors.Is(err, bus.ErrInvalid) {
			n.log.Warn("session could not be told of a file", slog.String("id", d.record.ID), slog.Any("error", err))
			return giveBackFor(storageWait)
		}
	}
	out := bus.Outbound{
		ID: id, To: d.out.To, At: time.Now(),
		Text: fmt.Sprintf(textFileNotSent, markup.Verbatim(file), why),
	}
	if err := publish(work, n.bus, d, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
		n.log.Warn("chat could not be told of a file", slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	return nil
}

// publishWholeText publishes a long text as ordinary messages, after the platform has refused it as a file.
func (n *notices) publishWholeText(work context.Context, d *delivery) error {
	out := bus.Outbound{ID: bus.DerivedID(d.record.ID, wholeSuffix), To: d.out.To, Text: d.out.Text, Session: d.out.Session, At: time.Now(), Whole: true}
	if err := publish(work, n.bus, d, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
		n.log.Warn("a long text could not be said", slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	return nil
}

// publish puts a message on the bus that follows from a delivery.
func publish(work context.Context, b bus.Bus, d *delivery, out bus.Outbound) error {
	if out.To == d.out.To {
		// This address's mailbox has room again only once the work on it has been settled.
		return bus.PublishUrgentOutbound(work, b, out, false)
	}
	return bus.PublishOutbound(work, b, out)
}

// TellSession returns a function for Dispatcher.Notify, which tells the session that wrote a message that the
// message was not delivered. The notice's id is derived from the message's, so the notice arrives only once. Nobody is
// told of a message that no session wrote.
func TellSession(b bus.Bus) func(ctx context.Context, out bus.Outbound, reason string) error {
	return func(ctx context.Context, out bus.Outbound, reason string) error {
		if out.Session == "" {
			return nil
		}
		text := textMessageUndelivered
		if out.Told != nil && out.Told.Operator {
			text = textOperatorUndelivered
		}
		return bus.PublishNotice(ctx, b, out.Session, bus.Inbound{
			ID:     bus.DerivedID(out.ID, "#undelivered"),
			Kind:   bus.Notice,
			At:     out.To,
			Text:   fmt.Sprintf(text, out.To, reason),
			SentAt: time.Now(),
		})
	}
}
