package slack

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/interaction"
)

const (
	// historyOverlap is how far before a gap history is read too, because events from that time may have been on their way
	// when the last socket closed.
	historyOverlap = 30 * time.Second
	// shortGap is the length of an outage from which on new messages wait until history has been read. After a
	// shorter one, Slack itself redelivers the events that it failed to deliver, and in a busy workspace all
	// messages would wait for the few reads of history that Slack allows.
	shortGap = 20 * time.Second
	// longestGap is how far back missed messages are read. People who asked something before that no longer wait
	// for an answer.
	longestGap = 3 * 24 * time.Hour
	// redeliveryTime is how long after a socket has ended Slack may redeliver its events after newer ones.
	redeliveryTime = 10 * time.Second
	// takeoverTime is how long after the start of this process Slack may redeliver events after newer ones, because
	// Slack may not have noticed that the process that served the channel before has ended.
	takeoverTime = 30 * time.Second
	saveTimeout  = 5 * time.Second
	// redeliveredOutage is the longest outage after which Slack's requests deliver every event again: Slack repeats
	// each request immediately, after a minute, and after five minutes.
	redeliveredOutage = 45 * time.Second
)

// outages records until when Slack was heard, and so from which time on messages may be missing (the gap) and must
// be read from history. The book keeps that time as the cursor of the whole channel. The cursor does not move while
// an older message is unpublished or a gap is unread: if the process dies then, the whole gap is left to the next
// process.
type outages struct {
	name         string // the channel's configured name
	cursors      Cursors
	receivesHTTP bool // whether Slack delivers by HTTP requests
	maxSilence   time.Duration
	lanes        *lanes
	log          *slog.Logger
	wake         chan struct{} // receives a value when a gap must be read, or the cursor saved

	mu             sync.Mutex
	greetedSockets int       // how many open sockets Slack has greeted
	lastHeard      time.Time // when Slack last gave a sign of life; zero before the first
	savedCursor    time.Time // the cursor that was last saved
	gap            *gap      // the gap that is being read; nil if no message is missing
	outageLogged   bool      // whether the current outage was logged
	// Until settledAt, messages may arrive in a different order than they were written, because Slack takes seconds
	// to redeliver a lost socket's events but delivers newer events immediately. Messages that were written since
	// heldUpSince may be held up.
	settledAt, heldUpSince time.Time
}

// newOutages makes the outages of a channel whose unpublished messages are in lanes.
func newOutages(c *Channel, lanes *lanes) *outages {
	return &outages{
		name: c.name, cursors: c.cursors, receivesHTTP: c.ReceivesHTTP(), maxSilence: c.timing.maxSilence,
		lanes: lanes, log: c.log, wake: make(chan struct{}, 1),
	}
}

// cursorAddress returns the address under which the book keeps the cursor.
func (o *outages) cursorAddress() bus.Address { return bus.Address{Channel: o.name} }

// load reads the saved cursor, retrying until the book answers. If none was ever saved, it saves the current time:
// if this process dies, the next one then has a gap since now. It fails only when ctx ends.
func (o *outages) load(ctx context.Context) error {
	wait := new(retryWait)
	for {
		cursor, err := o.cursors.Cursor(ctx, o.cursorAddress())
		if err == nil && cursor == "" {
			err = o.cursors.SetCursor(ctx, o.cursorAddress(), formatTS(wallClock()))
		}
		if err == nil {
			o.lastHeard = interaction.ParseTS(cursor)
			o.savedCursor = o.lastHeard
			return nil
		}
		o.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be read or begun; trying on", slog.Any("error", err))
		if !wait.pause(ctx, nil) {
			return ctx.Err()
		}
	}
}

// noteHeard records a sign of life from Slack. If it comes later than a socket may stay open without one, then this
// process or its machine was asleep, and the sign of life is an old one: events that were sent in the meantime are
// lost, so noteHeard records a gap.
func (o *outages) noteHeard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.greetedSockets == 0 {
		return
	}
	now := wallClock()
	if now.Sub(o.lastHeard) > o.maxSilence {
		o.addGap(o.lastHeard, now)
	}
	o.lastHeard = now
}

// noteLostSince records that messages since a time may be missing, because a socket has delivered nothing since
// then.
func (o *outages) noteLostSince(since, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addGap(since, now)
}

// wallClock returns the time of day without Go's monotonic reading, which stops while a
// machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// noteOpened records that Slack has greeted a socket. If no other socket is open, there is a gap since the last
// sign of life.
func (o *outages) noteOpened(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.greetedSockets++
	if o.greetedSockets > 1 {
		return
	}
	now := wallClock()
	if !o.lastHeard.IsZero() {
		if silent := now.Sub(o.lastHeard); silent > longestGap {
			o.log.LogAttrs(ctx, slog.LevelWarn, "Slack was not heard for so long that only the last of it is read",
				slog.Duration("outage", silent), slog.Duration("read", longestGap))
		}
		if !o.receivesHTTP || now.Sub(o.lastHeard) > redeliveredOutage {
			o.addGap(o.lastHeard, now)
		}
		o.markUnsettled(now, takeoverTime)
	}
	o.lastHeard = now
	o.wakeCatchUp() // saves the cursor immediately, so that no gap is longer than necessary
	if o.outageLogged {
		o.outageLogged = false
		o.log.LogAttrs(ctx, slog.LevelInfo, "Slack is heard again")
	}
}

// addGap records that messages since a time may be missing, and merges this gap with an earlier one that has not
// been read completely. The caller holds o.mu.
func (o *outages) addGap(since, now time.Time) {
	next := newGap(since.Add(-historyOverlap), now.Sub(since) >= shortGap)
	if o.gap != nil {
		next.isLong = next.isLong || o.gap.isLong
		if o.gap.from.Before(next.from) {
			next.from = o.gap.from
		}
	}
	if earliest := now.Add(-longestGap); next.from.Before(earliest) {
		next.from = earliest
	}
	o.gap = next
	o.wakeCatchUp()
}

// wakeCatchUp wakes catchUp.run, which reads the gap and saves the cursor.
func (o *outages) wakeCatchUp() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// noteClosed records that a socket that Slack had greeted has ended.
func (o *outages) noteClosed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.greetedSockets--
	o.markUnsettled(wallClock(), redeliveryTime)
}

// hasNoneOpen reports whether no socket that Slack has greeted is open.
func (o *outages) hasNoneOpen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.greetedSockets == 0
}

// logOutage logs, once for each outage, that Slack cannot be reached.
func (o *outages) logOutage(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.greetedSockets == 0 && !o.outageLogged && ctx.Err() == nil {
		o.outageLogged = true
		o.log.LogAttrs(ctx, slog.LevelWarn, "Slack cannot be reached; trying on", slog.Any("error", err))
	}
}

// save moves the cursor to the last sign of life, or to the oldest message that has not been published yet. The
// cursor does not move while there is a gap.
func (o *outages) save(ctx context.Context) {
	waits := o.lanes.oldestUnpublished()
	o.mu.Lock()
	to := o.lastHeard
	if !waits.IsZero() && waits.Before(to) {
		to = waits
	}
	skip := o.gap != nil || !to.After(o.savedCursor)
	o.mu.Unlock()
	if skip {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := o.cursors.SetCursor(ctx, o.cursorAddress(), formatTS(to)); err != nil {
		if ctx.Err() == nil {
			o.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be written; trying on", slog.Any("error", err))
		}
		return
	}
	o.mu.Lock()
	o.savedCursor = to
	o.mu.Unlock()
}

// finishGap records that the messages in a gap have been read, unless a newer gap has replaced it.
func (o *outages) finishGap(g *gap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gap == g {
		o.gap = nil
	}
}

// currentGap returns the gap that must be read; nil if there is none.
func (o *outages) currentGap() *gap {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gap
}

// markUnsettled records that, for the duration d, messages may arrive in a different order than they were written.
// The caller holds o.mu.
func (o *outages) markUnsettled(now time.Time, d time.Duration) {
	if now.After(o.settledAt) {
		o.heldUpSince = now.Add(-historyOverlap)
	}
	if until := now.Add(d); until.After(o.settledAt) {
		o.settledAt = until
	}
}

// possiblyHeldUp returns since when messages may be held up by a broken socket; false if none are. If sockets are
// lost one after another, that is not the time of the first loss, because what the first one held up has arrived
// since.
func (o *outages) possiblyHeldUp() (since time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := wallClock()
	since = now.Add(-historyOverlap - takeoverTime)
	if since.Before(o.heldUpSince) {
		since = o.heldUpSince
	}
	return since, now.Before(o.settledAt)
}

// noteDropped records that messages may be missing since the oldest one for which the lanes had no room. It does so
// once they have room again.
func (o *outages) noteDropped(ctx context.Context) {
	since := o.lanes.takeOldestDroppedIfRoom()
	if since.IsZero() {
		return
	}
	o.log.LogAttrs(ctx, slog.LevelWarn, "more was said than could be stored; what is missing is read from history")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addGap(since, wallClock())
}

// A gap is a period, from a time until now, whose messages the bot may have missed. Each chat's part of it is read
// from history separately.
type gap struct {
	from   time.Time
	isLong bool // whether a chat's new messages wait until its part has been read, however long that takes

	mu     sync.Mutex
	filled map[string]bool // chats whose part was read, or never can be
	failed map[string]int  // by chat: how many times reading its part has failed
}

// newGap makes a gap that begins at from, with no chat's part read.
func newGap(from time.Time, long bool) *gap {
	return &gap{from: from, isLong: long, filled: map[string]bool{}, failed: map[string]int{}}
}

// isFilled reports whether a chat's part has been read, or can never be read.
func (g *gap) isFilled(chat string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.filled[chat]
}

// failures returns how many times reading a chat's part has failed, so that it was postponed.
func (g *gap) failures(chat string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed[chat]
}

// recordResult records the result of reading a chat's part: after a permanent error there are no more attempts;
// after any other error the chat is postponed.
func (g *gap) recordResult(chat string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil || isPermanent(err) {
		g.filled[chat] = true
		return
	}
	g.failed[chat]++
}

// isPermanent reports whether reading would fail with the same error again later.
func isPermanent(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && (refusal.Fault == channels.Rejected || refusal.Fault == channels.Unknown)
}
