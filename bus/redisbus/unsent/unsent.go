// Package unsent holds the events that a process has emitted until they are sent.
package unsent

import (
	"slices"
	"sync"

	"parley/bus"
)

const (
	maxBuffered      = 8192      // how many events may wait in this process to be sent
	maxBufferedBytes = 16 << 20  // about how much memory the waiting events may take
	maxBatchEvents   = 128       // the most events in one call
	fullBatchBytes   = 256 << 10 // a call with more bytes than these takes no further event
)

// A Buffer holds events. When it overflows it drops the oldest events, and remembers which feeds now
// lack some, so that the watchers of these feeds can be told.
type Buffer struct {
	filled chan struct{} // has a value when there is something to send

	mu     sync.Mutex // guards all fields below
	events []entry    // the oldest first
	bytes  int
	gaps   map[Destination]bool // feeds that lack events, whose watchers have not been told yet
	lost   uint64               // number of events that were lost
}

// Feeds says to which of its feeds an event is sent by this process's connection.
type Feeds int

// An event goes to all of its feeds, unless the server's feed is on another server than the feeds of its session.
const (
	AllFeeds   Feeds = iota
	OwnFeeds         // the feeds of the session and of the channel
	ServerFeed       // the server's feed; the event has the form that ForServer returns
)

// An entry is an event that waits.
type entry struct {
	bus.Event
	feeds Feeds
}

// forServer returns the form of the event that goes to the server's feed; false if none does.
func (e *entry) forServer() (bus.Event, bool) {
	switch e.feeds {
	case OwnFeeds:
		return bus.Event{}, false
	case ServerFeed:
		return e.Event, true
	}
	return e.ForServer()
}

// A Destination says where an event goes: to the feed of Session, to that of Channel, or to both; or to the server's.
type Destination struct {
	Session, Channel string // "" for none
	Server           bool
}

// destinationOf returns where the event itself goes. The server's feed gets another event that is made
// from it.
func destinationOf(e *entry) Destination {
	if e.feeds == ServerFeed || e.IsServersOnly() {
		return Destination{}
	}
	return Destination{Session: e.Session, Channel: e.Route.Channel}
}

// parts splits a destination into those of the single feeds; they are zero for feeds that d does not
// include.
func (d Destination) parts() [3]Destination {
	return [3]Destination{{Session: d.Session}, {Channel: d.Channel}, {Server: d.Server}}
}

// StoredFeed returns the feed of which Redis keeps the events for a while; "" if there is none.
func (d Destination) StoredFeed() bus.Feed {
	switch {
	case d.Server:
		return bus.ServerFeed()
	case d.Session != "":
		return bus.SessionFeed(d.Session)
	}
	return ""
}

// New returns an empty Buffer.
func New() *Buffer { return &Buffer{gaps: map[Destination]bool{}, filled: make(chan struct{}, 1)} }

// Filled returns a channel that has a value when there is something to send.
func (r *Buffer) Filled() <-chan struct{} { return r.filled }

// Lost returns how many events were lost, because the buffer was full or a batch could not be sent.
func (r *Buffer) Lost() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Add appends an event, to be sent to these feeds, and drops the oldest events if the buffer is too large.
func (r *Buffer) Add(e bus.Event, feeds Feeds) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, entry{e, feeds})
	r.bytes += eventBytes(&e)
	for len(r.events) > maxBuffered || r.bytes > maxBufferedBytes && len(r.events) > 1 {
		r.countLost(&r.events[0])
		r.removeFirst(1)
	}
	r.wakeSender()
}

// wakeSender signals on Filled that there is something to send.
func (r *Buffer) wakeSender() {
	select {
	case r.filled <- struct{}{}:
	default: // the sender is signalled already
	}
}

// countLost counts an event that will not be sent, and remembers that its feeds lack one. The
// caller of countLost, markGaps, markGapsOf or removeFirst holds r.mu.
func (r *Buffer) countLost(e *entry) {
	r.lost++
	r.markGapsOf(e)
}

// markGapsOf remembers that the feeds to which e was to go lack an event.
func (r *Buffer) markGapsOf(e *entry) {
	to := destinationOf(e)
	_, to.Server = e.forServer()
	r.markGaps(to)
}

// markGaps remembers that the feeds of a destination lack an event.
func (r *Buffer) markGaps(to Destination) {
	for _, feed := range to.parts() {
		if feed != (Destination{}) {
			r.gaps[feed] = true
		}
	}
}

// removeFirst removes the n oldest events.
func (r *Buffer) removeFirst(n int) {
	for i := range r.events[:n] {
		r.bytes -= eventBytes(&r.events[i].Event)
		r.events[i] = entry{}
	}
	r.events = r.events[n:]
}

// eventBytes returns about how much memory an event takes.
func eventBytes(e *bus.Event) int { return 256 + e.Size() }

// An Item is to be sent to a destination: an event or, if Event is nil, a sign that events are missing.
type Item struct {
	Destination
	Event *bus.Event
}

// NextBatch removes the next events to send from the buffer. The sign that a feed lacks
// events comes before the feed's next event, or, if the buffer has no event of that feed,
// at the end. Pieces of one part of an answer that follow one another become one event.
func (r *Buffer) NextBatch() (batch []Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := map[string]*bus.Event{} // the newest event of each turn in the batch
	n := 0
	for size := 0; n < len(r.events) && n < maxBatchEvents && size < fullBatchBytes; n++ {
		e := r.events[n]
		size += eventBytes(&e.Event)
		if joinPieces(newest[e.Turn], &e.Event) {
			continue
		}
		newest[e.Turn] = &e.Event
		batch = r.appendEvent(batch, destinationOf(&e), &e.Event)
		if news, ok := e.forServer(); ok {
			batch = r.appendEvent(batch, Destination{Server: true}, &news)
		}
	}
	r.removeFirst(n)
	if len(r.events) > 0 {
		r.wakeSender()
		return batch
	}
	r.events = nil
	for p := range r.gaps {
		batch = append(batch, Item{p, nil})
	}
	clear(r.gaps)
	return batch
}

// appendEvent appends an event to a batch. If a feed of its destination lacks events, the sign of that
// comes first. The caller holds r.mu.
func (r *Buffer) appendEvent(batch []Item, to Destination, e *bus.Event) []Item {
	if to == (Destination{}) {
		return batch
	}
	for _, feed := range to.parts() {
		if r.gaps[feed] {
			delete(r.gaps, feed)
			batch = append(batch, Item{feed, nil})
		}
	}
	return append(batch, Item{to, e})
}

// joinPieces adds the text of e to that of the event before it and returns true, if both are pieces
// of the same part of an answer. before may be nil.
func joinPieces(before, e *bus.Event) bool {
	if before == nil || before.Type != bus.BlockDelta || e.Type != bus.BlockDelta || before.Delta == "" || e.Delta == "" {
		return false
	}
	if before.Session != e.Session || before.Route != e.Route || before.Turn != e.Turn || before.Block != e.Block || before.Kind != e.Kind {
		return false
	}
	before.Delta += e.Delta
	return true
}

// LoseBatch counts the events of a batch that could not be sent, and remembers which feeds
// lack them.
func (r *Buffer) LoseBatch(batch []Item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range batch {
		if x.Event != nil && (!x.Server || x.Event.IsServersOnly()) { // the server's feed gets most events in addition to other feeds; they are counted once
			r.lost++
		}
		r.markGaps(x.Destination)
	}
	r.wakeSender()
}

// Len returns how many events wait.
func (r *Buffer) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

// Forget removes the events of sessions from the buffer, and remembers that their feeds lack them.
func (r *Buffer) Forget(sessions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.events[:0]
	for i := range r.events {
		e := r.events[i]
		if !slices.Contains(sessions, e.Session) {
			kept = append(kept, e)
			continue
		}
		r.bytes -= eventBytes(&e.Event)
		r.markGapsOf(&e)
	}
	clear(r.events[len(kept):])
	r.events = kept
	r.wakeSender()
}
