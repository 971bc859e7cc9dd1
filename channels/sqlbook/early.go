package sqlbook

import (
	"maps"
	"slices"
	"sync"

	"parley/channels"
)

// mostEarly is from how many sends on that were recorded by a BeginShare and wait for their Begin no
// more are recorded so: the platform does not keep up with the answers, so a write more or less
// delays none of them.
const mostEarly = 1024

// earlySends remembers the sends that were recorded by a BeginShare and that nobody has begun to
// send yet. One that it does not remember is found as cut off, like one of a process that has died.
// It keeps those whose messages are removed from the bus unsent, which are few, until the book is
// closed.
type earlySends struct {
	mu    sync.Mutex
	sends map[string]channels.Send
}

// hasRoom reports whether one more send may be recorded early.
func (e *earlySends) hasRoom() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sends) < mostEarly
}

// add remembers a send.
func (e *earlySends) add(send channels.Send) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sends == nil {
		e.sends = map[string]channels.Send{}
	}
	e.sends[send.ID] = send
}

// take returns the send with that id, once.
func (e *earlySends) take(id string) (send channels.Send, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	send, ok = e.sends[id]
	delete(e.sends, id)
	return send, ok
}

// ids returns the ids of the sends.
func (e *earlySends) ids() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.sends))
}
