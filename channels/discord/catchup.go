package discord

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"
	"golang.org/x/time/rate"

	"parley/bus"
	"parley/channels"
)

const (
	// overlap is read again before a gap: in another channel something older may have
	// been on its way when the last message came.
	overlap = 15 * time.Second
	// longestGap is the longest outage that is made up for. People who asked before it
	// do not wait for an answer any more.
	longestGap = 3 * 24 * time.Hour
	// Of a channel's history so many pages are read at most after an outage.
	pageSize = 100
	maxPages = 100
	// History is read for so many channels at once, and so often: sending needs the
	// rest of what Discord allows.
	readsAtOnce  = 8
	historyEvery = time.Second / 20
	historyBurst = 20
	// patience is how long a channel waits for its history, that fails to be read, before
	// it goes on, and what was missed is said after what came later. Only this channel
	// waits, and while Discord's REST interface is away nothing could be answered anyway.
	patience = 10 * time.Minute
)

// catchUp reads from history what the gateway did not bring, and has it published.
// Discord keeps nothing back for a bot that is away for more than minutes. So at the
// beginning of a session history is read from the cursor on: of each channel in which
// something was said since, and of every chat with one person, as Discord tells nothing
// of these. Each is read in the channel's lane, before what is said there now.
type catchUp struct {
	channel   *Channel
	publisher *publisher
	lanes     *lanes
	position  *position
	limiter   *rate.Limiter
	slots     chan struct{}

	mu      sync.Mutex
	since   uint64          // from where on things may be missing
	settled map[string]bool // channels of which it is known since this session's beginning what they miss
	// Until these are known, nothing is known of other channels: servers of which
	// Discord has not told yet, and the chats with one person.
	awaited map[string]bool
	listing bool
	gaps    gaps
	heard   map[string]bool // chats with one person in which something was heard by this process
}

// mostHeard bounds those of which this process takes note; the book has the others.
const mostHeard = 4096

func newCatchUp(p *publisher, l *lanes, at *position) *catchUp {
	limiter := rate.NewLimiter(rate.Every(historyEvery), historyBurst)
	if !p.channel.paced {
		limiter = rate.NewLimiter(rate.Inf, 0)
	}
	return &catchUp{
		channel: p.channel, publisher: p, lanes: l, position: at, limiter: limiter, slots: make(chan struct{}, readsAtOnce),
		settled: map[string]bool{}, awaited: map[string]bool{}, heard: map[string]bool{},
	}
}

// beginSession begins a session, at whose beginning Discord is going to tell of these servers.
func (u *catchUp) beginSession(guilds []guild) {
	cursor := u.position.cursor()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since = max(snowflakeBefore(cursor, u.channel.pulse.overlap), snowflakeAt(time.Now().Add(-longestGap)))
	u.gaps.open(u.since, snowflakeAt(time.Now().Add(-longestGap)))
	clear(u.settled)
	clear(u.awaited)
	for _, g := range guilds {
		u.awaited[g.ID] = true
	}
	u.listing = true
}

// missingFrom is from where on is still to be looked for what is missing; 0 is nowhere.
func (u *catchUp) missingFrom() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.awaited) == 0 && !u.listing {
		return 0
	}
	return u.since + 1
}

// serverGone notes that there is nothing to wait for of a server.
func (u *catchUp) serverGone(guild string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.awaited, guild)
}

// noteMissing notes that it is known what a channel misses, and has its lane read that, where
// nothing was known. Both are one step: nobody adds what is newer to the lane between.
func (u *catchUp) noteMissing(ctx context.Context, id string, misses func(since uint64) (from uint64, any bool)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.settled[id] {
		return
	}
	u.settled[id] = true
	if from, any := misses(u.since); any {
		u.lanes.readHistoryFirst(ctx, id, from)
	}
}

// everything says that a channel misses what was said in the whole gap.
func everything(since uint64) (from uint64, any bool) { return since, true }

// readServer has those of a server's channels read in which something was said.
func (u *catchUp) readServer(ctx context.Context, id string, places []place) {
	for _, p := range places {
		u.noteMissing(ctx, p.ID, func(since uint64) (uint64, bool) { return since, snowflake(p.Last) > since })
	}
	u.serverGone(id)
}

// noteNewPlaces notes channels that are new: nothing was said there before.
func (u *catchUp) noteNewPlaces(ctx context.Context, ids []string) {
	for _, id := range ids {
		u.noteMissing(ctx, id, func(uint64) (uint64, bool) { return 0, false })
	}
}

// readBefore has a channel of which nothing is known read readBefore a message in it: a chat
// with somebody, or a thread that had gone to sleep.
func (u *catchUp) readBefore(ctx context.Context, m *message) {
	u.noteMissing(ctx, m.Channel, func(since uint64) (uint64, bool) {
		if m.Guild == "" {
			since = u.gaps.since(since)
		}
		return since, true
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gaps.shut(snowflake(m.ID))
	if m.Guild == "" && len(u.heard) < mostHeard {
		u.heard[m.Channel] = true
	}
}

// heardLately are the chats with one person in which this process has heard something,
// whether the book could take note of that or not.
func (u *catchUp) heardLately() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.heard))
}

// mayMiss tells whether the bot may not have heard what has that id.
func (u *catchUp) mayMiss(id uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return id > u.since || u.gaps.has(id)
}

// unsavedGaps are the gaps as the book keeps them, if it does not have them.
func (u *catchUp) unsavedGaps() (text string, dirty bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.gaps.String(), u.gaps.dirty
}

// noteSavedGaps notes that the book has these gaps.
func (u *catchUp) noteSavedGaps(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.gaps.dirty = u.gaps.String() != text
}

// readDirectChats has the chats with one person read in which the bot was spoken to before.
func (u *catchUp) readDirectChats(ctx context.Context) {
	for _, chat := range u.heardLately() {
		u.noteMissing(ctx, chat, everything)
	}
	wait := new(retryWait)
	for {
		all, err := u.channel.book.Chats(ctx)
		if err == nil {
			for _, chat := range all {
				if chat.Group || chat.Address.Channel != u.channel.name || !isID(chat.Address.Chat) || ctx.Err() != nil {
					continue
				}
				u.noteMissing(ctx, chat.Address.Chat, everything)
			}
			if ctx.Err() == nil {
				u.noteDirectChats()
			}
			return
		}
		if !wait.series.Began() && ctx.Err() == nil {
			u.channel.log.LogAttrs(ctx, slog.LevelWarn, "it cannot be read where the bot was spoken to; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return
		}
	}
}

// noteDirectChats notes that the chats with one person are known.
func (u *catchUp) noteDirectChats() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.listing = false
}

// fill publishes what was said in a channel since it fell behind. It runs in the
// channel's lane. It is false if that is to be tried again.
func (u *catchUp) fill(ctx context.Context, l *lane) (done bool) {
	from := u.lanes.missingFrom(l)
	if u.channel.directory.isHidden(l.id) {
		u.lanes.caughtUp(l, from, from, true)
		return true
	}
	for range maxPages {
		page, err := u.read(ctx, l.id, from)
		if ctx.Err() != nil {
			return true
		}
		if err != nil {
			return u.failed(ctx, l, from, err)
		}
		read := from
		for _, m := range page {
			id := snowflake(m.ID)
			if u.mayMiss(id) && m.isSpeech(u.channel.directory.self().ID) && !u.publisher.deliver(ctx, &news{channel: l.id, id: id, message: m}) {
				return true
			}
			u.position.passed(id)
			from = max(from, id)
		}
		end := len(page) < pageSize
		u.lanes.caughtUp(l, read, from, end)
		if end {
			return true
		}
	}
	u.channel.log.LogAttrs(ctx, slog.LevelWarn, "more was said in a channel meanwhile than is read; the rest is left out",
		slog.String("chat", l.id), slog.Int("messages", maxPages*pageSize))
	u.lanes.caughtUp(l, from, from, true)
	return true
}

// failed judges why history cannot be read. It is false if that may pass.
func (u *catchUp) failed(ctx context.Context, l *lane, from uint64, err error) (done bool) {
	refusal, ok := errors.AsType[*channels.SendError](err)
	lasts := ok && refusal.Fault == channels.Rejected
	level := slog.LevelWarn
	if lasts {
		level = slog.LevelDebug // a server tells of channels, too, that the bot may not see
		u.channel.directory.hide(l.id)
		u.lanes.caughtUp(l, from, from, true)
	}
	u.channel.log.LogAttrs(ctx, level, "what was said in a channel meanwhile cannot be read",
		slog.String("chat", l.id), slog.Bool("again", !lasts), slog.Any("error", err))
	return lasts
}

// read reads a page of a channel's history, from behind an id on, the oldest first. It
// tries as long as its patience lasts; a limit of Discord's does not count.
func (u *catchUp) read(ctx context.Context, id string, from uint64) ([]*message, error) {
	wait, began := new(retryWait), time.Now()
	for {
		page, err := u.readOnce(ctx, id, from)
		if err == nil {
			return page, nil
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if !ok || refusal.Fault != channels.Retry || !refusal.Limited && time.Since(began) > patience || !wait.pause(ctx, err) {
			return nil, err
		}
	}
}

// readOnce reads a page once it is this channel's turn: a channel that waits before it
// tries again takes no other's.
func (u *catchUp) readOnce(ctx context.Context, id string, from uint64) ([]*message, error) {
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := u.limiter.Wait(ctx); err != nil {
		return nil, err //nolint:wrapcheck // ctx ended
	}
	return u.channel.history(ctx, id, "after="+strconv.FormatUint(from, 10))
}

// history reads a page of a channel's history, the oldest first.
func (c *Channel) history(ctx context.Context, id, query string) ([]*message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var page []*message
	url := discordgo.EndpointChannelMessages(id) + "?limit=" + strconv.Itoa(pageSize) + "&" + query
	if err := c.call(ctx, request{method: http.MethodGet, url: url}, &page); err != nil {
		return nil, err
	}
	page = slices.DeleteFunc(page, func(m *message) bool { return m == nil })
	for _, m := range page {
		m.Channel = id
	}
	slices.SortFunc(page, func(a, b *message) int { return cmp.Compare(snowflake(a.ID), snowflake(b.ID)) })
	return page, nil
}

// Before implements channels.ThreadReader. The message that a thread was begun at stands
// in the channel above, and is not among those of the thread.
func (c *Channel) Before(ctx context.Context, in bus.Inbound, most int) ([]bus.Quote, error) {
	if in.At.Thread == "" {
		return nil, nil
	}
	if _, joined, err := c.book.Joined(ctx, in.At); err != nil || joined {
		if err != nil {
			return nil, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
		}
		return nil, nil
	}
	query := ""
	if isID(in.ReplyTo) {
		query = "before=" + in.ReplyTo
	}
	page, err := c.history(ctx, in.At.Thread, query)
	if err != nil {
		return nil, err
	}
	var quotes []bus.Quote
	for _, m := range page {
		if text := c.words(m, false); text != "" && m.Author != nil {
			from := bus.Person{ID: c.person(m.Author.ID), Name: displayName(m.Author, m.Member)}
			quotes = append(quotes, bus.Quote{Kind: bus.Earlier, From: from, At: momentOf(m.ID), Text: text})
		}
	}
	return quotes[max(0, len(quotes)-most):], nil
}
