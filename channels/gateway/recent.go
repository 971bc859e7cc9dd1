package gateway

import (
	"sync"
	"time"
)

// maxRecent bounds what is remembered in memory about people and chats.
const maxRecent = 4096

// A recent remembers keys for a while, each with the time at which it was added. It holds
// maxRecent keys at most, and forgets the oldest first.
type recent struct {
	keep time.Duration // for how long a key is remembered; 0 is as long as there is room

	mu    sync.Mutex
	at    map[string]time.Time
	order []string // the keys in the order of their times; some of them may be forgotten already
}

func newRecent(keep time.Duration) *recent {
	return &recent{keep: keep, at: map[string]time.Time{}}
}

// add remembers a key. It is false, and changes nothing, if the key is remembered already.
func (r *recent) add(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.at[key]; ok && (r.keep == 0 || now.Sub(at) < r.keep) {
		return false
	}
	if len(r.order) >= maxRecent {
		for _, old := range r.order[:maxRecent/4] {
			delete(r.at, old)
		}
		r.order = append(r.order[:0], r.order[maxRecent/4:]...)
	}
	r.at[key] = now
	r.order = append(r.order, key)
	return true
}

func (r *recent) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.at, key)
}
