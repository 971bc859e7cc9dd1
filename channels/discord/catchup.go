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
	// longestGap is how far back missed messages are read. People who asked earlier no
	// longer wait for an answer.
	longestGap = 3 * 24 * time.Hour
	// maxPages is how many pages of one channel's history are read after an outage at most.
	maxPages = 100
	// readsAtOnce is how many channels' histories are read at once; historyEvery and
	// historyBurst limit these calls, because sending needs the rest of Discord's limit.
	readsAtOnce  = 8
	historyEvery = time.Second / 20
	historyBurst = 20
	// patience is how long a channel's new messages wait while reading its history fails.
	// After it they are published, and the missed ones come later. Only this channel
	// waits, and while Discord's REST API is away no answer could be sent anyway.
	patience = 10 * time.Minute
)

// catchUp reads from Discord's history the messages that were written while the bot received no
// events (gaps), and has them published. Discord keeps nothing for a bot that is away for more than
// minutes. So at the beginning of a session, the history after the last published message (the
// cursor) is read: of each channel whose newest message is later, and of every chat with one
// person, because Discord does not describe these chats. Each history is read in the channel's lane
// (its queue), before the channel's new messages.
type catchUp struct {
	name      string // the channel's name
	historian *historian
	directory *directory
	book      Book
	publisher *publisher
	lanes     *lanes
	position  *position
	limiter   *rate.Limiter // limits the calls that read history
	slots     chan struct{} // holds one value for each read in progress
	overlap   time.Duration // how much history before a gap is read again
	log       *slog.Logger

	mu       sync.Mutex
	since    uint64          // messages after this id may be missing
	assessed map[string]bool // channels for which this session has already decided what history to read
	// The cursor may not move while other channels may miss messages too: while Discord
	// has not described these servers yet, or the chats with one person are not listed.
	awaitedGuilds      map[string]bool
	listingDirectChats bool
	gaps               gaps
	activeDirectChats  map[string]bool // chats with one person in which this process received a message
}

// maxActiveDirectChats bounds the chats that this process remembers itself; the book has
// the others.
const maxActiveDirectChats = 4096

// newCatchUp makes a catchUp of the channel with that name, which publishes through p, in the queues
// l, and reads from the position at on. paced says that the calls are to be limited.
func newCatchUp(name string, h *historian, p *publisher, l *lanes, at *position, overlap time.Duration, paced bool) *catchUp {
	limiter := rate.NewLimiter(rate.Every(historyEvery), historyBurst)
	if !paced {
		limiter = rate.NewLimiter(rate.Inf, 0)
	}
	return &catchUp{
		name: name, historian: h, directory: h.directory, book: h.book, publisher: p, lanes: l, position: at,
		limiter: limiter, slots: make(chan struct{}, readsAtOnce), overlap: overlap, log: h.log,
		assessed: map[string]bool{}, awaitedGuilds: map[string]bool{}, activeDirectChats: map[string]bool{},
	}
}

// beginSession starts a session in which Discord is about to describe these servers. From now on
// messages after the cursor count as possibly missing.
func (u *catchUp) beginSession(guilds []guild) {
	cursor := u.position.cursor()
	u.position.beginSession()
	u.mu.Lock()
	defer u.mu.Unlock()
	since := max(snowflakeBefore(cursor, u.overlap), snowflakeAt(time.Now().Add(-longestGap)))
	if u.since <= cursor { // else this machine's clock was wrong
		// The last session may have ended before the history after u.since was read, which holds the
		// cursor there: what is before that was read already, and overlaps once.
		since = max(since, u.since)
	}
	u.since = since
	u.gaps.open(u.since, snowflakeAt(time.Now().Add(-longestGap)))
	clear(u.assessed)
	clear(u.awaitedGuilds)
	for _, g := range guilds {
		u.awaitedGuilds[g.ID] = true
	}
	u.listingDirectChats = true
}

// missingFrom returns the lowest id of a message that may be missing in a channel that Discord has
// not described yet; 0 if all are described. The cursor must stay below it.
func (u *catchUp) missingFrom() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.awaitedGuilds) == 0 && !u.listingDirectChats {
		return 0
	}
	return u.since + 1
}

// stopAwaitingGuild records that Discord has described a server, or that the bot has left
// it.
func (u *catchUp) stopAwaitingGuild(guild string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.awaitedGuilds, guild)
}

// assessGap decides once per session what history of a channel has to be read: misses returns from
// which message id on, and whether any. If there is some, the channel's lane reads it first. Both
// happen under one lock, so that nobody adds a newer message to the lane in between.
func (u *catchUp) assessGap(ctx context.Context, id string, misses func(since uint64) (from uint64, any bool)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.assessed[id] {
		return
	}
	u.assessed[id] = true
	if from, any := misses(u.since); any {
		u.lanes.readHistoryFirst(ctx, id, from)
	}
}

// wholeGap is the answer for assessGap that a channel may miss everything since the bot was away.
func wholeGap(since uint64) (from uint64, any bool) { return since, true }

// readGuild has the history of a server's channels read, of those whose newest messages were
// written after the bot went away.
func (u *catchUp) readGuild(ctx context.Context, id string, places []place) {
	for _, p := range places {
		u.assessGap(ctx, p.ID, func(since uint64) (uint64, bool) { return since, snowflake(p.Last) > since })
	}
	u.stopAwaitingGuild(id)
}

// noteNewChannels records that channels were created just now, so that no history is read for them.
func (u *catchUp) noteNewChannels(ctx context.Context, ids []string) {
	for _, id := range ids {
		u.assessGap(ctx, id, func(uint64) (uint64, bool) { return 0, false })
	}
}

// readHistoryBefore has the history of m's channel read before m is published, if this session has
// not decided about that channel yet: a chat with one person, or a thread that was archived.
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

// listActiveDirectChats returns the chats with one person in which this process received a
// message, even if the book could not record that.
func (u *catchUp) listActiveDirectChats() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.activeDirectChats))
}

// mayHaveMissed reports whether the message with that id was written while the bot was away, so
// that the bot may not have received it.
func (u *catchUp) mayHaveMissed(id uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return id > u.since || u.gaps.contains(id)
}

// setGaps sets the times in which the bot was away, as the book has them.
func (u *catchUp) setGaps(all gaps) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gaps = all
}

// unsavedGaps returns the times in which the bot was away, in the form in which the book keeps
// them; dirty is true if the book does not have them yet.
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

// readDirectChats has the history read of all chats with one person in which the bot was spoken to
// before. It retries until the book has listed the chats.
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

// noteDirectChats records that the chats with one person are listed, so that the cursor may move.
func (u *catchUp) noteDirectChats() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listingDirectChats = false
}

// readMissed publishes the messages that a channel has missed, from the place on that its lane has
// recorded. It runs in the lane's goroutine. It returns false if reading is to be tried again
// later.
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
			if u.mayHaveMissed(id) && m.isSpeech(u.directory.botUser().ID) && !u.publisher.deliver(ctx, &laneItem{channel: l.id, id: id, message: m}) {
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

// handleReadError logs why a channel's history could not be read. It returns true if that will not
// change, and then lets the channel's new messages be published without it; false if reading is to
// be tried again.
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

// readPage reads one page of a channel's history after the message id from, the oldest message
// first. It retries for as long as patience; waiting for Discord's rate limit does not count.
func (u *catchUp) readPage(ctx context.Context, id string, from uint64) ([]*message, error) {
	wait, began := new(retryWait), time.Now()
	for {
		page, err := u.tryReadPage(ctx, id, from)
		if err == nil {
			return page, nil
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if !ok || refusal.Fault != channels.Retry || !refusal.Limited && time.Since(began) > patience || !wait.pause(ctx, err) {
			return nil, err
		}
	}
}

// tryReadPage makes one attempt to read a page, once fewer than readsAtOnce reads run. A channel
// that waits for its next attempt counts as none.
func (u *catchUp) tryReadPage(ctx context.Context, id string, from uint64) ([]*message, error) {
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := u.limiter.Wait(ctx); err != nil {
		return nil, err //nolint:wrapcheck // ctx ended
	}
	return u.historian.history(ctx, id, "after="+strconv.FormatUint(from, 10))
}
