package sqlitebus

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// windDown is how long a mailbox rests after it was taken from its holder. The holder may
// be in the middle of a request to a platform; in this time the request ends and its
// outcome is recorded.
const windDown = 2 * time.Second

// A forgetter removes the mail, dead letters and events that are to be erased.
type forgetter struct {
	*mailboxes
	running sync.Mutex // held while Forget runs
}

// Forget implements bus.Forgetter: it removes mail, dead letters and events, and purges the
// file.
func (f *forgetter) Forget(ctx context.Context, match func(bus.Topic, bus.Message) bool, sessions ...string) (done bus.Forgotten, err error) {
	f.running.Lock()
	defer f.running.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("forget: %w", f.asClosedRead(asClosed(err)))
		}
	}()
	if f.sched.isClosed() {
		return done, bus.ErrClosed
	}
	f.news.forget(sessions)
	f.db.Flush() // what was settled is gone from disk then
	boxes, err := f.pickMessages(ctx, waitingRows, lastWaiting, match)
	if err != nil {
		return done, err
	}
	for _, p := range boxes {
		n, taken, err := f.forgetMail(ctx, p)
		done.Messages += n
		if taken {
			done.Leases++
		}
		if err != nil {
			return done, err
		}
	}
	dead, err := f.pickMessages(ctx, deadRows, lastDead, match)
	if err != nil {
		return done, err
	}
	for _, p := range dead {
		n := 0
		err := f.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			n, err = deleteRows(tx, `DELETE FROM dead WHERE n = ?`, p.rows)
			return err
		})
		if err != nil {
			return done, err
		}
		done.DeadLetters += n
		f.news.Emit(bus.NewDeadLetterEvent(p.topic, "", "", bus.StateDropped))
	}
	return done, f.db.Purge(ctx)
}

// pickedRows are the rows to delete from one mailbox.
type pickedRows struct {
	topic bus.Topic
	key   string
	rows  []int64
}

// Queries for pickMessages: for messages with their row numbers, page by page, and for the last row
// number.
const (
	waitingRows = `SELECT seq, topic, key, id, seq, urgent, not_before, body FROM message WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?`
	lastWaiting = `SELECT coalesce(max(seq), 0) FROM message`
	deadRows    = `SELECT n, topic, key, id, seq, urgent, not_before, body FROM dead WHERE n > ? AND n <= ? ORDER BY n LIMIT ?`
	lastDead    = `SELECT coalesce(max(n), 0) FROM dead`
)

// pickMessages calls match for each message that exists now, and returns the rows of those for
// which it returns true, by mailbox. query reads the messages and last the last row number.
func (f *forgetter) pickMessages(ctx context.Context, query, last string, match func(bus.Topic, bus.Message) bool) ([]pickedRows, error) {
	var upto int64
	if err := f.db.Read.QueryRowContext(ctx, last).Scan(&upto); err != nil {
		return nil, err
	}
	type box struct {
		topic bus.Topic
		key   string
	}
	var list []pickedRows
	place := map[box]int{}
	for after := int64(0); after < upto; {
		page, err := f.pickPage(ctx, query, after, upto)
		if err != nil || len(page) == 0 {
			return list, err
		}
		for _, c := range page {
			after = c.row
			if !match(c.topic, c.m) {
				continue
			}
			at := box{c.topic, c.m.Key}
			i, ok := place[at]
			if !ok {
				i = len(list)
				place[at], list = i, append(list, pickedRows{topic: c.topic, key: c.m.Key})
			}
			list[i].rows = append(list[i].rows, c.row)
		}
	}
	return list, nil
}

// A candidate is a message about which match is asked, with its row in the table.
type candidate struct {
	row   int64
	topic bus.Topic
	m     bus.Message
}

func (f *forgetter) pickPage(ctx context.Context, query string, after, upto int64) (page []candidate, err error) {
	found, err := f.db.Read.QueryContext(ctx, query, after, upto, pageMessages)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }() // found.Err has reported errors already
	for size := 0; size < pageBytes && found.Next(); {
		var c candidate
		var notBefore int64
		if err := found.Scan(&c.row, &c.topic, &c.m.Key, &c.m.ID, &c.m.Seq, &c.m.Urgent, &notBefore, &c.m.Body); err != nil {
			return nil, err
		}
		c.m.NotBefore = sqldb.FromMicros(notBefore)
		size += messageSize + len(c.m.Body)
		page = append(page, c)
	}
	return page, found.Err()
}

// deleteRows deletes rows, and returns how many there were.
func deleteRows(tx *sqldb.Tx, query string, rows []int64) (n int, err error) {
	for _, row := range rows {
		gone, err := tx.Exec(query, row)
		if err != nil {
			return 0, err
		}
		n += int(gone)
	}
	return n, nil
}

// sizeOfRows returns how many bytes the bodies of waiting messages take.
func sizeOfRows(tx *sqldb.Tx, rows []int64) (n int, err error) {
	for _, row := range rows {
		var size int
		if err := tx.Get(`SELECT coalesce(sum(length(body)), 0) FROM message WHERE seq = ?`, []any{row}, &size); err != nil {
			return 0, err
		}
		n += size
	}
	return n, nil
}

// forgetMail deletes the picked messages of one mailbox. Nobody else can claim the mailbox
// meanwhile. It returns how many it has deleted, and whether it has taken the mailbox from a
// holder.
func (f *forgetter) forgetMail(ctx context.Context, p pickedRows) (n int, taken bool, err error) {
	if err := f.forgetSettled(ctx, p); err != nil {
		return 0, false, err
	}
	h := f.sched.seize(p.topic, p.key)
	if h == nil {
		return 0, false, nil // all messages in it are settled
	}
	// A message that is committed but not in the mailbox yet counts as published after
	// Forget was called, so it stays.
	h.rows = slices.DeleteFunc(p.rows, func(seq int64) bool { return seq < h.first || seq > h.lastSeq })
	err = f.db.Write(ctx, func(tx *sqldb.Tx) error {
		if h.bytes, err = sizeOfRows(tx, h.rows); err != nil {
			return err
		}
		if n, err = deleteRows(tx, `DELETE FROM message WHERE seq = ?`, h.rows); err != nil || n == 0 {
			return err
		}
		return h.readRemainder(tx)
	})
	if err != nil {
		n = 0
	}
	if known := f.sched.takeOut(h, n); !known {
		f.findFirst(h.box, &settlement{claim: h.claim})
	}
	f.sched.handBack(h, n)
	return n, h.taken, err
}

// forgetSettled deletes those of the picked rows whose messages were settled, but were left behind
// because the disk failed. Nobody gets these messages anymore, so they are not counted.
func (f *forgetter) forgetSettled(ctx context.Context, p pickedRows) error {
	settled := func() []int64 {
		first := f.sched.firstNumber(p.topic, p.key)
		return slices.DeleteFunc(slices.Clone(p.rows), func(seq int64) bool { return seq >= first })
	}
	if len(settled()) == 0 {
		return nil
	}
	return f.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := deleteRows(tx, `DELETE FROM message WHERE seq = ?`, settled())
		return err
	})
}

// A seizure is a lease under which messages are removed from a mailbox.
type seizure struct {
	*lease
	taken     bool      // whether the mailbox was taken from a holder
	due       time.Time // when the mailbox may be claimed again
	first     int64     // the lowest number in the mailbox when it was seized; 0 if it was not in memory
	lastSeq   int64     // the highest number in the mailbox then
	rows      []int64   // the messages to remove
	bytes     int       // how many bytes their bodies take
	remaining remainder
}

// A remainder describes the messages that remain of those that were in the mailbox when it was seized:
// their lowest and highest number, the highest urgent one, and when the first was published and may be
// claimed.
type remainder struct{ first, last, urgent, published, notBefore int64 }

// readRemainder fills in h.remaining from the database.
func (h *seizure) readRemainder(tx *sqldb.Tx) error {
	const left = `
		SELECT coalesce(min(seq), 0), coalesce(max(seq), 0), coalesce(max(CASE WHEN urgent THEN seq ELSE 0 END), 0)
		FROM message WHERE topic = ? AND key = ? AND seq >= ? AND seq <= ?`
	x := &h.remaining
	err := tx.Get(left, []any{h.claim.Topic, h.claim.Key, h.first, h.lastSeq}, &x.first, &x.last, &x.urgent)
	if err != nil || x.first == 0 {
		return err
	}
	return tx.Get(`SELECT published, not_before FROM message WHERE seq = ?`, []any{x.first}, &x.published, &x.notBefore)
}

// seize takes a mailbox out of the queue, ends its wait, or takes it from its holder. It returns nil if
// the mailbox is empty. If the holder is settling its lease, seize waits until that is done.
func (s *scheduler) seize(name bus.Topic, key string) *seizure {
	for {
		holder, h := s.trySeize(name, key)
		if holder == nil {
			return h
		}
		holder.settling.Lock()
		h = s.seizeFrom(holder)
		holder.settling.Unlock()
		if h != nil {
			return h
		}
	}
}

// trySeize seizes the mailbox, or returns its holder if it has one.
func (s *scheduler) trySeize(name bus.Topic, key string) (*lease, *seizure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.topic(name).boxes[key]
	if s.closed || x == nil || x.mail.count == 0 {
		return nil, nil
	}
	h := &seizure{}
	switch x.state {
	case leased:
		return x.lease, nil
	case ready:
		x.topic.ready.remove(x)
	case delayed:
		h.due = x.deadline
		s.removeDeadline(x)
	case idle:
	}
	s.keepFromOthers(x, h)
	return nil, h
}

// seizeFrom takes a mailbox from its holder. It returns nil if the holder has lost or settled it
// already. The caller holds the mutex holder.settling.
func (s *scheduler) seizeFrom(holder *lease) *seizure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder.endReason != nil {
		return nil
	}
	x := holder.box
	holder.settlingNow.Store(true) // if recordClaim has not written the claim yet, it no longer does
	s.lose(holder, bus.ErrFenced)
	x.attempts--
	x.recordFirst = true
	h := &seizure{taken: true, due: time.Now().Add(windDown)}
	s.keepFromOthers(x, h)
	return h
}

// keepFromOthers makes the seizure the lease of the mailbox x, so that nobody can claim it. The
// caller holds s.mu.
func (s *scheduler) keepFromOthers(x *box, h *seizure) {
	h.lease = &lease{box: x, claim: bus.Claim{Topic: x.topic.name, Key: x.key}, lost: make(chan struct{})}
	h.first, h.lastSeq = x.mail.first(), x.mail.lastSeq
	x.state, x.lease = leased, h.lease
}

// firstNumber returns a number at or below that of every message of a mailbox, whether it is in the
// mailbox or still being committed. Rows with lower numbers are of messages that were settled.
func (s *scheduler) firstNumber(name bus.Topic, key string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.topic(name).boxes[key]
	switch {
	case s.closed:
		return 0
	case x == nil:
		return math.MaxInt64
	case x.mail.count > 0:
		return x.mail.first()
	case len(x.arriving) > 0:
		return x.arriving[0].Seq
	}
	return math.MaxInt64
}

// takeOut removes n messages from what is known about the mailbox in memory. It returns false if the
// message that is now the first is only on disk.
func (s *scheduler) takeOut(h *seizure, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 {
		h.box.bytes -= h.bytes
	}
	return n == 0 || h.box.mail.takeOut(h, n, &s.budget)
}

// handBack lets others claim the rest of the mailbox.
func (s *scheduler) handBack(h *seizure, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.endReason != nil {
		return // the bus was closed meanwhile: the rows are right
	}
	x := h.box
	s.endLease(h.lease, bus.ErrFenced)
	x.mail.freeBeyond(&s.budget)
	if n > 0 && (h.remaining.first == 0 || slices.Min(h.rows) < h.remaining.first) {
		// The claims and the wait belonged to the first message, which is gone.
		x.attempts = 0
		if !h.taken {
			h.due = time.Time{}
		}
	}
	if x.mail.count == 0 {
		s.removeIfEmpty(x)
		return
	}
	s.schedule(x, h.due, h.lastSeq)
}
