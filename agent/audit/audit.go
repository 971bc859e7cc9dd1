// Package audit writes the audit records of a session in the background.
package audit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"parley/sessions"
)

// A Queue writes records one after another, in the order in which they were added. Adding a record doesn't wait
// for the write, because a durable write takes as long as a step of a turn. Writing begins at once, so a
// process that dies loses only the few records that were not written yet.
type Queue struct {
	// write writes one record, and returns when it is written or lost.
	write func(sessions.AuditRecord)

	mu      sync.Mutex
	waiting []sessions.AuditRecord
	done    chan struct{} // closed when all records are written; nil while no record is waiting
}

// New makes a Queue that writes records with write, which must return only when it has written the record or
// reported it as lost.
func New(write func(sessions.AuditRecord)) *Queue { return &Queue{write: write} }

// Record queues a record behind those added before. It doesn't wait for the write.
func (q *Queue) Record(r sessions.AuditRecord) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	if q.done == nil {
		q.done = make(chan struct{})
		go q.writeAll()
	}
}

// Wait waits until all records are written or lost.
func (q *Queue) Wait() {
	q.mu.Lock()
	kept := q.done
	q.mu.Unlock()
	if kept != nil {
		<-kept
	}
}

// writeAll writes the waiting records until none are left.
func (q *Queue) writeAll() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			close(q.done)
			q.done, q.waiting = nil, nil
			q.mu.Unlock()
			return
		}
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		q.write(next)
	}
}

// ExitCode returns the exit code of a shell command, for its audit record. content is the call's result;
// ExitCode returns nil if that isn't the result of a shell command.
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
