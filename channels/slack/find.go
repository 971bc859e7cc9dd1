package slack

import (
	"context"
	"errors"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
)

const (
	// lookBack is how old a send can be that is looked for: far older than
	// anything that is still tried.
	lookBack = 7 * 24 * time.Hour
	// What is busier than so many pages in that time is not read to its end.
	pageSize = 200
	maxPages = 20
)

// FindSent looks for a part in the history of where it was to go, by its key.
func (c *Channel) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	chat, err := c.chat(ctx, to)
	if err != nil {
		return "", false, err
	}
	me, err := c.identity(ctx)
	if err != nil {
		return "", false, err
	}
	f := &finding{part: part, me: me.User}
	oldest := stamp(time.Now().Add(-lookBack))
	if root := thread(to, part); root != "" {
		err := c.readThread(ctx, chat, root, oldest, f.look)
		if err != nil && !isThreadGone(err) {
			return "", false, err
		}
	}
	// What belongs to an earlier message may have gone beside it.
	if f.id == "" && to.Thread == "" {
		if err := c.readChat(ctx, chat, oldest, f.look); err != nil {
			return "", false, err
		}
	}
	if f.id == "" && f.doubtful {
		return "", false, &channels.SendError{Fault: channels.Unknown, Code: "no_key", Err: errors.New("a file was sent with the same text")}
	}
	return f.id, f.id != "", nil
}

// A finding is a search for one part.
type finding struct {
	part channels.Part
	me   string

	id string
	// Files carry no key. One of ours with the same text may be what is looked for.
	doubtful bool
}

// look looks at one message; false ends the search.
func (f *finding) look(m slackgo.Message) bool {
	if key, ok := m.Metadata.EventPayload["key"].(string); ok && m.Metadata.EventType == partEvent && key == f.part.Key {
		f.id = m.Timestamp
		return false
	}
	if len(m.Files) > 0 && m.Metadata.EventType == "" && m.User == f.me && (m.Text == f.part.Text || m.Text == f.part.Plain) {
		f.doubtful = true
	}
	return true
}

// stamp is a moment as Slack writes it.
func stamp(at time.Time) string {
	return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000)
}

// moment reads a ts; the zero time if it is none.
func moment(ts string) time.Time {
	var seconds, micros int64
	if n, err := fmt.Sscanf(ts, "%d.%06d", &seconds, &micros); err != nil || n != 2 {
		return time.Time{}
	}
	return time.Unix(seconds, micros*1000).UTC()
}

// errTooMuch says that a history is too long to be read to its end.
var errTooMuch = errors.New("history is too long")

// pages calls for page after page until one is the last, or see has seen enough.
func pages(page func(cursor string) (messages []slackgo.Message, next string, err error), see func(slackgo.Message) bool) error {
	cursor := ""
	for range maxPages {
		messages, next, err := page(cursor)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if !see(m) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		cursor = next
	}
	return &channels.SendError{Fault: channels.Unknown, Code: "too_much", Err: errTooMuch}
}

// readChat reads a chat's messages since then, newest first, threads' replies not
// among them.
func (c *Channel) readChat(ctx context.Context, chat, oldest string, see func(slackgo.Message) bool) error {
	return pages(func(cursor string) ([]slackgo.Message, string, error) {
		ctx, t, done := begin(ctx)
		defer done()
		r, err := c.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: chat, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return nil, "", repeatable(sendError(err, t))
		}
		return r.Messages, r.ResponseMetaData.NextCursor, nil
	}, see)
}

// readThread reads a thread since then, its root always among it.
func (c *Channel) readThread(ctx context.Context, chat, root, oldest string, see func(slackgo.Message) bool) error {
	return pages(func(cursor string) ([]slackgo.Message, string, error) {
		ctx, t, done := begin(ctx)
		defer done()
		messages, _, next, err := c.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: chat, Timestamp: root, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return nil, "", repeatable(sendError(err, t))
		}
		return messages, next, nil
	}, see)
}
