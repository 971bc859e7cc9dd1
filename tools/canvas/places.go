package canvas

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// maxAtOnce is how many documents are read at once, and how many browsers run.
const maxAtOnce = 2

// fairSlots limits how much work is done at once. A free slot goes to the session that has the fewest, and among equal
// ones to the one that has waited longest. So a session with many canvases takes all slots only while nobody else
// waits.
type fairSlots struct {
	mu         sync.Mutex
	taken      map[string]int // by session; sessions without a slot are left out
	takenTotal int
	waiting    []*waiter // in the order in which they came
}

// A waiter waits for a place.
type waiter struct {
	session string
	granted chan struct{} // closed when the waiter has its slot
}

// take returns when the session has a slot, or ctx is done. The caller calls leave when its work is done.
func (p *fairSlots) take(ctx context.Context, session string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	w := &waiter{session, make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, w)
	p.grantFree()
	p.mu.Unlock()
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.takenTotal--
		if p.taken[session]--; p.taken[session] == 0 {
			delete(p.taken, session)
		}
		p.grantFree()
	}
	select {
	case <-w.granted:
		return leave, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	at := slices.Index(p.waiting, w)
	if at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	p.mu.Unlock()
	if at < 0 { // it got a slot meanwhile
		leave()
	}
	return nil, ctx.Err()
}

// grantFree gives the free slots to waiters. The caller holds the lock.
func (p *fairSlots) grantFree() {
	for p.takenTotal < maxAtOnce && len(p.waiting) > 0 {
		next := slices.MinFunc(p.waiting, func(a, b *waiter) int { return cmp.Compare(p.taken[a.session], p.taken[b.session]) })
		p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool { return w == next })
		if p.taken == nil {
			p.taken = map[string]int{}
		}
		p.taken[next.session]++
		p.takenTotal++
		close(next.granted)
	}
}
