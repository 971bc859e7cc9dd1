package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/agent/journal"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// Limits on how long a turn waits for the additional pieces that a message announces.
const (
	maxPieceGap  = 500 * time.Millisecond // since the last piece
	maxPieceWait = 2 * time.Second        // in total
)

// An item is one message of the mailbox that a run holds. Items are passed as pointers, because a copy in each
// function would stay on the stack as long as a turn lasts. Once an item is in the inbox, only handled changes.
type item struct {
	seq         int64
	in          bus.Inbound
	err         error                     // why the message can't be read; nil if it can
	unknownKind *journal.UnknownKindError // set if only a newer release knows the message's kind
	handled     bool                      // guarded by the inbox's lock
	stopsWork   bool                      // for a /stop: whether something was running when it arrived
}

// readItems decodes messages of the bus.
func readItems(mail []bus.Message) []*item {
	items := make([]*item, len(mail))
	for i, m := range mail {
		items[i] = readItem(m)
	}
	return items
}

// readItem decodes a message of the bus. If it can't be worked on, the item says why.
func readItem(m bus.Message) *item {
	it := &item{seq: m.Seq}
	it.in, it.err = bus.DecodeInbound(m.Body)
	switch {
	case it.err != nil:
	case it.in.Kind == "": // no release has ever written such a message
		it.err = errors.New("the message has no kind")
	case it.in.Kind == bus.Decided && it.in.Decision == nil:
		it.err = errors.New("the message has no decision")
	case (it.in.Kind == bus.Tasked || it.in.Kind == bus.TaskEnded) && it.in.Task == nil:
		it.err = errors.New("the message has no task")
	case !bus.KnownKind(it.in.Kind):
		it.unknownKind = &journal.UnknownKindError{What: "message", ID: m.ID, Kind: it.in.Kind}
	}
	return it
}

// isKind reports whether the message can be read and has that kind.
func (it *item) isKind(kind string) bool { return it.err == nil && it.in.Kind == kind }

// isChange reports whether the message changes or reacts to an earlier message.
func (it *item) isChange() bool { return it.err == nil && isChange(it.in.Kind) }

// isOperators reports whether the message contains what an operator has said in the conversation.
func (it *item) isOperators() bool { return it.err == nil && it.in.IsOperators() }

// isReport reports whether the message is a report that no turn waits for.
func (it *item) isReport() bool { return it.isKind(bus.TaskEnded) && !it.in.Task.Awaited }

// noticeDelivery is the code of a notice about the delivery of what the session has said.
const noticeDelivery = "delivery"

// noticeEntry returns the entry for a message in which the system tells the session something, for example that
// a reply could not be delivered. It belongs to no turn.
func noticeEntry(in *bus.Inbound) sessions.Entry {
	e := journal.NewEntry(in.ID, sessions.KindNotice, noticeOf(in))
	e.Cause = in.ID
	if isSaidThroughBot(in) {
		e.Person = in.Quotes[0].From.ID // the author of the words: if that person is forgotten, the entry is deleted too
	}
	return e
}

// noticeOf returns the notice in a message in which the system tells the session something.
func noticeOf(in *bus.Inbound) sessions.Notice {
	n := sessions.Notice{Code: noticeDelivery, Text: in.Text, Quotes: quotes(in)}
	switch {
	case in.IsOperators():
		n.Code, n.MessageID = sessions.NoticeOperator, in.Of
	case isSaidThroughBot(in):
		n.Code = sessions.NoticeTold
	}
	return n
}

// isSaidThroughBot reports whether a message quotes what somebody has said here through the bot.
func isSaidThroughBot(in *bus.Inbound) bool {
	return len(in.Quotes) > 0 && in.Quotes[0].Kind == bus.Told
}

// quotes returns the parts of a message that its sender did not write in it, such as what was forwarded, in the
// form that the log keeps.
func quotes(in *bus.Inbound) []sessions.Quote {
	var all []sessions.Quote
	for _, q := range in.Quotes {
		told := q.Kind == bus.Told && in.Kind == bus.Notice
		all = append(all, sessions.Quote{
			Kind: q.Kind, Person: q.From.ID, Name: q.From.Name, Chat: q.Chat, At: q.At, Text: q.Text, Own: q.Own && told, Operator: q.Operator && told,
		})
	}
	return all
}

// An inbox holds the mail of a run: the mail that came with the lease, and the mail that has arrived since. One
// goroutine adds to it while another works through it.
type inbox struct {
	mu    sync.Mutex
	items []*item
	// cancelledBefore is the number of the newest /stop. Messages before it that have not begun a turn must not
	// begin one.
	cancelledBefore int64
	// changed is closed when mail arrives or is canceled; nil if nobody waits for that.
	changed chan struct{}
	// intakeMu is held while new mail is added and the commands in it that don't have to wait are carried out.
	intakeMu sync.Mutex
}

// wake wakes gather if it waits for more mail. The caller holds b.mu.
func (b *inbox) wake() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// add puts a message at the end of the inbox, and wakes those who wait for mail.
func (b *inbox) add(it *item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, it)
	b.wake()
}

// onMail returns a channel that is closed when mail arrives or is canceled, or already closed if there is unhandled
// mail.
func (b *inbox) onMail() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slices.ContainsFunc(b.items, func(it *item) bool { return !it.handled }) {
		come := make(chan struct{})
		close(come)
		return come
	}
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// unknownKind returns the error for the first message of a kind that only a newer release knows; nil if there
// is none.
func (b *inbox) unknownKind() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if it.unknownKind != nil {
			return it.unknownKind
		}
	}
	return nil
}

// firstUnhandled returns the first unhandled message; false if there is none.
func (b *inbox) firstUnhandled() (*item, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if !it.handled {
			return it, true
		}
	}
	return nil, false
}

// next returns the first unhandled message; false if there is none. Before it returns false, it waits for
// commands in progress, because a run that ended meanwhile would cut them off.
func (b *inbox) next() (*item, bool) {
	if it, ok := b.firstUnhandled(); ok {
		return it, true
	}
	b.intakeMu.Lock()
	defer b.intakeMu.Unlock()
	return b.firstUnhandled()
}

// markHandled marks messages as handled: the log contains what came of them, so the bus may drop them when the
// run ends.
func (b *inbox) markHandled(items ...*item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, held := range b.items {
		for _, it := range items {
			if held.seq == it.seq {
				held.handled = true
			}
		}
	}
}

// handledUpTo returns the number up to which all messages are handled, so that the bus may drop them; 0 if the
// first one is not handled, or if there is none.
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

// newestSeq returns the number of the newest message; 0 if there is none.
func (b *inbox) newestSeq() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.items) == 0 {
		return 0
	}
	return b.items[len(b.items)-1].seq
}

// unhandled returns the messages that are not handled, including those that a turn is answering.
func (b *inbox) unhandled() []*item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*item
	for _, it := range b.items {
		if !it.handled {
			all = append(all, it)
		}
	}
	return all
}

// cancelBefore records a /stop: no message before it may begin a turn.
func (b *inbox) cancelBefore(seq int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancelledBefore = max(b.cancelledBefore, seq)
	b.wake()
}

// isCancelled reports whether a /stop arrived after the message with that number.
func (b *inbox) isCancelled(seq int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return seq < b.cancelledBefore
}

// A batch is a series of messages by one person that one turn answers.
type batch struct {
	items []*item
	ended bool // another message follows, so nothing more can join the batch
}

// last returns the newest message of the batch.
func (b batch) last() *item { return b.items[len(b.items)-1] }

// causes returns the ids of the batch's messages.
func (b batch) causes() []string {
	var ids []string
	for _, it := range b.items {
		ids = append(ids, it.in.ID)
	}
	return ids
}

// textSize returns how many bytes the texts of the batch have.
func (b batch) textSize() (n int) {
	for _, it := range b.items {
		n += len(it.in.Text)
	}
	return n
}

// nextBatch returns the messages that one turn answers: the first unhandled one, and those that may join it. If
// the newest of them announces more, it also returns a channel that is closed when more mail arrives. inLog
// reports whether a message is already in the log; such a message needs no answer and ends the batch.
func (b *inbox) nextBatch(inLog func(id string) bool) (next batch, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if it.handled { // a command that did not have to wait
			continue
		}
		if len(next.items) > 0 && it.isChange() { // a change of an earlier message is handled after these
			continue
		}
		if len(next.items) > 0 && (!mayJoin(&next.items[0].in, it) || inLog(it.in.ID) ||
			next.items[0].seq < b.cancelledBefore && it.seq > b.cancelledBefore) { // a /stop doesn't stop later messages
			next.ended = true
			break
		}
		next.items = append(next.items, it)
	}
	if len(next.items) > 0 && next.last().in.More && b.changed == nil {
		b.changed = make(chan struct{})
	}
	return next, b.changed
}

// mayJoin reports whether a message may be answered together with an earlier one: both are by the same person,
// in the same place and with the same rights.
func mayJoin(first *bus.Inbound, it *item) bool {
	return first.Kind == bus.Said && it.isKind(bus.Said) && it.in.From.ID == first.From.ID && it.in.From.Owner == first.From.Owner &&
		it.in.At == first.At && it.in.Group == first.Group && it.in.Private == first.Private
}

// gather waits for more pieces if the newest message announces some, and returns the batch for the next turn.
// All mail stays on the bus meanwhile: if the process dies here, nothing is lost, and the next holder waits
// again. It returns an error if the process should end, or if only a newer release knows some of the mail.
func (b *inbox) gather(ctx context.Context, closing <-chan struct{}, inLog func(id string) bool) (batch, error) {
	began := time.Now()
	grown, size := began, 0
	for {
		next, changed := b.nextBatch(inLog)
		if len(next.items) > size {
			grown, size = time.Now(), len(next.items)
		}
		wait := min(time.Until(grown.Add(maxPieceGap)), time.Until(began.Add(maxPieceWait)))
		if next.ended || !next.last().in.More || wait <= 0 || b.isCancelled(next.last().seq) {
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

// changesOf returns, in order, the unhandled messages that change or react to one of the messages with these
// ids.
func (b *inbox) changesOf(ids []string) []*item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*item
	for _, it := range b.items {
		if !it.handled && it.isChange() && slices.Contains(ids, it.in.Of) {
			all = append(all, it)
		}
	}
	return all
}

// steeringMail returns what the sender of a turn has said since it began, which of their jobs have ended, and
// what an operator has said in the conversation. It stops at the first message of another person or kind, which
// is for later turns. It leaves out the messages that the turn already answers.
func (b *inbox) steeringMail(t *turn.Turn) []*item {
	b.mu.Lock()
	defer b.mu.Unlock()
	var said []*item
	for _, it := range b.items {
		if it.handled || it.isChange() || it.err == nil && slices.Contains(t.Causes, it.in.ID) {
			continue
		}
		if it.isOperators() {
			said = append(said, it)
			continue
		}
		if !it.isKind(bus.Said) && !it.isKind(bus.JobEnded) && !it.isReport() || it.in.From.ID != t.Person || it.in.Private != t.Route.IsPrivate() {
			break
		}
		said = append(said, it)
	}
	return said
}

// hasSteering reports whether the sender of a turn has said something since. The end of a job doesn't count,
// because it is no reason to skip calls that have not begun.
func (b *inbox) hasSteering(t *turn.Turn) bool {
	return slices.ContainsFunc(b.steeringMail(t), func(it *item) bool { return it.isKind(bus.Said) })
}
