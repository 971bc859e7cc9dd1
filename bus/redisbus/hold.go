package redisbus

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

// closeTimeout bounds what Close still tells the server.
const closeTimeout = time.Second

// holds are the names that this process holds or waits for.
type holds struct {
	mu    sync.Mutex
	held  map[*hold]bool
	bells map[string]chan struct{} // closed when a name may have become free
}

func newHolds() *holds { return &holds{held: map[*hold]bool{}, bells: map[string]chan struct{}{}} }

// A hold is a name that is held under a fence.
type hold struct {
	bus   *Bus
	name  string
	fence int64
	lose  context.CancelCauseFunc
	alarm *time.Timer // rings when it has run out
}

// bell is closed when name may have become free.
func (h *holds) bell(name string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bells[name] == nil {
		h.bells[name] = make(chan struct{})
	}
	return h.bells[name]
}

func (h *holds) freed(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bell := h.bells[name]; bell != nil {
		close(bell)
		delete(h.bells, name)
	}
}

func (h *holds) list() []*hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.held))
}

// Hold implements bus.Holder. The name is free again once release is called, not
// when ctx ends: until then the holder may still be winding down. A hold that
// cannot be prolonged is lost a little before others can take it.
func (b *Bus) Hold(ctx context.Context, name string) (held context.Context, release func(), err error) {
	var retry backoff
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if b.isClosed() {
			return nil, nil, bus.ErrClosed
		}
		bell := b.holds.bell(name)
		sent := time.Now()
		r, err := b.batcher.run(ctx, holdScript, []string{b.keys.clock(), b.keys.hold(name)}, b.leases.time.Milliseconds())
		wait := time.Duration(r.at(1).number())*time.Millisecond + shortRetry
		if err != nil {
			wait = retry.next()
		} else if fence := r.at(0).number(); fence > 0 {
			held, release = b.begin(ctx, name, fence, sent)
			return held, release, nil
		}
		select {
		case <-bell:
		case <-time.After(jitter(2 * min(wait, pollMost))):
		case <-ctx.Done():
		case <-b.closed:
		}
	}
}

func (b *Bus) begin(ctx context.Context, name string, fence int64, sent time.Time) (context.Context, func()) {
	held, lose := context.WithCancelCause(ctx)
	h := &hold{bus: b, name: name, fence: fence, lose: lose}
	h.alarm = time.AfterFunc(time.Until(sent.Add(h.term())), h.lost)
	b.holds.mu.Lock()
	b.holds.held[h] = true
	b.holds.mu.Unlock()
	if b.isClosed() { // and may have passed this one over
		h.lost()
	}
	return held, sync.OnceFunc(func() {
		lose(context.Canceled)
		h.release(context.Background())
	})
}

// term is for how long a hold is surely ours.
func (h *hold) term() time.Duration { return h.bus.leases.time * 9 / 10 }

// forget stops prolonging it; it reports false if that was so.
func (h *hold) forget() bool {
	s := h.bus.holds
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held[h] {
		return false
	}
	delete(s.held, h)
	h.alarm.Stop()
	return true
}

func (h *hold) lost() {
	if h.forget() {
		h.lose(bus.ErrFenced)
	}
}

// release frees the name. If the server cannot be told, it is free when it has run out.
func (h *hold) release(ctx context.Context) {
	if !h.forget() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	b := h.bus
	_, _ = b.batcher.run(ctx, releaseScript, []string{b.keys.hold(h.name)}, h.fence, b.keys.released(), h.name)
	b.holds.freed(h.name)
}

// keepHolds prolongs the holds.
func (b *Bus) keepHolds(ctx context.Context) error {
	for some := range slices.Chunk(b.holds.list(), extendAtOnce) {
		sent := time.Now()
		keys := make([]string, len(some))
		args := []any{b.leases.time.Milliseconds()}
		for i, h := range some {
			keys[i] = b.keys.hold(h.name)
			args = append(args, h.fence)
		}
		r, err := b.batcher.run(ctx, keepScript, keys, args...)
		if err != nil {
			return err
		}
		for i, h := range some {
			if r.at(i).number() == 1 {
				h.prolonged(sent)
			} else {
				h.lost()
			}
		}
	}
	return nil
}

func (h *hold) prolonged(sent time.Time) {
	s := h.bus.holds
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h] {
		h.alarm.Reset(time.Until(sent.Add(h.term())))
	}
}

// releaseAllHolds frees what is held as the bus is closed.
func (b *Bus) releaseAllHolds() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, h := range b.holds.list() {
		h.lose(bus.ErrFenced)
		h.release(ctx)
	}
}
