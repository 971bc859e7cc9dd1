package agent

import (
	"errors"
	"slices"
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
	// changed is closed, and replaced, when mail comes or is stopped.
	changed chan struct{}
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{})} }

// stir wakes who waits for mail. b.mu is held.
func (b *inbox) stir() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *inbox) add(it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, it)
	b.stir()
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

func (b *inbox) handled(items ...item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.items {
		for _, it := range items {
			if b.items[i].seq == it.seq {
				b.items[i].handled = true
			}
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

// unhandled are the messages that wait, those that a turn is answering included.
func (b *inbox) unhandled() []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []item
	for _, it := range b.items {
		if !it.handled {
			all = append(all, it)
		}
	}
	return all
}

func (b *inbox) stop(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = max(b.stopped, seq)
	b.stir()
}

func (b *inbox) stoppedBefore(seq int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return seq < b.stopped
}

// A run is what one person has said in a row, which one turn answers.
type run struct {
	items []item
	ended bool // something else follows, so nothing more can join it
}

// last is the newest message of the run.
func (r run) last() item { return r.items[len(r.items)-1] }

// causes are the ids of its messages.
func (r run) causes() []string {
	var ids []string
	for _, it := range r.items {
		ids = append(ids, it.in.ID)
	}
	return ids
}

// run is the run that begins with the first message that nobody has handled, and
// what is closed when there is more mail. What known picks out is in the log
// already and ends the run.
func (b *inbox) run(known func(id string) bool) (r run, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if it.handled { // a command that did not wait for its turn
			continue
		}
		if len(r.items) > 0 && (!joins(r.items[0].in, it) || known(it.in.ID) ||
			r.items[0].seq < b.stopped && it.seq > b.stopped) { // what was stopped takes nothing later with it
			r.ended = true
			break
		}
		r.items = append(r.items, it)
	}
	return r, b.changed
}

// joins tells whether a message may be answered together with an earlier one: it
// is the same person's, said in the same place with the same rights.
func joins(first bus.Inbound, it item) bool {
	return it.speaks(bus.Said) && it.in.From.ID == first.From.ID && it.in.From.Owner == first.From.Owner &&
		it.in.At == first.At && it.in.Group == first.Group
}

// steering returns what the sender of a turn has said since, up to the first
// message that is somebody else's or no speech: that is for the turns after. What
// the turn answers already is left out.
func (b *inbox) steering(t *turn) []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var said []item
	for _, it := range b.items {
		if it.handled || it.err == nil && slices.Contains(t.causes, it.in.ID) {
			continue
		}
		if !it.speaks(bus.Said) || it.in.From.ID != t.person {
			break
		}
		said = append(said, it)
	}
	return said
}
