// Package audit keeps records of what a session does while the session goes on.
package audit

import (
	"sync"

	"parley/sessions"
)

// A Trail keeps records one after the other, in the order in which they were handed in.
// Whoever hands one in does not wait for it: a durable write takes as long as a step of
// a turn does. Keeping begins at once, so that a process that dies loses no more of them
// than those that it was about to write.
type Trail struct {
	keep func(sessions.AuditRecord)

	mu      sync.Mutex
	waiting []sessions.AuditRecord
	kept    chan struct{} // closed once all are; nil while there is nothing to keep
}

// New makes a Trail. Keep returns once a record is kept, or has told that it is lost.
func New(keep func(sessions.AuditRecord)) *Trail { return &Trail{keep: keep} }

// Record hands a record in.
func (t *Trail) Record(r sessions.AuditRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, r)
	if t.kept == nil {
		t.kept = make(chan struct{})
		go t.keepAll()
	}
}

// Wait waits until all that was handed in is kept, or lost.
func (t *Trail) Wait() {
	t.mu.Lock()
	kept := t.kept
	t.mu.Unlock()
	if kept != nil {
		<-kept
	}
}

// keepAll keeps what waits, until nothing does.
func (t *Trail) keepAll() {
	for {
		t.mu.Lock()
		if len(t.waiting) == 0 {
			close(t.kept)
			t.kept, t.waiting = nil, nil
			t.mu.Unlock()
			return
		}
		next := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.mu.Unlock()
		t.keep(next)
	}
}
