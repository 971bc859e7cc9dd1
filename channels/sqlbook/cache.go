package sqlbook

import "sync"

// A readCache keeps what queries have found, until something is written that they read. If it is
// nil, it keeps nothing.
type readCache[K comparable, V any] struct {
	mu    sync.Mutex
	found map[K]V
	round int // counts calls of clear
}

// maxReadCache bounds how many answers a readCache keeps.
const maxReadCache = 2048

// get returns what was found under a key. If nothing is kept, it calls query, which reports whether
// to keep what it finds.
func (r *readCache[K, V]) get(key K, query func() (found V, keep bool, err error)) (V, error) {
	if r == nil {
		found, _, err := query()
		return found, err
	}
	r.mu.Lock()
	kept, ok := r.found[key]
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
	if r.round != round { // what was found may be older than what was written meanwhile
		return found, nil
	}
	if r.found == nil || len(r.found) >= maxReadCache {
		r.found = map[K]V{}
	}
	r.found[key] = found
	return found, nil
}

// clear forgets everything.
func (r *readCache[K, V]) clear() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = nil
	r.round++
}
