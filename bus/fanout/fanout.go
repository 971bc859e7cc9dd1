// Package fanout follows the server's feed of events, once for all who watch it in this process. It
// holds the newest events, and each watcher reads them at its own pace: so a thousand watchers cost one
// subscription of the bus, and a slow one delays nobody. While nobody watches it follows nothing.
//
// The watchers are woken a few at a time, with pauses between: what they write would otherwise hold up
// the turns of which it tells.
package fanout

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

const (
	held      = 4096                  // how many events are held
	readMost  = 256                   // how many a watcher reads at once
	gather    = 25 * time.Millisecond // how long events gather before watchers are woken
	wokenMost = 4                     // how many watchers are woken at once
	wakePause = time.Millisecond      // between them and the next ones
)

// An Item is an event with the form in which watchers get it, which is made once for all.
type Item struct {
	bus.Event
	Frame []byte
}

// A Hub holds the newest events of the server's feed while somebody watches.
type Hub struct {
	events  bus.Events
	render  func(bus.Event) []byte
	joining chan struct{} // holds a value while Join runs, so that only one makes a subscription

	mu       sync.Mutex
	watchers map[*Watcher]bool
	sub      *subscription // nil while nobody watches
	items    []*Item       // the oldest first; what is in it never changes
	from     uint64        // all events after the one with this id are in items; 0 before the first is known
	losses   int           // how often events were lost
	waking   bool          // whether wakeAll runs, or soon will
	fresh    bool          // whether events have come since wakeAll began
}

// A subscription is one to the bus. Once the hub has another, nothing is taken from it.
type subscription struct{ stop context.CancelFunc }

// New makes a Hub. render returns the form of an event in which watchers get it.
func New(events bus.Events, render func(bus.Event) []byte) *Hub {
	return &Hub{events: events, render: render, joining: make(chan struct{}, 1), watchers: map[*Watcher]bool{}}
}

// A Watcher reads the events at its own pace, from one goroutine.
type Watcher struct {
	hub   *Hub
	woken chan struct{}

	// guarded by the hub's lock
	after   uint64 // the id of the newest event that it has, or does not need; 0 exactly while the hub's from is
	losses  int    // the losses that it knows of
	waiting bool
}

// Join adds a watcher, who has to Leave. It gets the events after the one with the id after, or those
// from now on if that is 0 or if resumed is false: then some events since are no longer held.
func (h *Hub) Join(ctx context.Context, after uint64) (w *Watcher, resumed bool, err error) {
	select {
	case h.joining <- struct{}{}:
		defer func() { <-h.joining }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if w := h.enter(after, nil); w != nil {
		return w, after != 0, nil
	}
	sub, news, err := h.subscribe(ctx, after)
	if errors.Is(err, bus.ErrGone) {
		after = 0
		if w := h.enter(0, nil); w != nil {
			return w, false, nil
		}
		sub, news, err = h.subscribe(ctx, 0)
	}
	if err != nil {
		return nil, false, fmt.Errorf("follow the server's events: %w", err)
	}
	w = h.enter(after, sub)
	if h.isCurrent(sub) {
		go h.follow(sub, news)
	} else {
		sub.stop() // it has only shown that the bus still has all events since
	}
	return w, after != 0, nil
}

// subscribe subscribes to the feed for as long as the subscription lasts, if ctx does not end before
// that has happened.
func (h *Hub) subscribe(ctx context.Context, after uint64) (*subscription, iter.Seq2[bus.Event, error], error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	left := context.AfterFunc(ctx, cancel)
	news, err := h.events.Subscribe(lasting, bus.ServerFeed(), after)
	if !left() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return &subscription{cancel}, news, nil
}

// enter adds a watcher, if the hub has all events after that id, or will have them. Without sub it
// returns nil if that is not known. With sub, a new subscription after that id, the hub takes that in
// place of its own if it needs it.
func (h *Hub) enter(after uint64, sub *subscription) *Watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	has := h.sub != nil && (after == 0 || h.from != 0 && h.from <= after)
	switch {
	case sub == nil && (!has || after > h.last()): // it may be of another bus
		return nil
	case sub != nil && !has:
		if h.sub != nil {
			h.sub.stop()
		}
		h.sub, h.items, h.from = sub, nil, after
		h.placeWatchers()
	}
	w := &Watcher{hub: h, woken: make(chan struct{}, 1), after: after, losses: h.losses}
	if after == 0 {
		w.after = h.last()
	}
	h.watchers[w] = true
	return w
}

// last returns the id of the newest event that the hub has, as far as it is known. The caller holds
// h.mu, as for placeWatchers and wakeSoon.
func (h *Hub) last() uint64 {
	if len(h.items) > 0 {
		return h.items[len(h.items)-1].ID
	}
	return h.from
}

// placeWatchers gives the watchers who have no place yet one before all that the hub has.
func (h *Hub) placeWatchers() {
	for w := range h.watchers {
		if w.after == 0 {
			w.after = h.from
		}
	}
}

func (h *Hub) isCurrent(sub *subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sub == sub
}

// follow takes the events of a subscription until the hub has another, or none.
func (h *Hub) follow(sub *subscription, news iter.Seq2[bus.Event, error]) {
	for e, err := range news {
		if !h.take(sub, e, err) {
			return
		}
	}
	h.end(sub)
}

// take takes an event, or that events were lost; false if the hub does not want more of the
// subscription.
func (h *Hub) take(sub *subscription, e bus.Event, err error) bool {
	var item *Item
	if err == nil {
		item = &Item{Event: e, Frame: h.render(e)}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.sub != sub:
		return false
	case item != nil:
		if h.from == 0 {
			h.from = e.ID - 1
			h.placeWatchers()
		}
		if len(h.items) == held {
			h.from, h.items = h.items[0].ID, h.items[1:]
		}
		h.items = append(h.items, item)
	case errors.Is(err, bus.ErrGone):
		h.lose()
	}
	h.wakeSoon()
	return true
}

// lose drops all events, because some after them are missing. The caller holds h.mu.
func (h *Hub) lose() {
	h.losses++
	h.items, h.from = nil, 0
	for w := range h.watchers {
		w.after = 0
	}
}

// end notes that the bus has ended a subscription.
func (h *Hub) end(sub *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sub != sub {
		return
	}
	sub.stop()
	h.sub = nil
	h.lose()
	h.wakeSoon()
}

// wakeSoon wakes those who wait, once more events could gather.
func (h *Hub) wakeSoon() {
	h.fresh = true
	if !h.waking {
		h.waking = true
		time.AfterFunc(gather, h.wakeAll)
	}
}

// wakeAll wakes all who wait, a few at a time.
func (h *Hub) wakeAll() {
	for some := range slices.Chunk(h.takeWaiting(), wokenMost) {
		for _, w := range some {
			w.woken <- struct{}{} // there is space: only who waits is woken, and once
		}
		<-time.After(wakePause)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waking = h.fresh; h.waking {
		time.AfterFunc(gather, h.wakeAll)
	}
}

// takeWaiting returns the watchers who wait, whom the caller has to wake.
func (h *Hub) takeWaiting() (all []*Watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fresh = false
	for w := range h.watchers {
		if w.waiting {
			w.waiting = false
			all = append(all, w)
		}
	}
	return all
}

// Next waits for events and returns them. If lost is true, there are none, because some were lost or
// the watcher was too slow; the next ones follow those that have come by now. It returns ctx's error, or
// bus.ErrClosed.
func (w *Watcher) Next(ctx context.Context) (items []*Item, lost bool, err error) {
	for {
		items, lost, err = w.read()
		if err != nil || lost || len(items) > 0 {
			return items, lost, err
		}
		select {
		case <-w.woken:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// read returns the next events that the hub has. If it returns nothing, the watcher will be woken.
func (w *Watcher) read() (items []*Item, lost bool, err error) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.sub == nil:
		return nil, false, bus.ErrClosed
	case w.losses != h.losses, w.after < h.from:
		w.losses, w.after = h.losses, h.last()
		return nil, true, nil
	}
	next, _ := slices.BinarySearchFunc(h.items, w.after+1, func(i *Item, id uint64) int {
		if i.ID < id {
			return -1
		}
		return 1
	})
	items = h.items[next:min(next+readMost, len(h.items))]
	if w.waiting = len(items) == 0; !w.waiting {
		w.after = items[len(items)-1].ID
	}
	return items, false, nil
}

// Position returns the id of the newest event that Next has returned or passed over; 0 if it is not
// known.
func (w *Watcher) Position() uint64 {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return w.after
}

// Leave removes the watcher. With the last one the hub's subscription ends.
func (w *Watcher) Leave() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
	if len(h.watchers) == 0 && h.sub != nil {
		h.sub.stop()
		h.sub, h.items, h.from = nil, nil, 0
	}
}
