package redisbus

import (
	"slices"
	"sync"

	"parley/bus"
)

const (
	bufferEvents = 8192      // how many events may wait in this process to be sent
	bufferBytes  = 16 << 20  // about how much memory the waiting events may take
	emitAtOnce   = 128       // the most events in one call
	emitBytes    = 256 << 10 // a call with more bytes than these takes no further event
)

// An eventBuffer holds the events that this process has emitted until they are
// sent. When it overflows it drops the oldest events, and remembers which feeds now
// lack some, so that the watchers of these feeds can be told.
type eventBuffer struct {
	sending sync.Mutex // held while a batch is being sent; taken before mu

	mu     sync.Mutex
	events []bus.Event // the oldest first
	bytes  int
	gaps   map[destination]bool // feeds that lack events, whose watchers have not been told yet
	filled chan struct{}        // has a value when there is something to send
	lost   uint64               // number of events that were lost
}

// A destination says where an event goes: its session's feed, its channel's, or both; or the server's.
type destination struct {
	session, channel string
	server           bool
}

// destinationOf returns where the event itself goes. The server's feed gets another event that is made
// from it.
func destinationOf(e *bus.Event) destination {
	if e.IsServersOnly() {
		return destination{}
	}
	return destination{session: e.Session, channel: e.Route.Channel}
}

// parts splits a destination into those of the single feeds; they are zero for feeds that d does not
// include.
func (d destination) parts() [3]destination {
	return [3]destination{{session: d.session}, {channel: d.channel}, {server: d.server}}
}

// storedFeed returns the feed of which Redis keeps the events for a while; "" if there is none.
func (d destination) storedFeed() bus.Feed {
	switch {
	case d.server:
		return bus.ServerFeed()
	case d.session != "":
		return bus.SessionFeed(d.session)
	}
	return ""
}

func newEventBuffer() *eventBuffer {
	return &eventBuffer{gaps: map[destination]bool{}, filled: make(chan struct{}, 1)}
}

// add appends an event, and drops the oldest events if the buffer is too large.
func (r *eventBuffer) add(e bus.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	r.bytes += eventBytes(&e)
	for len(r.events) > bufferEvents || r.bytes > bufferBytes && len(r.events) > 1 {
		r.countLost(&r.events[0])
		r.removeFirst(1)
	}
	r.wakeSender()
}

// wakeSender tells sendEvents that there is something to send.
func (r *eventBuffer) wakeSender() {
	select {
	case r.filled <- struct{}{}:
	default: // the sender is signalled already
	}
}

// countLost counts an event that will not be sent, and remembers that its feeds lack one. The
// caller of countLost, markGaps, markGapsOf or removeFirst holds r.mu.
func (r *eventBuffer) countLost(e *bus.Event) {
	r.lost++
	r.markGapsOf(e)
}

// markGapsOf remembers that the feeds to which e was to go lack an event.
func (r *eventBuffer) markGapsOf(e *bus.Event) {
	to := destinationOf(e)
	_, to.server = e.ForServer()
	r.markGaps(to)
}

// markGaps remembers that the feeds of a destination lack an event.
func (r *eventBuffer) markGaps(to destination) {
	for _, feed := range to.parts() {
		if feed != (destination{}) {
			r.gaps[feed] = true
		}
	}
}

func (r *eventBuffer) removeFirst(n int) {
	for i := range r.events[:n] {
		r.bytes -= eventBytes(&r.events[i])
		r.events[i] = bus.Event{}
	}
	r.events = r.events[n:]
}

// eventBytes returns about how much memory an event takes.
func eventBytes(e *bus.Event) int { return 256 + e.Size() }

// An outgoing is one item to send to a destination: an event or, if event is nil, a sign
// that events are missing.
type outgoing struct {
	destination
	event *bus.Event
}

// nextBatch removes the next events to send from the buffer. The sign that a feed lacks
// events comes before the feed's next event, or, if the buffer has no event of that feed,
// at the end. Pieces of one part of an answer that follow one another become one event.
func (r *eventBuffer) nextBatch() (batch []outgoing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := map[string]*bus.Event{} // the newest event of each turn in the batch
	n := 0
	for size := 0; n < len(r.events) && n < emitAtOnce && size < emitBytes; n++ {
		e := r.events[n]
		size += eventBytes(&e)
		if joinPieces(newest[e.Turn], &e) {
			continue
		}
		newest[e.Turn] = &e
		batch = r.appendEvent(batch, destinationOf(&e), &e)
		if news, ok := e.ForServer(); ok {
			batch = r.appendEvent(batch, destination{server: true}, &news)
		}
	}
	r.removeFirst(n)
	if len(r.events) > 0 {
		r.wakeSender()
		return batch
	}
	r.events = nil
	for p := range r.gaps {
		batch = append(batch, outgoing{p, nil})
	}
	clear(r.gaps)
	return batch
}

// appendEvent appends an event to a batch. If a feed of its destination lacks events, the sign of that
// comes first. The caller holds r.mu.
func (r *eventBuffer) appendEvent(batch []outgoing, to destination, e *bus.Event) []outgoing {
	if to == (destination{}) {
		return batch
	}
	for _, feed := range to.parts() {
		if r.gaps[feed] {
			delete(r.gaps, feed)
			batch = append(batch, outgoing{feed, nil})
		}
	}
	return append(batch, outgoing{to, e})
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

// loseBatch counts the events of a batch that could not be sent, and remembers which feeds
// lack them.
func (r *eventBuffer) loseBatch(batch []outgoing) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range batch {
		if x.event != nil && (!x.server || x.event.IsServersOnly()) { // the server's feed gets most events in addition to other feeds; they are counted once
			r.lost++
		}
		r.markGaps(x.destination)
	}
	r.wakeSender()
}

func (r *eventBuffer) hasEvents() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events) > 0
}

// forget removes the events of sessions from the buffer, and remembers that their feeds lack them.
func (r *eventBuffer) forget(sessions []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.events[:0]
	for i := range r.events {
		e := r.events[i]
		if !slices.Contains(sessions, e.Session) {
			kept = append(kept, e)
			continue
		}
		r.bytes -= eventBytes(&e)
		r.markGapsOf(&e)
	}
	clear(r.events[len(kept):])
	r.events = kept
	r.wakeSender()
}
