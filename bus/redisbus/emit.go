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
	streamEvents = 4096      // of a session that can be read again, about
	streamKept   = time.Hour // for which they can, after the last
	ringEvents   = 8192      // that wait to be sent
	ringBytes    = 16 << 20
	emitAtOnce   = 128
	emitBytes    = 256 << 10
	// emitEvery is between two calls: what many turns emit meanwhile goes together.
	emitEvery = 2 * time.Millisecond
)

// A ring holds events until they are sent. Where it overflows the oldest go; of
// their feeds is remembered that something is missing.
type ring struct {
	sending sync.Mutex // held while some are on their way; taken before mu

	mu     sync.Mutex
	events []bus.Event // from first on
	bytes  int
	gaps   map[place]bool
	filled chan struct{} // has a value when there is something to send
	count  uint64        // of events that were lost
}

// A place is where an event goes: its session's feed, its channel's, or both.
type place struct{ session, channel string }

func placeOf(e *bus.Event) place { return place{e.Session, e.Route.Channel} }

func newRing() *ring { return &ring{gaps: map[place]bool{}, filled: make(chan struct{}, 1)} }

// Emit implements bus.Events.
func (b *Bus) Emit(e bus.Event) { b.events.ring.add(e) }

func (r *ring) add(e bus.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	r.bytes += eventBytes(&e)
	for len(r.events) > ringEvents || r.bytes > ringBytes && len(r.events) > 1 {
		r.drop(&r.events[0])
		r.shift(1)
	}
	r.signal()
}

func (r *ring) signal() {
	select {
	case r.filled <- struct{}{}:
	default: // it is known
	}
}

// drop is told of an event that will not be sent. It is called with r.mu held,
// as are gap and shift.
func (r *ring) drop(e *bus.Event) {
	r.count++
	r.gap(e)
}

// gap remembers that something is missing of the feeds of e.
func (r *ring) gap(e *bus.Event) {
	if e.Session != "" {
		r.gaps[place{session: e.Session}] = true
	}
	if e.Route.Channel != "" {
		r.gaps[place{channel: e.Route.Channel}] = true
	}
}

func (r *ring) shift(n int) {
	for i := range r.events[:n] {
		r.bytes -= eventBytes(&r.events[i])
		r.events[i] = bus.Event{}
	}
	r.events = r.events[n:]
}

func eventBytes(e *bus.Event) int {
	n := 256 + len(e.Delta)
	if e.Error != nil {
		n += len(e.Error.Message)
	}
	return n
}

// An emission is an event on its way, or, without one, the news that some are missing.
type emission struct {
	place
	event *bus.Event
}

// take returns what is to be sent next. What is missing is told where it is
// missing: before the next event of the same feed, or at the end.
func (r *ring) take() (batch []emission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for size := 0; n < len(r.events) && n < emitAtOnce && size < emitBytes; n++ {
		e := r.events[n]
		size += eventBytes(&e)
		p := placeOf(&e)
		for _, half := range []place{{session: p.session}, {channel: p.channel}} {
			if r.gaps[half] {
				delete(r.gaps, half)
				batch = append(batch, emission{half, nil})
			}
		}
		batch = append(batch, emission{p, &e})
	}
	r.shift(n)
	if len(r.events) > 0 {
		r.signal()
		return batch
	}
	r.events = nil
	for p := range r.gaps {
		batch = append(batch, emission{p, nil})
	}
	clear(r.gaps)
	return batch
}

// lose takes back what could not be sent.
func (r *ring) lose(batch []emission) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range batch {
		if x.event != nil {
			r.drop(x.event)
		} else {
			r.gaps[x.place] = true
		}
	}
	r.signal()
}

// Dropped counts the events of this process that were lost on their way: more
// than could be sent, or more than a watcher could take.
func (b *Bus) Dropped() uint64 {
	b.events.ring.mu.Lock()
	defer b.events.ring.mu.Unlock()
	return b.events.ring.count + b.events.missed.Load()
}

// send sends what is emitted. A batch whose outcome is unknown is not sent
// again: events twice would be worse than a gap that is told.
func (b *Bus) send(ctx context.Context) {
	r := b.events.ring
	var retry backoff
	for {
		select {
		case <-r.filled:
		case <-ctx.Done():
			return
		}
		wait := emitEvery
		if b.sendSome(ctx) {
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

func (b *Bus) sendSome(ctx context.Context) (sent bool) {
	r := b.events.ring
	r.sending.Lock()
	defer r.sending.Unlock()
	batch := r.take()
	if len(batch) == 0 {
		return true
	}
	keys, args := b.emitCall(batch)
	if _, err := b.batcher.run(ctx, emitScript, keys, args...); err != nil {
		r.lose(batch)
		return false
	}
	return true
}

// sendRest sends what was emitted last, such as the ends of turns, as the bus is
// closed.
func (b *Bus) sendRest() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for b.events.ring.waits() && b.sendSome(ctx) {
		continue
	}
}

func (r *ring) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events) > 0
}

func (b *Bus) emitCall(batch []emission) (keys []string, args []any) {
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

// wireEvent is an event as it travels. What is empty says that some are missing.
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
