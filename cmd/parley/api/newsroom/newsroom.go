// Package newsroom follows the server's feed of events, once for all who watch it in this process. It
// holds the newest events, and each watcher reads them at its own pace: so a thousand watchers cost one
// subscription of the bus, and a slow one delays nobody. While nobody watches it follows nothing.
//
// The watchers are woken a few at a time, with pauses between: what they write would otherwise hold up
// the turns of which it tells.
package newsroom

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

// A Room holds the newest events of the server's feed while somebody watches.
type Room struct {
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

// A subscription is one to the bus. Once the room has another, nothing is taken from it.
type subscription struct{ stop context.CancelFunc }

// New makes a Room. render returns the form of an event in which watchers get it.
func New(events bus.Events, render func(bus.Event) []byte) *Room {
	return &Room{events: events, render: render, joining: make(chan struct{}, 1), watchers: map[*Watcher]bool{}}
}

// A Watcher reads the events at its own pace, from one goroutine.
type Watcher struct {
	room  *Room
	woken chan struct{}

	// guarded by the room's lock
	after   uint64 // the id of the newest event that it has, or does not need; 0 exactly while the room's from is
	losses  int    // the losses that it knows of
	waiting bool
}

// Join adds a watcher, who has to Leave. It gets the events after the one with the id after, or those
// from now on if that is 0 or if resumed is false: then some events since are no longer held.
func (r *Room) Join(ctx context.Context, after uint64) (w *Watcher, resumed bool, err error) {
	select {
	case r.joining <- struct{}{}:
		defer func() { <-r.joining }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if w := r.enter(after, nil); w != nil {
		return w, after != 0, nil
	}
	sub, news, err := r.subscribe(ctx, after)
	if errors.Is(err, bus.ErrGone) {
		after = 0
		if w := r.enter(0, nil); w != nil {
			return w, false, nil
		}
		sub, news, err = r.subscribe(ctx, 0)
	}
	if err != nil {
		return nil, false, fmt.Errorf("follow the server's events: %w", err)
	}
	w = r.enter(after, sub)
	if r.isCurrent(sub) {
		go r.follow(sub, news)
	} else {
		sub.stop() // it has only shown that the bus still has all events since
	}
	return w, after != 0, nil
}

// subscribe subscribes to the feed for as long as the subscription lasts, if ctx does not end before
// that has happened.
func (r *Room) subscribe(ctx context.Context, after uint64) (*subscription, iter.Seq2[bus.Event, error], error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	left := context.AfterFunc(ctx, cancel)
	news, err := r.events.Subscribe(lasting, bus.ServerFeed(), after)
	if !left() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return &subscription{cancel}, news, nil
}

// enter adds a watcher, if the room has all events after that id, or will have them. Without sub it
// returns nil if that is not known. With sub, a new subscription after that id, the room takes that in
// place of its own if it needs it.
func (r *Room) enter(after uint64, sub *subscription) *Watcher {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := r.sub != nil && (after == 0 || r.from != 0 && r.from <= after)
	switch {
	case sub == nil && (!has || after > r.last()): // it may be of another bus
		return nil
	case sub != nil && !has:
		if r.sub != nil {
			r.sub.stop()
		}
		r.sub, r.items, r.from = sub, nil, after
		r.placeWatchers()
	}
	w := &Watcher{room: r, woken: make(chan struct{}, 1), after: after, losses: r.losses}
	if after == 0 {
		w.after = r.last()
	}
	r.watchers[w] = true
	return w
}

// last returns the id of the newest event that the room has, as far as it is known. The caller holds
// r.mu, as for placeWatchers and wakeSoon.
func (r *Room) last() uint64 {
	if len(r.items) > 0 {
		return r.items[len(r.items)-1].ID
	}
	return r.from
}

// placeWatchers gives the watchers who have no place yet one before all that the room has.
func (r *Room) placeWatchers() {
	for w := range r.watchers {
		if w.after == 0 {
			w.after = r.from
		}
	}
}

func (r *Room) isCurrent(sub *subscription) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sub == sub
}

// follow takes the events of a subscription until the room has another, or none.
func (r *Room) follow(sub *subscription, news iter.Seq2[bus.Event, error]) {
	for e, err := range news {
		if !r.take(sub, e, err) {
			return
		}
	}
	r.end(sub)
}

// take takes an event, or that events were lost; false if the room does not want more of the
// subscription.
func (r *Room) take(sub *subscription, e bus.Event, err error) bool {
	var item *Item
	if err == nil {
		item = &Item{Event: e, Frame: r.render(e)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.sub != sub:
		return false
	case item != nil:
		if r.from == 0 {
			r.from = e.ID - 1
			r.placeWatchers()
		}
		if len(r.items) == held {
			r.from, r.items = r.items[0].ID, r.items[1:]
		}
		r.items = append(r.items, item)
	case errors.Is(err, bus.ErrGone):
		r.lose()
	}
	r.wakeSoon()
	return true
}

// lose drops all events, because some after them are missing. The caller holds r.mu.
func (r *Room) lose() {
	r.losses++
	r.items, r.from = nil, 0
	for w := range r.watchers {
		w.after = 0
	}
}

// end notes that the bus has ended a subscription.
func (r *Room) end(sub *subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sub != sub {
		return
	}
	sub.stop()
	r.sub = nil
	r.lose()
	r.wakeSoon()
}

// wakeSoon wakes those who wait, once more events could gather.
func (r *Room) wakeSoon() {
	r.fresh = true
	if !r.waking {
		r.waking = true
		time.AfterFunc(gather, r.wakeAll)
	}
}

// wakeAll wakes all who wait, a few at a time.
func (r *Room) wakeAll() {
	for some := range slices.Chunk(r.takeWaiting(), wokenMost) {
		for _, w := range some {
			w.woken <- struct{}{} // it has room: only who waits is woken, and once
		}
		<-time.After(wakePause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waking = r.fresh; r.waking {
		time.AfterFunc(gather, r.wakeAll)
	}
}

// takeWaiting returns the watchers who wait, whom the caller has to wake.
func (r *Room) takeWaiting() (all []*Watcher) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh = false
	for w := range r.watchers {
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

// read returns the next events that the room has. If it returns nothing, the watcher will be woken.
func (w *Watcher) read() (items []*Item, lost bool, err error) {
	r := w.room
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.sub == nil:
		return nil, false, bus.ErrClosed
	case w.losses != r.losses, w.after < r.from:
		w.losses, w.after = r.losses, r.last()
		return nil, true, nil
	}
	next, _ := slices.BinarySearchFunc(r.items, w.after+1, func(i *Item, id uint64) int {
		if i.ID < id {
			return -1
		}
		return 1
	})
	items = r.items[next:min(next+readMost, len(r.items))]
	if w.waiting = len(items) == 0; !w.waiting {
		w.after = items[len(items)-1].ID
	}
	return items, false, nil
}

// Position returns the id of the newest event that Next has returned or passed over; 0 if it is not
// known.
func (w *Watcher) Position() uint64 {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	return w.after
}

// Leave removes the watcher. With the last one the room's subscription ends.
func (w *Watcher) Leave() {
	r := w.room
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watchers, w)
	if len(r.watchers) == 0 && r.sub != nil {
		r.sub.stop()
		r.sub, r.items, r.from = nil, nil, 0
	}
}
