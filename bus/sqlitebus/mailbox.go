package sqlitebus

import (
	"bytes"
	"slices"
	"time"

	"parley/bus"
)

// What a mailbox may take in memory. Its first messages are kept, so that what
// is claimed soon after its publication is not read from disk; all mailboxes
// share a budget, and beyond it only numbers are kept.
const (
	cacheBudget = 8 << 20 // bytes
	letterSize  = 256     // what a message takes beside its body, about
	pageLetters = 64      // read from disk at once
	pageBytes   = 256 << 10
)

type state uint8

const (
	idle    state = iota // being put together, settled, or about to be forgotten
	ready                // in its topic's line
	delayed              // has an alarm for when it is due
	leased               // has an alarm for when the lease ends
)

// A box is a mailbox as the scheduler knows it.
type box struct {
	topic    *topic
	key      string
	state    state
	wary     bool // its next claim has to be durable before anybody works on it
	attempts int
	mail     mail
	bytes    int        // of the bodies in it and of those on their way
	coming   []*arrival // on their way to disk, in the order of their numbers
	lease    *lease
	at       time.Time // of its alarm
	slot     int       // in alarms; -1 if there is none
	next     *box      // in the line
}

// A letter is a message and when it was published, in microseconds.
type letter struct {
	bus.Message
	published int64
}

func (l *letter) size() int { return letterSize + len(l.Body) }

// mail is what is known of the messages of a mailbox.
type mail struct {
	n         int       // how many there are
	last      int64     // the highest number
	urgent    int64     // the highest number that is urgent; 0 if none is
	published int64     // of the first
	notBefore time.Time // of the first
	head      []letter  // the first ones, without a gap
}

// add takes in one more and charges what it keeps of it to budget.
func (m *mail) add(l letter, budget *int) {
	if m.n == 0 {
		m.published, m.notBefore = l.published, l.NotBefore
	}
	if len(m.head) == m.n && *budget >= l.size() {
		*budget -= l.size()
		m.head = append(m.head, l)
	}
	m.n++
	m.last = l.Seq
	if l.Urgent {
		m.urgent = l.Seq
	}
}

// bytesUpto is how long the bodies up to a number are; false if not all of them
// are kept.
func (m *mail) bytesUpto(seq int64) (n int, known bool) {
	for i := range m.head {
		if m.head[i].Seq > seq {
			return n, true
		}
		n += len(m.head[i].Body)
	}
	return n, len(m.head) == m.n
}

// drop forgets the first ones, up to a number. It reports whether the first of
// those left is known; if not, page has to be called.
func (m *mail) drop(upto int64, removed int, budget *int) bool {
	m.n -= removed
	if m.urgent <= upto {
		m.urgent = 0
	}
	i := 0
	for ; i < len(m.head) && m.head[i].Seq <= upto; i++ {
		*budget += m.head[i].size()
	}
	m.head = slices.Delete(m.head, 0, i)
	if len(m.head) > 0 {
		m.published, m.notBefore = m.head[0].published, m.head[0].NotBefore
	}
	return m.n == 0 || len(m.head) > 0
}

// page takes in the first ones as read from disk, where none are kept. It may
// overdraw the budget: there are no more pages than leases.
func (m *mail) page(first []letter, budget *int) {
	if len(m.head) > 0 || len(first) == 0 {
		return
	}
	for i := range first {
		*budget -= first[i].size()
	}
	m.head = first
	m.published, m.notBefore = first[0].published, first[0].NotBefore
}

// trim lets go of what is kept beyond the budget.
func (m *mail) trim(budget *int) {
	if *budget >= 0 {
		return
	}
	for i := range m.head {
		*budget += m.head[i].size()
	}
	m.head = nil
}

// after returns copies of those kept beyond a number; none if the next one is
// not kept.
func (m *mail) after(seq int64) []bus.Message {
	i := len(m.head)
	for i > 0 && m.head[i-1].Seq > seq {
		i--
	}
	return copies(m.head[i:])
}

// copies are the reader's own: what is kept here may be asked for again.
func copies(letters []letter) []bus.Message {
	var out []bus.Message
	for _, l := range letters {
		l.Body = bytes.Clone(l.Body)
		out = append(out, l.Message)
	}
	return out
}

// A line is a queue of boxes.
type line struct{ first, last *box }

func (q *line) pushBack(x *box) {
	if q.last == nil {
		q.first = x
	} else {
		q.last.next = x
	}
	q.last = x
}

func (q *line) pushFront(x *box) {
	if q.first == nil {
		q.last = x
	}
	x.next, q.first = q.first, x
}

func (q *line) popFront() *box {
	x := q.first
	q.first, x.next = x.next, nil
	if q.first == nil {
		q.last = nil
	}
	return x
}

// alarms is a heap of boxes by their time.
type alarms []*box

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].slot, a[j].slot = i, j
}

// Push is for package heap.
func (a *alarms) Push(x any) {
	b := x.(*box)
	b.slot = len(*a)
	*a = append(*a, b)
}

// Pop is for package heap.
func (a *alarms) Pop() any {
	old := *a
	b := old[len(old)-1]
	old[len(old)-1] = nil
	b.slot = -1
	*a = old[:len(old)-1]
	return b
}
