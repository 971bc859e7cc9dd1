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

// saveTimeout bounds one write of the cursor.
const saveTimeout = 5 * time.Second

// A position is how far Discord was read: all messages up to it are published, in all channels. It
// is an id that Discord made, so it does not depend on this machine's clock. The book keeps it as
// the cursor of the whole channel.
type position struct {
	channel *Channel
	lanes   *lanes
	catchUp *catchUp

	mu      sync.Mutex
	last    uint64 // the newest message that was received
	began   uint64 // when the session began, by this machine's clock, as an id
	written uint64 // the cursor that was saved last
}

// beginSession records that a session begins: what is written from now on comes as events.
func (p *position) beginSession() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began = snowflakeAt(time.Now())
}

// cursorAddress returns the address under which the book keeps the cursor.
func (p *position) cursorAddress() bus.Address { return bus.Address{Channel: p.channel.name} }

// gapsAddress returns the address under which the book keeps the times in which the bot
// received nothing.
func (p *position) gapsAddress() bus.Address {
	return bus.Address{Channel: p.channel.name, Chat: "holes"}
}

// load reads the saved cursor and the times in which the bot was away, retrying until the book
// answers. Without a saved cursor everything that was said before now is ignored, and now is saved
// as the cursor: if this process dies, the next one has to read what was said since. It fails only
// when ctx ends.
func (p *position) load(ctx context.Context) error {
	now, wait := snowflakeAt(time.Now()), new(retryWait)
	for {
		err := p.tryLoad(ctx, now)
		if err == nil {
			return nil
		}
		if !wait.series.HasWaited() && ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be read or begun; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return ctx.Err()
		}
	}
}

// tryLoad makes one attempt to load the position; now is the first cursor.
func (p *position) tryLoad(ctx context.Context, now uint64) error {
	cursor, err := p.channel.book.Cursor(ctx, p.cursorAddress())
	if err != nil {
		return err //nolint:wrapcheck // the book's own says enough
	}
	gaps, err := p.channel.book.Cursor(ctx, p.gapsAddress())
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	p.catchUp.gaps = parseGaps(gaps)
	p.last = snowflake(cursor)
	if p.last == 0 {
		p.last = now
		if err := p.write(ctx, now); err != nil {
			return err
		}
	}
	p.written = p.last
	return nil
}

// write writes the cursor to the book.
func (p *position) write(ctx context.Context, to uint64) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return p.channel.book.SetCursor(ctx, p.cursorAddress(), strconv.FormatUint(to, 10)) //nolint:wrapcheck // likewise
}

// noteHeard records the message that was received just now. Its id may be lower than the
// last one if this machine's clock was wrong at the beginning.
func (p *position) noteHeard(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = id
}

// noteRead records a message that was read from history, if it was written before the session
// began. A later one may be newer than what the gateway has delivered: if the connection breaks
// now, older messages of other channels have yet to be read from history.
func (p *position) noteRead(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id <= p.began {
		p.last = max(p.last, id)
	}
}

// cursor returns the id up to which everything is published.
func (p *position) cursor() uint64 {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	first := p.lanes.oldestUnpublished()
	if held := p.catchUp.missingFrom(); held != 0 && (first == 0 || held < first) {
		first = held
	}
	if first != 0 && first <= last {
		return first - 1
	}
	return last
}

// saveRegularly saves the cursor at that interval until ctx is done.
func (p *position) saveRegularly(ctx context.Context, every time.Duration) {
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

// save saves the cursor if it has moved. It never saves a lower one, as when history is read again.
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
	if err := p.write(ctx, to); err != nil {
		if ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be written; trying on", slog.Any("error", err))
		}
		return
	}
	p.written = to
}

// saveGaps saves the times in which the bot was away. They must be saved before the cursor
// passes them. It returns false if saving failed.
func (p *position) saveGaps(ctx context.Context) bool {
	text, dirty := p.catchUp.unsavedGaps()
	if !dirty {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := p.channel.book.SetCursor(ctx, p.gapsAddress(), text); err != nil {
		if ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "it cannot be written when the bot was away; trying on", slog.Any("error", err))
		}
		return false
	}
	p.catchUp.noteSavedGaps(text)
	return true
}

// mostGaps bounds the gaps that are kept; beyond it the two oldest are joined.
const mostGaps = 100

// gaps are the times, as ranges of ids, in which the bot was away and received nothing. Discord
// does not tell the bot which people wrote to it privately meanwhile: for a person whom the book
// does not know, this is found out when they write again, and then their chat is read. Messages
// outside of these times were received and handled when they came.
type gaps struct {
	all   []gap // the oldest first
	dirty bool  // whether the book does not have the newest state
}

// A gap is a range of ids. It begins after from and ends with to.
type gap struct {
	from, to uint64 // `to` is 0 until a later message is received
}

// open begins a gap after the id from, and drops gaps that end before the id least.
func (h *gaps) open(from, least uint64) {
	for len(h.all) > 0 && h.all[0].to != 0 && h.all[0].to < least {
		h.all = h.all[1:]
	}
	h.dirty = true
	if n := len(h.all); n > 0 && (h.all[n-1].to == 0 || h.all[n-1].to >= from) {
		h.all[n-1].to = 0 // a gap that begins inside another prolongs it
		return
	}
	h.all = append(h.all, gap{from: from})
	if len(h.all) > mostGaps {
		h.all[1].from = h.all[0].from
		h.all = h.all[1:]
	}
}

// closeLast ends the open gap before the message with that id, which was received.
func (h *gaps) closeLast(id uint64) {
	if n := len(h.all); n > 0 && h.all[n-1].to == 0 {
		h.all[n-1].to, h.dirty = max(id-1, h.all[n-1].from), true
	}
}

// earliest returns the beginning of the first gap, or id if that is lower.
func (h *gaps) earliest(id uint64) uint64 {
	if len(h.all) > 0 {
		return min(id, h.all[0].from)
	}
	return id
}

// contains reports whether an id lies in a gap.
func (h *gaps) contains(id uint64) bool {
	for _, one := range h.all {
		if id > one.from && (one.to == 0 || id <= one.to) {
			return true
		}
	}
	return false
}

// String returns the gaps in the form in which the book keeps them.
func (h *gaps) String() string {
	var all []string
	for _, one := range h.all {
		all = append(all, fmt.Sprintf("%d-%d", one.from, one.to))
	}
	return strings.Join(all, " ")
}

// parseGaps reads the form that String writes; words that it cannot read are left out.
func parseGaps(text string) (h gaps) {
	for word := range strings.FieldsSeq(text) {
		var one gap
		if n, err := fmt.Sscanf(word, "%d-%d", &one.from, &one.to); n == 2 && err == nil {
			h.all = append(h.all, one)
		}
	}
	return h
}
