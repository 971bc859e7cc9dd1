package channels

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"parley/bus"
)

// fallbackID is the id of a message's n-th publication elsewhere. It is made of
// the message's, so that being cut off here publishes nothing twice.
func fallbackID(id string, n int) string { return id + "~fallback/" + strconv.Itoa(n) }

// elsewhere publishes a message that is given up to its fallback, saying where
// it could not be delivered and why. It goes no further from there.
func (l *letter) elsewhere(work context.Context, code string) (verdict, bool) {
	for n, to := range l.out.Fallback {
		if to == l.out.To || to.Chat == "" {
			continue
		}
		out := bus.Outbound{
			ID: fallbackID(l.send.ID, n), To: to, Text: misdelivered(l.out.To, code) + "\n\n" + l.out.Text,
			Session: l.out.Session, Turn: l.out.Turn, At: time.Now(), Expires: l.out.Expires,
			Subject: l.out.Subject, Origin: l.out.Origin, File: l.out.File, Needs: l.out.Needs,
		}
		if out.Subject != "" {
			// The same said to two places may meet here, and is two messages.
			out.Subject += " for " + l.out.To.String()
		}
		err := l.publish(work, out)
		switch {
		case err == nil:
		case errors.Is(err, bus.ErrInvalid):
			// It stays where dead letters are.
			l.Log.Error("message cannot go to its fallback", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
		default: // full, or the bus is away: it is not given up before that is over
			l.Log.Warn("fallback could not be used", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
			return later(outOfOrder), false
		}
	}
	return verdict{}, true
}

func (l *letter) publish(work context.Context, out bus.Outbound) error {
	body, err := out.Encode()
	if err != nil {
		return fmt.Errorf("encode message %s: %w", out.ID, err)
	}
	// What goes to the mailbox that is worked on here may not wait for room there.
	urgent := out.To == l.out.To
	err = l.Bus.Publish(work, bus.OutboundTopic(out.To.Channel), bus.Message{ID: out.ID, Key: out.To.String(), Urgent: urgent, Body: body})
	if err != nil {
		return fmt.Errorf("publish message %s: %w", out.ID, err)
	}
	return nil
}

func misdelivered(to bus.Address, code string) string {
	if code == uncertain {
		return fmt.Sprintf("This may not have reached %s: sending was cut off, and nobody can tell whether it arrived.", verbatim(to.String()))
	}
	return fmt.Sprintf("This could not be delivered to %s: %s.", verbatim(to.String()), inWords(code))
}

// inWords says what a code means, where it is one that is met often.
func inWords(code string) string {
	switch code {
	case gaveUp:
		return "the platform could not be reached, again and again"
	case panicked:
		return "sending it failed, again and again"
	case empty:
		return "there is nothing to see in it"
	}
	if words := chatInWords(code); words != "" {
		return words
	}
	return "the platform refused it (" + verbatim(code) + ")"
}

// ofTheChat tells of a code that nothing can be sent to that chat.
func ofTheChat(code string) bool { return chatInWords(code) != "" }

// chatInWords says what is wrong with a chat; "" if the code is not of a chat.
func chatInWords(code string) string {
	switch code {
	case "chat_not_found", "channel_not_found", "10003":
		return "there is no such chat, or the bot is not in it"
	case "not_in_channel", "not_a_member", "kicked", "50001":
		return "the bot is not in that chat"
	case "is_archived":
		return "that chat is archived"
	case "blocked", "deactivated", "not_started", "50007":
		return "that person does not take messages of the bot"
	case "no_rights", "50013":
		return "the bot may not write there"
	}
	return ""
}
