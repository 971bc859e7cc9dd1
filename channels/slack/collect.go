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

const (
	// rootLookBack is how long before a gap a thread may have begun for its replies to be read, no matter who takes
	// part. Of older threads, only the newest maxOlderThreads that the bot has joined are read, because Slack can't
	// list threads by their last reply.
	rootLookBack    = 24 * time.Hour
	maxOlderThreads = 5
	// maxAttempts is how many times a call may fail before reading its chat is postponed.
	maxAttempts = 10
)

// A collector reads, from history, the messages that were written in chats while the bot was away (a gap).
type collector struct {
	api           *slackgo.Client
	histories     *histories
	name          string // the channel's configured name
	joinedThreads JoinedThreads
	readTimeout   time.Duration // how long a failing call is repeated
}

// listChats returns the ids of the chats that the bot is a member of.
func (c collector) listChats(ctx context.Context) ([]string, error) {
	var all []string
	cursor := ""
	for {
		var page []slackgo.Channel
		next := ""
		err := c.retry(ctx, func(ctx context.Context) (err error) {
			ctx, t, done := startCall(ctx)
			defer done()
			page, next, err = c.api.GetConversationsForUserContext(ctx, &slackgo.GetConversationsForUserParameters{
				Cursor: cursor, Limit: pageSize, ExcludeArchived: true,
				Types: []string{"public_channel", "private_channel", "mpim", "im"},
			})
			if err != nil {
				return asRepeatable(sendError(err, t))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, one := range page {
			all = append(all, one.ID)
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
}

// retry repeats a call that may succeed later, up to maxAttempts times or until readTimeout has passed. Waiting for
// Slack's rate limit does not count as a failure.
func (c collector) retry(ctx context.Context, call func(context.Context) error) error {
	wait := new(retryWait)
	began, failures := time.Now(), 0
	for {
		err := call(ctx)
		if err == nil {
			return nil
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if !ok || refusal.Fault != channels.Retry {
			return err
		}
		if !refusal.RateLimited {
			failures++
		}
		if failures == maxAttempts || failures > 0 && time.Since(began) > c.readTimeout || !wait.pause(ctx, err) {
			return err
		}
	}
}

// readSince returns the messages and replies in a chat since a time, oldest first. If it returns an error, it also
// returns what it found so far. A permanent error does not stop it: it goes on to the threads that can be read.
func (c collector) readSince(ctx context.Context, chat string, from time.Time) ([]*message, error) {
	since, begun := formatTS(from), formatTS(from.Add(-rootLookBack))
	found := map[string]*message{}
	note := func(m slackgo.Message) bool {
		if m.Timestamp > since {
			one := fromHistory(chat, m)
			found[m.Timestamp] = &one
		}
		return true
	}
	var roots []string
	first := c.histories.readChat(ctx, c.retry, chat, begun, func(m slackgo.Message) bool {
		if m.LatestReply > since {
			roots = append(roots, m.Timestamp)
		}
		return note(m)
	})
	if first == nil || isPermanent(first) {
		older, err := c.listOlderThreads(ctx, chat, begun)
		roots = append(roots, older...)
		first = cmp.Or(first, err)
	}
	for _, root := range roots {
		if first != nil && !isPermanent(first) {
			break
		}
		if err := c.histories.readThread(ctx, c.retry, chat, root, since, note); err != nil && !isThreadGone(err) {
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

// listOlderThreads returns the newest of the threads that the bot has joined in a chat and that began before a
// message; before is that message's ts.
func (c collector) listOlderThreads(ctx context.Context, chat, before string) ([]string, error) {
	var joined []bus.Address
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		if joined, err = c.joinedThreads.Threads(ctx, bus.Address{Channel: c.name, Chat: chat}); err != nil {
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
	return roots[max(0, len(roots)-maxOlderThreads):], nil
}
