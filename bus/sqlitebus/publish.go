package sqlitebus

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/sessions/sqldb"
)

// A publisher stores messages.
type publisher struct {
	*mailboxes
	caps      bus.Caps
	seqs      *sequence
	lastSweep sweepState
}

// An arrival is a message on its way to disk and into its mailbox.
type arrival struct {
	publishedMessage
	topic   bus.Topic
	replays int

	refused error // why the message was not stored, unless the database failed
	box     *box  // its mailbox, once the message has a number
	decided bool  // whether it is known if the message is durable
	stored  bool  // whether the message was stored
}

// Publish implements bus.Bus: it stores the message in one transaction.
func (p *publisher) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	a, err := newArrival(topic, m)
	if err == nil {
		err = p.commit(ctx, a, func(tx *sqldb.Tx) error { return p.storeNew(tx, a) })
	}
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	p.sweep(dayOf(a.published))
	return nil
}

// newArrival returns the message as it will be stored, or an ErrInvalid.
func newArrival(topic bus.Topic, m bus.Message) (*arrival, error) {
	if err := checkMessage(topic, m); err != nil {
		return nil, err
	}
	m.Body = bytes.Clone(m.Body)
	m.NotBefore = sqldb.FromMicros(sqldb.Micros(m.NotBefore)) // as it will be read back
	return &arrival{topic: topic, publishedMessage: publishedMessage{Message: m, published: time.Now().UnixMicro()}}, nil
}

// Share returns the publication of a message as a share in a write of another component that uses
// the same database. It does what Publish does. If the message is refused, with an error for which
// bus.IsRefusal is true, either Share or the share's Write says so.
func (p *publisher) Share(topic, key, id string, body []byte) (sqldb.Share, error) {
	a, err := newArrival(bus.Topic(topic), bus.Message{ID: id, Key: key, Body: body})
	if err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	return &share{publisher: p, arrival: a}, nil
}

// A share is the publication of a message in a transaction that another component has begun.
type share struct {
	publisher *publisher
	arrival   *arrival
}

// Write implements sqldb.Share: it stores the message.
func (s *share) Write(tx *sqldb.Tx) (refused, err error) {
	s.publisher.sched.dequeue(s.arrival)
	s.arrival.refused = nil
	if s.publisher.sched.isClosed() {
		return fmt.Errorf("publish: %w", bus.ErrClosed), nil
	}
	if err := s.publisher.storeNew(tx, s.arrival); err != nil {
		return nil, fmt.Errorf("publish: %w", err)
	}
	if s.arrival.refused != nil {
		return fmt.Errorf("publish: %w", s.arrival.refused), nil
	}
	return nil, nil
}

// Stored reports whether the last Write has stored the message. It has not if the id was known.
func (s *share) Stored() bool { return s.arrival.box != nil }

// End implements sqldb.Share: it shows the message to those who wait for mail, or forgets it.
func (s *share) End(durable bool) {
	s.publisher.recordOutcome(s.arrival, durable)
	if durable {
		s.publisher.sweep(dayOf(s.arrival.published))
	}
}

// checkMessage returns an ErrInvalid if a message can never be accepted.
func checkMessage(topic bus.Topic, m bus.Message) error {
	switch {
	case topic == "":
		return fmt.Errorf("%w: no topic", bus.ErrInvalid)
	case !isValidName(m.ID, bus.MaxID):
		return fmt.Errorf("%w: id of %d bytes", bus.ErrInvalid, len(m.ID))
	case !isValidName(m.Key, bus.MaxKey):
		return fmt.Errorf("%w: key of %d bytes", bus.ErrInvalid, len(m.Key))
	case len(m.Body) > bus.MaxBody:
		return fmt.Errorf("%w: body of %d bytes", bus.ErrInvalid, len(m.Body))
	}
	return nil
}

func isValidName(s string, longest int) bool {
	return s != "" && len(s) <= longest && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

const (
	// markSeen changes a row only if the id is new: not seen on that day or the one before. An id of
	// the day before makes a row without a day, which the table does not take, so that it is ignored.
	// As INSERT ... SELECT the statement would make a temporary table each time, because it reads the
	// table that it writes.
	markSeen = `INSERT OR IGNORE INTO seen (day, topic, id)
		VALUES (CASE WHEN EXISTS (SELECT 1 FROM seen WHERE day = ?1 - 1 AND topic = ?2 AND id = ?3) THEN NULL ELSE ?1 END, ?2, ?3)`
	isSeen        = `SELECT EXISTS (SELECT 1 FROM seen WHERE day IN (?1, ?1 - 1) AND topic = ?2 AND id = ?3)`
	insertMessage = `INSERT INTO message (seq, topic, key, id, replays, urgent, not_before, published, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// dayOf returns the day of a time in microseconds.
func dayOf(us int64) int64 { return us / (24 * time.Hour).Microseconds() }

// commit runs write, which stores the message a or refuses it, and tells the scheduler when that is
// durable. If the database rolls the transaction back, it runs write again; so each run first
// undoes in memory what an earlier run did.
func (p *publisher) commit(ctx context.Context, a *arrival, write func(*sqldb.Tx) error) error {
	if p.sched.isClosed() {
		return bus.ErrClosed
	}
	err := p.db.Write(ctx, func(tx *sqldb.Tx) error {
		a.refused = nil
		p.sched.dequeue(a)
		return write(tx)
	})
	p.recordOutcome(a, err == nil)
	if err != nil {
		return asClosed(err)
	}
	return a.refused
}

// recordOutcome records whether the transaction that was to store the message a is durable.
func (p *publisher) recordOutcome(a *arrival, durable bool) {
	if durable && a.box != nil {
		p.seqs.recordCommit(a.Seq)
	}
	p.sched.recordOutcome(a, durable)
}

// storeNew stores the message a if its id is new and its mailbox has room. If there is no room, it
// does not mark the id as seen, so that it can be published again. A message that was stored before
// is accepted even if its mailbox is full.
func (p *publisher) storeNew(tx *sqldb.Tx, a *arrival) error {
	day := dayOf(a.published)
	if full := p.lacksRoom(a); full != nil {
		var seen bool
		if err := tx.Get(isSeen, []any{day, a.topic, a.ID}, &seen); err != nil {
			return err
		}
		if !seen {
			a.refused = full
		}
		return nil
	}
	fresh, err := tx.Exec(markSeen, day, a.topic, a.ID)
	if err != nil || fresh == 0 {
		return err
	}
	return p.insertArrival(tx, a)
}

func (p *publisher) insertArrival(tx *sqldb.Tx, a *arrival) (err error) {
	if a.Seq, err = p.seqs.next(tx); err != nil {
		return err
	}
	_, err = tx.Exec(insertMessage, a.Seq, a.topic, a.Key, a.ID, a.replays, a.Urgent, sqldb.Micros(a.NotBefore), a.published, notNil(a.Body))
	if err != nil {
		return err
	}
	p.sched.enqueue(a)
	return nil
}

// notNil returns a body that is nil as an empty one, because SQLite would store nil as NULL.
func notNil(p []byte) []byte {
	if p == nil {
		return []byte{}
	}
	return p
}

// lacksRoom returns bus.ErrFull or bus.ErrTooMuch if the mailbox has no room for a.
// Messages that are being committed take room too.
func (p *publisher) lacksRoom(a *arrival) error {
	count, size := p.caps.Room(a.topic, a.Message)
	s := p.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.topic(a.topic).boxes[a.Key]
	switch {
	case x == nil:
	case count > 0 && x.mail.count+len(x.arriving) >= count:
		return bus.ErrFull
	case size > 0 && x.bytes > 0 && x.bytes+len(a.Body) > size:
		return bus.ErrTooMuch
	}
	return nil
}

// enqueue adds the message a to those of its mailbox that are being committed. Both enqueue and
// dequeue run on the database's writer, so those messages are in the order of their commits.
func (s *scheduler) enqueue(a *arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topic(a.topic)
	x := t.boxes[a.Key]
	if x == nil {
		x = &box{topic: t, key: a.Key, heapIndex: -1}
		t.boxes[a.Key] = x
		t.used = true
	}
	a.box = x
	x.bytes += len(a.Body)
	x.arriving = append(x.arriving, a)
}

// dequeue undoes enqueue when the transaction was rolled back and will run again.
func (s *scheduler) dequeue(a *arrival) {
	if a.box == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := a.box
	for i, other := range x.arriving {
		if other == a {
			x.arriving = append(x.arriving[:i], x.arriving[i+1:]...)
			x.bytes -= len(a.Body)
			break
		}
	}
	a.box = nil
	s.showArrivals(x)
}

// recordOutcome records whether the message a was stored. Publishers learn the outcome in any
// order, but their messages become visible in the order of their numbers, so that a holder that has
// read up to a number has missed none below it.
func (s *scheduler) recordOutcome(a *arrival, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.box == nil {
		return
	}
	a.decided, a.stored = true, stored
	s.showArrivals(a.box)
}

// showArrivals puts the arrivals that were stored into the mailbox, and drops those that were not. It stops at the
// first whose outcome is not known yet, so that messages appear in the order of their numbers.
func (s *scheduler) showArrivals(x *box) {
	for len(x.arriving) > 0 && x.arriving[0].decided {
		a := x.arriving[0]
		x.arriving[0] = nil
		x.arriving = x.arriving[1:]
		if a.stored {
			s.showArrival(x, a.publishedMessage)
		} else {
			x.bytes -= len(a.Body)
		}
	}
	if len(x.arriving) == 0 {
		x.arriving = nil
	}
	s.removeIfEmpty(x)
}

// showArrival puts one stored message into the mailbox, and makes the mailbox due if
// needed.
func (s *scheduler) showArrival(x *box, l publishedMessage) {
	x.mail.add(l, &s.budget)
	switch x.state {
	case idle:
		s.schedule(x, time.Time{}, 0)
	case delayed:
		if l.Urgent {
			s.makeReady(x)
		}
	case leased:
		x.lease.bell.Ring()
	case ready:
	}
}

// A sweepState remembers the last day for which old ids were deleted.
type sweepState struct{ lastDay atomic.Int64 }

// sweepRows is how many known ids one call of sweep deletes at most.
const sweepRows = 256

// sweep deletes known ids of the day before yesterday and earlier, some with each
// publication: deleting those of a whole day at once would delay every write.
func (p *publisher) sweep(day int64) {
	if p.lastSweep.lastDay.Load() >= day {
		return
	}
	p.db.Start(func(tx *sqldb.Tx) error {
		n, err := tx.Exec(`DELETE FROM seen WHERE (day, topic, id) IN
			(SELECT day, topic, id FROM seen WHERE day < ? LIMIT ?)`, day-1, sweepRows)
		if err == nil && n < sweepRows {
			p.lastSweep.lastDay.Store(day)
		}
		return err
	})
}
