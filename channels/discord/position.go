package discord

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"parley/bus"
)

// saveTimeout limits one write of the cursor.
const saveTimeout = 5 * time.Second

// missedMessages knows which messages the bot has not received; catchUp implements it.
type missedMessages interface {
	missingFrom() uint64
	setGaps(all gaps)
	unsavedGaps() (text string, dirty bool)
	noteSavedGaps(text string)
}

// A position is how far Discord has been read: all messages up to it are published, in all channels. It is an id
// that Discord made, so it does not depend on this machine's clock. The book stores it as the cursor of the whole
// channel.
type position struct {
	name           string // the channel's name
	book           Book
	lanes          *lanes
	missedMessages missedMessages
	log            *slog.Logger

	mu             sync.Mutex
	newestReceived uint64 // the newest message that has been received
	sessionStart   uint64 // when the session began, as an id, by this machine's clock
	savedCursor    uint64 // the cursor that was last saved
}

// beginSession records that a session begins: whatever is written from now on arrives as events.
func (p *position) beginSession() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessionStart = snowflakeAt(time.Now())
}

// cursorAddress returns the address under which the book keeps the cursor.
func (p *position) cursorAddress() bus.Address { return bus.Address{Channel: p.name} }

// gapsAddress returns the address under which the book keeps the gaps, in which the bot received nothing.
func (p *position) gapsAddress() bus.Address {
	return bus.Address{Channel: p.name, Chat: "holes"}
}

// load reads the saved cursor and gaps, retrying until the book answers. If there is no saved cursor, everything
// that was said before now is ignored, and the current time is saved as the cursor: if this process dies, the next
// one has to read what was said since. It fails only when ctx ends.
func (p *position) load(ctx context.Context) error {
	now, wait := snowflakeAt(time.Now()), new(retryWait)
	for {
		err := p.tryLoad(ctx, now)
		if err == nil {
			return nil
		}
		if !wait.series.HasWaited() && ctx.Err() == nil {
			p.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be read or begun; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return ctx.Err()
		}
	}
}

// tryLoad makes one attempt to load the position; now is the initial cursor.
func (p *position) tryLoad(ctx context.Context, now uint64) error {
	cursor, err := p.book.Cursor(ctx, p.cursorAddress())
	if err != nil {
		return err //nolint:wrapcheck // the book's own error says enough
	}
	gaps, err := p.book.Cursor(ctx, p.gapsAddress())
	if err != nil {
		return err //nolint:wrapcheck // likewise
	}
	p.missedMessages.setGaps(parseGaps(gaps))
	p.newestReceived = snowflake(cursor)
	if p.newestReceived == 0 {
		p.newestReceived = now
		if err := p.saveCursor(ctx, now); err != nil {
			return err
		}
	}
	p.savedCursor = p.newestReceived
	return nil
}

// saveCursor writes the cursor to the book.
func (p *position) saveCursor(ctx context.Context, to uint64) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return p.book.SetCursor(ctx, p.cursorAddress(), strconv.FormatUint(to, 10)) //nolint:wrapcheck // likewise
}

// noteHeard records the id of the message that has just been received. It may be lower than the last one if this
// machine's clock was wrong at the start.
func (p *position) noteHeard(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.newestReceived = id
}

// noteRead records a message that was read from history, if it was written before the session began. A later one
// may be newer than what the gateway has delivered: if the connection broke now, older messages in other channels
// would still have to be read from history.
func (p *position) noteRead(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id <= p.sessionStart {
		p.newestReceived = max(p.newestReceived, id)
	}
}

// cursor returns the id up to which everything is published.
func (p *position) cursor() uint64 {
	p.mu.Lock()
	last := p.newestReceived
	p.mu.Unlock()
	first := p.lanes.oldestUnpublished()
	if held := p.missedMessages.missingFrom(); held != 0 && (first == 0 || held < first) {
		first = held
	}
	if first != 0 && first <= last {
		return first - 1
	}
	return last
}

// saveRegularly saves the cursor every so often until ctx is done.
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

// save saves the gaps, then the cursor if it has moved. It does not save a lower cursor, which occurs when history
// is read again, unless the newest message is lower too (see noteHeard).
func (p *position) save(ctx context.Context) {
	to := p.cursor()
	if !p.saveGaps(ctx) {
		return
	}
	p.mu.Lock()
	again := to < p.savedCursor && p.newestReceived >= p.savedCursor
	p.mu.Unlock()
	if to == p.savedCursor || again {
		return
	}
	if err := p.saveCursor(ctx, to); err != nil {
		if ctx.Err() == nil {
			p.log.LogAttrs(ctx, slog.LevelWarn, "the cursor cannot be written; trying on", slog.Any("error", err))
		}
		return
	}
	p.savedCursor = to
}

// saveGaps saves the gaps. They must be saved before the cursor passes them. It returns false if saving failed.
func (p *position) saveGaps(ctx context.Context) bool {
	text, dirty := p.missedMessages.unsavedGaps()
	if !dirty {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := p.book.SetCursor(ctx, p.gapsAddress(), text); err != nil {
		if ctx.Err() == nil {
			p.log.LogAttrs(ctx, slog.LevelWarn, "it cannot be written when the bot was away; trying on", slog.Any("error", err))
		}
		return false
	}
	p.missedMessages.noteSavedGaps(text)
	return true
}
