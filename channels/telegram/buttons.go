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
	// What Telegram takes of buttons: how many below a message, and of what each
	// brings back when it is pressed, in bytes.
	mostButtons   = 100
	mostPressData = 64
	// answerTimeout bounds the answer to a press. Who has pressed sees for about as
	// long that it is on its way.
	answerTimeout = 10 * time.Second
)

// MostButtons implements channels.ButtonShower. Where nobody receives, nobody hears of a
// press.
func (c *Channel) MostButtons() (count, bytes int) {
	if c.sendsOnly {
		return 0, 0
	}
	return mostButtons, mostPressData
}

// keyboard shows buttons below a message, each in a row of its own. Nil, not an empty
// one, shows none, and removes those that there are.
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

// pressedAt is the message with the button, as far as Telegram shows it.
func pressedAt(q *models.CallbackQuery) *models.Message {
	switch {
	case q.Message.Message != nil:
		return q.Message.Message
	case q.Message.InaccessibleMessage != nil: // too old
		return &models.Message{ID: q.Message.InaccessibleMessage.MessageID, Chat: q.Message.InaccessibleMessage.Chat}
	}
	return new(models.Message) // of no chat that the bot is in
}

// press is what a press says to the agent; false if it is of no button of the bot's.
func (c *Channel) press(q *models.CallbackQuery) (bus.Inbound, bool) {
	m := pressedAt(q)
	if m.Chat.ID == 0 || q.From.IsBot || strings.TrimSpace(q.Data) == "" {
		return bus.Inbound{}, false
	}
	private := m.Chat.Type == models.ChatTypePrivate
	in := bus.Inbound{
		ID:        c.name + ":" + strconv.FormatInt(c.id, 10) + ":press:" + q.ID,
		Kind:      bus.Said,
		From:      bus.Person{ID: c.person(q.From.ID), Name: displayName(&q.From)},
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

// publishPress publishes one press, and then tells who has pressed that it has arrived,
// or that it counts for nothing. It is false if ctx ended first.
func (p *publisher) publishPress(ctx context.Context, q *models.CallbackQuery) bool {
	words := ""
	if in, ok := p.channel.press(q); ok {
		err := p.surely(ctx, in.ID, func() error { return p.publishAt(ctx, in) })
		switch {
		case errors.Is(err, channels.ErrNotAdmitted):
			words = channels.NotAdmitted
		case err != nil:
			return false
		}
	}
	// Nothing waits for the answer: without one the app soon gives up by itself.
	p.answering.Go(func() { p.channel.answerPress(context.WithoutCancel(ctx), q.ID, words) })
	return true
}

// pressAnswer is what answerCallbackQuery takes.
type pressAnswer struct {
	ID    string `json:"callback_query_id"`
	Text  string `json:"text,omitempty"`
	Alert bool   `json:"show_alert,omitempty"` // to be closed by who has pressed
}

// answerPress ends the wait of who has pressed a button, and shows them words, if there
// are any.
func (c *Channel) answerPress(ctx context.Context, id, words string) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var done bool
	if err := c.call(ctx, "answerCallbackQuery", pressAnswer{id, words, words != ""}, &done); err != nil {
		c.log.LogAttrs(ctx, slog.LevelDebug, "a press could not be answered", slog.Any("error", err))
	}
}
