package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
	"parley/channels"
)

const (
	// What is longer than so many pages is not read to its end.
	pageSize = 200
	maxPages = 20
)

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

// collect reads the messages of a chat since then, replies among them, in order.
// What was found is returned with an error too.
func (g *gaps) collect(ctx context.Context, chat string, from time.Time) ([]*message, error) {
	since, begun := stamp(from), stamp(from.Add(-rootsBack))
	found := map[string]*message{}
	note := func(m slackgo.Message) bool {
		if m.Timestamp > since {
			one := past(chat, m)
			found[m.Timestamp] = &one
		}
		return true
	}
	var roots []string
	errs := []error{g.r.channel.readChat(ctx, chat, begun, func(m slackgo.Message) bool {
		if m.LatestReply > since {
			roots = append(roots, m.Timestamp)
		}
		return note(m)
	})}
	older, err := g.older(ctx, chat, begun)
	errs = append(errs, err)
	for _, root := range append(roots, older...) {
		if err := g.r.channel.readThread(ctx, chat, root, since, note); err != nil && !isThreadGone(err) {
			errs = append(errs, err)
		}
	}
	all := make([]*message, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *message) int { return cmp.Compare(a.TS, b.TS) })
	for _, err := range errs {
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// older are the newest threads that the bot has joined and that began before then.
func (g *gaps) older(ctx context.Context, chat, before string) ([]string, error) {
	joined, err := g.r.channel.joins.Threads(ctx, bus.Address{Channel: g.r.channel.name, Chat: chat})
	if err != nil {
		return nil, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
	}
	var roots []string
	for _, at := range joined {
		if at.Thread != "" && at.Thread < before {
			roots = append(roots, at.Thread)
		}
	}
	slices.Sort(roots)
	return roots[max(0, len(roots)-olderThreads):], nil
}
