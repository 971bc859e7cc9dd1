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

// attempts makes a call, as often as it sees fit.
type attempts func(ctx context.Context, call func(context.Context) error) error

// once is the attempts of those who try the whole again.
func once(ctx context.Context, call func(context.Context) error) error { return call(ctx) }

// A page is one of a history.
type page struct {
	messages []slackgo.Message
	next     string // cursor; "" if it is the last
}

// pages calls for page after page until one is the last, or see has seen enough.
// Each is tried by itself: whoever had to begin anew after a limit would meet it
// again at the same place.
func pages(ctx context.Context, try attempts, get func(ctx context.Context, cursor string) (page, error), see func(slackgo.Message) bool) error {
	cursor := ""
	for range maxPages {
		var p page
		err := try(ctx, func(ctx context.Context) (err error) {
			p, err = get(ctx, cursor)
			return err
		})
		if err != nil {
			return err
		}
		for _, m := range p.messages {
			if !see(m) {
				return nil
			}
		}
		if p.next == "" {
			return nil
		}
		cursor = p.next
	}
	return &channels.SendError{Fault: channels.Unknown, Code: "too_much", Err: errTooMuch}
}

// readChat reads a chat's messages since then, newest first, threads' replies not
// among them.
func (c *Channel) readChat(ctx context.Context, try attempts, chat, oldest string, see func(slackgo.Message) bool) error {
	return pages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := begin(ctx)
		defer done()
		r, err := c.api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: chat, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, repeatable(sendError(err, t))
		}
		return page{r.Messages, r.ResponseMetaData.NextCursor}, nil
	}, see)
}

// readThread reads a thread since then, its root always among it.
func (c *Channel) readThread(ctx context.Context, try attempts, chat, root, oldest string, see func(slackgo.Message) bool) error {
	return pages(ctx, try, func(ctx context.Context, cursor string) (page, error) {
		ctx, t, done := begin(ctx)
		defer done()
		messages, _, next, err := c.api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: chat, Timestamp: root, Cursor: cursor, Oldest: oldest, Limit: pageSize, IncludeAllMetadata: true,
		})
		if err != nil {
			return page{}, repeatable(sendError(err, t))
		}
		return page{messages, next}, nil
	}, see)
}

// collect reads the messages of a chat since then, replies among them, in order.
// What was found is returned with an error too. Of errors that last it goes on
// to what can be read all the same.
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
	first := g.r.channel.readChat(ctx, g.try, chat, begun, func(m slackgo.Message) bool {
		if m.LatestReply > since {
			roots = append(roots, m.Timestamp)
		}
		return note(m)
	})
	if first == nil || lasts(first) {
		older, err := g.older(ctx, chat, begun)
		roots = append(roots, older...)
		first = cmp.Or(first, err)
	}
	for _, root := range roots {
		if first != nil && !lasts(first) {
			break
		}
		if err := g.r.channel.readThread(ctx, g.try, chat, root, since, note); err != nil && !isThreadGone(err) {
			first = err
		}
	}
	all := make([]*message, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *message) int { return cmp.Compare(a.TS, b.TS) })
	return all, first
}

// older are the newest threads that the bot has joined and that began before then.
func (g *gaps) older(ctx context.Context, chat, before string) ([]string, error) {
	var joined []bus.Address
	err := g.try(ctx, func(ctx context.Context) (err error) {
		if joined, err = g.r.channel.joins.Threads(ctx, bus.Address{Channel: g.r.channel.name, Chat: chat}); err != nil {
			return &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
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
