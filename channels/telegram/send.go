package telegram

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

const (
	sendTimeout    = 30 * time.Second
	fileTimeout    = 4 * time.Minute
	typingTimeout  = 5 * time.Second // later than that, the sign is of no use
	typingDuration = 5 * time.Second // how long Telegram shows the sign
)

// A sender sends and edits messages.
type sender struct {
	*api
	moves     *movedGroups
	forums    *forums
	onlySends bool
	// previewsRefusedAt is when Telegram last refused a preview, as a Unix time; 0 if it never has.
	previewsRefusedAt atomic.Int64
}

// Send posts one part to a chat and returns the id of the message. If Telegram can't parse a text's markup, the
// text is sent once more without markup.
func (s *sender) Send(ctx context.Context, to bus.Address, part channels.Part) (string, error) {
	chat, thread, err := s.chatAndThread(ctx, to)
	if err != nil {
		return "", err
	}
	return sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
		return s.sendMessage(ctx, chat, sendTimeout, func(ctx context.Context) (m sentMessage, err error) {
			err = s.callOnce(ctx, "sendMessage", &bot.SendMessageParams{
				ChatID: chat, MessageThreadID: messageThread(thread), Text: text, ParseMode: mode,
				LinkPreviewOptions: noLinkPreviews(), ReplyParameters: replyParameters(part), ReplyMarkup: inlineKeyboard(part.Buttons),
			}, &m)
			return m, err
		})
	})
}

// SendFile sends a file with the part's text as its caption and returns the id of the message. It sends a picture
// as a photo, and a recording as a voice note, if Telegram accepts it as one.
func (s *sender) SendFile(ctx context.Context, to bus.Address, file bus.File, part channels.Part) (string, error) {
	chat, thread, err := s.chatAndThread(ctx, to)
	if err != nil {
		return "", err
	}
	send := func(call func(ctx context.Context, caption string, mode models.ParseMode) (*models.Message, error)) (string, error) {
		return sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
			return s.sendMessage(ctx, chat, fileTimeout, func(ctx context.Context) (sentMessage, error) {
				m, err := call(ctx, text, mode)
				if err != nil {
					return sentMessage{}, err
				}
				return sentMessage{m.ID}, nil
			})
		})
	}
	if file.Voice {
		id, err := send(func(ctx context.Context, caption string, mode models.ParseMode) (*models.Message, error) {
			return s.library.SendVoice(ctx, &bot.SendVoiceParams{
				ChatID: chat, MessageThreadID: messageThread(thread), Caption: caption, ParseMode: mode, ReplyParameters: replyParameters(part),
				Voice: inputFile(file),
			})
		})
		if !hasCode(err, codeNoVoice) {
			return id, err
		}
	}
	if isPhoto(file.Data) {
		id, err := send(func(ctx context.Context, caption string, mode models.ParseMode) (*models.Message, error) {
			return s.library.SendPhoto(ctx, &bot.SendPhotoParams{
				ChatID: chat, MessageThreadID: messageThread(thread), Caption: caption, ParseMode: mode, ReplyParameters: replyParameters(part),
				Photo: inputFile(file),
			})
		})
		if !hasCode(err, codeBadPhoto) {
			return id, err
		}
	}
	return send(func(ctx context.Context, caption string, mode models.ParseMode) (*models.Message, error) {
		return s.library.SendDocument(ctx, &bot.SendDocumentParams{
			ChatID: chat, MessageThreadID: messageThread(thread), Caption: caption, ParseMode: mode, ReplyParameters: replyParameters(part),
			Document: inputFile(file),
		})
	})
}

// SendsVoice implements channels.VoiceSender.
func (s *sender) SendsVoice() bool { return true }

// MaxFileBytes returns the size, in bytes, of the largest file that a bot can send through the Bot API.
func (s *sender) MaxFileBytes() int64 { return 50_000_000 }

// CaptionLength returns the length of the longest text that Telegram accepts with a file, in UTF-16 units.
func (s *sender) CaptionLength() int { return captionLength }

// Edit replaces the text and the buttons of a message. It also succeeds if the message already has them.
func (s *sender) Edit(ctx context.Context, to bus.Address, id string, part channels.Part) error {
	chat, _, err := s.chatAndThread(ctx, to)
	if err != nil {
		return err
	}
	message, err := strconv.Atoi(id)
	if err != nil {
		return &channels.SendError{Fault: channels.Rejected, Code: "bad_id", Err: errors.New("the message's id is not a number")}
	}
	_, err = sendReadable(part, func(text string, mode models.ParseMode) (string, error) {
		return s.sendMessage(ctx, chat, sendTimeout, func(ctx context.Context) (m sentMessage, err error) {
			err = s.callOnce(ctx, "editMessageText", &bot.EditMessageTextParams{
				ChatID: chat, MessageID: message, Text: text, ParseMode: mode, LinkPreviewOptions: noLinkPreviews(),
				ReplyMarkup: inlineKeyboard(part.Buttons),
			}, &m)
			return m, err
		})
	})
	if hasCode(err, codeNotModified) {
		return nil
	}
	return err
}

// sendReadable sends a part's text with its markup, and once more without it if Telegram may have refused the
// markup. A refusal means that nothing was sent.
func sendReadable(part channels.Part, send func(text string, mode models.ParseMode) (string, error)) (string, error) {
	id, err := send(part.Text, models.ParseModeHTML)
	if part.Plain == "" || part.Plain == part.Text || !mayBeAboutMarkup(err) {
		return id, err
	}
	return send(part.Plain, "")
}

// mayBeAboutMarkup reports whether a call was refused because of its markup, because the text is too long or empty,
// or for an unknown reason: without markup, the call may succeed.
func mayBeAboutMarkup(err error) bool {
	return hasCode(err, codeBadMarkup) || hasCode(err, codeTooLong) || hasCode(err, codeEmptyText) || hasCode(err, codeBadRequest)
}

// A sentMessage contains what we read of the Bot API's message.
type sentMessage struct {
	ID int `json:"message_id"`
}

// sendMessage makes one call that sends or edits a message, and returns the message's id.
// Its errors are *channels.SendError.
func (s *sender) sendMessage(ctx context.Context, chat any, timeout time.Duration, call func(context.Context) (sentMessage, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ctx, t := withRequestTrace(ctx)
	m, err := call(ctx)
	if err != nil {
		err := sendError(err, t)
		s.reached.Note(err)
		if old, ok := chat.(int64); ok && err.MovedTo != "" {
			// If the book can't record the move now, the next refusal will report it again.
			if err := s.moves.recordMove(ctx, strconv.FormatInt(old, 10), err.MovedTo); err != nil {
				s.log.LogAttrs(ctx, slog.LevelWarn, "a group has moved, which is not kept yet", slog.Any("error", err))
			}
		}
		return "", err
	}
	s.reached.Note(nil)
	return strconv.Itoa(m.ID), nil
}

// noLinkPreviews returns the option that turns off link previews.
func noLinkPreviews() *models.LinkPreviewOptions {
	return &models.LinkPreviewOptions{IsDisabled: new(true)}
}

// replyParameters names the message that a part replies to or, if there is none, the one that it belongs to,
// because Telegram has no threads below messages. It returns nil if there is neither.
func replyParameters(part channels.Part) *models.ReplyParameters {
	id, err := strconv.Atoi(cmp.Or(part.ReplyTo, part.Under))
	if err != nil {
		return nil
	}
	return &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
}

// Typing shows in a chat that the bot is typing, and returns how long Telegram shows that.
func (s *sender) Typing(ctx context.Context, to bus.Address) (time.Duration, error) {
	chat, thread, err := s.chatAndThread(ctx, to)
	if err != nil {
		return 0, err
	}
	if id, ok := chat.(int64); ok && thread == 0 && s.forums.has(id) {
		thread = generalTopic // without a topic, Telegram shows it nowhere
	}
	ctx, cancel := context.WithTimeout(ctx, typingTimeout)
	defer cancel()
	ctx, t := withRequestTrace(ctx)
	var done bool
	err = s.callOnce(ctx, "sendChatAction", &bot.SendChatActionParams{
		ChatID:          chat,
		MessageThreadID: thread,
		Action:          models.ChatActionTyping,
	}, &done)
	if err != nil {
		return 0, sendError(err, t)
	}
	return typingDuration, nil
}

// chatAndThread returns the chat and thread of an address in Telegram's form; if a group has moved, it returns its
// current id.
func (s *sender) chatAndThread(ctx context.Context, to bus.Address) (chat any, thread int, err error) {
	if to.Chat, err = s.moves.currentID(ctx, to.Chat); err != nil {
		return nil, 0, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
	}
	return parseAddress(to)
}

// MaxButtons implements channels.ButtonShower: it returns how many buttons a message may have, and how many bytes
// of data each may carry. Without a receiver, nobody would learn of a press, so a Channel that only sends returns
// 0, 0.
func (s *sender) MaxButtons() (count, bytes int) {
	if s.onlySends {
		return 0, 0
	}
	return maxButtons, maxButtonData
}

// captionLength is the length of the longest text with a file, in UTF-16 units.
const captionLength = 1024
