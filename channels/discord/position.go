package discord

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
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
	catchUp *catchUp

	mu      sync.Mutex
	last    uint64 // the newest that was heard
	written uint64 // the cursor as it was saved last
}

func (p *position) address() bus.Address { return bus.Address{Channel: p.channel.name} }

// gaps is the name under which the book keeps from when to when the bot heard nothing.
func (p *position) gaps() bus.Address { return bus.Address{Channel: p.channel.name, Chat: "holes"} }

// begin reads the saved cursor, trying until the book answers. Where there is none, what
// was said before now is none of ours. Its error is ctx's.
func (p *position) begin(ctx context.Context) error {
	wait := new(retryWait)
	for {
		cursor, err := p.channel.book.Cursor(ctx, p.address())
		gaps := ""
		if err == nil {
			gaps, err = p.channel.book.Cursor(ctx, p.gaps())
		}
		if err == nil {
			p.catchUp.gaps = readGaps(gaps)
			p.last = snowflake(cursor)
			p.written = p.last
			if p.last == 0 {
				p.last = snowflakeAt(time.Now())
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
	if held := p.catchUp.missingFrom(); held != 0 && (first == 0 || held < first) {
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
	if !p.saveGaps(ctx) {
		return
	}
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

// saveGaps saves when the bot was away, which is known before the cursor passes it. It
// is false if that failed.
func (p *position) saveGaps(ctx context.Context) bool {
	text, dirty := p.catchUp.unsavedGaps()
	if !dirty {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := p.channel.book.SetCursor(ctx, p.gaps(), text); err != nil {
		if ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "it cannot be written when the bot was away; trying on", slog.Any("error", err))
		}
		return false
	}
	p.catchUp.noteSavedGaps(text)
	return true
}

// mostGaps bounds how many are kept; beyond that the two oldest become one.
const mostGaps = 100

// gaps are the times, between ids, in which the bot was away. Discord does not tell a bot
// who has written to it alone meanwhile: of a person who is not known yet this is found
// out once they write again, and the chat is read. What was said there outside of these
// times was heard, and answered as it was to be.
type gaps struct {
	all   []gap // the oldest first
	dirty bool  // the book does not have them
}

type gap struct {
	from, to uint64 // to is 0 as long as nothing was heard behind it
}

// open begins a gap behind that id, and forgets those that end before least.
func (h *gaps) open(from, least uint64) {
	for len(h.all) > 0 && h.all[0].to != 0 && h.all[0].to < least {
		h.all = h.all[1:]
	}
	h.dirty = true
	if n := len(h.all); n > 0 && (h.all[n-1].to == 0 || h.all[n-1].to >= from) {
		h.all[n-1].to = 0 // one that begins in another makes it longer
		return
	}
	h.all = append(h.all, gap{from: from})
	if len(h.all) > mostGaps {
		h.all[1].from = h.all[0].from
		h.all = h.all[1:]
	}
}

// shut ends the last gap before what was heard then.
func (h *gaps) shut(id uint64) {
	if n := len(h.all); n > 0 && h.all[n-1].to == 0 {
		h.all[n-1].to, h.dirty = max(id-1, h.all[n-1].from), true
	}
}

// since is where the first gap begins, or what is given if that is earlier.
func (h *gaps) since(id uint64) uint64 {
	if len(h.all) > 0 {
		return min(id, h.all[0].from)
	}
	return id
}

// has tells whether an id is in a gap.
func (h *gaps) has(id uint64) bool {
	for _, one := range h.all {
		if id > one.from && (one.to == 0 || id <= one.to) {
			return true
		}
	}
	return false
}

// String is the gaps as the book keeps them.
func (h *gaps) String() string {
	var all []string
	for _, one := range h.all {
		all = append(all, fmt.Sprintf("%d-%d", one.from, one.to))
	}
	return strings.Join(all, " ")
}

// readGaps reads what String writes.
func readGaps(text string) (h gaps) {
	for word := range strings.FieldsSeq(text) {
		var one gap
		if n, err := fmt.Sscanf(word, "%d-%d", &one.from, &one.to); n == 2 && err == nil {
			h.all = append(h.all, one)
		}
	}
	return h
}
