package journal

import (
	"sync/atomic"

	"parley/sessions"
)

// A cacheSlot caches a value that was made from a record. All copies of the record share it, so those who hold records
// don't have to know about it. A record with other data gets another slot, so the slot's content always matches the
// data beside it.
type cacheSlot struct{ value atomic.Value }

// newCacheSlot returns a slot for an entry of a kind that the model is shown as text; nil for other kinds, for
// which nothing is cached.
func newCacheSlot(kind sessions.Kind) *cacheSlot {
	switch kind {
	case sessions.KindUser, sessions.KindText, sessions.KindNotice:
		return new(cacheSlot)
	}
	return nil
}

// Cached returns the value that was last passed to Cache; nil if there is none.
func (r *Record) Cached() any {
	if r.cache == nil {
		return nil
	}
	return r.cache.value.Load()
}

// Cache caches what was made from this record alone, for as long as a journal holds the record. Nobody may
// change the value afterwards, and all cached values must have the same type. Cache does nothing for a record
// for which nothing is cached, or that was not decoded from an entry.
func (r *Record) Cache(made any) {
	if r.cache != nil {
		r.cache.value.Store(made)
	}
}
