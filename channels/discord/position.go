package discord

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"parley/bus"
)

// saveTimeout bounds one writing of the cursor.
const saveTimeout = 5 * time.Second

// A position is how far Discord was read: everything up to it is published, in all
// channels. It is an id of Discord's own, so no clock of ours comes into it, and is
// kept as the cursor of the whole channel.
type position struct {
	channel *Channel
	lanes   *lanes
	held    func() uint64 // from where on is still to be looked for what is missing; 0 is nowhere

	mu      sync.Mutex
	last    uint64 // the newest that was heard
	written uint64 // the cursor as it was saved last
}

func (p *position) address() bus.Address { return bus.Address{Channel: p.channel.name} }

// begin reads the saved cursor, trying until the book answers. Where there is none, what
// was said before now is none of ours. Its error is ctx's.
func (p *position) begin(ctx context.Context) error {
	wait := new(retryWait)
	for {
		cursor, err := p.channel.book.Cursor(ctx, p.address())
		if err == nil {
			p.last = snowflake(cursor)
			p.written = p.last
			if p.last == 0 {
				p.last = flakeAt(time.Now())
			}
			return nil
		}
		if !wait.series.Began() && ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be read; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return ctx.Err()
		}
	}
}

// reached notes what was heard just now. It may be older than the last, by a clock that
// was wrong at the beginning.
func (p *position) reached(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = id
}

// passed notes what was read from history.
func (p *position) passed(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = max(p.last, id)
}

// cursor is up to where everything is published.
func (p *position) cursor() uint64 {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	first := p.lanes.oldest()
	if held := p.held(); held != 0 && (first == 0 || held < first) {
		first = held
	}
	if first != 0 && first <= last {
		return first - 1
	}
	return last
}

// keep saves the cursor now and then until ctx is done.
func (p *position) keep(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.save(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// save saves the cursor, if it has moved. What is read again goes not back behind what
// was saved.
func (p *position) save(ctx context.Context) {
	to := p.cursor()
	p.mu.Lock()
	again := to < p.written && p.last >= p.written
	p.mu.Unlock()
	if to == p.written || again {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := p.channel.book.SetCursor(ctx, p.address(), strconv.FormatUint(to, 10)); err != nil {
		if ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be written; trying on", slog.Any("error", err))
		}
		return
	}
	p.written = to
}
