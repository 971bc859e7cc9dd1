package sqlitebus

import (
	"container/list"
	"context"
	"slices"
	"sync"

	"parley/bus"
)

// holds gives out names, each to one holder at a time, in the order of the requests.
type holds struct {
	mu     sync.Mutex
	names  map[string]*hold // the names that are held
	closed bool
}

// A hold is a name that somebody holds, with the callers of Hold that wait for the name.
type hold struct {
	lose    context.CancelCauseFunc
	waiters list.List // a list of chan struct{}: each gets a value when the name becomes its own, and is closed with the bus
}

// Hold implements bus.Holder: it waits for its turn. The name is free again once release is called, not
// when ctx ends: until then the holder may still be finishing its work.
func (h *holds) Hold(ctx context.Context, name string) (held context.Context, release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, nil, bus.ErrClosed
	}
	x := h.names[name]
	if x == nil {
		x = &hold{}
		h.names[name] = x
		held, release = h.startHold(ctx, name, x)
		h.mu.Unlock()
		return held, release, nil
	}
	turn := make(chan struct{}, 1)
	place := x.waiters.PushBack(turn)
	h.mu.Unlock()

	select {
	case <-turn:
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		x.waiters.Remove(place)
		select {
		case <-turn: // this caller got the name, but no longer waits for it
			h.passOn(name, x)
		default:
		}
		return nil, nil, ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, bus.ErrClosed
	}
	held, release = h.startHold(ctx, name, x)
	return held, release, nil
}

// Held implements bus.Roster: it lists the names in memory.
func (h *holds) Held() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, x := range h.names {
		if x.lose != nil && !h.closed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// startHold makes the caller the holder of name. The caller of startHold or passOn holds h.mu.
func (h *holds) startHold(ctx context.Context, name string, x *hold) (context.Context, func()) {
	held, lose := context.WithCancelCause(ctx)
	x.lose = lose
	var once sync.Once
	return held, func() {
		once.Do(func() {
			lose(context.Canceled)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.passOn(name, x)
		})
	}
}

// passOn gives a name to the next caller that waits for it; if nobody waits, the name is free.
func (h *holds) passOn(name string, x *hold) {
	if h.closed {
		return
	}
	x.lose = nil
	first := x.waiters.Front()
	if first == nil {
		delete(h.names, name)
		return
	}
	x.waiters.Remove(first).(chan struct{}) <- struct{}{}
}

func (h *holds) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, x := range h.names {
		if x.lose != nil {
			x.lose(bus.ErrFenced)
		}
		for w := x.waiters.Front(); w != nil; w = w.Next() {
			close(w.Value.(chan struct{}))
		}
	}
}
