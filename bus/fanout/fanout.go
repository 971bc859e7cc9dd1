// Package fanout shares one subscription to the server's feed of events among all who watch it in this
// process. It keeps the newest events, and each watcher reads them at its own pace: so a thousand
// watchers need only one subscription to the bus, and a slow one delays nobody. While nobody watches,
// there is no subscription.
//
// The watchers are woken a few at a time, with pauses between: the output of all at once would hold up
// the turns that the events are about.
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
	maxItems   = 4096                  // how many events the hub keeps
	maxRead    = 256                   // how many a watcher reads at once
	gatherTime = 25 * time.Millisecond // how long events gather before watchers are woken
	maxWoken   = 4                     // how many watchers are woken at once
	wakePause  = time.Millisecond      // the pause between one such group and the next
)

// An Item is an event with its Frame, the form in which watchers send it on. The frame is made once for
// all watchers.
type Item struct {
	bus.Event
	Frame []byte
}

// A Hub keeps the newest events of the server's feed while somebody watches.
type Hub struct {
	events  bus.Events
	render  func(bus.Event) []byte
	joining chan struct{} // holds a value while Join runs, so that only one makes a subscription

	mu        sync.Mutex
	watchers  map[*Watcher]bool
	sub       *subscription // nil while nobody watches
	items     []*Item       // the oldest first; its elements never change
	keptAfter uint64        // all events after the one with this id are in items; 0 before the first is known
	losses    int           // how often events were lost
	waking    bool          // whether wakeAll runs or soon will
	fresh     bool          // whether events have come since wakeAll began
}

// A subscription is the hub's subscription to the bus. Once the hub has a new one, it takes no events
// from the old one.
type subscription struct{ stop context.CancelFunc }

// New returns a Hub. render returns an event's Frame.
func New(events bus.Events, render func(bus.Event) []byte) *Hub {
	return &Hub{events: events, render: render, joining: make(chan struct{}, 1), watchers: map[*Watcher]bool{}}
}

// A Watcher reads the events at its own pace, from one goroutine.
type Watcher struct {
	hub   *Hub
	woken chan struct{}

	// guarded by the hub's lock
	position uint64 // the id of the newest event that it has read, or does not need; 0 exactly while the hub's keptAfter is 0
	losses   int    // the hub's losses when the watcher last looked
	waiting  bool
}

// Join adds a watcher, which has to Leave. It gets the events after the one with the id after. It gets
// only those from now on if after is 0, or if resumed is false, which means that some of the others are
// no longer kept.
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
		sub.stop() // this subscription only served to check that the bus still has all events since
	}
	return w, after != 0, nil
}

// subscribe subscribes to the feed. ctx may end the call, but not the subscription once it has begun.
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

// enter adds a watcher if the hub has all events after that id, or will have them. If that is uncertain
// and sub is nil, enter returns nil. If sub is a new subscription that begins after that id, the hub
// replaces its own with it if it needs to.
func (h *Hub) enter(after uint64, sub *subscription) *Watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	has := h.sub != nil && (after == 0 || h.keptAfter != 0 && h.keptAfter <= after)
	switch {
	case sub == nil && (!has || after > h.last()): // an id that the hub has not reached may come from another bus
		return nil
	case sub != nil && !has:
		if h.sub != nil {
			h.sub.stop()
		}
		h.sub, h.items, h.keptAfter = sub, nil, after
		h.placeWatchers()
	}
	w := &Watcher{hub: h, woken: make(chan struct{}, 1), position: after, losses: h.losses}
	if after == 0 {
		w.position = h.last()
	}
	h.watchers[w] = true
	return w
}

// last returns the id of the newest event that the hub has had, as far as it is known. The caller of
// last, placeWatchers or wakeSoon holds h.mu.
func (h *Hub) last() uint64 {
	if len(h.items) > 0 {
		return h.items[len(h.items)-1].ID
	}
	return h.keptAfter
}

// placeWatchers lets the watchers that have no position yet begin before all events that the hub has.
func (h *Hub) placeWatchers() {
	for w := range h.watchers {
		if w.position == 0 {
			w.position = h.keptAfter
		}
	}
}

func (h *Hub) isCurrent(sub *subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sub == sub
}

// follow takes the events of a subscription until the hub has another subscription, or none.
func (h *Hub) follow(sub *subscription, news iter.Seq2[bus.Event, error]) {
	for e, err := range news {
		if !h.addEvent(sub, e, err) {
			return
		}
	}
	h.endSubscription(sub)
}

// addEvent adds an event of a subscription, or records that events were lost. It returns false if the hub
// wants nothing more from that subscription.
func (h *Hub) addEvent(sub *subscription, e bus.Event, err error) bool {
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
		if h.keptAfter == 0 {
			h.keptAfter = e.ID - 1
			h.placeWatchers()
		}
		if len(h.items) == maxItems {
			h.keptAfter, h.items = h.items[0].ID, h.items[1:]
		}
		h.items = append(h.items, item)
	case errors.Is(err, bus.ErrGone):
		h.dropAll()
	}
	h.wakeSoon()
	return true
}

// dropAll drops all events, because some after them are missing. The caller holds h.mu.
func (h *Hub) dropAll() {
	h.losses++
	h.items, h.keptAfter = nil, 0
	for w := range h.watchers {
		w.position = 0
	}
}

// endSubscription records that the bus has ended a subscription.
func (h *Hub) endSubscription(sub *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sub != sub {
		return
	}
	sub.stop()
	h.sub = nil
	h.dropAll()
	h.wakeSoon()
}

// wakeSoon wakes the waiting watchers a moment later, when more events may have come.
func (h *Hub) wakeSoon() {
	h.fresh = true
	if !h.waking {
		h.waking = true
		time.AfterFunc(gatherTime, h.wakeAll)
	}
}

// wakeAll wakes all waiting watchers, a few at a time.
func (h *Hub) wakeAll() {
	for some := range slices.Chunk(h.takeWaiting(), maxWoken) {
		for _, w := range some {
			w.woken <- struct{}{} // never blocks: only a watcher that waits is woken, and only once
		}
		<-time.After(wakePause)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waking = h.fresh; h.waking {
		time.AfterFunc(gatherTime, h.wakeAll)
	}
}

// takeWaiting returns the waiting watchers, which the caller has to wake.
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

// Next waits for events and returns them. If lost is true, it returns none, because some were lost or the
// watcher was too slow; the next call continues after the newest event of that time. It returns ctx's
// error, or bus.ErrClosed.
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

// read does what Next does without waiting. If it returns nothing, the watcher will be woken.
func (w *Watcher) read() (items []*Item, lost bool, err error) {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.sub == nil:
		return nil, false, bus.ErrClosed
	case w.losses != h.losses, w.position < h.keptAfter:
		w.losses, w.position = h.losses, h.last()
		return nil, true, nil
	}
	next, _ := slices.BinarySearchFunc(h.items, w.position+1, func(i *Item, id uint64) int {
		if i.ID < id {
			return -1
		}
		return 1
	})
	items = h.items[next:min(next+maxRead, len(h.items))]
	if w.waiting = len(items) == 0; !w.waiting {
		w.position = items[len(items)-1].ID
	}
	return items, false, nil
}

// Position returns the id of the newest event that Next has returned or skipped; 0 if that is not known.
func (w *Watcher) Position() uint64 {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return w.position
}

// Leave removes the watcher. When the last one leaves, the hub ends its subscription.
func (w *Watcher) Leave() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
	if len(h.watchers) == 0 && h.sub != nil {
		h.sub.stop()
		h.sub, h.items, h.keptAfter = nil, nil, 0
	}
}
