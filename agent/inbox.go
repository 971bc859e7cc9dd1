package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/agent/journal"
	"parley/agent/news"
	"parley/bus"
	"parley/sessions"
)

// How long a turn waits for pieces that its message announces.
const (
	pieceQuiet = 500 * time.Millisecond // without a further one
	pieceMost  = 2 * time.Second        // in all
)

// An item is one message of the mailbox that a run holds.
type item struct {
	seq     int64
	in      bus.Inbound
	err     error                     // it cannot be read
	unknown *journal.UnknownKindError // it can, and only a newer release knows what it is
	handled bool
}

// readItem makes an item of a message.
func readItem(m bus.Message) item {
	it := item{seq: m.Seq}
	it.in, it.err = bus.DecodeInbound(m.Body)
	switch {
	case it.err != nil:
	case it.in.Kind == "": // no release has ever written that
		it.err = errors.New("the message has no kind")
	case it.in.Kind == bus.Decided && it.in.Decision == nil:
		it.err = errors.New("the message has no decision")
	case !bus.KnownKind(it.in.Kind):
		it.unknown = &journal.UnknownKindError{What: "message", ID: m.ID, Kind: it.in.Kind}
	}
	return it
}

// isKind tells whether the message can be read and is of that kind.
func (it item) isKind(kind string) bool { return it.err == nil && it.in.Kind == kind }

// isNews tells whether the message tells of an earlier one.
func (it item) isNews() bool { return it.err == nil && news.IsNews(it.in.Kind) }

// route is where a turn's reply goes, as the log keeps it.
type route struct {
	At      bus.Address `json:"at"`
	ReplyTo string      `json:"reply_to,omitempty"`
	Owner   bool        `json:"owner,omitempty"`
	Group   bool        `json:"group,omitempty"`
	Private *bool       `json:"private,omitempty"` // nil in the logs of a release from before it
}

func routeOf(in bus.Inbound) route {
	r := route{At: in.At, Owner: in.From.Owner, Group: in.Group, Private: &in.Private}
	if in.Group {
		r.ReplyTo = in.ReplyTo
	}
	return r
}

// private tells whether the turn may see what is remembered of its person.
func (r route) private() bool { return bus.IsPrivate(r.Private, r.Group) }

func (r route) encode() json.RawMessage {
	raw, err := json.Marshal(r)
	if err != nil { // strings and booleans always marshal
		panic(err)
	}
	return raw
}

// An inbox is the mail of a run: what came with the lease and what has come
// since. One goroutine adds to it while another works through it.
type inbox struct {
	mu    sync.Mutex
	items []item
	// cancelledBefore is the number of the newest /stop: what was said before it
	// and has not begun is not to begin.
	cancelledBefore int64
	// changed is closed, and replaced, when mail comes or is cancelled.
	changed chan struct{}
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{})} }

// wake lets go on whoever waits for mail. The caller holds b.mu.
func (b *inbox) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *inbox) add(it item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, it)
	b.wake()
}

// unknownKind is the error of the first message whose kind only a newer release
// knows; nil if there is none.
func (b *inbox) unknownKind() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if it.unknown != nil {
			return it.unknown
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

func (b *inbox) markHandled(items ...item) {
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

// handledUpTo is the number up to which everything is handled; 0 if nothing is.
func (b *inbox) handledUpTo() int64 {
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

// newest is the number of the newest message.
func (b *inbox) newest() int64 {
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

// cancelBefore notes a /stop: no message before it is to begin a turn.
func (b *inbox) cancelBefore(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancelledBefore = max(b.cancelledBefore, seq)
	b.wake()
}

// cancelled tells whether a /stop came after the message of that number.
func (b *inbox) cancelled(seq int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return seq < b.cancelledBefore
}

// A batch is what one person has said in a row, which one turn answers.
type batch struct {
	items []item
	ended bool // something else follows, so nothing more can join it
}

// last is the newest message of the batch.
func (b batch) last() item { return b.items[len(b.items)-1] }

// causes are the ids of its messages.
func (b batch) causes() []string {
	var ids []string
	for _, it := range b.items {
		ids = append(ids, it.in.ID)
	}
	return ids
}

// nextBatch is the batch that begins with the first message that nobody has
// handled, and a channel that is closed when there is more mail. A message that
// inLog picks out has been answered already and ends the batch.
func (b *inbox) nextBatch(inLog func(id string) bool) (next batch, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if it.handled { // a command that did not wait for its turn
			continue
		}
		if len(next.items) > 0 && it.isNews() { // of an earlier message: it comes after these
			continue
		}
		if len(next.items) > 0 && (!mayJoin(next.items[0].in, it) || inLog(it.in.ID) ||
			next.items[0].seq < b.cancelledBefore && it.seq > b.cancelledBefore) { // what was stopped takes nothing later with it
			next.ended = true
			break
		}
		next.items = append(next.items, it)
	}
	return next, b.changed
}

// mayJoin tells whether a message may be answered together with an earlier one: it
// is the same person's, said in the same place with the same rights.
func mayJoin(first bus.Inbound, it item) bool {
	return first.Kind == bus.Said && it.isKind(bus.Said) && it.in.From.ID == first.From.ID && it.in.From.Owner == first.From.Owner &&
		it.in.At == first.At && it.in.Group == first.Group && it.in.Private == first.Private
}

// gather waits for the pieces that are still to come, where the newest message
// announces some, and returns what the next turn is to answer. All of it stays on
// the bus meanwhile: if the process dies here nothing is lost, and the next holder
// waits anew.
func (b *inbox) gather(ctx context.Context, closing <-chan struct{}, inLog func(id string) bool) (batch, error) {
	began := time.Now()
	grown, size := began, 0
	for {
		next, changed := b.nextBatch(inLog)
		if len(next.items) > size {
			grown, size = time.Now(), len(next.items)
		}
		wait := min(time.Until(grown.Add(pieceQuiet)), time.Until(began.Add(pieceMost)))
		if next.ended || !next.last().in.More || wait <= 0 || b.cancelled(next.last().seq) {
			return next, b.unknownKind()
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-closing:
			return next, errShutdown
		case <-ctx.Done():
			return next, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// newsOf lists, in order, the messages that nobody has handled and that tell of one of these.
func (b *inbox) newsOf(ids []string) []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []item
	for _, it := range b.items {
		if !it.handled && it.isNews() && slices.Contains(ids, it.in.Of) {
			all = append(all, it)
		}
	}
	return all
}

// steering returns what the sender of a turn has said since, and which jobs of theirs have
// ended, up to the first message that is somebody else's or neither: that is for the turns
// after. What the turn answers already is left out.
func (b *inbox) steering(t *turn) []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var said []item
	for _, it := range b.items {
		if it.handled || it.isNews() || it.err == nil && slices.Contains(t.causes, it.in.ID) {
			continue
		}
		if !it.isKind(bus.Said) && !it.isKind(bus.JobEnded) || it.in.From.ID != t.person || it.in.Private != t.route.private() {
			break
		}
		said = append(said, it)
	}
	return said
}

// spokenTo tells whether the sender of a turn has said something since. That a job has
// ended is none of it: no call that waits is to be left out for that.
func (b *inbox) spokenTo(t *turn) bool {
	return slices.ContainsFunc(b.steering(t), func(it item) bool { return it.isKind(bus.Said) })
}

// asNow is a batch as its messages read now, where they were edited or deleted before
// they are answered. What was deleted is not answered, and the log knows it by its id.
func (r *sessionRun) asNow(ctx context.Context, b batch) (batch, error) {
	changes := r.inbox.newsOf(b.causes())
	if len(changes) == 0 {
		return b, nil
	}
	var said, behind []bus.Inbound
	for _, it := range b.items {
		said = append(said, it.in)
	}
	for _, it := range changes {
		behind = append(behind, it.in)
	}
	now, deleted := news.Apply(said, behind)
	kept := batch{ended: b.ended}
	for _, it := range b.items {
		if i := slices.IndexFunc(now, func(in bus.Inbound) bool { return in.ID == it.in.ID }); i >= 0 {
			it.in = now[i]
			kept.items = append(kept.items, it)
			continue
		}
		i := slices.IndexFunc(deleted, func(in bus.Inbound) bool { return in.ID == it.in.ID })
		err := r.journal.Append(ctx, news.Unread(deleted[i]))
		if _, seen := errors.AsType[*sessions.SeenError](err); err != nil && !seen {
			return b, err
		}
		r.inbox.markHandled(it)
	}
	return kept, nil
}
