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

// sendToFallback publishes a message that is given up to its fallback, saying where
// it could not be delivered and why. It goes no further from there.
func (d *delivery) sendToFallback(work context.Context, code string) error {
	for n, to := range d.out.Fallback {
		if to == d.out.To || to.Chat == "" {
			continue
		}
		out := bus.Outbound{
			ID: bus.FallbackID(d.record.ID, n), To: to, Text: d.misdelivered(code) + "\n\n" + d.out.Text,
			Session: d.out.Session, Turn: d.out.Turn, At: time.Now(), Expires: d.out.Expires,
			Subject: d.out.Subject, Origin: d.out.Origin, File: d.out.File, Needs: d.out.Needs,
		}
		if out.Subject != "" {
			// The same said to two places may meet here, and is two messages.
			out.Subject += " for " + d.out.To.String()
		}
		err := d.publish(work, out)
		switch {
		case err == nil:
		case errors.Is(err, bus.ErrInvalid):
			// It stays where dead letters are.
			d.Log.Error("message cannot go to its fallback", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		default: // full, or the bus is away: it is not given up before that is over
			d.Log.Warn("fallback could not be used", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
			return later(storageWait)
		}
	}
	return nil
}

func (d *delivery) publish(work context.Context, out bus.Outbound) error {
	if out.To == d.out.To {
		// The mailbox that is worked on here gets room only once this is done.
		return bus.PublishUrgentOutbound(work, d.Bus, out, false)
	}
	return bus.PublishOutbound(work, d.Bus, out)
}

// misdelivered says of a message that it did not reach its address, and why.
func (d *delivery) misdelivered(code string) string {
	to := d.out.To

	if code == uncertain {
		return fmt.Sprintf("This may not have reached %s: sending was cut off, and nobody can tell whether it arrived.", markup.Verbatim(to.String()))
	}
	return fmt.Sprintf("This could not be delivered to %s: %s.", markup.Verbatim(to.String()), d.reasonInWords(code))
}

// reasonInWords says to people why a message was given up.
func (d *delivery) reasonInWords(code string) string {
	switch code {
	case gaveUp:
		return "the platform could not be reached, again and again"
	case panicked:
		return "sending it failed, again and again"
	case empty:
		return "there is nothing to see in it"
	}
	switch channels.RefusalOf(d.Channel, code) {
	case channels.NoSuchChat:
		return "there is no such chat, or the bot is not in it"
	case channels.NotInChat:
		return "the bot is not in that chat"
	case channels.ChatArchived:
		return "that chat is archived"
	case channels.PersonRefuses:
		return "that person does not take messages of the bot"
	case channels.NoRights:
		return "the bot may not write there"
	}
	return "the platform refused it (" + markup.Verbatim(code) + ")"
}
