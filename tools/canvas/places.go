package canvas

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// atOnce is how many documents are read at once, and how many browsers run.
const atOnce = 2

// places bound what is done at once. A place that is left goes to the session that has the fewest, and among those to who
// has waited longest. So a session with many canvases takes all places only while nobody else waits.
type places struct {
	mu      sync.Mutex
	taken   map[string]int // by session, without those that have none
	sum     int
	waiting []*waiter // in the order in which they came
}

// A waiter waits for a place.
type waiter struct {
	session string
	given   chan struct{} // closed once it has its place
}

// take returns once the session has a place, or ctx is done. Whoever gets a place calls leave.
func (p *places) take(ctx context.Context, session string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w := &waiter{session, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.give()
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum--
		if p.taken[session]--; p.taken[session] == 0 {
			delete(p.taken, session)
		}
		p.give()
	}
	select {
	case <-w.given:
		return leave, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	at := slices.Index(p.waiting, w)
	if at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	p.mu.Unlock()
	if at < 0 { // it was given a place meanwhile
		leave()
	}
	return nil, ctx.Err()
}

// give gives the places that are free to those who wait. It is called with the lock held.
func (p *places) give() {
	for p.sum < atOnce && len(p.waiting) > 0 {
		next := slices.MinFunc(p.waiting, func(a, b *waiter) int { return cmp.Compare(p.taken[a.session], p.taken[b.session]) })
		p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool { return w == next })
		if p.taken == nil {
			p.taken = map[string]int{}
		}
		p.taken[next.session]++
		p.sum++
		close(next.given)
	}
}
