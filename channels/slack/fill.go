package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

// A gap is a time in which nothing was heard.
type gap struct {
	from time.Time
	long bool // live mail of a chat waits until its part is read, whatever that takes

	mu     sync.Mutex
	filled map[string]bool // by chat
	failed map[string]int  // by chat: how often it was put off
}

func newGap(from time.Time, long bool) *gap {
	return &gap{from: from, long: long, filled: map[string]bool{}, failed: map[string]int{}}
}

func (m *gap) isFilled(chat string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filled[chat]
}

// failures is how often a chat was put off.
func (m *gap) failures(chat string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed[chat]
}

func (g *gaps) current() *gap {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gap
}

// before is the gap that must be read before a chat's live mail goes on; nil if
// there is none. Mail of a chat that was put off does not wait any more.
func (g *gaps) before(chat string) *gap {
	missed := g.current()
	if missed == nil || missed.isFilled(chat) || missed.failures(chat) > 0 {
		return nil
	}
	if !missed.long && !g.limiter.Allow() {
		return nil
	}
	return missed
}

// sweep reads the gap of every chat, a few at a time; those in which something is
// said now do not wait for that. It is false if something is left that may be
// read later: those chats come last then, so that one does not keep the others.
func (g *gaps) sweep(ctx context.Context) bool {
	missed := g.current()
	if missed == nil {
		return true
	}
	chats, err := g.chats(ctx)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		g.r.channel.log.LogAttrs(ctx, slog.LevelError, "what was said meanwhile cannot be read", slog.Any("error", err))
		if !lasts(err) {
			return false
		}
	}
	rank := func(chat string) int { return 10*missed.failures(chat) + g.rank(chat) }
	slices.SortStableFunc(chats, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	if !g.readAll(ctx, missed, chats) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gap == missed && ctx.Err() == nil {
		g.gap = nil
	}
	return true
}

// rank is how soon a chat's gap is read: where somebody waits for an answer most
// likely first. That is a person's own chat, then one in which the bot was spoken
// to lately.
func (g *gaps) rank(chat string) int {
	if strings.HasPrefix(chat, "D") {
		return 0
	}
	if _, lately := g.r.lately.get(chat); lately {
		return 1
	}
	return 2
}

// readAll reads the gap of these chats, a few at a time. It is false if one could
// not be read; it ends early where there is another gap to be read.
func (g *gaps) readAll(ctx context.Context, missed *gap, chats []string) bool {
	var reading sync.WaitGroup
	var put atomic.Bool // one off
	slots := make(chan struct{}, fillsAtOnce)
	for _, chat := range chats {
		if missed.isFilled(chat) {
			continue
		}
		if !g.room(ctx) || put.Load() || g.current() != missed {
			break
		}
		slots <- struct{}{}
		reading.Go(func() {
			defer func() { <-slots }()
			done := make(chan struct{})
			g.r.enqueue(ctx, chat, item{gap: missed, done: done})
			select {
			case <-done:
				put.CompareAndSwap(false, !missed.isFilled(chat))
			case <-ctx.Done():
			}
		})
	}
	reading.Wait()
	return !put.Load() || ctx.Err() != nil
}

// room waits until the sweep may read another chat. It leaves half of what may be
// read at once to the chats in which something is said; false if ctx ended first.
func (g *gaps) room(ctx context.Context) bool {
	for g.r.channel.paced && g.limiter.Tokens() <= historyBurst/2 {
		if !sleep(ctx, historyEvery/2) {
			return false
		}
	}
	g.limiter.Allow()
	return ctx.Err() == nil
}

// lasts tells of an error of reading that it will be the same later.
func lasts(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && (refusal.Fault == channels.Rejected || refusal.Fault == channels.Unknown)
}

// chats lists where the bot is.
func (g *gaps) chats(ctx context.Context) ([]string, error) {
	var all []string
	cursor := ""
	for {
		var page []slackgo.Channel
		next := ""
		err := g.try(ctx, func(ctx context.Context) (err error) {
			ctx, t, done := begin(ctx)
			defer done()
			page, next, err = g.r.channel.api.GetConversationsForUserContext(ctx, &slackgo.GetConversationsForUserParameters{
				Cursor: cursor, Limit: pageSize, ExcludeArchived: true,
				Types: []string{"public_channel", "private_channel", "mpim", "im"},
			})
			if err != nil {
				return repeatable(sendError(err, t))
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

// try makes a call again while it fails in a way that may pass. A limit is
// waited for however often it comes.
func (g *gaps) try(ctx context.Context, call func(context.Context) error) error {
	wait := new(backoff)
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
		if !refusal.Limited {
			failures++
		}
		if failures == fillAttempts || failures > 0 && time.Since(began) > g.r.channel.pulse.patience || !wait.pause(ctx, err) {
			return err
		}
	}
}

// fill hands on what was said in a chat during the gap. It runs in the chat's lane.
func (g *gaps) fill(ctx context.Context, chat string, missed *gap) {
	if missed.isFilled(chat) {
		return
	}
	found, err := g.collect(ctx, chat, missed.from)
	if ctx.Err() != nil {
		return
	}
	if err != nil && missed.failures(chat) == 0 {
		g.r.channel.log.LogAttrs(ctx, slog.LevelWarn, "what was said in a chat meanwhile cannot be read",
			slog.String("chat", chat), slog.Bool("again", !lasts(err)), slog.Any("error", err))
	}
	for _, m := range found {
		if m.mayConcern(g.r.me) && !g.r.hand(ctx, m, nothing) {
			return
		}
	}
	missed.mu.Lock()
	defer missed.mu.Unlock()
	if err == nil || lasts(err) {
		missed.filled[chat] = true
		return
	}
	missed.failed[chat]++
}
