package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

const (
	sendTimeout    = 30 * time.Second
	fileTimeout    = 4 * time.Minute
	typingDuration = 5 * time.Second
	// generalTopic is the thread of a forum's first topic. Telegram refuses that thread
	// in a message, and demands it in a chat action.
	generalTopic = 1
)

// Send writes one part into a chat and returns the id of the message. A text whose markup
// Telegram cannot read is sent once more without markup.
func (c *Channel) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	chat, thread, err := c.chatAndThread(ctx, to)
	if err != nil {
		return "", err
	}
	return sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
		return c.sendMessage(ctx, chat, sendTimeout, func(ctx context.Context) (m sentMessage, err error) {
			err = c.callOnce(ctx, "sendMessage", &bot.SendMessageParams{
				ChatID: chat, MessageThreadID: messageThread(thread), Text: text, ParseMode: mode,
				LinkPreviewOptions: noPreview(), ReplyParameters: replyParameters(part), ReplyMarkup: keyboard(part.Buttons),
			}, &m)
			return m, err
		})
	})
}

// SendFile sends a file with the part's text as its caption and returns the id of the
// message. A picture is sent as a photo if Telegram accepts it as one.
func (c *Channel) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	chat, thread, err := c.chatAndThread(ctx, to)
	if err != nil {
		return "", err
	}
	if isPhoto(file.Data) {
		id, err := sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
			return c.sendMessage(ctx, chat, fileTimeout, func(ctx context.Context) (sentMessage, error) {
				return sentOf(c.library.SendPhoto(ctx, &bot.SendPhotoParams{
					ChatID: chat, MessageThreadID: messageThread(thread), Caption: text, ParseMode: mode, ReplyParameters: replyParameters(part),
					Photo: inputFile(file),
				}))
			})
		})
		if !hasCode(err, badPhoto) {
			return id, err
		}
	}
	return sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
		return c.sendMessage(ctx, chat, fileTimeout, func(ctx context.Context) (sentMessage, error) {
			return sentOf(c.library.SendDocument(ctx, &bot.SendDocumentParams{
				ChatID: chat, MessageThreadID: messageThread(thread), Caption: text, ParseMode: mode, ReplyParameters: replyParameters(part),
				Document: inputFile(file),
			}))
		})
	})
}

// MostFileBytes returns how many bytes a file may have that a bot sends by the Bot API.
func (c *Channel) MostFileBytes() int64 { return 50_000_000 }

// CaptionLength returns the longest text that Telegram accepts beside a file, in UTF-16
// units.
func (c *Channel) CaptionLength() int { return captionLength }

// Edit replaces the text and the buttons of a message. A message that has them already
// counts as edited.
func (c *Channel) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	chat, _, err := c.chatAndThread(ctx, to)
	if err != nil {
		return err
	}
	message, err := strconv.Atoi(id)
	if err != nil {
		return &channels.SendError{Fault: channels.Rejected, Code: "bad_id", Err: errors.New("the message's id is not a number")}
	}
	_, err = sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
		return c.sendMessage(ctx, chat, sendTimeout, func(ctx context.Context) (m sentMessage, err error) {
			err = c.callOnce(ctx, "editMessageText", &bot.EditMessageTextParams{
				ChatID: chat, MessageID: message, Text: text, ParseMode: mode, LinkPreviewOptions: noPreview(),
				ReplyMarkup: keyboard(part.Buttons),
			}, &m)
			return m, err
		})
	})
	if hasCode(err, notModified) {
		return nil
	}
	return err
}

// sendReadable sends a part's text with its markup, and once more without if Telegram may
// have refused the markup. A refusal means that nothing was sent.
func sendReadable(part channels.Part, send func(text string, mode models.ParseMode) (string, error)) (string, error) {
	id, err := send(part.Text, models.ParseModeHTML)
	if part.Plain == "" || part.Plain == part.Text || !mayBeAboutMarkup(err) {
		return id, err
	}
	return send(part.Plain, "")
}

// mayBeAboutMarkup reports whether a call was refused for its markup, or for an unknown
// reason.
func mayBeAboutMarkup(err error) bool {
	return hasCode(err, badMarkup) || hasCode(err, tooLong) || hasCode(err, empty) || hasCode(err, badRequest)
}

// A sentMessage is what is read of the Bot API's message.
type sentMessage struct {
	ID int `json:"message_id"`
}

// sentOf converts what a call of go-telegram/bot has returned: the sent message, or the error.
func sentOf(m *models.Message, err error) (sentMessage, error) {
	if err != nil {
		return sentMessage{}, err
	}
	return sentMessage{m.ID}, nil
}

// sendMessage makes one call that sends or edits a message, and returns the message's id.
// Its errors are *channels.SendError.
func (c *Channel) sendMessage(ctx context.Context, chat any, timeout time.Duration, call func(context.Context) (sentMessage, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, t := withRequestTrace(ctx)
	m, err := call(ctx)
	if err != nil {
		err := sendError(err, t)
		c.callReachability.Note(err)
		if old, ok := chat.(int64); ok && err.MovedTo != "" {
			// If the book cannot record the move now, the next refusal reports it again.
			if err := c.moves.recordMove(ctx, strconv.FormatInt(old, 10), err.MovedTo); err != nil {
				c.log.LogAttrs(ctx, slog.LevelWarn, "a group has moved, which is not kept yet", slog.Any("error", err))
			}
		}
		return "", err
	}
	c.callReachability.Note(nil)
	return strconv.Itoa(m.ID), nil
}

// noPreview returns the option that shows no previews of links.
func noPreview() *models.LinkPreviewOptions {
	return &models.LinkPreviewOptions{IsDisabled: new(true)}
}

// messageThread returns the thread as a message names it: 0 for the general topic.
func messageThread(thread int) int {
	if thread == generalTopic {
		return 0
	}
	return thread
}

// replyParameters names the message that a part replies to, or else belongs to: Telegram
// has no threads below a message. It returns nil if there is none.
func replyParameters(part channels.Part) *models.ReplyParameters {
	id, err := strconv.Atoi(cmp.Or(part.ReplyTo, part.Under))
	if err != nil {
		return nil
	}
	return &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
}

// Typing shows in a chat that the bot is typing, and returns for how long Telegram shows
// it.
func (c *Channel) Typing(ctx context.Context, to bus.Address) (time.Duration, error) {
	chat, thread, err := c.chatAndThread(ctx, to)
	if err != nil {
		return 0, err
	}
	if id, ok := chat.(int64); ok && thread == 0 && c.forums.has(id) {
		thread = generalTopic // without a topic Telegram shows it nowhere
	}
	ctx, cancel := context.WithTimeout(ctx, typingDuration)
	defer cancel()
	ctx, t := withRequestTrace(ctx)
	var done bool
	err = c.callOnce(ctx, "sendChatAction", &bot.SendChatActionParams{
		ChatID:          chat,
		MessageThreadID: thread,
		Action:          models.ChatActionTyping,
	}, &done)
	if err != nil {
		return 0, sendError(err, t)
	}
	return typingDuration, nil
}

// previewEvery is the time between two previews of an answer, previewDuration how long
// Telegram shows one, and retryPreviewsAfter how long an account that was refused a preview
// does not try another.
const (
	previewEvery       = 1500 * time.Millisecond
	previewDuration    = 30 * time.Second
	retryPreviewsAfter = 6 * time.Hour
)

// Previews implements channels.Previewer: it returns the least time between two previews in a chat,
// or 0 if the chat cannot show any. Telegram has previews only in chats with one person.
func (c *Channel) Previews(chat string) time.Duration {
	refused := c.noPreviews.Load()
	if isGroup(chat) || refused != 0 && time.Since(time.Unix(refused, 0)) < retryPreviewsAfter {
		return 0
	}
	return previewEvery
}

// Preview implements channels.Previewer: it shows what there is of a turn's answer, and
// returns for how long Telegram shows it.
func (c *Channel) Preview(ctx context.Context, to bus.Address, turn string, part channels.Part) (time.Duration, error) {
	chat, thread, err := c.chatAndThread(ctx, to)
	if err != nil {
		return 0, err
	}
	draft := fnv.New32a()
	_, _ = draft.Write([]byte(turn)) // a hash takes everything
	_, err = sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		defer cancel()
		ctx, t := withRequestTrace(ctx)
		var done bool
		err := c.callOnce(ctx, "sendMessageDraft", &bot.SendMessageDraftParams{
			ChatID: chat, MessageThreadID: messageThread(thread), DraftID: strconv.Itoa(int(draft.Sum32()>>1 | 1)), Text: text, ParseMode: mode,
		}, &done)
		if errors.Is(err, bot.ErrorNotFound) { // a Bot API server that does not know the method
			return "", &channels.SendError{Fault: channels.Rejected, Code: "no_previews", Err: bot.ErrorNotFound}
		}
		if err != nil {
			return "", sendError(err, t)
		}
		return "", nil
	})
	if hasCode(err, "no_previews") || hasCode(err, badRequest) {
		c.noPreviews.Store(time.Now().Unix())
	}
	return previewDuration, err
}

// chatAndThread returns the chat and thread of an address as Telegram knows them: for a group
// that has moved, under its current id.
func (c *Channel) chatAndThread(ctx context.Context, to bus.Address) (chat any, thread int, err error) {
	if to.Chat, err = c.moves.currentID(ctx, to.Chat); err != nil {
		return nil, 0, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
	}
	return parseAddress(to)
}

// parseAddress returns the chat and thread of an address. The chat is a number, or the
// @name of a public one.
func parseAddress(to bus.Address) (chat any, thread int, err error) {
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

// sendError classifies a failed send. It drops the texts of go-telegram/bot: Telegram's
// descriptions can quote the message to be sent.
func sendError(err error, t *requestTrace) *channels.SendError {
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
		return &channels.SendError{Fault: channels.Rejected, Code: refusalCode(err, "403"), Err: bot.ErrorForbidden}
	case errors.Is(err, bot.ErrorBadRequest):
		return &channels.SendError{Fault: channels.Rejected, Code: refusalCode(err, badRequest), Err: bot.ErrorBadRequest}
	}
	return unansweredError(err, t)
}

// unansweredError classifies a failed send to which the Bot API gave no readable answer.
func unansweredError(err error, t *requestTrace) *channels.SendError {
	status := int(t.status.Load())
	switch {
	case status == 0 && t.written.Load():
		return &channels.SendError{Fault: channels.Unknown, Code: "cut_off", Err: withoutURL(err)}
	case status == 0:
		return &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: withoutURL(err)}
	case status == http.StatusRequestEntityTooLarge:
		return &channels.SendError{Fault: channels.Rejected, Code: "too_large", Err: fmt.Errorf("HTTP status %d", status)}
	case status >= 300 && status < 500:
		// A proxy, not Telegram, refused the request.
		return &channels.SendError{Fault: channels.Retry, Code: "http_" + strconv.Itoa(status), Err: fmt.Errorf("HTTP status %d", status)}
	}
	return &channels.SendError{Fault: channels.Unknown, Code: "http_" + strconv.Itoa(status), Err: fmt.Errorf("HTTP status %d", status)}
}

// These error codes decide what happens after a refusal.
const (
	badMarkup   = "bad_markup"
	tooLong     = "too_long"
	empty       = "empty"
	badPhoto    = "bad_photo"
	badRequest  = "400" // refused for a reason that is not known
	notModified = "not_modified"
)

// hasCode reports whether a call was refused with that code.
func hasCode(err error, code string) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && refusal.Code == code
}

// refusalCode returns a code for a refusal. Telegram distinguishes refusals only by a text
// for people; for an unknown text the code is the status. Only two decisions depend on it:
// whether a text is sent once more without markup, and whether an edit changed nothing.
func refusalCode(err error, status string) string {
	text := strings.ToLower(err.Error())
	for _, known := range [...]struct{ text, code string }{
		{"can't parse entities", badMarkup},
		{"entities_too_long", badMarkup},
		{"message is not modified", notModified},
		{"message to edit not found", "edit_not_found"},
		{"message can't be edited", "not_editable"},
		{"no text in the message to edit", "not_editable"},
		{"caption is too long", tooLong},
		{"photo_invalid", badPhoto},
		{"photo_save_file_invalid", badPhoto},
		{"image_process_failed", badPhoto},
		{"file must be non-empty", "empty_file"},
		{"chat not found", "chat_not_found"},
		{"blocked by the user", "blocked"},
		{"user is deactivated", "deactivated"},
		{"can't initiate conversation", "not_started"},
		{"kicked", "kicked"},
		{"not a member", "not_a_member"},
		{"not enough rights", "no_rights"},
		{"thread not found", "thread_not_found"},
		{"topic_closed", "topic_closed"},
		{"message is too long", tooLong},
		{"message text is empty", empty},
	} {
		if strings.Contains(text, known.text) {
			return known.code
		}
	}
	return status
}

// Refusal implements channels.RefusalReader: it says why a send was refused, by the codes
// of refusalCode; "" if the code says nothing about the place.
func (c *Channel) Refusal(code string) channels.Refusal {
	switch code {
	case "chat_not_found":
		return channels.NoSuchChat
	case "not_a_member", "kicked":
		return channels.NotInChat
	case "blocked", "deactivated", "not_started":
		return channels.PersonRefuses
	case "no_rights":
		return channels.NoRights
	case "thread_not_found", "topic_closed", "403":
		return channels.PlaceRefused
	}
	return ""
}
