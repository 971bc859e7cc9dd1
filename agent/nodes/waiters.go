package nodes

import (
	"slices"
	"sync"
)

// waiters are those who wait in this process for the outcomes of calls.
type waiters struct {
	mu     sync.Mutex
	byCall map[string][]*waiter
}

// A waiter waits for the outcome of one call.
type waiter struct {
	bell chan struct{} // has an element if the outcome may be recorded

	mu       sync.Mutex
	progress func(string) // nil if nobody wants to hear, or the waiter waits no more
}

// add adds a waiter for a call, who hears of its progress.
func (all *waiters) add(call string, progress func(string)) *waiter {
	w := &waiter{bell: make(chan struct{}, 1), progress: progress}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.byCall[call] = append(all.byCall[call], w)
	return w
}

// remove removes a waiter, who hears of nothing after that.
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

// of returns those who wait for a call.
func (all *waiters) of(call string) []*waiter {
	all.mu.Lock()
	defer all.mu.Unlock()
	return slices.Clone(all.byCall[call])
}

// ring wakes those who wait for a call.
func (all *waiters) ring(call string) {
	for _, w := range all.of(call) {
		poke(w.bell)
	}
}

// ringAll wakes everybody.
func (all *waiters) ringAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, some := range all.byCall {
		for _, w := range some {
			poke(w.bell)
		}
	}
}

// report passes on what a call reports.
func (all *waiters) report(call, text string) {
	for _, w := range all.of(call) {
		w.mu.Lock()
		if w.progress != nil {
			w.progress(text)
		}
		w.mu.Unlock()
	}
}
