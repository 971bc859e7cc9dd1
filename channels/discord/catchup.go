package discord

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/channels"
)

const (
	// longestGap is how far back missed messages are read. People who asked something before that no longer wait
	// for an answer.
	longestGap = 3 * 24 * time.Hour
	// maxPages is the maximum number of pages that are read of one channel's history after an outage.
	maxPages = 100
	// readsAtOnce is how many channels' histories are read at the same time; historyInterval and historyBurst limit
	// these calls, because sending needs the rest of Discord's rate limit.
	readsAtOnce     = 8
	historyInterval = time.Second / 20
	historyBurst    = 20
	// historyPatience is how long a channel's new messages wait while reading its history fails. After that they are
	// published, and the missed ones come later. Only this channel waits, and while Discord's REST API is down, no
	// answer could be sent anyway.
	historyPatience = 10 * time.Minute
)

// catchUp recovers the messages that people sent while the bot received no events (gaps): it reads them from
// Discord's history and has them published. Discord keeps events for a bot that is away for no more than a few
// minutes. So when a gateway session begins, catchUp reads everything after the last published message (the cursor)
// in each channel that has a newer one, and in every person's private chat with the bot, because Discord doesn't
// describe those. It reads each history in the channel's lane (its queue), before the channel's new messages.
type catchUp struct {
	name      string // the channel's name
	historian *historian
	directory *directory
	book      Book
	publisher *publisher
	lanes     *lanes
	position  *position
	limiter   *rate.Limiter // limits the calls that read history
	readSlots chan struct{} // holds one value for each read in progress
	overlap   time.Duration // how far before a gap history is read too
	log       *slog.Logger

	mu               sync.Mutex
	missingSince     uint64          // messages after this id may be missing
	assessedChannels map[string]bool // channels for which this session has already decided which history to read
	// The cursor may not move while other channels may have missed messages too: until Discord has described these
	// servers, and until the direct message chats are listed.
	awaitedGuilds      map[string]bool
	listingDirectChats bool
	gaps               gaps
	activeDirectChats  map[string]bool // direct message chats in which this process has received a message
}

// maxActiveDirectChats is the maximum number of chats that this process itself remembers; the book knows the
// others.
const maxActiveDirectChats = 4096

// newCatchUp makes a catchUp for the channel with that name. It publishes through p, in the queues l, and reads
// from the position at onward. paced says whether its calls are limited.
func newCatchUp(name string, h *historian, p *publisher, l *lanes, at *position, overlap time.Duration, paced bool) *catchUp {
	limiter := rate.NewLimiter(rate.Every(historyInterval), historyBurst)
	if !paced {
		limiter = rate.NewLimiter(rate.Inf, 0)
	}
	return &catchUp{
		name: name, historian: h, directory: h.directory, book: h.book, publisher: p, lanes: l, position: at,
		limiter: limiter, readSlots: make(chan struct{}, readsAtOnce), overlap: overlap, log: h.log,
		assessedChannels: map[string]bool{}, awaitedGuilds: map[string]bool{}, activeDirectChats: map[string]bool{},
	}
}

// beginSession begins a session in which Discord is about to describe these servers. From now on, any message after
// the cursor may be missing.
func (u *catchUp) beginSession(guilds []guild) {
	cursor := u.position.cursor()
	u.position.beginSession()
	u.mu.Lock()
	defer u.mu.Unlock()
	since := max(snowflakeBefore(cursor, u.overlap), snowflakeAt(time.Now().Add(-longestGap)))
	if u.missingSince <= cursor { // otherwise this machine's clock was wrong
		// The last session may have ended before the history after u.since was read, so the cursor is still there.
		// Everything before u.since has been read, including an overlap.
		since = max(since, u.missingSince)
	}
	u.missingSince = since
	u.gaps.open(u.missingSince, snowflakeAt(time.Now().Add(-longestGap)))
	clear(u.assessedChannels)
	clear(u.awaitedGuilds)
	for _, g := range guilds {
		u.awaitedGuilds[g.ID] = true
	}
	u.listingDirectChats = true
}

// missingFrom returns the lowest id that a missing message can have in a channel that Discord has not described
// yet; 0 if all are described. The cursor must stay below it.
func (u *catchUp) missingFrom() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.awaitedGuilds) == 0 && !u.listingDirectChats {
		return 0
	}
	return u.missingSince + 1
}

// stopAwaitingGuild records that Discord has described a server, or that the bot has left it.
func (u *catchUp) stopAwaitingGuild(guild string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.awaitedGuilds, guild)
}

// assessGap decides, once per session, what history of a channel must be read: misses returns the message id after
// which to read, and whether to read at all. If so, the channel's lane reads it first. Both happen under one lock,
// so that nobody adds a newer message to the lane in between.
func (u *catchUp) assessGap(ctx context.Context, id string, misses func(since uint64) (from uint64, any bool)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.assessedChannels[id] {
		return
	}
	u.assessedChannels[id] = true
	if from, any := misses(u.missingSince); any {
		u.lanes.readHistoryFirst(ctx, id, from)
	}
}

// wholeGap is passed to assessGap for a channel that may have missed everything since the bot went away.
func wholeGap(since uint64) (from uint64, any bool) { return since, true }

// readGuild has the history of a server's channels read: those whose newest message was written after the bot went
// away.
func (u *catchUp) readGuild(ctx context.Context, id string, places []place) {
	for _, p := range places {
		u.assessGap(ctx, p.ID, func(since uint64) (uint64, bool) { return since, snowflake(p.NewestMessage) > since })
	}
	u.stopAwaitingGuild(id)
}

// noteNewChannels records that channels have just been created, so that no history is read for them.
func (u *catchUp) noteNewChannels(ctx context.Context, ids []string) {
	for _, id := range ids {
		u.assessGap(ctx, id, func(uint64) (uint64, bool) { return 0, false })
	}
}

// readHistoryBefore has the history of m's channel read before m is published, unless this session has already
// decided about that channel. That concerns direct message chats, and threads that were archived.
func (u *catchUp) readHistoryBefore(ctx context.Context, m *message) {
	u.assessGap(ctx, m.Channel, func(since uint64) (uint64, bool) {
		if m.Guild == "" {
			since = u.gaps.earliest(since)
		}
		return since, true
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gaps.closeLast(snowflake(m.ID))
	if m.Guild == "" && len(u.activeDirectChats) < maxActiveDirectChats {
		u.activeDirectChats[m.Channel] = true
	}
}

// listActiveDirectChats returns the first maxActiveDirectChats direct message chats in which this process has received a
// message, including those that the book could not record.
func (u *catchUp) listActiveDirectChats() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.activeDirectChats))
}

// mayHaveMissedMessage reports whether the message with that id was written while the bot was away, so that the bot
// may not have received it.
func (u *catchUp) mayHaveMissedMessage(id uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return id > u.missingSince || u.gaps.contains(id)
}

// setGaps sets the gaps to those that the book has recorded.
func (u *catchUp) setGaps(all gaps) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gaps = all
}

// unsavedGaps returns the gaps in the form in which the book stores them; dirty is true if the book does not have
// this state yet.
func (u *catchUp) unsavedGaps() (text string, dirty bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gaps.String(), u.gaps.dirty
}

// noteSavedGaps records that the book now has the gaps in that form.
func (u *catchUp) noteSavedGaps(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gaps.dirty = u.gaps.String() != text
}

// readDirectChats has the history of every direct message chat read in which somebody has talked to the bot before.
// It retries until the book has listed the chats.
func (u *catchUp) readDirectChats(ctx context.Context) {
	for _, chat := range u.listActiveDirectChats() {
		u.assessGap(ctx, chat, wholeGap)
	}
	wait := new(retryWait)
	for {
		all, err := u.book.Chats(ctx)
		if err == nil {
			for _, chat := range all {
				if chat.Group || chat.Address.Channel != u.name || !isID(chat.Address.Chat) || ctx.Err() != nil {
					continue
				}
				u.assessGap(ctx, chat.Address.Chat, wholeGap)
			}
			if ctx.Err() == nil {
				u.noteDirectChats()
			}
			return
		}
		if !wait.series.HasWaited() && ctx.Err() == nil {
			u.log.LogAttrs(ctx, slog.LevelWarn, "it cannot be read where the bot was spoken to; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return
		}
	}
}

// noteDirectChats records that the direct message chats have been listed, so that the cursor may move.
func (u *catchUp) noteDirectChats() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listingDirectChats = false
}

// readMissed publishes the messages that a channel has missed, starting where its lane has recorded. It runs in the
// lane's goroutine. It returns false if the read should be tried again later. What is left after maxPages is left out.
func (u *catchUp) readMissed(ctx context.Context, l *lane) (done bool) {
	from := u.lanes.missingFrom(l)
	if u.directory.isUnreadable(l.id) {
		u.lanes.recordRead(l, from, from, true)
		return true
	}
	for range maxPages {
		page, err := u.readPage(ctx, l.id, from)
		if ctx.Err() != nil {
			return true
		}
		if err != nil {
			return u.handleReadError(ctx, l, from, err)
		}
		read := from
		for _, m := range page {
			id := snowflake(m.ID)
			if u.mayHaveMissedMessage(id) && m.isSpeech(u.directory.botUser().ID) && !u.publisher.deliver(ctx, &laneItem{channel: l.id, id: id, message: m}) {
				return true
			}
			u.position.noteRead(id)
			from = max(from, id)
		}
		end := len(page) < pageSize
		u.lanes.recordRead(l, read, from, end)
		if end {
			return true
		}
	}
	u.log.LogAttrs(ctx, slog.LevelWarn, "more was said in a channel meanwhile than is read; the rest is left out",
		slog.String("chat", l.id), slog.Int("messages", maxPages*pageSize))
	u.lanes.recordRead(l, from, from, true)
	return true
}

// handleReadError logs why a channel's history could not be read. It returns true if that will not change; the
// channel's new messages are then published without it. It returns false if the read should be tried again.
func (u *catchUp) handleReadError(ctx context.Context, l *lane, from uint64, err error) (done bool) {
	refusal, ok := errors.AsType[*channels.SendError](err)
	lasts := ok && refusal.Fault == channels.Rejected
	level := slog.LevelWarn
	if lasts {
		level = slog.LevelDebug // a server also lists channels that the bot may not see
		u.directory.markUnreadable(l.id)
		u.lanes.recordRead(l, from, from, true)
	}
	u.log.LogAttrs(ctx, level, "what was said in a channel meanwhile cannot be read",
		slog.String("chat", l.id), slog.Bool("again", !lasts), slog.Any("error", err))
	return lasts
}

// readPage reads one page of a channel's history after the message id from, oldest message first. It retries until
// historyPatience has passed; Discord's rate limit alone never makes it give up.
func (u *catchUp) readPage(ctx context.Context, id string, from uint64) ([]*message, error) {
	wait, began := new(retryWait), time.Now()
	for {
		page, err := u.tryReadPage(ctx, id, from)
		if err == nil {
			return page, nil
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if !ok || refusal.Fault != channels.Retry || !refusal.RateLimited && time.Since(began) > historyPatience || !wait.pause(ctx, err) {
			return nil, err
		}
	}
}

// tryReadPage makes one attempt to read a page, as soon as fewer than readsAtOnce reads are running. A channel that
// waits for its next attempt doesn't count as running.
func (u *catchUp) tryReadPage(ctx context.Context, id string, from uint64) ([]*message, error) {
	select {
	case u.readSlots <- struct{}{}:
		defer func() { <-u.readSlots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := u.limiter.Wait(ctx); err != nil {
		return nil, err //nolint:wrapcheck // ctx ended
	}
	return u.historian.history(ctx, id, "after="+strconv.FormatUint(from, 10))
}
