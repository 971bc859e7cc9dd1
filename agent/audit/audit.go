// Package audit writes the records of a session's acts while the session goes on.
package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"parley/sessions"
)

// A Trail writes records one after the other, in the order in which they were added.
// Adding a record does not wait for the write, because a durable write takes as long as
// a step of a turn. Writing begins at once. Thus a process that dies loses only the few
// records that it was about to write.
type Trail struct {
	// write writes one record, and returns when it is written or lost.
	write func(sessions.AuditRecord)

	mu      sync.Mutex
	waiting []sessions.AuditRecord
	kept    chan struct{} // closed when all records are written; nil while none waits
}

// New makes a Trail that writes records with write, which must return only when a record is
// written, or when it has reported the record as lost.
func New(write func(sessions.AuditRecord)) *Trail { return &Trail{write: write} }

// Record has a record written, after those that were added before. It does not wait for
// that.
func (t *Trail) Record(r sessions.AuditRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = append(t.waiting, r)
	if t.kept == nil {
		t.kept = make(chan struct{})
		go t.keepAll()
	}
}

// Wait waits until all records are written or lost.
func (t *Trail) Wait() {
	t.mu.Lock()
	kept := t.kept
	t.mu.Unlock()
	if kept != nil {
		<-kept
	}
}

// keepAll writes the waiting records until none waits.
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
		t.write(next)
	}
}

// ExitCode returns the exit code with which a shell command has ended, for its audit
// record. content is the call's result; for one of another tool ExitCode returns nil.
func ExitCode(content json.RawMessage) *int {
	rest, found := bytes.CutPrefix(content, []byte(`{"exit_code":`))
	if !found {
		return nil
	}
	end := bytes.IndexAny(rest, ",}")
	if end < 0 {
		return nil
	}
	n, err := strconv.Atoi(string(rest[:end]))
	if err != nil {
		return nil
	}
	return &n
}
