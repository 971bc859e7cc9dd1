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

// previewEvery is the time between two previews of an answer, previewDuration is how long Telegram shows one, and
// retryPreviewsAfter is how long an account tries no more previews after Telegram has refused it one.
const (
	previewEvery       = 1500 * time.Millisecond
	previewDuration    = 30 * time.Second
	retryPreviewsAfter = 6 * time.Hour
)

// Previews implements channels.Previewer: it returns the minimum time between two previews in a chat, or 0 if the
// chat can't show any. Telegram has previews only in private chats.
func (s *sender) Previews(chat string) time.Duration {
	refused := s.previewsRefusedAt.Load()
	if isGroup(chat) || refused != 0 && time.Since(time.Unix(refused, 0)) < retryPreviewsAfter {
		return 0
	}
	return previewEvery
}

// Preview implements channels.Previewer: it shows the part of a turn's answer that exists so far, and returns how
// long Telegram shows it.
func (s *sender) Preview(ctx context.Context, to bus.Address, turn string, part channels.Part) (time.Duration, error) {
	chat, thread, err := s.chatAndThread(ctx, to)
	if err != nil {
		return 0, err
	}
	draft := fnv.New32a()
	_, _ = draft.Write([]byte(turn)) // writing to a hash never fails
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
	if hasCode(err, "no_previews") || hasCode(err, codeBadRequest) {
		s.previewsRefusedAt.Store(time.Now().Unix())
	}
	return previewDuration, err
}
