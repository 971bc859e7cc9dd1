// Package testlog keeps what a program writes, so that a test can read it meanwhile.
package testlog

import (
	"bytes"
	"sync"
)

// A Buffer keeps what is written to it. It may be read and written by many goroutines.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write keeps p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
