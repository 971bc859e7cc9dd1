package journal

import (
	"sync/atomic"

	"parley/sessions"
)

// A madeSlot holds what was made of a record. All copies of the record share it, so nobody who holds records
// need know of it, and a record with other data has another: what it holds is always made of the data beside it.
type madeSlot struct{ is atomic.Value }

// newSlot returns a slot for entries of a kind that the model is shown as a text; nil for others, of which
// nothing is worth keeping.
func newSlot(kind sessions.Kind) *madeSlot {
	switch kind {
	case sessions.KindUser, sessions.KindText, sessions.KindNotice:
		return new(madeSlot)
	}
	return nil
}

// Made returns what Keep was given last; nil if that was nothing.
func (r *Record) Made() any {
	if r.made == nil {
		return nil
	}
	return r.made.is.Load()
}

// Keep keeps what was made of the record and of nothing else, for as long as a journal holds the record. Nobody
// may change it any more, and all that is ever kept must be of one type. Keep does nothing for a record of
// which nothing is worth keeping, or that no entry was decoded into.
func (r *Record) Keep(made any) {
	if r.made != nil {
		r.made.is.Store(made)
	}
}
