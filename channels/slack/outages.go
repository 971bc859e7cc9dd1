package slack

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

const (
	// overlap is read again before a gap: an event may have been on its way when
	// the last socket closed.
	overlap = 30 * time.Second
	// shortGap is the longest outage for which new messages do not have to wait
	// for history. Slack redelivers by itself what it could not deliver just now,
	// and a whole workspace that talks at once after a restart would queue for the
	// little that Slack allows of reading history.
	shortGap = 20 * time.Second
	// longestGap is the longest outage that is made up for. People who asked
	// before it do not wait for an answer any more.
	longestGap = 3 * 24 * time.Hour
	// redelivery is how long after a socket's end Slack may still redeliver its
	// events behind newer ones.
	redelivery = 10 * time.Second
	// handover is the same after this process has begun: the process that had the
	// channel before may be gone without Slack having noticed.
	handover    = 30 * time.Second
	saveTimeout = 5 * time.Second
	// redelivered is the longest outage of which Slack delivers everything again by
	// requests: it makes each once more at once, after a minute, and after five.
	redelivered = 45 * time.Second
)

// outages knows until when Slack was heard, and so which gap is to be read from
// history. The moment is kept as the cursor of the whole channel. The cursor does
// not move while an older message is not published, nor while a gap is not read:
// a process that dies meanwhile leaves the whole gap to the next one.
type outages struct {
	channel *Channel
	lanes   *lanes
	wake    chan struct{} // a gap is to be read, or the cursor to be saved

	mu      sync.Mutex
	open    int       // sockets that Slack has greeted
	alive   time.Time // the last sign of life of Slack's; zero before the first
	written time.Time // the cursor as it was saved last
	gap     *gap      // what is being read; nil if nothing is missing
	down    bool      // an outage was logged
	// Until settled, messages may come in another order than they were said: Slack
	// redelivers a lost socket's events seconds later but brings newer ones at
	// once. Those that were said since doubtful may be held up.
	settled, doubtful time.Time
}

func newOutages(c *Channel, lanes *lanes) *outages {
	return &outages{channel: c, lanes: lanes, wake: make(chan struct{}, 1)}
}

func (o *outages) address() bus.Address { return bus.Address{Channel: o.channel.name} }

// begin reads the saved cursor, trying until the book answers. Its error is ctx's.
func (o *outages) begin(ctx context.Context) error {
	wait := new(retryWait)
	for {
		cursor, err := o.channel.cursors.Cursor(ctx, o.address())
		if err == nil {
			o.alive = moment(cursor)
			o.written = o.alive
			return nil
		}
		o.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be read; trying on", slog.Any("error", err))
		if !wait.pause(ctx, nil) {
			return ctx.Err()
		}
	}
}

// heard notes a sign of life of Slack's. If it comes later than any socket lives
// without one, then this process or its machine has slept and the sign is an old
// one: events that were on their way meanwhile are lost, so there is a gap.
func (o *outages) heard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == 0 {
		return
	}
	now := wallClock()
	if now.Sub(o.alive) > o.channel.pulse.silence {
		o.missed(o.alive, now)
	}
	o.alive = now
}

// deaf notes a gap since then, as a socket has brought nothing since.
func (o *outages) deaf(since, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missed(since, now)
}

// wallClock is the time of day without Go's monotonic reading, which stops while
// a machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// opened notes that Slack has greeted a socket. If it is the only one, there is a
// gap since the last sign of life.
func (o *outages) opened(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
	if o.open > 1 {
		return
	}
	now := wallClock()
	if !o.alive.IsZero() {
		if silent := now.Sub(o.alive); silent > longestGap {
			o.channel.log.LogAttrs(ctx, slog.LevelWarn, "Slack was not heard for so long that only the last of it is read",
				slog.Duration("outage", silent), slog.Duration("read", longestGap))
		}
		if !o.channel.ReceivesHTTP() || now.Sub(o.alive) > redelivered {
			o.missed(o.alive, now)
		}
		o.unsettle(now, handover)
	}
	o.alive = now
	o.stir() // saves the cursor at once: a process that dies now has a gap too
	if o.down {
		o.down = false
		o.channel.log.LogAttrs(ctx, slog.LevelInfo, "Slack is heard again")
	}
}

// missed notes that messages since then may be missing, and joins that to a gap
// that is not read to its end. o.mu is held.
func (o *outages) missed(since, now time.Time) {
	next := newGap(since.Add(-overlap), now.Sub(since) >= shortGap)
	if o.gap != nil {
		next.long = next.long || o.gap.long
		if o.gap.from.Before(next.from) {
			next.from = o.gap.from
		}
	}
	if earliest := now.Add(-longestGap); next.from.Before(earliest) {
		next.from = earliest
	}
	o.gap = next
	o.stir()
}

// stir wakes catchUp.run, which reads the gap and saves the cursor.
func (o *outages) stir() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// closed notes that a socket has ended that Slack had greeted.
func (o *outages) closed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open--
	o.unsettle(wallClock(), redelivery)
}

// noneOpen reports whether no socket is open that Slack has greeted.
func (o *outages) noneOpen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open == 0
}

// failed logs, once for each outage, that Slack cannot be reached.
func (o *outages) failed(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == 0 && !o.down && ctx.Err() == nil {
		o.down = true
		o.channel.log.LogAttrs(ctx, slog.LevelWarn, "Slack cannot be reached; trying on", slog.Any("error", err))
	}
}

// save moves the cursor to the last sign of life, or to the oldest message that is
// not published yet. It does not move while there is a gap.
func (o *outages) save(ctx context.Context) {
	waits := o.lanes.oldest()
	o.mu.Lock()
	to := o.alive
	if !waits.IsZero() && waits.Before(to) {
		to = waits
	}
	skip := o.gap != nil || !to.After(o.written)
	o.mu.Unlock()
	if skip {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := o.channel.cursors.SetCursor(ctx, o.address(), stamp(to)); err != nil {
		if ctx.Err() == nil {
			o.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be written; trying on", slog.Any("error", err))
		}
		return
	}
	o.mu.Lock()
	o.written = to
	o.mu.Unlock()
}

// filled notes that a gap is read, unless a newer one has taken its place.
func (o *outages) filled(g *gap) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gap == g {
		o.gap = nil
	}
}

// current is the gap that is to be read; nil if there is none.
func (o *outages) current() *gap {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gap
}

// unsettle notes that for the time d messages may come in another order than they
// were said. o.mu is held.
func (o *outages) unsettle(now time.Time, d time.Duration) {
	if now.After(o.settled) {
		o.doubtful = now.Add(-overlap)
	}
	if until := now.Add(d); until.After(o.settled) {
		o.settled = until
	}
}

// unsettled is since when messages may be held up; false if sockets are settled.
func (o *outages) unsettled() (since time.Time, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubtful, wallClock().Before(o.settled)
}

// noteDropped notes a gap since the oldest message that the lanes had no room for,
// once they have room again.
func (o *outages) noteDropped(ctx context.Context) {
	since := o.lanes.takeDropped()
	if since.IsZero() {
		return
	}
	o.channel.log.LogAttrs(ctx, slog.LevelWarn, "more was said than could be stored; what is missing is read from history")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missed(since, wallClock())
}

// A gap is a time, from a moment until now, in which messages may have been
// missed. Each chat's part of it is read from history by itself.
type gap struct {
	from time.Time
	long bool // new messages of a chat wait until its part is read, whatever that takes

	mu     sync.Mutex
	filled map[string]bool // chats whose part is read, or never can be
	failed map[string]int  // by chat, how often reading its part has failed
}

func newGap(from time.Time, long bool) *gap {
	return &gap{from: from, long: long, filled: map[string]bool{}, failed: map[string]int{}}
}

func (g *gap) isFilled(chat string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.filled[chat]
}

// failures is how often a chat was put off.
func (g *gap) failures(chat string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed[chat]
}

// note keeps what came of reading a chat's part: an error that lasts
// ends the trying, any other puts the chat off.
func (g *gap) note(chat string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil || lasts(err) {
		g.filled[chat] = true
		return
	}
	g.failed[chat]++
}

// lasts reports whether an error of reading will be the same later.
func lasts(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && (refusal.Fault == channels.Rejected || refusal.Fault == channels.Unknown)
}
