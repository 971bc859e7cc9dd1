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

	"parley/channels"
	"parley/channels/backoff"

	slackgo "github.com/slack-go/slack"
	"golang.org/x/time/rate"
)

const (
	// historyEvery and historyBurst limit how often history is read: Slack allows about 50 reads a
	// minute. chatsAtOnce is how many chats a sweep reads at a time.
	historyEvery = 1200 * time.Millisecond
	historyBurst = 20
	chatsAtOnce  = 4
	// heldUpTimeout is the maximum time that a new message waits while earlier messages are read. Before that, it
	// waits at most rateLimitTimeout until the rate limit allows one more read of history.
	heldUpTimeout    = 2 * time.Second
	rateLimitTimeout = 3 * time.Second
)

// catchUp reads from Slack's history the messages that were written while no socket delivered events (gaps), and
// has them published. It does so in two ways: a sweep reads the gap of every chat in the background; and before a
// new message is published, the missing messages of its chat are read, so that messages are published in the order
// in which they were written.
type catchUp struct {
	collector
	publisher   *publisher
	outages     *outages
	mention     channels.MentionIn
	timing      timing
	rateLimited bool
	log         *slog.Logger
	limiter     *rate.Limiter // limits the reads of the sweep and those for new messages together
}

// newCatchUp makes a catchUp for the Channel c that fills the gaps recorded by o, publishing their messages through
// p.
func newCatchUp(c *Channel, p *publisher, o *outages) *catchUp {
	limiter := rate.NewLimiter(rate.Every(historyEvery), historyBurst)
	if !c.rateLimited {
		limiter = rate.NewLimiter(rate.Inf, 0)
	}
	return &catchUp{
		collector: collector{api: c.api, histories: c.historian.histories, name: c.name, joinedThreads: c.historian.joinedThreads, readTimeout: c.timing.readTimeout},
		publisher: p, outages: o, mention: c.translator.mentionRule, timing: c.timing, rateLimited: c.rateLimited, log: c.log, limiter: limiter,
	}
}

// run reads gaps, and saves how far Slack has been read (the cursor), until ctx is done.
func (u *catchUp) run(ctx context.Context) {
	tick := time.NewTicker(u.timing.saveInterval)
	defer tick.Stop()
	sweep := func() (again <-chan time.Time) {
		if u.sweep(ctx) {
			return nil
		}
		return time.After(u.timing.retryAfter)
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

// readBefore publishes the messages in a chat that were written before m and that no socket has delivered: those
// written while the bot was away (a gap), and those that a broken socket is holding up.
func (u *catchUp) readBefore(ctx context.Context, chat string, m *message) {
	if g := u.gapToReadFirst(ctx, chat); g != nil {
		u.readMissed(ctx, chat, g)
		return
	}
	for _, earlier := range u.readHeldUp(ctx, m) {
		if !u.publisher.deliver(ctx, earlier, noAck) {
			return
		}
	}
}

// gapToReadFirst returns the gap whose messages in a chat must be read before the chat's new messages are
// published; nil if there is none. Once reading a chat has failed, the chat no longer waits. After a short gap, a
// chat waits only if the rate limit allows reading soon.
func (u *catchUp) gapToReadFirst(ctx context.Context, chat string) *gap {
	missed := u.outages.currentGap()
	if missed == nil || missed.isFilled(chat) || missed.failures(chat) > 0 {
		return nil
	}
	if !missed.isLong && !u.awaitRateLimit(ctx) {
		return nil
	}
	return missed
}

// awaitRateLimit waits until the rate limit allows a read of history for a new message. It returns false immediately if
// that would take longer than the message may wait.
func (u *catchUp) awaitRateLimit(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, rateLimitTimeout)
	defer cancel()
	return u.limiter.Wait(ctx) == nil
}

// readHeldUp returns the unpublished messages in m's chat or thread that were written shortly before m. After a
// socket breaks, Slack takes seconds to redeliver the socket's events, but delivers newer events immediately.
// readHeldUp only improves the order, so it ignores errors: Slack will deliver these messages itself.
func (u *catchUp) readHeldUp(ctx context.Context, m *message) (found []*message) {
	since, ok := u.outages.possiblyHeldUp()
	if !ok || !u.awaitRateLimit(ctx) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, heldUpTimeout)
	defer cancel()
	oldest := formatTS(since)
	see := func(said slackgo.Message) bool {
		one := fromHistory(m.Channel, said)
		if one.TS > oldest && one.TS < m.TS && one.mayConcernBot(u.publisher.me, u.mention) && !u.publisher.isPublished(&one) {
			found = append(found, &one)
		}
		return true
	}
	var err error
	if m.isReply() {
		err = u.histories.readThread(ctx, tryOnce, m.Channel, m.ThreadTS, oldest, see)
	} else {
		err = u.histories.readChat(ctx, tryOnce, m.Channel, oldest, see)
	}
	if err != nil && ctx.Err() == nil {
		u.log.LogAttrs(ctx, slog.LevelDebug, "what was said before a message cannot be read", slog.String("chat", m.Channel), slog.Any("error", err))
	}
	slices.SortFunc(found, func(a, b *message) int { return cmp.Compare(a.TS, b.TS) })
	return found
}

// sweep reads the messages that were missed in the gap in every chat, a few chats at a time. A chat in which
// somebody is writing does not wait for its turn: readBefore reads it. sweep returns false if a chat could not be
// read and should be tried again. Such chats come last in the next sweep, so that they don't keep the others
// waiting.
func (u *catchUp) sweep(ctx context.Context) bool {
	missed := u.outages.currentGap()
	if missed == nil {
		return true
	}
	chats, err := u.listChats(ctx)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		u.log.LogAttrs(ctx, slog.LevelError, "what was said meanwhile cannot be read", slog.Any("error", err))
		if !isPermanent(err) {
			return false
		}
	}
	rank := func(chat string) int { return 10*missed.failures(chat) + u.rank(chat) }
	slices.SortStableFunc(chats, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	if !u.readChats(ctx, missed, chats) {
		return false
	}
	if ctx.Err() == nil {
		u.outages.finishGap(missed)
	}
	return true
}

// rank orders chats by how likely it is that somebody there is waiting for an answer; the lowest rank is read
// first. Private chats with the bot have rank 0, chats in which people recently talked to the bot 1, others 2.
func (u *catchUp) rank(chat string) int {
	if strings.HasPrefix(chat, "D") {
		return 0
	}
	if _, lately := u.publisher.recentChats.get(chat); lately {
		return 1
	}
	return 2
}

// readChats reads what was missed in these chats, a few at a time, each in its own lane (its queue), so that no
// newer message of the chat is published in the meantime. It returns false if a chat could not be read. It stops
// early when a chat fails, or when a newer gap has replaced this one.
func (u *catchUp) readChats(ctx context.Context, missed *gap, chats []string) bool {
	var reading sync.WaitGroup
	var putOff atomic.Bool
	slots := make(chan struct{}, chatsAtOnce)
	for _, chat := range chats {
		if missed.isFilled(chat) {
			continue
		}
		if !u.awaitCapacity(ctx) || putOff.Load() || u.outages.currentGap() != missed {
			break
		}
		slots <- struct{}{}
		reading.Go(func() {
			defer func() { <-slots }()
			done := make(chan struct{})
			u.publisher.lanes.add(ctx, chat, item{task: func(ctx context.Context) {
				defer close(done)
				u.readMissed(ctx, chat, missed)
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

// awaitCapacity waits until the sweep may read another chat. It leaves half of the burst to chats in which somebody
// is writing. It returns false if ctx ended first.
func (u *catchUp) awaitCapacity(ctx context.Context) bool {
	for u.rateLimited && u.limiter.Tokens() <= historyBurst/2 {
		if !backoff.Sleep(ctx, historyEvery/2) {
			return false
		}
	}
	u.limiter.Allow()
	return ctx.Err() == nil
}

// readMissed publishes the messages that were written in a chat during the gap. It runs in the chat's lane (its
// queue), so that the chat's newer messages wait until it is done.
func (u *catchUp) readMissed(ctx context.Context, chat string, missed *gap) {
	if missed.isFilled(chat) {
		return
	}
	found, err := u.readSince(ctx, chat, missed.from)
	if ctx.Err() != nil {
		return
	}
	if err != nil && missed.failures(chat) == 0 {
		u.log.LogAttrs(ctx, slog.LevelWarn, "what was said in a chat meanwhile cannot be read",
			slog.String("chat", chat), slog.Bool("again", !isPermanent(err)), slog.Any("error", err))
	}
	for _, m := range found {
		if m.mayConcernBot(u.publisher.me, u.mention) && !u.publisher.deliver(ctx, m, noAck) {
			return
		}
	}
	missed.recordResult(chat, err)
}
