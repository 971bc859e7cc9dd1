package slack

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
)

// A finder finds messages that may have been sent just before a crash.
type finder struct {
	identity      *identity
	conversations *conversations
	histories     *histories
}

// maxLookBack is how far back FindSent looks. No send is retried for that long.
const maxLookBack = 7 * 24 * time.Hour

// FindSent looks for a part by its key, in the history of the chat to which the part was addressed, as far back as
// maxLookBack. It returns the message's ts, and whether it found the part.
func (f *finder) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	chat, err := f.conversations.chatID(ctx, to)
	if err != nil {
		return "", false, err
	}
	me, err := f.identity.current(ctx)
	if err != nil {
		return "", false, err
	}
	s := &partSearch{part: part, botUser: me.User, thread: threadFor(to, part)}
	oldest := formatTS(time.Now().Add(-maxLookBack))
	if root := threadFor(to, part); root != "" {
		err := f.histories.readThread(ctx, tryOnce, chat, root, oldest, s.examine)
		if err != nil && !isThreadGone(err) {
			return "", false, err
		}
	}
	// If the message that a part belongs to has no thread, Send posts into the chat itself.
	if s.id == "" && to.Thread == "" {
		if err := f.histories.readChat(ctx, tryOnce, chat, oldest, s.examine); err != nil {
			return "", false, err
		}
	}
	if s.id == "" && s.foundSimilarFile {
		return "", false, &channels.SendError{Fault: channels.Unknown, Code: "no_key", Err: errors.New("a file was sent with the same text")}
	}
	s.id = cmp.Or(s.id, s.growingTS)
	return s.id, s.id != "", nil
}

// A partSearch looks for one part among the messages of a history.
type partSearch struct {
	part    channels.Part
	botUser string // the user id of the bot
	thread  string

	id string
	// growingTS is the ts of the bot's own last message without a key, unless a later one has a key. That message may
	// be the part, because Slack accepts no key for a growing message.
	growingTS string
	// foundSimilarFile is true if one of the bot's files has the same text and name: it may be the part, because a file
	// carries no key.
	foundSimilarFile bool
}

// examine compares one message with the part, and returns false to end the search.
func (s *partSearch) examine(m slackgo.Message) bool {
	if key, ok := m.Metadata.EventPayload["key"].(string); ok && m.Metadata.EventType == partEvent && key == s.part.Key {
		s.id = m.Timestamp
		return false
	}
	if s.part.Growing != nil && m.User == s.botUser && s.thread != "" && m.Timestamp != s.thread && len(m.Files) == 0 && m.SubType == "" {
		s.growingTS = ""
		if m.Metadata.EventType == "" {
			s.growingTS = m.Timestamp
		}
	}
	hasContent := s.part.Text != "" || s.part.File != "" // somebody who looks for a draft knows neither, and a draft is not a file
	if hasContent && len(m.Files) > 0 && m.Metadata.EventType == "" && m.User == s.botUser {
		said := lettersOnly(m.Text)
		named := s.part.File == "" || slices.ContainsFunc(m.Files, func(file slackgo.File) bool { return file.Title == s.part.File })
		s.foundSimilarFile = s.foundSimilarFile || named && (said == lettersOnly(s.part.Text) || said == lettersOnly(s.part.Plain))
	}
	return true
}
