package gateway

import (
	"sync"
	"time"
)

// maxRecent is the maximum number of keys that one recentKeys remembers.
const maxRecent = 4096

// A recentKeys remembers keys for a while, each with the time at which it was added. It holds at most maxRecent
// keys: when there is no room, it forgets the oldest quarter.
type recentKeys struct {
	lifetime time.Duration // how long a key is remembered; 0 means as long as there is room

	mu      sync.Mutex
	addedAt map[string]time.Time
	order   []string // the keys in the order of their times; some may have been forgotten already
}

func newRecentKeys(keep time.Duration) *recentKeys {
	return &recentKeys{lifetime: keep, addedAt: map[string]time.Time{}}
}

// add remembers a key and returns true; if it still remembers the key, it changes nothing and returns false.
func (r *recentKeys) add(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.addedAt[key]; ok && (r.lifetime == 0 || now.Sub(at) < r.lifetime) {
		return false
	}
	if len(r.order) >= maxRecent {
		for _, old := range r.order[:maxRecent/4] {
			delete(r.addedAt, old)
		}
		r.order = append(r.order[:0], r.order[maxRecent/4:]...)
	}
	r.addedAt[key] = now
	r.order = append(r.order, key)
	return true
}

func (r *recentKeys) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.addedAt, key)
}
