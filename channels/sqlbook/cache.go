package sqlbook

import "sync"

// A readCache caches the results of queries until something that they read is written. A nil readCache caches
// nothing.
type readCache[K comparable, V any] struct {
	mu      sync.Mutex
	results map[K]V
	round   int // counts calls of clear
}

// maxReadCache is the maximum number of results in a readCache.
const maxReadCache = 2048

// get returns the cached result for a key. If there is none, it calls query, which also reports whether its result
// may be cached.
func (r *readCache[K, V]) get(key K, query func() (found V, keep bool, err error)) (V, error) {
	if r == nil {
		found, _, err := query()
		return found, err
	}
	r.mu.Lock()
	kept, ok := r.results[key]
	round := r.round
	r.mu.Unlock()
	if ok {
		return kept, nil
	}
	found, keep, err := query()
	if err != nil || !keep {
		return found, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round != round { // the result may be older than what has been written in the meantime
		return found, nil
	}
	if r.results == nil || len(r.results) >= maxReadCache {
		r.results = map[K]V{}
	}
	r.results[key] = found
	return found, nil
}

// clear forgets everything.
func (r *readCache[K, V]) clear() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = nil
	r.round++
}
