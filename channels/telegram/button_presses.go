package telegram

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

// inboundOfPress translates a button press into what the agent gets; false if Telegram does not name the chat, or if
// the button has no text to say.
func (t *translator) inboundOfPress(q *models.CallbackQuery) (bus.Inbound, bool) {
	m := pressedMessage(q)
	if m.Chat.ID == 0 || q.From.IsBot || strings.TrimSpace(q.Data) == "" {
		return bus.Inbound{}, false
	}
	private := m.Chat.Type == models.ChatTypePrivate
	in := bus.Inbound{
		ID:        t.name + ":" + strconv.FormatInt(t.id, 10) + ":press:" + q.ID,
		Kind:      bus.Said,
		From:      bus.Person{ID: t.personID(q.From.ID), Name: displayName(&q.From)},
		At:        bus.Address{Channel: t.name, Chat: strconv.FormatInt(m.Chat.ID, 10)},
		Group:     !private,
		Mentioned: true,
		Pressed:   true,
		Text:      q.Data,
		ReplyTo:   strconv.Itoa(m.ID),
	}
	if m.IsTopicMessage && m.MessageThreadID != generalTopic && m.MessageThreadID != 0 {
		in.At.Thread = strconv.Itoa(m.MessageThreadID)
	}
	return in, true
}

// publishPress publishes one press, then tells the person who pressed the button that the press has arrived, or
// that it has no effect. It returns false if ctx ended first.
func (p *publisher) publishPress(ctx context.Context, q *models.CallbackQuery) bool {
	words := ""
	if in, ok := p.inboundOfPress(q); ok {
		err := p.retryUntilStored(ctx, in.ID, func() error { return p.publishAtOrigin(ctx, in) })
		switch {
		case errors.Is(err, channels.ErrNotAdmitted):
			words = channels.TextNotAdmitted
		case err != nil:
			return false
		}
	}
	// The answer is not essential: without one, the app soon stops waiting by itself.
	p.answering.Go(func() { p.answerPress(context.WithoutCancel(ctx), q.ID, words) })
	return true
}

// A pressAnswer holds the parameters of answerCallbackQuery.
type pressAnswer struct {
	ID    string `json:"callback_query_id"`
	Text  string `json:"text,omitempty"`
	Alert bool   `json:"show_alert,omitempty"` // whether the person has to close the text
}

// answerPress tells Telegram that a press was handled, and shows words to the person who pressed the button, unless
// they are "".
func (p *publisher) answerPress(ctx context.Context, id, words string) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var done bool
	if err := p.call(ctx, "answerCallbackQuery", pressAnswer{id, words, words != ""}, &done); err != nil {
		p.log.LogAttrs(ctx, slog.LevelDebug, "a press could not be answered", slog.Any("error", err))
	}
}

// answerTimeout limits the answer to a press. For about that long, the person who pressed the button sees that the
// press is being handled.
const answerTimeout = 10 * time.Second
