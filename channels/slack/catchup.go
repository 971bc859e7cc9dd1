package slack

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/channels/backoff"

	slackgo "github.com/slack-go/slack"
	"golang.org/x/time/rate"
)

const (
	// historyEvery keeps the reading of all chats within what Slack allows.
	historyEvery = 1200 * time.Millisecond
	historyBurst = 20
	fillsAtOnce  = 4
	// lookTimeout bounds how long a new message waits for those before it.
	lookTimeout = 2 * time.Second
)

// catchUp reads from history what no socket has brought, and has it published.
// It does so in two ways. A sweep reads the gap of every chat in the background.
// And before a new message is published, what its chat is missing is read first,
// so that messages are published in the order in which they were said.
type catchUp struct {
	collector
	publisher *publisher
	outages   *outages
	limiter   *rate.Limiter // shared by the sweep and by new messages
}

func newCatchUp(p *publisher, o *outages) *catchUp {
	limiter := rate.NewLimiter(rate.Every(historyEvery), historyBurst)
	if !p.channel.paced {
		limiter = rate.NewLimiter(rate.Inf, 0)
	}
	return &catchUp{collector: collector{p.channel}, publisher: p, outages: o, limiter: limiter}
}

// run reads gaps, and saves the cursor, until ctx is done.
func (u *catchUp) run(ctx context.Context) {
	tick := time.NewTicker(u.channel.pulse.save)
	defer tick.Stop()
	sweep := func() (again <-chan time.Time) {
		if u.sweep(ctx) {
			return nil
		}
		return time.After(u.channel.pulse.again)
	}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			u.outages.noteDropped(ctx)
		case <-u.outages.wake:
			again = sweep()
		case <-again:
			again = sweep()
		}
		u.outages.save(ctx)
	}
}

// readBefore publishes what was said in a chat before a message and no socket has
// brought: the chat's part of a gap, or what a lost socket holds up.
func (u *catchUp) readBefore(ctx context.Context, chat string, m *message) {
	if g := u.gapBefore(chat); g != nil {
		u.fill(ctx, chat, g)
		return
	}
	for _, earlier := range u.heldUp(ctx, m) {
		if !u.publisher.deliver(ctx, earlier, noAck) {
			return
		}
	}
}

// gapBefore is the gap whose part must be read before a chat's new messages are
// published; nil if there is none. A chat that was put off once does not wait any
// more. After a short gap a chat waits only if the limiter lets it read at once.
func (u *catchUp) gapBefore(chat string) *gap {
	missed := u.outages.current()
	if missed == nil || missed.isFilled(chat) || missed.failures(chat) > 0 {
		return nil
	}
	if !missed.long && !u.limiter.Allow() {
		return nil
	}
	return missed
}

// heldUp reads the messages that were said shortly before m, in its chat or
// thread, and that were not published. After a socket drops, Slack redelivers its
// events seconds later but newer ones at once. This only improves the order: an
// error is ignored, because Slack brings the messages by itself.
func (u *catchUp) heldUp(ctx context.Context, m *message) (found []*message) {
	since, ok := u.outages.unsettled()
	if !ok || !u.limiter.Allow() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	oldest := stamp(since)
	see := func(said slackgo.Message) bool {
		one := fromHistory(m.Channel, said)
		if one.TS > oldest && one.TS < m.TS && one.mayConcern(u.publisher.me, u.channel.mention) && !u.publisher.isPublished(&one) {
			found = append(found, &one)
		}
		return true
	}
	var err error
	if m.isReply() {
		err = u.channel.readThread(ctx, once, m.Channel, m.ThreadTS, oldest, see)
	} else {
		err = u.channel.readChat(ctx, once, m.Channel, oldest, see)
	}
	if err != nil && ctx.Err() == nil {
		u.channel.log.LogAttrs(ctx, slog.LevelDebug, "what was said before a message cannot be read", slog.String("chat", m.Channel), slog.Any("error", err))
	}
	slices.SortFunc(found, func(a, b *message) int { return cmp.Compare(a.TS, b.TS) })
	return found
}

// sweep reads the gap of every chat, a few at a time. A chat in which something
// is said now does not wait for its turn: readBefore reads it. It is false if a
// chat could not be read and is to be tried again. Such chats come last in the
// next sweep, so that one of them does not keep the others waiting.
func (u *catchUp) sweep(ctx context.Context) bool {
	missed := u.outages.current()
	if missed == nil {
		return true
	}
	chats, err := u.chats(ctx)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		u.channel.log.LogAttrs(ctx, slog.LevelError, "what was said meanwhile cannot be read", slog.Any("error", err))
		if !lasts(err) {
			return false
		}
	}
	rank := func(chat string) int { return 10*missed.failures(chat) + u.rank(chat) }
	slices.SortStableFunc(chats, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	if !u.readAll(ctx, missed, chats) {
		return false
	}
	if ctx.Err() == nil {
		u.outages.filled(missed)
	}
	return true
}

// rank orders chats by how likely somebody waits there for an answer: first the
// chats of one person with the bot, then those in which the bot was spoken to
// lately.
func (u *catchUp) rank(chat string) int {
	if strings.HasPrefix(chat, "D") {
		return 0
	}
	if _, lately := u.publisher.spokenTo.get(chat); lately {
		return 1
	}
	return 2
}

// readAll reads the gap of these chats, a few at a time, each in its own lane, so
// that nothing newer of the chat is published meanwhile. It is false if one could
// not be read. It stops early when a chat fails, and when a newer gap has taken
// the place of this one.
func (u *catchUp) readAll(ctx context.Context, missed *gap, chats []string) bool {
	var reading sync.WaitGroup
	var putOff atomic.Bool
	slots := make(chan struct{}, fillsAtOnce)
	for _, chat := range chats {
		if missed.isFilled(chat) {
			continue
		}
		if !u.room(ctx) || putOff.Load() || u.outages.current() != missed {
			break
		}
		slots <- struct{}{}
		reading.Go(func() {
			defer func() { <-slots }()
			done := make(chan struct{})
			u.publisher.lanes.add(ctx, chat, item{task: func(ctx context.Context) {
				defer close(done)
				u.fill(ctx, chat, missed)
			}})
			select {
			case <-done:
				putOff.CompareAndSwap(false, !missed.isFilled(chat))
			case <-ctx.Done():
			}
		})
	}
	reading.Wait()
	return !putOff.Load() || ctx.Err() != nil
}

// room waits until the sweep may read another chat. It leaves half of the burst to
// chats in which something is said now. It is false if ctx ended first.
func (u *catchUp) room(ctx context.Context) bool {
	for u.channel.paced && u.limiter.Tokens() <= historyBurst/2 {
		if !backoff.Sleep(ctx, historyEvery/2) {
			return false
		}
	}
	u.limiter.Allow()
	return ctx.Err() == nil
}

// fill publishes what was said in a chat during the gap. It runs in the chat's
// lane, so the chat's newer messages wait until it is done.
func (u *catchUp) fill(ctx context.Context, chat string, missed *gap) {
	if missed.isFilled(chat) {
		return
	}
	found, err := u.collect(ctx, chat, missed.from)
	if ctx.Err() != nil {
		return
	}
	if err != nil && missed.failures(chat) == 0 {
		u.channel.log.LogAttrs(ctx, slog.LevelWarn, "what was said in a chat meanwhile cannot be read",
			slog.String("chat", chat), slog.Bool("again", !lasts(err)), slog.Any("error", err))
	}
	for _, m := range found {
		if m.mayConcern(u.publisher.me, u.channel.mention) && !u.publisher.deliver(ctx, m, noAck) {
			return
		}
	}
	missed.note(chat, err)
}
