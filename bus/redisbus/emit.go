package redisbus

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
)

// How events are kept and carried.
const (
	streamEvents = 4096      // about how many events of a session Redis keeps
	streamKept   = time.Hour // how long it keeps them after the last of them
	bufferEvents = 8192      // how many events may wait in this process to be sent
	bufferBytes  = 16 << 20  // about how much memory the waiting events may take
	emitAtOnce   = 128       // the most events in one call
	emitBytes    = 256 << 10 // a call with more bytes than these takes no further event
	// emitEvery is the wait between two calls that send events. The events that many turns emit
	// meanwhile are sent in one call.
	emitEvery = 2 * time.Millisecond
)

// An eventBuffer holds the events that this process has emitted until they are
// sent. When it overflows it drops the oldest events, and remembers which feeds now
// lack some, so that the watchers of these feeds can be told.
type eventBuffer struct {
	sending sync.Mutex // held while a batch is being sent; taken before mu

	mu     sync.Mutex
	events []bus.Event // the oldest first
	bytes  int
	gaps   map[destination]bool // feeds that lack events without their watchers knowing it yet
	filled chan struct{}        // has a value when there is something to send
	lost   uint64               // number of events that were lost
}

// A destination says where an event goes: its session's feed, its channel's, or both.
type destination struct{ session, channel string }

func destinationOf(e *bus.Event) destination { return destination{e.Session, e.Route.Channel} }

func newEventBuffer() *eventBuffer {
	return &eventBuffer{gaps: map[destination]bool{}, filled: make(chan struct{}, 1)}
}

// Emit implements bus.Events: it buffers the event, to be sent soon.
func (b *Bus) Emit(e bus.Event) { b.events.unsent.add(e) }

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
// caller of countLost, markGap or removeFirst holds r.mu.
func (r *eventBuffer) countLost(e *bus.Event) {
	r.lost++
	r.markGap(e)
}

// markGap remembers that the feeds to which e was to go lack an event.
func (r *eventBuffer) markGap(e *bus.Event) {
	if e.Session != "" {
		r.gaps[destination{session: e.Session}] = true
	}
	if e.Route.Channel != "" {
		r.gaps[destination{channel: e.Route.Channel}] = true
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
func eventBytes(e *bus.Event) int {
	n := 256 + len(e.Delta)
	if e.Error != nil {
		n += len(e.Error.Message)
	}
	return n
}

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
	newest := map[string]*bus.Event{} // of each turn, in the batch
	n := 0
	for size := 0; n < len(r.events) && n < emitAtOnce && size < emitBytes; n++ {
		e := r.events[n]
		size += eventBytes(&e)
		if joinPieces(newest[e.Turn], &e) {
			continue
		}
		newest[e.Turn] = &e
		p := destinationOf(&e)
		for _, half := range []destination{{session: p.session}, {channel: p.channel}} {
			if r.gaps[half] {
				delete(r.gaps, half)
				batch = append(batch, outgoing{half, nil})
			}
		}
		batch = append(batch, outgoing{p, &e})
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
		if x.event != nil {
			r.countLost(x.event)
		} else {
			r.gaps[x.destination] = true
		}
	}
	r.wakeSender()
}

// Dropped returns how many events this process has lost: those that it could not send, and
// those that a watcher was too slow to read.
func (b *Bus) Dropped() uint64 {
	b.events.unsent.mu.Lock()
	defer b.events.unsent.mu.Unlock()
	return b.events.unsent.lost + b.events.lost.Load()
}

// sendEvents sends emitted events until ctx is done. It does not send a batch again if its
// outcome is unknown: a watcher who is told of a gap can read again what is missing, but
// cannot recognize an event that comes twice.
func (b *Bus) sendEvents(ctx context.Context) {
	r := b.events.unsent
	var retry backoff
	for {
		select {
		case <-r.filled:
		case <-ctx.Done():
			return
		}
		wait := emitEvery
		if b.sendBatchWhole(ctx) {
			retry = 0
		} else {
			wait = retry.next()
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// sendBatchWhole sends a batch and finishes it even if the bus is being closed, because a
// batch that is cut off is lost: its outcome is unknown, and nobody would send it again.
func (b *Bus) sendBatchWhole(ctx context.Context) (sent bool) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		late := time.AfterFunc(closeTimeout, cancel)
		context.AfterFunc(whole, func() { late.Stop() })
	})
	defer stop()
	return b.sendBatch(whole)
}

func (b *Bus) sendBatch(ctx context.Context) (sent bool) {
	r := b.events.unsent
	r.sending.Lock()
	defer r.sending.Unlock()
	batch := r.nextBatch()
	if len(batch) == 0 {
		return true
	}
	keys, args := b.emitCall(batch)
	if _, err := b.batcher.run(ctx, emitScript, keys, args...); err != nil {
		r.loseBatch(batch)
		return false
	}
	return true
}

// sendLast sends the last events while the bus is being closed, such as the ends of turns. It waits
// for the batch that sendEvents is sending too, which may still be in the batcher's queue; sendEvents
// must have been told to end, so that this wait is short.
func (b *Bus) sendLast() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for b.sendBatch(ctx) && b.events.unsent.hasEvents() {
		continue
	}
}

func (r *eventBuffer) hasEvents() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events) > 0
}

// emitCall returns the keys and arguments with which the emit script sends a batch.
func (b *Bus) emitCall(batch []outgoing) (keys []string, args []any) {
	keys = []string{b.keys.clock()}
	args = []any{streamKept.Milliseconds(), streamEvents}
	streams := map[string]int{}
	for _, x := range batch {
		stream, session, channel := 0, "", ""
		if x.session != "" {
			feed := bus.SessionFeed(x.session)
			session = b.keys.channel(feed)
			if stream = streams[x.session]; stream == 0 {
				keys = append(keys, b.keys.stream(feed))
				stream = len(keys) - 1
				streams[x.session] = stream
			}
		}
		if x.channel != "" {
			channel = b.keys.channel(bus.ChannelFeed(x.channel))
		}
		args = append(args, stream, session, channel, b.encodeEvent(x.event))
	}
	return keys, args
}

// wireEvent is an event as it is stored in Redis, in JSON. In place of dropped events there
// is an empty text, which tells subscribers that they have missed some.
type wireEvent struct {
	Type    string      `json:"type"`
	Session string      `json:"session,omitempty"`
	Route   bus.Address `json:"route,omitzero"`
	bus.Event
}

func (b *Bus) encodeEvent(e *bus.Event) []byte {
	if e == nil {
		return nil
	}
	text, err := json.Marshal(wireEvent{Type: e.Type, Session: e.Session, Route: e.Route, Event: *e})
	if err != nil {
		b.log.Error("event not encoded", slog.String("type", e.Type), slog.Any("error", err))
	}
	return text
}

func decodeEvent(id uint64, text string) (bus.Event, error) {
	var w wireEvent
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return bus.Event{}, err
	}
	e := w.Event
	e.ID, e.Type, e.Session, e.Route = id, w.Type, w.Session, w.Route
	return e, nil
}
