package slack

import (
	"context"
	"log/slog"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels/slack/interaction"
)

// speakers knows who spoke last in a thread: in a channel, Slack requires a growing answer to be for one person.
type speakers struct {
	histories  *histories
	translator *translator
	last       *cache[string] // by thread: the user who spoke there last
	log        *slog.Logger
}

// note records who spoke last in a thread.
func (s *speakers) note(chat, thread, user string) { s.last.put(threadKey(chat, thread), user) }

// find returns the user who, as far as this process has noted, spoke last in a thread. If it has noted nobody, it
// asks Slack who wrote the message that started the turn; "" if nobody is known.
func (s *speakers) find(ctx context.Context, me Account, chat, thread, turn string) string {
	if user, heard := s.last.get(threadKey(chat, thread)); heard {
		return user
	}
	ts, ok := strings.CutPrefix(turn, s.translator.messageID(&message{Channel: chat}, me))
	if !ok || !isTS(ts) {
		return "" // the turn was not started by a message
	}
	user := ""
	err := s.histories.readThread(ctx, tryOnce, chat, thread, formatTS(interaction.ParseTS(ts).Add(-time.Microsecond)), func(said slackgo.Message) bool {
		if said.Timestamp == ts && said.BotID == "" {
			user = said.User
		}
		return said.Timestamp < ts || said.Timestamp == thread && thread != ts
	})
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "it is not known for whom an answer is to grow", slog.Any("error", err))
	}
	if user != "" {
		s.last.put(threadKey(chat, thread), user)
	}
	return user
}

// threadKey returns the key of a thread in speakers.
func threadKey(chat, thread string) string { return chat + " " + thread }
