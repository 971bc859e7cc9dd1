package sqlitebus

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
)

// How much is held for those who watch later, or slowly.
const (
	feedEvents  = 4096
	eventsBytes = 32 << 20 // of all feeds
	eventSize   = 320      // what an event takes beside its texts, about
	feedIdle    = 10 * time.Minute
)

// feeds carries events, in memory. What is held of a feed is one slice that all
// its watchers read at their own pace, so an idle watcher costs next to nothing
// and a slow one holds up nobody.
type feeds struct {
	clock *clock
	lost  atomic.Uint64 // events that some watcher was too slow for

	mu     sync.Mutex
	byName map[bus.Feed]*feed
	byAge  list.List // of *feed that hold events, the one longest without a new one first
	bytes  int
	gone   uint64 // the highest id of any event not held in a feed that is not in byName
	last   uint64 // the highest id given
	closed chan struct{}
}

// A feed's event number i, counted from the feed's beginning, is held at
// events[i-start].
type feed struct {
	name     bus.Feed
	place    *list.Element // in byAge; nil if it holds no events
	events   []*bus.Event
	start    int
	gone     uint64 // the highest id that is no longer held
	last     time.Time
	watchers int
	news     chan struct{} // closed at the next event; nil if nobody waits
}

func newFeeds(c *clock) *feeds {
	born := uint64(c.next()) // events of an earlier process are not held
	return &feeds{clock: c, byName: map[bus.Feed]*feed{}, gone: born, last: born, closed: make(chan struct{})}
}

// Emit implements bus.Events.
func (f *feeds) Emit(e bus.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = uint64(f.clock.next())
	e.ID = f.last
	now := time.Now()
	if e.Session != "" {
		f.add(f.feed(bus.SessionFeed(e.Session)), &e, now)
	}
	if e.Route.Channel != "" {
		f.add(f.feed(bus.ChannelFeed(e.Route.Channel)), &e, now)
	}
	f.shrink(now)
}

// feed is called with f.mu held, as is all below that does not take it.
func (f *feeds) feed(name bus.Feed) *feed {
	x := f.byName[name]
	if x == nil {
		x = &feed{name: name, gone: f.gone}
		f.byName[name] = x
	}
	return x
}

func (f *feeds) add(x *feed, e *bus.Event, now time.Time) {
	if len(x.events) == feedEvents {
		f.dropFirst(x)
	}
	x.events = append(x.events, e)
	x.last = now
	f.bytes += sizeOf(e)
	if x.place == nil {
		x.place = f.byAge.PushBack(x)
	} else {
		f.byAge.MoveToBack(x.place)
	}
	if x.news != nil {
		close(x.news)
		x.news = nil
	}
}

func (f *feeds) dropFirst(x *feed) {
	x.gone = x.events[0].ID
	f.bytes -= sizeOf(x.events[0])
	x.events[0] = nil
	x.events = x.events[1:]
	x.start++
}

func sizeOf(e *bus.Event) int {
	n := eventSize + len(e.Delta)
	for _, c := range e.Causes {
		n += len(c)
	}
	if e.Error != nil {
		n += len(e.Error.Message)
	}
	return n
}

// shrink lets go of the feeds that have been quiet for longest: wholly where
// that was long ago, and of their oldest events while all take too much.
func (f *feeds) shrink(now time.Time) {
	for f.byAge.Len() > 0 {
		x := f.byAge.Front().Value.(*feed)
		quiet := now.Sub(x.last) > feedIdle
		if !quiet && f.bytes <= eventsBytes {
			return
		}
		for len(x.events) > 0 && (quiet || f.bytes > eventsBytes) {
			f.dropFirst(x)
		}
		f.tidy(x)
	}
}

// tidy forgets a feed that holds nothing and that nobody watches.
func (f *feeds) tidy(x *feed) {
	if len(x.events) > 0 {
		return
	}
	if x.place != nil {
		f.byAge.Remove(x.place)
		x.place = nil
	}
	if x.watchers == 0 {
		f.gone = max(f.gone, x.gone)
		delete(f.byName, x.name)
	}
}

// Subscribe implements bus.Events.
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
	if after != 0 && (after < x.gone || after > f.last) {
		f.tidy(x)
		return nil, bus.ErrGone
	}
	w := &watcher{feeds: f, feed: x, next: x.start + len(x.events)}
	for after != 0 && w.next > x.start && x.events[w.next-1-x.start].ID > after {
		w.next--
	}
	x.watchers++
	context.AfterFunc(ctx, w.leave)
	return func(yield func(bus.Event, error) bool) {
		for {
			e, err := w.read(ctx)
			if ctx.Err() != nil || !yield(e, err) || errors.Is(err, bus.ErrClosed) {
				return
			}
		}
	}, nil
}

// Dropped counts the events that watchers were too slow for.
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

// A watcher is a place in a feed.
type watcher struct {
	feeds *feeds
	feed  *feed
	next  int
}

func (w *watcher) leave() {
	w.feeds.mu.Lock()
	defer w.feeds.mu.Unlock()
	w.feed.watchers--
	w.feeds.tidy(w.feed)
}

// read waits for the next event. Its error is ErrGone, ErrClosed or ctx's.
func (w *watcher) read(ctx context.Context) (bus.Event, error) {
	for {
		e, news, err := w.look()
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

// look returns the next event, or what to wait for.
func (w *watcher) look() (*bus.Event, <-chan struct{}, error) {
	w.feeds.mu.Lock()
	defer w.feeds.mu.Unlock()
	x := w.feed
	if w.next < x.start {
		w.feeds.lost.Add(uint64(x.start - w.next))
		w.next = x.start
		return nil, nil, bus.ErrGone
	}
	if i := w.next - x.start; i < len(x.events) {
		w.next++
		return x.events[i], nil, nil
	}
	if x.news == nil {
		x.news = make(chan struct{})
	}
	return nil, x.news, nil
}
