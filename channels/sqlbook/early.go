package sqlbook

import (
	"maps"
	"slices"
	"sync"

	"parley/channels"
)

// maxEarlySends is the maximum number of sends that BeginShare has recorded and that are waiting for their Begin. If
// there are this many, the platform can't keep up with the answers, so that one write more or less delays none of
// them.
const maxEarlySends = 1024

// earlySends remembers the sends that were recorded by BeginShare and that nobody has started to send yet. A send
// that it does not remember counts as cut off, like one from a process that has died. If messages are removed from
// the bus unsent, which is rare, their sends stay here until the book is closed.
type earlySends struct {
	mu   sync.Mutex
	byID map[string]channels.Send
}

// hasRoom reports whether one more send may be recorded early.
func (e *earlySends) hasRoom() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.byID) < maxEarlySends
}

// add remembers a send.
func (e *earlySends) add(send channels.Send) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byID == nil {
		e.byID = map[string]channels.Send{}
	}
	e.byID[send.ID] = send
}

// take removes and returns the send with that id; false if there is none.
func (e *earlySends) take(id string) (send channels.Send, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	send, ok = e.byID[id]
	delete(e.byID, id)
	return send, ok
}

// ids returns the ids of the sends.
func (e *earlySends) ids() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.byID))
}
