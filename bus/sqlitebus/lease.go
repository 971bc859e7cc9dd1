package sqlitebus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// A lease exists in memory only, because no other process can have the file open.
type lease struct {
	bus         *Bus
	box         *box
	claim       bus.Claim
	recordFirst bool  // whether the claim has to be durable before anybody works on it; copied from the box when this was claimed
	first       int64 // the number of the mailbox's first message when this was claimed; 0 if it was not in memory
	lost        chan struct{}

	settling    sync.Mutex  // held while the lease is being settled
	settlingNow atomic.Bool // whether the lease is being settled; for recordClaim, which must not wait for settling

	// The scheduler's lock guards the following fields.
	over error // why the lease is over; nil while it is held
	seen int64 // the highest number that Mail has returned

	bell bus.Bell // rings when mail comes, and when the lease ends
}

// Claim implements bus.Lease: it returns the mailbox and the fence.
func (l *lease) Claim() bus.Claim { return l.claim }

// Lost implements bus.Lease: the channel is closed once the lease is lost.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Held implements bus.Lease: it returns at once, because this process always knows whether it holds
// the lease.
func (l *lease) Held(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := l.bus.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.over
}

// OnMail implements bus.Lease: it has f called when a message is shown in the mailbox, and when the
// lease ends.
func (l *lease) OnMail(f func()) (stop func()) {
	s := l.bus.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	stop = l.bell.Listen(f)
	if l.over != nil || l.box.mail.last > l.seen {
		l.bell.Ring()
	}
	return stop
}

// Mail implements bus.Lease: it returns messages from memory or from disk. It returns a long backlog
// in parts.
func (l *lease) Mail(ctx context.Context, after int64) ([]bus.Message, error) {
	out, last, err := l.knownMail(after)
	if err != nil || len(out) > 0 || last <= after {
		return out, err
	}
	page, err := l.bus.readPage(ctx, l.claim, after, last)
	if err != nil {
		return nil, fmt.Errorf("read mail: %w", err)
	}
	return l.returnPage(page, after)
}

// knownMail returns the messages after that number that are in memory, and the highest number in the
// mailbox. If it returns no message and last is greater than after, Mail has to read the messages
// between them from disk.
func (l *lease) knownMail(after int64) (out []bus.Message, last int64, err error) {
	s := l.bus.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.over != nil {
		return nil, 0, l.over
	}
	m := &l.box.mail
	if out = m.messagesAfter(after); len(out) > 0 {
		l.seen = max(l.seen, out[len(out)-1].Seq)
	}
	return out, m.last, nil
}

// returnPage returns a page that was read from disk, if the lease is still held.
func (l *lease) returnPage(page []publishedMessage, after int64) ([]bus.Message, error) {
	s := l.bus.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.over != nil {
		return nil, l.over
	}
	if len(page) == 0 {
		return nil, fmt.Errorf("read mail: mailbox %s has lost its rows", l.claim.Key)
	}
	l.seen = max(l.seen, page[len(page)-1].Seq)
	out := cloneMessages(page)
	if after == 0 {
		l.box.mail.fill(page, &s.budget)
	}
	return out, nil
}

const selectPage = `SELECT seq, id, urgent, not_before, published, body FROM message
	WHERE topic = ? AND key = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`

// readPage reads the first messages after that number: as many as fit a page, and at least one
// if there is any.
func (b *Bus) readPage(ctx context.Context, c bus.Claim, after, last int64) (page []publishedMessage, err error) {
	rows, err := b.db.Read.QueryContext(ctx, selectPage, c.Topic, c.Key, after, last, pageMessages)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	for size := 0; size < pageBytes && rows.Next(); {
		l := publishedMessage{Message: bus.Message{Key: c.Key}}
		var notBefore int64
		if err := rows.Scan(&l.Seq, &l.ID, &l.Urgent, &notBefore, &l.published, &l.Body); err != nil {
			return nil, err
		}
		l.NotBefore = fromMicro(notBefore)
		size += l.size()
		page = append(page, l)
	}
	return page, rows.Err()
}

// Settle implements bus.Lease: it removes the settled messages in one transaction, and then
// frees the mailbox. If that empties it, Settle does not wait for the disk: what a crash
// brings back was handled, and whoever handles it again finds that out, as after a crash
// right before Settle.
func (l *lease) Settle(ctx context.Context, end bus.End) error {
	l.settling.Lock()
	defer l.settling.Unlock()
	l.settlingNow.Store(true)
	s := l.bus.sched
	st, err := s.beginSettle(l, end)
	if err != nil {
		l.settlingNow.Store(false)
		return err
	}
	if !st.empties { // otherwise the claim need not be recorded any more
		defer l.settlingNow.Store(false)
	}
	if st.empties {
		l.bus.deleteSoon(st)
	} else if err := l.bus.db.Write(ctx, st.write); err != nil {
		if over := s.undoBeginSettle(l); over != nil {
			return over
		}
		return fmt.Errorf("settle: %w", translate(err))
	}
	if firstInMemory := s.removeSettled(l, st); !firstInMemory {
		l.bus.findFirst(l.box, st)
	}
	s.finishSettle(l, st)
	return nil
}

// A settlement holds the changes to a mailbox that the end of its lease (a bus.End) makes.
type settlement struct {
	claim    bus.Claim
	end      bus.End
	upto     int64 // the highest number to remove or to turn into a dead letter
	seen     int64 // the highest number that the holder has read
	now, due time.Time

	n        int   // messages in the mailbox, up to last
	last     int64 // the highest number of them
	bytes    int   // how many bytes the bodies have that are removed or become dead letters
	removed  int   // how many messages are forgotten or buried
	measured bool  // bytes and removed are known; otherwise write finds out
	empties  bool  // whether it removes all messages of the mailbox, and all of them are known in memory
	attempts int   // the attempts that write has stored
}

const (
	insertDead = `INSERT OR REPLACE INTO dead (topic, id, key, seq, replays, urgent, not_before, published, attempts, reason, buried, body)
		SELECT topic, id, key, seq, replays, urgent, not_before, published, ?, ?, ?, body
		FROM message WHERE topic = ? AND key = ? AND seq > ? AND seq <= ? ORDER BY seq`
	bytesUpto  = `SELECT coalesce(sum(length(body)), 0) FROM message WHERE topic = ? AND key = ? AND seq <= ?`
	countAfter = `SELECT count(*) FROM message WHERE topic = ? AND key = ? AND seq > ? AND seq <= ?`
	deleteUpto = `DELETE FROM message WHERE topic = ? AND key = ? AND seq <= ?`
)

// write stores the settlement.
func (st *settlement) write(tx *sqldb.Tx) error {
	c := st.claim
	if st.end.Dead > st.end.Done {
		_, err := tx.Exec(insertDead, c.Attempts, st.end.Reason, st.now.UnixMicro(), c.Topic, c.Key, st.end.Done, st.upto)
		if err != nil {
			return err
		}
	}
	if st.upto > 0 {
		if err := st.measure(tx); err != nil {
			return err
		}
		if err := st.deleteSettled(tx); err != nil {
			return err
		}
	}
	st.attempts = c.Attempts
	switch {
	case st.removed > 0:
		st.attempts = 0
	case st.end.Uncounted:
		st.attempts--
	}
	if st.removed > 0 && st.due.IsZero() {
		return nil // the row of the new first message has no attempts and no delay already
	}
	_, err := tx.Exec(setState, st.attempts, toMicro(st.due), c.Topic, c.Key)
	return err
}

// measure finds out how much is removed, unless that is known. It counts the messages that
// stay: among the others on disk may be some that were settled before, if the disk failed.
func (st *settlement) measure(tx *sqldb.Tx) error {
	if st.measured {
		return nil
	}
	c, stay := st.claim, 0
	if err := tx.Get(bytesUpto, []any{c.Topic, c.Key, st.upto}, &st.bytes); err != nil {
		return err
	}
	err := tx.Get(countAfter, []any{c.Topic, c.Key, st.upto, st.last}, &stay)
	st.removed = st.n - stay
	return err
}

// deleteSettled deletes the messages that are forgotten or buried.
func (st *settlement) deleteSettled(tx *sqldb.Tx) error {
	_, err := tx.Exec(deleteUpto, st.claim.Topic, st.claim.Key, st.upto)
	return err
}

// A mailboxName names a mailbox.
type mailboxName struct {
	topic bus.Topic
	key   string
}

// leftovers are settled messages whose deletion was lost, as on a full disk: of each mailbox those up
// to a number. The next process would take them for mail.
type leftovers struct {
	mu   sync.Mutex
	upto map[mailboxName]int64
}

// add adds messages that are still on disk.
func (o *leftovers) add(x mailboxName, upto int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.upto == nil {
		o.upto = map[mailboxName]int64{}
	}
	o.upto[x] = max(o.upto[x], upto)
}

// take removes and returns all.
func (o *leftovers) take() map[mailboxName]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.upto
	o.upto = nil
	return all
}

// deleteSoon deletes settled messages without waiting for the disk. What is lost then is deleted with
// the next settlement that does not wait either.
func (b *Bus) deleteSoon(st *settlement) {
	b.db.StartOrReport(st.deleteSettled, func(error) { b.left.add(mailboxName{st.claim.Topic, st.claim.Key}, st.upto) })
	left := b.left.take()
	if len(left) == 0 {
		return
	}
	b.db.StartOrReport(func(tx *sqldb.Tx) error { return deleteAll(tx, left) }, func(error) {
		for x, upto := range left {
			b.left.add(x, upto)
		}
	})
}

// deleteAll deletes settled messages of several mailboxes.
func deleteAll(tx *sqldb.Tx, left map[mailboxName]int64) error {
	for x, upto := range left {
		if _, err := tx.Exec(deleteUpto, x.topic, x.key, upto); err != nil {
			return err
		}
	}
	return nil
}

// beginSettle removes the lease's deadline, so that the lease does not run out while the
// settlement is written to disk. Until undoBeginSettle or finishSettle, messages can only
// be added to the mailbox.
func (s *scheduler) beginSettle(l *lease, end bus.End) (*settlement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.over != nil {
		return nil, l.over
	}
	s.removeDeadline(l.box)
	st := &settlement{claim: l.claim, end: end, seen: l.seen, now: time.Now()}
	m := &l.box.mail
	st.n, st.last, st.upto = m.n, m.last, min(max(end.Done, end.Dead), m.last)
	st.removed, st.bytes, st.measured = m.measureUpto(st.upto)
	if end.After > 0 {
		st.due = st.now.Add(end.After)
	}
	st.empties = st.measured && end.Dead <= end.Done && m.n > 0 && st.removed == m.n
	return st, nil
}

// undoBeginSettle gives the lease its deadline back. It returns an error if the bus was
// closed meanwhile.
func (s *scheduler) undoBeginSettle(l *lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.over == nil {
		s.setDeadline(l.box, l.box.deadline)
	}
	return l.over
}

// removeSettled removes the settled messages from memory. It reports whether the first message that
// is left is in memory too; otherwise it is only on disk.
func (s *scheduler) removeSettled(l *lease, st *settlement) (firstInMemory bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.box.bytes -= st.bytes
	return l.box.mail.dropUpTo(st.upto, st.removed, &s.budget)
}

// findFirst reads from disk the message that has become the mailbox's first. If that fails, the
// mailbox counts as due: its next holder gets the same error from Mail, and retries.
func (b *Bus) findFirst(x *box, st *settlement) {
	b.sched.mu.Lock()
	last := x.mail.last
	b.sched.mu.Unlock()
	page, err := b.readPage(context.Background(), st.claim, 0, last)
	if err != nil {
		b.log.Error("mailbox not read", slog.String("topic", string(st.claim.Topic)), slog.Any("error", err))
	}
	b.sched.mu.Lock()
	defer b.sched.mu.Unlock()
	x.mail.notBefore = time.Time{}
	x.mail.fill(page, &b.sched.budget)
}

// finishSettle ends the lease and lets others claim the rest of the mailbox.
func (s *scheduler) finishSettle(l *lease, st *settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.over != nil {
		return // closed meanwhile: the rows are right, and nobody claims any more
	}
	x := l.box
	s.endLease(l, bus.ErrFenced)
	x.attempts = st.attempts
	x.recordFirst = st.removed == 0
	x.mail.freeBeyond(&s.budget)
	if x.mail.n == 0 {
		s.removeIfEmpty(x)
		return
	}
	s.schedule(x, st.due, st.seen)
}
