package sqlitebus

import (
	"bytes"
	"slices"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// These constants limit the memory of mailboxes. The first messages of a mailbox are kept in memory, so that messages
// that are claimed soon after their publication are not read from disk. All mailboxes share cacheBudget; beyond it
// only numbers are kept.
const (
	cacheBudget = 8 << 20 // in bytes
	messageSize = 256     // about how many bytes a message takes in addition to its body
)

// A boxState says whether a mailbox can be claimed.
type boxState uint8

const (
	idle    boxState = iota // in no queue; only while s.mu is held, or while its first message is being committed
	ready                   // in its topic's queue, so that it can be claimed
	delayed                 // waiting; it has a deadline at which it becomes due
	leased                  // held by somebody; it has a deadline at which the lease ends
)

// A box is what the scheduler knows about a mailbox.
type box struct {
	topic       *topic
	key         string
	state       boxState
	recordFirst bool // whether the next claim has to be durable before anybody works on it; see recordClaim
	attempts    int
	mail        mailState
	bytes       int        // how many bytes the bodies in mail and in arriving take
	arriving    []*arrival // messages that are being committed, in the order of their numbers
	lease       *lease
	deadline    time.Time
	heapIndex   int  // its place in deadlines; -1 if it has none
	next        *box // the next in the queue
}

// A publishedMessage is a message with the time of its publication, in microseconds.
type publishedMessage struct {
	bus.Message
	published int64
}

func (l *publishedMessage) size() int { return messageSize + len(l.Body) }

// A mailState is what the scheduler knows about the messages of a mailbox.
type mailState struct {
	count      int                // number of messages
	lastSeq    int64              // the highest number
	lastUrgent int64              // the highest urgent number; 0 if no message is urgent
	published  int64              // when the first message was published
	notBefore  time.Time          // the NotBefore of the first message
	head       []publishedMessage // the first messages, with none left out between them; the others are only on disk
}

// add adds a message. If it keeps the message in memory, it subtracts the message's size from
// budget.
func (m *mailState) add(l publishedMessage, budget *int) {
	if m.count == 0 {
		m.published, m.notBefore = l.published, l.NotBefore
	}
	if len(m.head) == m.count && *budget >= l.size() {
		*budget -= l.size()
		m.head = append(m.head, l)
	}
	m.count++
	m.lastSeq = l.Seq
	if l.Urgent {
		m.lastUrgent = l.Seq
	}
}

// first returns the lowest number of the messages; 0 if the first one is not in memory.
func (m *mailState) first() int64 {
	if len(m.head) == 0 {
		return 0
	}
	return m.head[0].Seq
}

// measureUpto returns how many messages there are up to a number, and how many bytes their bodies take.
// It returns false if not all of them are in memory.
func (m *mailState) measureUpto(seq int64) (n, bytes int, known bool) {
	for n = range m.head {
		if m.head[n].Seq > seq {
			return n, bytes, true
		}
		bytes += len(m.head[n].Body)
	}
	return len(m.head), bytes, len(m.head) == m.count
}

// dropUpTo removes the messages up to a number. It returns false if the first of the rest
// is not in memory; then the caller has to read it and call fill.
func (m *mailState) dropUpTo(upto int64, removed int, budget *int) bool {
	m.count -= removed
	if m.lastUrgent <= upto {
		m.lastUrgent = 0
	}
	i := 0
	for ; i < len(m.head) && m.head[i].Seq <= upto; i++ {
		*budget += m.head[i].size()
	}
	m.head = slices.Delete(m.head, 0, i)
	if len(m.head) > 0 {
		m.published, m.notBefore = m.head[0].published, m.head[0].NotBefore
	}
	return m.count == 0 || len(m.head) > 0
}

// fill caches the first messages, which were just read from disk, unless some are in memory already. It
// may exceed the memory budget by up to one page for each lease.
func (m *mailState) fill(first []publishedMessage, budget *int) {
	if len(m.head) > 0 || len(first) == 0 {
		return
	}
	for i := range first {
		*budget -= first[i].size()
	}
	m.head = first
	m.published, m.notBefore = first[0].published, first[0].NotBefore
}

// freeBeyond drops the messages from memory if the budget is exceeded.
func (m *mailState) freeBeyond(budget *int) {
	if *budget >= 0 {
		return
	}
	for i := range m.head {
		*budget += m.head[i].size()
	}
	m.head = nil
}

// takeOut removes the n messages of h.rows, all of which are at or below h.last, and
// reports whether the first of the rest is known. Messages that came later stay.
func (m *mailState) takeOut(h *seizure, n int, budget *int) bool {
	m.count -= n
	m.head = slices.DeleteFunc(m.head, func(l publishedMessage) bool {
		out := slices.Contains(h.rows, l.Seq)
		if out {
			*budget += l.size()
		}
		return out
	})
	if m.lastSeq == h.lastSeq {
		m.lastSeq = h.remaining.last
	}
	if m.lastUrgent <= h.lastSeq {
		m.lastUrgent = h.remaining.urgent
	}
	switch {
	case m.count == 0:
	case h.remaining.first > 0:
		m.published, m.notBefore = h.remaining.published, sqldb.FromMicros(h.remaining.notBefore)
	case len(m.head) > 0:
		m.published, m.notBefore = m.head[0].published, m.head[0].NotBefore
	default:
		return false
	}
	return true
}

// messagesAfter returns copies of the messages after a number, or none if the first of these is not
// in memory.
func (m *mailState) messagesAfter(seq int64) []bus.Message {
	i := len(m.head)
	for i > 0 && m.head[i-1].Seq > seq {
		i--
	}
	return cloneMessages(m.head[i:])
}

// cloneMessages copies the bodies, because the reader may change them and the originals may
// be read again.
func cloneMessages(messages []publishedMessage) []bus.Message {
	var out []bus.Message
	for _, l := range messages {
		l.Body = bytes.Clone(l.Body)
		out = append(out, l.Message)
	}
	return out
}

// A readyQueue is the queue of a topic's mailboxes that can be claimed.
type readyQueue struct{ first, last *box }

// pushBack puts a mailbox at the end of the queue.
func (q *readyQueue) pushBack(x *box) {
	if q.last == nil {
		q.first = x
	} else {
		q.last.next = x
	}
	q.last = x
}

// pushFront puts a mailbox at the beginning of the queue.
func (q *readyQueue) pushFront(x *box) {
	if q.first == nil {
		q.last = x
	}
	x.next, q.first = q.first, x
}

// popFront removes the first mailbox from the queue, which must not be empty, and returns it.
func (q *readyQueue) popFront() *box {
	x := q.first
	q.first, x.next = x.next, nil
	if q.first == nil {
		q.last = nil
	}
	return x
}

// remove takes a box out of the queue, wherever it is.
func (q *readyQueue) remove(x *box) {
	if q.first == x {
		q.popFront()
		return
	}
	before := q.first
	for before.next != x {
		before = before.next
	}
	before.next, x.next = x.next, nil
	if q.last == x {
		q.last = before
	}
}

// deadlines is a heap of boxes, ordered by their deadlines.
type deadlines []*box

func (a deadlines) Len() int           { return len(a) }
func (a deadlines) Less(i, j int) bool { return a[i].deadline.Before(a[j].deadline) }
func (a deadlines) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].heapIndex, a[j].heapIndex = i, j
}

// Push implements heap.Interface: it adds a box at the end.
func (a *deadlines) Push(x any) {
	b := x.(*box)
	b.heapIndex = len(*a)
	*a = append(*a, b)
}

// Pop implements heap.Interface: it removes the last box and returns it.
func (a *deadlines) Pop() any {
	old := *a
	b := old[len(old)-1]
	old[len(old)-1] = nil
	b.heapIndex = -1
	*a = old[:len(old)-1]
	return b
}
