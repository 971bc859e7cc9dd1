package telegram

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

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
func (s *sender) Previews(chat string) time.Duration {
	refused := s.noPreviews.Load()
	if isGroup(chat) || refused != 0 && time.Since(time.Unix(refused, 0)) < retryPreviewsAfter {
		return 0
	}
	return previewEvery
}

// Preview implements channels.Previewer: it shows what there is of a turn's answer, and
// returns for how long Telegram shows it.
func (s *sender) Preview(ctx context.Context, to bus.Address, turn string, part channels.Part) (time.Duration, error) {
	chat, thread, err := s.chatAndThread(ctx, to)
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
		err := s.callOnce(ctx, "sendMessageDraft", &bot.SendMessageDraftParams{
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
		s.noPreviews.Store(time.Now().Unix())
	}
	return previewDuration, err
}
