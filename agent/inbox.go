package agent

import (
	"errors"
	"sync"

	"parley/bus"
)

// An item is one message of the mailbox that a visit holds.
type item struct {
	seq     int64
	in      bus.Inbound
	err     error         // it cannot be read
	foreign *foreignError // it can, and only a newer release knows what it is
	handled bool
}

// read makes an item of a message.
func read(m bus.Message) item {
	it := item{seq: m.Seq}
	it.in, it.err = bus.DecodeInbound(m.Body)
	switch {
	case it.err != nil:
	case it.in.Kind == "": // no release has ever written that
		it.err = errors.New("the message has no kind")
	case !bus.KnownKind(it.in.Kind):
		it.foreign = &foreignError{what: "message", id: m.ID, kind: it.in.Kind}
	}
	return it
}

// speaks tells whether the message can be read and is of that kind.
func (it item) speaks(kind string) bool { return it.err == nil && it.in.Kind == kind }

// An inbox is the mail of a visit: what came with the lease and what has come since.
type inbox struct {
	mu    sync.Mutex
	items []item
	// stopped is the number of the newest /stop: what was said before it and
	// has not begun is not to begin.
	stopped int64
}

func (b *inbox) add(it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, it)
}

// foreign is the first message that only a newer release knows; nil if there is none.
func (b *inbox) foreign() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if it.foreign != nil {
			return it.foreign
		}
	}
	return nil
}

// first is the first message that nobody has handled.
func (b *inbox) first() (item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if !it.handled {
			return it, true
		}
	}
	return item{}, false
}

func (b *inbox) handled(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.items {
		if b.items[i].seq == seq {
			b.items[i].handled = true
		}
	}
}

// done is the number up to which everything is handled; 0 if nothing is.
func (b *inbox) done() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var done int64
	for _, it := range b.items {
		if !it.handled {
			break
		}
		done = it.seq
	}
	return done
}

// last is the number of the newest message.
func (b *inbox) last() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		return 0
	}
	return b.items[len(b.items)-1].seq
}

// waiting counts the messages that nobody has handled.
func (b *inbox) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, it := range b.items {
		if !it.handled {
			n++
		}
	}
	return n
}

func (b *inbox) stop(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = max(b.stopped, seq)
}

func (b *inbox) stoppedBefore(seq int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return seq < b.stopped
}

// steering returns what the sender of a turn has said since, up to the first
// message that is somebody else's or no speech: that is for the turns after.
func (b *inbox) steering(turn, person string) []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var said []item
	for _, it := range b.items {
		if it.handled || it.err == nil && it.in.ID == turn {
			continue
		}
		if !it.speaks(bus.Said) || it.in.From.ID != person {
			break
		}
		said = append(said, it)
	}
	return said
}
