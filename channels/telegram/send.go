package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

const (
	sendTimeout = 30 * time.Second
	typingFades = 5 * time.Second
	// generalTopic is the thread of a forum's first topic. Telegram refuses it
	// in a message and wants it in a chat action.
	generalTopic = 1
)

// Send delivers one part and returns its message id. A text whose markup
// Telegram cannot read is sent once more without.
func (c *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	chat, thread, err := place(to)
	if err != nil {
		return "", err
	}
	params := &bot.SendMessageParams{
		ChatID:             chat,
		Text:               part.Text,
		ParseMode:          models.ParseModeHTML,
		LinkPreviewOptions: &models.LinkPreviewOptions{IsDisabled: new(true)},
	}
	if thread != generalTopic {
		params.MessageThreadID = thread
	}
	// Telegram has no threads below a message: what belongs to one quotes it.
	if quoted, err := strconv.Atoi(cmp.Or(part.ReplyTo, part.Under)); err == nil {
		params.ReplyParameters = &models.ReplyParameters{MessageID: quoted, AllowSendingWithoutReply: true}
	}
	id, err := c.post(ctx, params)
	if isBadMarkup(err) && part.Plain != "" {
		params.Text, params.ParseMode = part.Plain, ""
		id, err = c.post(ctx, params)
	}
	if err != nil {
		return "", err
	}
	return strconv.Itoa(id), nil
}

// post sends one message; its errors are *channels.SendError.
func (c *Channel) post(ctx context.Context, params *bot.SendMessageParams) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	ctx, t := follow(ctx)
	m, err := c.library.SendMessage(ctx, params)
	if err != nil {
		return 0, sendError(err, t)
	}
	return m.ID, nil
}

// Typing shows that the bot is at work.
func (c *Channel) Typing(ctx context.Context, to bus.Address) (time.Duration, error) {
	chat, thread, err := place(to)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, typingFades)
	defer cancel()
	ctx, t := follow(ctx)
	_, err = c.library.SendChatAction(ctx, &bot.SendChatActionParams{
		ChatID:          chat,
		MessageThreadID: thread,
		Action:          models.ChatActionTyping,
	})
	if err != nil {
		return 0, sendError(err, t)
	}
	return typingFades, nil
}

// place reads an address: a chat is a number or the @name of a public one.
func place(to bus.Address) (chat any, thread int, err error) {
	chat = to.Chat
	if !strings.HasPrefix(to.Chat, "@") {
		if chat, err = strconv.ParseInt(to.Chat, 10, 64); err != nil {
			return nil, 0, &channels.SendError{Fault: channels.Rejected, Code: "bad_address", Err: errors.New("the chat is not a number")}
		}
	}
	if to.Thread != "" {
		if thread, err = strconv.Atoi(to.Thread); err != nil {
			return nil, 0, &channels.SendError{Fault: channels.Rejected, Code: "bad_address", Err: errors.New("the thread is not a number")}
		}
	}
	return chat, thread, nil
}

// sendError says what a failed send means. The library's own texts are left
// behind: Telegram's descriptions can quote what was to be sent.
func sendError(err error, t *trip) *channels.SendError {
	if limited, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		return &channels.SendError{
			Fault: channels.Retry, Code: "429", Err: bot.ErrorTooManyRequests,
			Limited: true, RetryAfter: time.Duration(limited.RetryAfter) * time.Second,
		}
	}
	if moved, ok := errors.AsType[*bot.MigrateError](err); ok {
		return &channels.SendError{
			Fault: channels.Retry, Code: "migrated", Err: bot.ErrorBadRequest,
			MovedTo: strconv.Itoa(moved.MigrateToChatID),
		}
	}
	switch {
	case errors.Is(err, bot.ErrorUnauthorized):
		return &channels.SendError{Fault: channels.Stop, Code: "401", Err: bot.ErrorUnauthorized}
	case errors.Is(err, bot.ErrorNotFound):
		return &channels.SendError{Fault: channels.Stop, Code: "404", Err: bot.ErrorNotFound}
	case errors.Is(err, bot.ErrorForbidden):
		return &channels.SendError{Fault: channels.Rejected, Code: reason(err, "403"), Err: bot.ErrorForbidden}
	case errors.Is(err, bot.ErrorBadRequest):
		return &channels.SendError{Fault: channels.Rejected, Code: reason(err, "400"), Err: bot.ErrorBadRequest}
	}
	return unanswered(err, t)
}

// unanswered is for sends that the Bot API said nothing readable about.
func unanswered(err error, t *trip) *channels.SendError {
	status := int(t.status.Load())
	switch {
	case status == 0 && t.written.Load():
		return &channels.SendError{Fault: channels.Unknown, Code: "cut_off", Err: bare(err)}
	case status == 0:
		return &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: bare(err)}
	case status >= 300 && status < 500:
		// Somebody on the way, not Telegram, turned it away.
		return &channels.SendError{Fault: channels.Retry, Code: "http_" + strconv.Itoa(status), Err: fmt.Errorf("HTTP status %d", status)}
	}
	return &channels.SendError{Fault: channels.Unknown, Code: "http_" + strconv.Itoa(status), Err: fmt.Errorf("HTTP status %d", status)}
}

const badMarkup = "bad_markup"

// isBadMarkup tells that Telegram could not read the markup.
func isBadMarkup(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && refusal.Code == badMarkup
}

// reason names a refusal. Telegram gives nothing but a text for people to tell
// them apart by; a text that is not known keeps the status as its code, and
// nothing but the second try without markup depends on it.
func reason(err error, status string) string {
	text := strings.ToLower(err.Error())
	for _, known := range [...]struct{ text, code string }{
		{"can't parse entities", badMarkup},
		{"chat not found", "chat_not_found"},
		{"blocked by the user", "blocked"},
		{"user is deactivated", "deactivated"},
		{"can't initiate conversation", "not_started"},
		{"kicked", "kicked"},
		{"not a member", "not_a_member"},
		{"not enough rights", "no_rights"},
		{"thread not found", "thread_not_found"},
		{"topic_closed", "topic_closed"},
		{"message is too long", "too_long"},
		{"message text is empty", "empty"},
	} {
		if strings.Contains(text, known.text) {
			return known.code
		}
	}
	return status
}
