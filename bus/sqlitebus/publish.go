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

// An arrival is a message on its way to disk and into its mailbox.
type arrival struct {
	letter
	topic   bus.Topic
	replays int

	refused error // why it was not stored, if no fault of the database's
	box     *box  // once it has a number
	landed  bool  // what became of it is known
	stored  bool
}

// Publish implements bus.Bus.
func (b *Bus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	if err := check(topic, m); err != nil {
		return err
	}
	m.Body = bytes.Clone(m.Body)
	m.NotBefore = fromMicro(toMicro(m.NotBefore)) // as it will be read back
	a := &arrival{topic: topic, letter: letter{Message: m, published: time.Now().UnixMicro()}}
	if err := b.commit(ctx, a, func(tx *sqldb.Tx) error { return b.admit(tx, a) }); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	b.sweep(today(a.published))
	return nil
}

func check(topic bus.Topic, m bus.Message) error {
	switch {
	case topic == "":
		return fmt.Errorf("%w: no topic", bus.ErrInvalid)
	case !isName(m.ID, bus.MaxID):
		return fmt.Errorf("%w: id of %d bytes", bus.ErrInvalid, len(m.ID))
	case !isName(m.Key, bus.MaxKey):
		return fmt.Errorf("%w: key of %d bytes", bus.ErrInvalid, len(m.Key))
	case len(m.Body) > bus.MaxBody:
		return fmt.Errorf("%w: body of %d bytes", bus.ErrInvalid, len(m.Body))
	}
	return nil
}

func isName(s string, longest int) bool {
	return s != "" && len(s) <= longest && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}

const (
	// markSeen changes a row if the id is new: not seen on that day or the one before.
	markSeen = `INSERT OR IGNORE INTO seen (day, topic, id)
		SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM seen WHERE day = ?1 - 1 AND topic = ?2 AND id = ?3)`
	isSeen        = `SELECT EXISTS (SELECT 1 FROM seen WHERE day IN (?1, ?1 - 1) AND topic = ?2 AND id = ?3)`
	insertMessage = `INSERT INTO message (seq, topic, key, id, replays, urgent, not_before, published, body)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

// today is the day of a time in microseconds.
func today(us int64) int64 { return us / (24 * time.Hour).Microseconds() }

// commit carries out write, which is to place a or to refuse it, and lets the
// scheduler know once that is durable. The database may run write again.
func (b *Bus) commit(ctx context.Context, a *arrival, write func(*sqldb.Tx) error) error {
	if b.sched.isClosed() {
		return bus.ErrClosed
	}
	err := b.db.Write(ctx, func(tx *sqldb.Tx) error {
		a.refused = nil
		b.sched.withdraw(a)
		return write(tx)
	})
	if err == nil && a.box != nil {
		b.seqs.committed(a.Seq)
	}
	b.sched.land(a, err == nil)
	if err != nil {
		return translate(err)
	}
	return a.refused
}

// admit stores what is new and has room. A full mailbox does not burn the id,
// and one that was taken before is told so, full or not.
func (b *Bus) admit(tx *sqldb.Tx, a *arrival) error {
	day := today(a.published)
	if full := b.full(a); full != nil {
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
	return b.insert(tx, a)
}

func (b *Bus) insert(tx *sqldb.Tx, a *arrival) (err error) {
	if a.Seq, err = b.seqs.next(tx); err != nil {
		return err
	}
	_, err = tx.Exec(insertMessage, a.Seq, a.topic, a.Key, a.ID, a.replays, a.Urgent, toMicro(a.NotBefore), a.published, body(a.Body))
	if err != nil {
		return err
	}
	b.sched.place(a)
	return nil
}

// body is never NULL.
func body(p []byte) []byte {
	if p == nil {
		return []byte{}
	}
	return p
}

// full counts what is in the mailbox and what has a number and is on its way. It
// returns bus.ErrFull or bus.ErrTooMuch where a has no room.
func (b *Bus) full(a *arrival) error {
	count, size := b.caps.Room(a.topic, a.Message)
	s := b.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.topic(a.topic).boxes[a.Key]
	switch {
	case x == nil:
	case count > 0 && x.mail.n+len(x.coming) >= count:
		return bus.ErrFull
	case size > 0 && x.bytes > 0 && x.bytes+len(a.Body) > size:
		return bus.ErrTooMuch
	}
	return nil
}

// place and withdraw run on the database's writer, so arrivals stand in their
// mailbox in the order in which they are committed.
func (s *scheduler) place(a *arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topic(a.topic)
	x := t.boxes[a.Key]
	if x == nil {
		x = &box{topic: t, key: a.Key, slot: -1}
		t.boxes[a.Key] = x
		t.used = true
	}
	a.box = x
	x.bytes += len(a.Body)
	x.coming = append(x.coming, a)
}

// withdraw undoes place when the transaction has been rolled back to be run again.
func (s *scheduler) withdraw(a *arrival) {
	if a.box == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := a.box
	for i, other := range x.coming {
		if other == a {
			x.coming = append(x.coming[:i], x.coming[i+1:]...)
			x.bytes -= len(a.Body)
			break
		}
	}
	a.box = nil
	s.settleComing(x)
}

// land is told what became of a. Publishers wake in any order, but messages
// become visible in the order of their numbers: whoever has read up to one has
// missed none before it.
func (s *scheduler) land(a *arrival, stored bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.box == nil {
		return
	}
	a.landed, a.stored = true, stored
	s.settleComing(a.box)
}

func (s *scheduler) settleComing(x *box) {
	for len(x.coming) > 0 && x.coming[0].landed {
		a := x.coming[0]
		x.coming[0] = nil
		x.coming = x.coming[1:]
		if a.stored {
			s.arrive(x, a.letter)
		} else {
			x.bytes -= len(a.Body)
		}
	}
	if len(x.coming) == 0 {
		x.coming = nil
	}
	s.forget(x)
}

func (s *scheduler) arrive(x *box, l letter) {
	x.mail.add(l, &s.budget)
	switch x.state {
	case idle:
		s.schedule(x, time.Time{}, 0)
	case delayed:
		if l.Urgent {
			s.makeReady(x)
		}
	case leased:
		x.lease.ring()
	case ready:
	}
}

func (s *scheduler) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// A sweep remembers up to which day ids have been forgotten.
type sweep struct{ done atomic.Int64 }

const sweepRows = 256

// sweep forgets ids of the day before yesterday and earlier, some with each
// publication, so that nothing has to wait for a whole day's to go.
func (b *Bus) sweep(day int64) {
	if b.swept.done.Load() >= day {
		return
	}
	b.db.Start(func(tx *sqldb.Tx) error {
		n, err := tx.Exec(`DELETE FROM seen WHERE (day, topic, id) IN
			(SELECT day, topic, id FROM seen WHERE day < ? LIMIT ?)`, day-1, sweepRows)
		if err == nil && n < sweepRows {
			b.swept.done.Store(day)
		}
		return err
	})
}
