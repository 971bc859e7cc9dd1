package redisbus

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/bus"
)

// holds stores the names (see bus.Holder) that this process holds, and those that it waits for.
type holds struct {
	*connection
	lease time.Duration // how long the server gives a name to a process that shows no sign of life

	mu   sync.Mutex
	held map[*hold]bool
	// freeing has, for each name for which callers of Hold wait, a channel that is closed when
	// the name may have become free.
	freeing map[string]chan struct{}
}

func newHolds(c *connection, lease time.Duration) *holds {
	return &holds{connection: c, lease: lease, held: map[*hold]bool{}, freeing: map[string]chan struct{}{}}
}

// waitingExpiry is how long Redis remembers which processes wait for a name. Each of them asks again earlier.
const waitingExpiry = 5 * maxPollInterval

// A hold is a name that this process holds under a fence.
type hold struct {
	holds  *holds
	name   string
	fence  int64
	lose   context.CancelCauseFunc
	expiry *time.Timer // ends the hold if it is not extended in time
}

// whenFree returns a channel that is closed when name may have become free.
func (hs *holds) whenFree(name string) <-chan struct{} {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.freeing[name] == nil {
		hs.freeing[name] = make(chan struct{})
	}
	return hs.freeing[name]
}

// wakeWaiters wakes the callers of Hold that wait for a name.
func (hs *holds) wakeWaiters(name string) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if bell := hs.freeing[name]; bell != nil {
		close(bell)
		delete(hs.freeing, name)
	}
}

// list returns the holds of this process.
func (hs *holds) list() []*hold {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return slices.Collect(maps.Keys(hs.held))
}

// Held implements bus.Roster: it lists the names in memory.
func (hs *holds) Held() (names []string) {
	for _, h := range hs.list() {
		names = append(names, h.name)
	}
	slices.Sort(names)
	return names
}

// Hold implements bus.Holder: it asks Redis for the name and waits. The name is free again once release
// is called, not when ctx ends: until then the holder may still be finishing its work. A hold that cannot
// be extended is lost a little before others can take it.
func (hs *holds) Hold(ctx context.Context, name string) (held context.Context, release func(), err error) {
	var retry backoff
	for {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if hs.isClosed() {
			return nil, nil, bus.ErrClosed
		}
		bell := hs.whenFree(name)
		sent := time.Now()
		r, err := hs.batcher.run(ctx, holdScript, []string{hs.keys.clock(), hs.keys.hold(name), hs.keys.waitingProcesses(name)},
			hs.lease.Milliseconds(), hs.self, waitingExpiry.Milliseconds())
		wait := time.Duration(r.at(1).number())*time.Millisecond + shortRetry
		if err != nil {
			wait = retry.next()
		} else if fence := r.at(0).number(); fence > 0 {
			held, release = hs.startHold(ctx, name, fence, sent)
			return held, release, nil
		}
		select {
		case <-bell:
		case <-time.After(jitter(2 * min(wait, maxPollInterval))):
		case <-ctx.Done():
		case <-hs.closed:
		}
	}
}

// startHold registers a name that the server has just given to this process, and returns the
// context and the release function for the caller of Hold.
func (hs *holds) startHold(ctx context.Context, name string, fence int64, sent time.Time) (context.Context, func()) {
	held, lose := context.WithCancelCause(ctx)
	h := &hold{holds: hs, name: name, fence: fence, lose: lose}
	h.expiry = time.AfterFunc(time.Until(sent.Add(h.length())), h.expire)
	hs.mu.Lock()
	hs.held[h] = true
	hs.mu.Unlock()
	if hs.isClosed() { // releaseAllHolds may have run before this hold was in the list
		h.expire()
	}
	return held, sync.OnceFunc(func() {
		lose(context.Canceled)
		h.release(context.Background())
	})
}

// length returns how long this process certainly has the name, counted from the moment at which it asked
// for it; see grantedTime.
func (h *hold) length() time.Duration { return h.holds.lease * 9 / 10 }

// stopExtending removes the hold from those that are extended. It returns false if that was
// done before.
func (h *hold) stopExtending() bool {
	s := h.holds
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held[h] {
		return false
	}
	delete(s.held, h)
	h.expiry.Stop()
	return true
}

// expire ends a hold that was not extended in time, and cancels its holder's context.
func (h *hold) expire() {
	if h.stopExtending() {
		h.lose(bus.ErrFenced)
	}
}

// release frees the name. If the server cannot be reached, the name becomes free when the
// hold runs out.
func (h *hold) release(ctx context.Context) {
	if !h.stopExtending() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	s := h.holds
	_, _ = s.batcher.run(ctx, releaseScript, []string{s.keys.hold(h.name), s.keys.waitingProcesses(h.name)}, h.fence, s.keys.notes(""), h.name, s.keys.released())
	s.wakeWaiters(h.name)
}

// extendHolds extends all holds of this process.
func (hs *holds) extendHolds(ctx context.Context) error {
	for some := range slices.Chunk(hs.list(), extendAtOnce) {
		sent := time.Now()
		keys := make([]string, len(some))
		args := []any{hs.lease.Milliseconds()}
		for i, h := range some {
			keys[i] = hs.keys.hold(h.name)
			args = append(args, h.fence)
		}
		r, err := hs.batcher.run(ctx, extendHoldsScript, keys, args...)
		if err != nil {
			return err
		}
		for i, h := range some {
			if r.at(i).number() == 1 {
				h.recordExtension(sent)
			} else {
				h.expire()
			}
		}
	}
	return nil
}

// recordExtension records that the server has extended the hold.
func (h *hold) recordExtension(sent time.Time) {
	s := h.holds
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[h] {
		h.expiry.Reset(time.Until(sent.Add(h.length())))
	}
}

// releaseAllHolds frees all names while the bus is being closed.
func (hs *holds) releaseAllHolds() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, h := range hs.list() {
		h.lose(bus.ErrFenced)
		h.release(ctx)
	}
}
