package nodes

import (
	"slices"
	"sync"
)

// waiters are the waiters of this process for the outcomes of calls.
type waiters struct {
	mu     sync.Mutex
	byCall map[string][]*waiter
}

// A waiter waits for the outcome of one call.
type waiter struct {
	bell chan struct{} // has an element if the outcome may be recorded

	mu       sync.Mutex
	progress func(string) // nil if no progress is wanted, or the waiter was removed
}

// add adds a waiter for a call; progress is called with the call's progress reports.
func (all *waiters) add(call string, progress func(string)) *waiter {
	w := &waiter{bell: make(chan struct{}, 1), progress: progress}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.byCall[call] = append(all.byCall[call], w)
	return w
}

// remove removes a waiter. Its progress function isn't called after that.
func (all *waiters) remove(call string, w *waiter) {
	w.mu.Lock()
	w.progress = nil
	w.mu.Unlock()
	all.mu.Lock()
	defer all.mu.Unlock()
	all.byCall[call] = slices.DeleteFunc(all.byCall[call], func(one *waiter) bool { return one == w })
	if len(all.byCall[call]) == 0 {
		delete(all.byCall, call)
	}
}

// forCall returns the waiters for a call.
func (all *waiters) forCall(call string) []*waiter {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Clone(all.byCall[call])
}

// ring wakes the waiters for a call.
func (all *waiters) ring(call string) {
	for _, w := range all.forCall(call) {
		notify(w.bell)
	}
}

// ringAll wakes all waiters.
func (all *waiters) ringAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, some := range all.byCall {
		for _, w := range some {
			notify(w.bell)
		}
	}
}

// reportProgress passes a call's progress report on to its waiters.
func (all *waiters) reportProgress(call, text string) {
	for _, w := range all.forCall(call) {
		w.mu.Lock()
		if w.progress != nil {
			w.progress(text)
		}
		w.mu.Unlock()
	}
}
