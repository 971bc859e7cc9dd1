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

const (
	// maxButtons is how many buttons Telegram accepts below a message, and maxButtonData how many
	// bytes of data each can carry, which Telegram sends back when the button is pressed.
	maxButtons    = 100
	maxButtonData = 64
	// answerTimeout bounds the answer to a press. For about as long the person who has
	// pressed sees that the press is being handled.
	answerTimeout = 10 * time.Second
)

// MostButtons implements channels.ButtonShower: it returns how many buttons a message may
// have, and how many bytes each may carry. Without a receiver nobody would learn of a
// press, so a Channel that only sends returns 0, 0.
func (c *Channel) MostButtons() (count, bytes int) {
	if c.sendsOnly {
		return 0, 0
	}
	return maxButtons, maxButtonData
}

// keyboard returns buttons in the form in which Telegram shows them, each in a row of its
// own. Nil, and not an empty keyboard, shows none and removes the existing ones.
func keyboard(buttons []bus.Button) models.ReplyMarkup {
	if len(buttons) == 0 {
		return nil
	}
	rows := make([][]models.InlineKeyboardButton, len(buttons))
	for i, b := range buttons {
		rows[i] = []models.InlineKeyboardButton{{Text: b.Label, CallbackData: b.Says}}
	}
	return models.InlineKeyboardMarkup{InlineKeyboard: rows}
}

// pressedMessage returns the message with the pressed button, as far as Telegram describes
// it.
func pressedMessage(q *models.CallbackQuery) *models.Message {
	switch {
	case q.Message.Message != nil:
		return q.Message.Message
	case q.Message.InaccessibleMessage != nil: // the message is too old to be described
		return &models.Message{ID: q.Message.InaccessibleMessage.MessageID, Chat: q.Message.InaccessibleMessage.Chat}
	}
	return new(models.Message) // the message of a chat that the bot is not in
}

// inboundOfPress translates the press of a button into what the agent gets; false if the button is
// not one of the bot's.
func (c *Channel) inboundOfPress(q *models.CallbackQuery) (bus.Inbound, bool) {
	m := pressedMessage(q)
	if m.Chat.ID == 0 || q.From.IsBot || strings.TrimSpace(q.Data) == "" {
		return bus.Inbound{}, false
	}
	private := m.Chat.Type == models.ChatTypePrivate
	in := bus.Inbound{
		ID:        c.name + ":" + strconv.FormatInt(c.id, 10) + ":press:" + q.ID,
		Kind:      bus.Said,
		From:      bus.Person{ID: c.personID(q.From.ID), Name: displayName(&q.From)},
		At:        bus.Address{Channel: c.name, Chat: strconv.FormatInt(m.Chat.ID, 10)},
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

// publishPress publishes one press, and then tells the person who has pressed that it has
// arrived, or that it has no effect. It returns false if ctx ended first.
func (p *publisher) publishPress(ctx context.Context, q *models.CallbackQuery) bool {
	words := ""
	if in, ok := p.channel.inboundOfPress(q); ok {
		err := p.retryUntilStored(ctx, in.ID, func() error { return p.publishAtOrigin(ctx, in) })
		switch {
		case errors.Is(err, channels.ErrNotAdmitted):
			words = channels.NotAdmitted
		case err != nil:
			return false
		}
	}
	// Nobody needs the answer: without one the app soon stops waiting by itself.
	p.answering.Go(func() { p.channel.answerPress(context.WithoutCancel(ctx), q.ID, words) })
	return true
}

// A pressAnswer is the parameters of answerCallbackQuery.
type pressAnswer struct {
	ID    string `json:"callback_query_id"`
	Text  string `json:"text,omitempty"`
	Alert bool   `json:"show_alert,omitempty"` // whether the person has to close the words
}

// answerPress tells Telegram that a press was handled, and shows words to the person who
// has pressed, unless they are "".
func (c *Channel) answerPress(ctx context.Context, id, words string) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var done bool
	if err := c.call(ctx, "answerCallbackQuery", pressAnswer{id, words, words != ""}, &done); err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "a press could not be answered", slog.Any("error", err))
	}
}
