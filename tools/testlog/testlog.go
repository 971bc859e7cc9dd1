// Package testlog stores a program's output, so that a test can read it while the program runs.
package testlog

import (
	"bytes"
	"sync"
)

// A Buffer stores what is written to it. It may be read and written by several goroutines at once.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write stores p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns everything that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
