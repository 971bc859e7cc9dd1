package sqlitebus

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
)

// These constants limit the events that are kept for watchers that come later or read slowly.
const (
	maxFeedEvents  = 4096             // how many events of one feed are kept
	maxEventsBytes = 8 << 20          // how many bytes the events of all feeds may take; one that is in two feeds counts twice
	eventSize      = 320              // about how many bytes an event takes besides its texts
	maxFeedIdle    = 10 * time.Minute // how long a feed without new events is kept
	// gatherTime is how long the events of a channel, or of the server, gather before the watchers that
	// wait for them are woken. Waking them for each event of a short turn would cost more than all other
	// work on the events, and typing indicators and drafts are not urgent.
	gatherTime = 20 * time.Millisecond
)

// feeds keeps events in memory. The events of a feed are in one slice, which all its
// watchers read at their own pace: so an idle watcher costs next to nothing, and a slow one
// delays nobody.
type feeds struct {
	clock *clock
	lost  atomic.Uint64 // events for which some watcher was too slow

	mu          sync.Mutex
	byName      map[bus.Feed]*feed
	byLastEvent list.List // a list of *feed: those that hold events, the one longest without a new one first
	bytes       int
	lastDropped uint64 // the highest id that was dropped from any feed that is no longer in byName
	lastID      uint64 // the highest id given
	closed      chan struct{}
}

// A feed holds the latest events of one bus.Feed. The i-th event since the feed's beginning
// is events[i-start].
type feed struct {
	name        bus.Feed
	element     *list.Element // its place in byLastEvent; nil if it holds no events
	events      []*bus.Event
	start       int
	lastDropped uint64 // the highest id that the feed no longer has
	lastEventAt time.Time
	watchers    int
	changed     chan struct{} // closed once there is news; nil if nobody waits
	wakePending bool          // whether wakeLater's timer is running, which will close changed
}

func newFeeds(c *clock) *feeds {
	born := uint64(c.next()) // above the ids of earlier processes, whose events are gone
	return &feeds{clock: c, byName: map[bus.Feed]*feed{}, lastDropped: born, lastID: born, closed: make(chan struct{})}
}

// Emit implements bus.Events: it adds the event to its session's, its channel's and the server's feed.
func (f *feeds) Emit(e bus.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastID = uint64(f.clock.next())
	e.ID = f.lastID
	now := time.Now()
	if !e.IsServersOnly() {
		f.addToOwnFeeds(&e, now)
	}
	if news, ok := e.ForServer(); ok { // after the others, because freeMemory spares the feed with the newest event
		news.ID = e.ID
		x := f.feed(bus.ServerFeed())
		f.add(x, &news, now)
		f.wakeLater(x)
	}
	f.freeMemory(now)
}

// addToOwnFeeds adds an event to its session's and its channel's feed.
func (f *feeds) addToOwnFeeds(e *bus.Event, now time.Time) {
	if e.Session != "" {
		x := f.feed(bus.SessionFeed(e.Session))
		f.add(x, e, now)
		x.wake()
	}
	if e.Route.Channel != "" {
		x := f.feed(bus.ChannelFeed(e.Route.Channel))
		f.add(x, e, now)
		if e.Type == bus.Limited { // a sender must stop at once, so its watchers do not wait for more events
			x.wake()
		} else {
			f.wakeLater(x)
		}
	}
}

// wake wakes the watchers that wait for an event of the feed.
func (x *feed) wake() {
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
}

// wakeLater wakes the watchers that wait for an event of a feed a moment later, when more events may
// have come.
func (f *feeds) wakeLater(x *feed) {
	if x.changed == nil || x.wakePending {
		return
	}
	x.wakePending = true
	time.AfterFunc(gatherTime, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		x.wakePending = false
		x.wake()
	})
}

// feed returns the feed of that name, and makes it if needed. The caller of feed and of all methods below
// that do not lock f.mu themselves holds it.
func (f *feeds) feed(name bus.Feed) *feed {
	x := f.byName[name]
	if x == nil {
		x = &feed{name: name, lastDropped: f.lastDropped}
		f.byName[name] = x
	}
	return x
}

// add appends an event to a feed, and drops the feed's oldest event if it has too many.
func (f *feeds) add(x *feed, e *bus.Event, now time.Time) {
	if len(x.events) == maxFeedEvents {
		f.dropFirst(x)
	}
	x.events = append(x.events, e)
	x.lastEventAt = now
	f.bytes += sizeOf(e)
	if x.element == nil {
		x.element = f.byLastEvent.PushBack(x)
	} else {
		f.byLastEvent.MoveToBack(x.element)
	}
}

// dropFirst drops the oldest event of a feed.
func (f *feeds) dropFirst(x *feed) {
	x.lastDropped = x.events[0].ID
	f.bytes -= sizeOf(x.events[0])
	x.events[0] = nil
	x.events = x.events[1:]
	x.start++
}

// sizeOf returns about how many bytes an event takes in memory.
func sizeOf(e *bus.Event) int { return eventSize + e.Size() }

// freeMemory drops all events of feeds that had none for maxFeedIdle. While all feeds together
// still take too much, it drops the oldest events of the feed that has been without a new
// one for longest.
func (f *feeds) freeMemory(now time.Time) {
	for f.byLastEvent.Len() > 0 {
		x := f.byLastEvent.Front().Value.(*feed)
		quiet := now.Sub(x.lastEventAt) > maxFeedIdle
		if !quiet && f.bytes <= maxEventsBytes {
			return
		}
		for len(x.events) > 0 && (quiet || f.bytes > maxEventsBytes) {
			f.dropFirst(x)
		}
		f.removeIfUnused(x)
	}
}

// removeIfUnused removes a feed without events and watchers.
func (f *feeds) removeIfUnused(x *feed) {
	if len(x.events) > 0 {
		return
	}
	if x.element != nil {
		f.byLastEvent.Remove(x.element)
		x.element = nil
	}
	if x.watchers == 0 {
		f.lastDropped = max(f.lastDropped, x.lastDropped)
		delete(f.byName, x.name)
	}
}

// Subscribe implements bus.Events: it makes a watcher, who reads the feed from its own position on.
func (f *feeds) Subscribe(ctx context.Context, name bus.Feed, after uint64) (iter.Seq2[bus.Event, error], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isClosed() {
		return nil, bus.ErrClosed
	}
	x := f.feed(name)
	if after != 0 && (after < x.lastDropped || after > f.lastID) {
		f.removeIfUnused(x)
		return nil, bus.ErrGone
	}
	w := &watcher{feeds: f, feed: x, position: x.start + len(x.events)}
	for after != 0 && w.position > x.start && x.events[w.position-1-x.start].ID > after {
		w.position--
	}
	x.watchers++
	context.AfterFunc(ctx, w.unsubscribe)
	return func(yield func(bus.Event, error) bool) {
		for {
			e, err := w.read(ctx)
			if ctx.Err() != nil || !yield(e, err) || errors.Is(err, bus.ErrClosed) {
				return
			}
		}
	}, nil
}

// HeldEvents implements bus.History.
func (f *feeds) HeldEvents(_ context.Context, name bus.Feed) ([]bus.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.byName[name]
	if x == nil {
		return nil, nil
	}
	held := make([]bus.Event, len(x.events))
	for i, e := range x.events {
		held[i] = *e
	}
	return held, nil
}

// Dropped returns how many events were dropped before a watcher had read them.
func (f *feeds) Dropped() uint64 { return f.lost.Load() }

func (f *feeds) isClosed() bool {
	select {
	case <-f.closed:
		return true
	default:
		return false
	}
}

func (f *feeds) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.closed)
}

// A watcher is one caller of Subscribe, at its position in the feed.
type watcher struct {
	feeds    *feeds
	feed     *feed
	position int
}

// unsubscribe ends the subscription, and removes the feed if nobody needs it anymore.
func (w *watcher) unsubscribe() {
	w.feeds.mu.Lock()
	defer w.feeds.mu.Unlock()
	w.feed.watchers--
	w.feeds.removeIfUnused(w.feed)
}

// read waits for the next event and returns it, or else ErrGone, ErrClosed or ctx's error.
func (w *watcher) read(ctx context.Context) (bus.Event, error) {
	for {
		e, news, err := w.next()
		if err != nil {
			return bus.Event{}, err
		}
		if e != nil {
			return *e, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return bus.Event{}, ctx.Err()
		case <-w.feeds.closed:
			return bus.Event{}, bus.ErrClosed
		}
	}
}

// next returns the next event or, if there is none yet, a channel that is closed when one comes.
func (w *watcher) next() (*bus.Event, <-chan struct{}, error) {
	w.feeds.mu.Lock()
	defer w.feeds.mu.Unlock()
	x := w.feed
	if w.position < x.start {
		w.feeds.lost.Add(uint64(x.start - w.position))
		w.position = x.start
		return nil, nil, bus.ErrGone
	}
	if i := w.position - x.start; i < len(x.events) {
		w.position++
		return x.events[i], nil, nil
	}
	if x.changed == nil {
		x.changed = make(chan struct{})
	}
	return nil, x.changed, nil
}

// forget removes the events of sessions, and all events of the server's feed. In a channel's feed it
// replaces each by an event without text: the positions of the feed's watchers must stay valid.
func (f *feeds) forget(sessions []string) {
	if len(sessions) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	names := []bus.Feed{bus.ServerFeed()}
	for _, key := range sessions {
		names = append(names, bus.SessionFeed(key))
	}
	if x := f.byName[bus.ServerFeed()]; x != nil {
		defer x.wake()
		defer func() { x.start++ }() // so that a watcher that has read all of them gets ErrGone, too
	}
	for _, name := range names {
		x := f.byName[name]
		if x == nil {
			continue
		}
		for len(x.events) > 0 {
			f.dropFirst(x)
		}
		f.removeIfUnused(x)
	}
	for _, x := range f.byName {
		for i, e := range x.events {
			if slices.Contains(sessions, e.Session) {
				silent := &bus.Event{ID: e.ID, Type: e.Type, Session: e.Session, Route: e.Route, Turn: e.Turn, Causes: e.Causes, Block: e.Block, Kind: e.Kind, Call: e.Call}
				f.bytes += sizeOf(silent) - sizeOf(e)
				x.events[i] = silent
			}
		}
	}
}
