package bus

import "sync"

// A Bell implements Lease.OnMail for a bus: the holder of the lease listens, and the bus rings. The zero
// Bell has no listener.
type Bell struct {
	mu        sync.Mutex
	listener  func()        // nil if there is no listener
	running   chan struct{} // closed when the current call of answer has ended; nil if there is none
	rangAgain bool          // whether the bell rang during that call
}

// Listen arranges for answer to be called, in a goroutine of its own, each time the bell rings, until
// stop is called. There is one call at a time: any number of rings during a call lead to one more call.
// stop returns once no call is running, so answer must not call it. A bell has one listener at a time.
func (b *Bell) Listen(answer func()) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listener = answer
	return b.stop
}

// stop removes the listener, and returns once no call is running.
func (b *Bell) stop() {
	b.mu.Lock()
	b.listener, b.rangAgain = nil, false
	running := b.running
	b.mu.Unlock()
	if running != nil {
		<-running
	}
}

// Ring calls the listener, if there is one. It does not wait, and may be called under any lock.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.listener == nil:
	case b.running != nil:
		b.rangAgain = true
	default:
		b.running = make(chan struct{})
		go b.call(b.listener)
	}
}

// call calls answer, and does so again as long as the bell rang during the last call.
func (b *Bell) call(answer func()) {
	for again := true; again; {
		answer()
		again = b.endCall()
	}
}

// endCall reports whether another call is due. If not, it marks the calls as over.
func (b *Bell) endCall() (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	again, b.rangAgain = b.rangAgain, false
	if !again {
		close(b.running)
		b.running = nil
	}
	return again
}
