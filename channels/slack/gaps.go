package slack

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/bus"
)

const (
	// overlap is read again before a gap: an event may have been on its way when
	// the last socket closed.
	overlap = 30 * time.Second
	// Slack brings again by itself what it could not deliver just now. After an
	// outage that was shorter, live mail waits for history only while there is
	// room within what Slack allows of reading it: whole workspaces that talk at
	// once after a restart do not have to queue for that.
	shortGap = 20 * time.Second
	// longestGap is how long an outage can be that is made up for. Who asked
	// before does not wait for an answer any more.
	longestGap = 3 * 24 * time.Hour
	// rootsBack is how far before a gap threads may have begun whose replies are
	// looked for, whoever takes part in them. Of older ones it is the newest
	// that the bot has joined.
	rootsBack    = 24 * time.Hour
	olderThreads = 5
	saveTimeout  = 5 * time.Second
	// historyEvery keeps the reading of all chats within what Slack allows.
	historyEvery = 1200 * time.Millisecond
	historyBurst = 20
	fillsAtOnce  = 4
	fillAttempts = 10 // before what cannot be read is put off
)

// gaps knows until when Slack was heard, and reads what was said meanwhile when
// it is heard again. The moment is kept in the cursor of the channel as a whole;
// it does not move while something from before it is not handed on.
type gaps struct {
	r       *receiver
	limiter *rate.Limiter
	wake    chan struct{} // there is another gap to read, or a cursor to save

	mu      sync.Mutex
	open    int       // sockets that Slack has greeted
	alive   time.Time // the last sign of life; zero before the first
	written time.Time // the cursor
	gap     *gap      // what is being read; nil if nothing is missing
	down    bool      // an outage was logged
	// Until settled messages may come in another order than they were said; those
	// that were said since doubtful may be held up.
	settled, doubtful time.Time
}

func newGaps(r *receiver) *gaps {
	limiter := rate.NewLimiter(rate.Every(historyEvery), historyBurst)
	if !r.channel.paced {
		limiter = rate.NewLimiter(rate.Inf, 0)
	}
	return &gaps{r: r, limiter: limiter, wake: make(chan struct{}, 1)}
}

func (g *gaps) address() bus.Address { return bus.Address{Channel: g.r.channel.name} }

// begin reads until when Slack was heard the last time. Its error is ctx's.
func (g *gaps) begin(ctx context.Context) error {
	wait := new(backoff)
	for {
		cursor, err := g.r.channel.cursors.Cursor(ctx, g.address())
		if err == nil {
			g.alive = moment(cursor)
			g.written = g.alive
			return nil
		}
		g.r.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be read; trying on", slog.Any("error", err))
		if !wait.pause(ctx, nil) {
			return ctx.Err()
		}
	}
}

// heard notes a sign of life. One that comes later than sockets live without is
// an old one: this process, or its machine, has slept, and the others that were
// on their way meanwhile are lost.
func (g *gaps) heard() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == 0 {
		return
	}
	now := wallClock()
	if now.Sub(g.alive) > g.r.channel.pulse.silence {
		g.missed(g.alive, now)
	}
	g.alive = now
}

// deaf notes that a socket has brought nothing since then.
func (g *gaps) deaf(since, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.missed(since, now)
}

// wallClock is the time of day, which goes on while a machine sleeps.
func wallClock() time.Time { return time.Now().Round(0) }

// opened notes that Slack has greeted a socket. If there was none, something may
// have been missed.
func (g *gaps) opened(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open++
	if g.open > 1 {
		return
	}
	now := wallClock()
	if !g.alive.IsZero() {
		if silent := now.Sub(g.alive); silent > longestGap {
			g.r.channel.log.LogAttrs(ctx, slog.LevelWarn, "Slack was not heard for so long that only the last of it is read",
				slog.Duration("outage", silent), slog.Duration("read", longestGap))
		}
		g.missed(g.alive, now)
		g.unsettle(now, handover)
	}
	g.alive = now
	g.stir() // from now on something can be missed, also by whoever dies at once
	if g.down {
		g.down = false
		g.r.channel.log.LogAttrs(ctx, slog.LevelInfo, "Slack is heard again")
	}
}

// missed notes that something is missing since then. g.mu is held.
func (g *gaps) missed(since, now time.Time) {
	next := newGap(since.Add(-overlap), now.Sub(since) >= shortGap)
	if g.gap != nil { // it is not read to its end
		next.long = next.long || g.gap.long
		if g.gap.from.Before(next.from) {
			next.from = g.gap.from
		}
	}
	if earliest := now.Add(-longestGap); next.from.Before(earliest) {
		next.from = earliest
	}
	g.gap = next
	g.stir()
}

// stir has what was missed read, and the cursor saved.
func (g *gaps) stir() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// overflowed notes what there was no room for, once there is.
func (g *gaps) overflowed(ctx context.Context) {
	since := g.r.missed()
	if since.IsZero() {
		return
	}
	g.r.channel.log.LogAttrs(ctx, slog.LevelWarn, "more was said than could be stored; what is missing is read from history")
	g.mu.Lock()
	defer g.mu.Unlock()
	g.missed(since, wallClock())
}

// closed notes that a socket has ended that Slack had greeted.
func (g *gaps) closed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	g.unsettle(wallClock(), redelivery)
}

// isAlone tells whether no socket is open that Slack has greeted.
func (g *gaps) isAlone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open == 0
}

// failed says once that Slack cannot be reached.
func (g *gaps) failed(ctx context.Context, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == 0 && !g.down && ctx.Err() == nil {
		g.down = true
		g.r.channel.log.LogAttrs(ctx, slog.LevelWarn, "Slack cannot be reached; trying on", slog.Any("error", err))
	}
}

// run reads what was missed, and keeps the cursor, until ctx is done.
func (g *gaps) run(ctx context.Context) {
	tick := time.NewTicker(g.r.channel.pulse.save)
	defer tick.Stop()
	sweep := func() (again <-chan time.Time) {
		if g.sweep(ctx) {
			return nil
		}
		return time.After(g.r.channel.pulse.again)
	}
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.overflowed(ctx)
		case <-g.wake:
			again = sweep()
		case <-again:
			again = sweep()
		}
		g.save(ctx)
	}
}

// save moves the cursor to where everything before is handed on.
func (g *gaps) save(ctx context.Context) {
	waits := g.r.oldest()
	g.mu.Lock()
	to := g.alive
	if !waits.IsZero() && waits.Before(to) {
		to = waits
	}
	skip := g.gap != nil || !to.After(g.written)
	g.mu.Unlock()
	if skip {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := g.r.channel.cursors.SetCursor(ctx, g.address(), stamp(to)); err != nil {
		if ctx.Err() == nil {
			g.r.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be written; trying on", slog.Any("error", err))
		}
		return
	}
	g.mu.Lock()
	g.written = to
	g.mu.Unlock()
}
