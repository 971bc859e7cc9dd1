package redisbus

import (
	"context"
	"sync"
	"time"

	"parley/bus"
)

// A lifecycle is the part of the bus that Open starts and Close ends.
type lifecycle struct {
	stop   context.CancelFunc
	hangUp func() // closes the connections, which ends every call
	closed chan struct{}
	mu     sync.Mutex // keeps spawn from adding to work once closed is closed
	work   sync.WaitGroup
}

// closeTimeout bounds each step of Close that still sends something to the server.
const closeTimeout = time.Second

// spawn runs f in a goroutine whose end Close awaits. It returns false, and does not run f, if
// Close has begun.
func (l *lifecycle) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed() {
		return false
	}
	l.work.Go(f)
	return true
}

// spawnOrRun runs f as spawn does or, if Close has begun, before it returns: Close stops the batcher soon, which ends f.
func (l *lifecycle) spawnOrRun(f func()) {
	if !l.spawn(f) {
		f()
	}
}

// beginClose marks the bus as closed. It returns false if it already was.
func (l *lifecycle) beginClose() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed() {
		return false
	}
	close(l.closed)
	return true
}

func (l *lifecycle) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// closedOr returns bus.ErrClosed if the bus is closed, and err otherwise. Closing the bus breaks
// calls in many ways, and their callers should all get the same error.
func (l *lifecycle) closedOr(err error) error {
	if l.isClosed() {
		return bus.ErrClosed
	}
	return err
}
