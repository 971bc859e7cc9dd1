package journal

import (
	"sync/atomic"

	"parley/sessions"
)

// A madeSlot caches what was made from a record. All copies of the record share it, so those who hold records
// don't have to know about it. A record with other data gets another slot, so the slot's content always matches
// the data beside it.
type madeSlot struct{ is atomic.Value }

// newSlot returns a slot for an entry of a kind that the model is shown as text; nil for other kinds, for which
// nothing is cached.
func newSlot(kind sessions.Kind) *madeSlot {
	switch kind {
	case sessions.KindUser, sessions.KindText, sessions.KindNotice:
		return new(madeSlot)
	}
	return nil
}

// Made returns what was last passed to Keep; nil if nothing was.
func (r *Record) Made() any {
	if r.made == nil {
		return nil
	}
	return r.made.is.Load()
}

// Keep caches what was made from this record alone, for as long as a journal holds the record. Nobody may
// change the value afterwards, and all cached values must have the same type. Keep does nothing for a record
// for which nothing is cached, or that was not decoded from an entry.
func (r *Record) Keep(made any) {
	if r.made != nil {
		r.made.is.Store(made)
	}
}
