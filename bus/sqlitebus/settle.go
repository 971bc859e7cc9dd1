package sqlitebus

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// A settlement holds the changes to a mailbox that the end of its lease (a bus.End) makes.
type settlement struct {
	claim    bus.Claim
	end      bus.End
	upto     int64 // the highest number to remove or to turn into a dead letter
	seenSeq  int64 // the highest number that the holder has read
	now, due time.Time

	count    int   // messages in the mailbox, up to lastSeq
	lastSeq  int64 // the highest number of them
	bytes    int   // how many bytes the bodies of the removed and buried messages take
	removed  int   // how many messages are removed or buried
	measured bool  // whether bytes and removed are known; otherwise write measures them
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
	_, err := tx.Exec(setState, st.attempts, sqldb.Micros(st.due), c.Topic, c.Key)
	return err
}

// measure finds out how many messages and bytes are removed, unless that is known. It counts the messages
// that stay: the others on disk may include some that were settled before, when the disk failed.
func (st *settlement) measure(tx *sqldb.Tx) error {
	if st.measured {
		return nil
	}
	c, stay := st.claim, 0
	if err := tx.Get(bytesUpto, []any{c.Topic, c.Key, st.upto}, &st.bytes); err != nil {
		return err
	}
	err := tx.Get(countAfter, []any{c.Topic, c.Key, st.upto, st.lastSeq}, &stay)
	st.removed = st.count - stay
	return err
}

// deleteSettled deletes the messages that are removed or buried.
func (st *settlement) deleteSettled(tx *sqldb.Tx) error {
	_, err := tx.Exec(deleteUpto, st.claim.Topic, st.claim.Key, st.upto)
	return err
}

// beginSettle removes the lease's deadline, so that the lease does not run out while the
// settlement is written to disk. Until undoBeginSettle or finishSettle, messages can only
// be added to the mailbox.
func (s *scheduler) beginSettle(l *lease, end bus.End) (*settlement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.endReason != nil {
		return nil, l.endReason
	}
	s.removeDeadline(l.box)
	st := &settlement{claim: l.claim, end: end, seenSeq: l.seenSeq, now: time.Now()}
	m := &l.box.mail
	st.count, st.lastSeq, st.upto = m.count, m.lastSeq, min(max(end.Done, end.Dead), m.lastSeq)
	st.removed, st.bytes, st.measured = m.measureUpto(st.upto)
	if end.After > 0 {
		st.due = st.now.Add(end.After)
	}
	st.empties = st.measured && end.Dead <= end.Done && m.count > 0 && st.removed == m.count
	return st, nil
}

// undoBeginSettle gives the lease its deadline back. It returns an error if the bus was
// closed meanwhile.
func (s *scheduler) undoBeginSettle(l *lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.endReason == nil {
		s.setDeadline(l.box, l.box.deadline)
	}
	return l.endReason
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
func (ms *mailboxes) findFirst(x *box, st *settlement) {
	ms.sched.mu.Lock()
	last := x.mail.lastSeq
	ms.sched.mu.Unlock()
	page, err := ms.readPage(context.Background(), st.claim, 0, last)
	if err != nil {
		ms.log.Error("mailbox not read", slog.String("topic", string(st.claim.Topic)), slog.Any("error", err))
	}
	ms.sched.mu.Lock()
	defer ms.sched.mu.Unlock()
	x.mail.notBefore = time.Time{}
	x.mail.fill(page, &ms.sched.budget)
}

// finishSettle ends the lease and lets others claim the rest of the mailbox.
func (s *scheduler) finishSettle(l *lease, st *settlement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.endReason != nil {
		return // the bus was closed meanwhile: the rows are right, and nobody claims anymore
	}
	x := l.box
	s.endLease(l, bus.ErrFenced)
	x.attempts = st.attempts
	x.recordFirst = st.removed == 0
	x.mail.freeBeyond(&s.budget)
	if x.mail.count == 0 {
		s.removeIfEmpty(x)
		return
	}
	s.schedule(x, st.due, st.seenSeq)
}

// A mailboxName names a mailbox.
type mailboxName struct {
	topic bus.Topic
	key   string
}

// undeletedMail records the settled messages whose deletion was lost, for example because the disk was full: for each
// mailbox, those up to a number. The next process would take them for mail.
type undeletedMail struct {
	mu   sync.Mutex
	upto map[mailboxName]int64
}

// add records that the settled messages of a mailbox up to number upto are still on disk.
func (u *undeletedMail) add(x mailboxName, upto int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.upto == nil {
		u.upto = map[mailboxName]int64{}
	}
	u.upto[x] = max(u.upto[x], upto)
}

// take returns the numbers by mailbox, and forgets them.
func (u *undeletedMail) take() map[mailboxName]int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.upto
	u.upto = nil
	return all
}

// deleteSoon deletes settled messages without waiting for the disk. If that is lost, they are deleted
// with the next settlement that does not wait either.
func (ms *mailboxes) deleteSoon(st *settlement) {
	ms.db.StartOrReport(st.deleteSettled, func(error) { ms.undeleted.add(mailboxName{st.claim.Topic, st.claim.Key}, st.upto) })
	left := ms.undeleted.take()
	if len(left) == 0 {
		return
	}
	ms.db.StartOrReport(func(tx *sqldb.Tx) error { return deleteAll(tx, left) }, func(error) {
		for x, upto := range left {
			ms.undeleted.add(x, upto)
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
