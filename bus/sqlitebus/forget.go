package sqlitebus

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// windDown is how long a mailbox rests that was taken from its holder: what was
// under way, a part on its way to a platform perhaps, then ends and is noted.
const windDown = 2 * time.Second

// Forget implements bus.Forgetter.
func (b *Bus) Forget(ctx context.Context, which func(bus.Topic, bus.Message) bool, sessions ...string) (done bus.Forgotten, err error) {
	b.forgetting.Lock()
	defer b.forgetting.Unlock()
	defer func() {
		if err != nil {
			err = fmt.Errorf("forget: %w", b.translateRead(translate(err)))
		}
	}()
	if b.sched.isClosed() {
		return done, bus.ErrClosed
	}
	b.feeds.forget(sessions)
	boxes, err := b.pick(ctx, waitingRows, lastWaiting, which)
	if err != nil {
		return done, err
	}
	for _, p := range boxes {
		n, taken, err := b.forgetMail(ctx, p)
		done.Messages += n
		if taken {
			done.Leases++
		}
		if err != nil {
			return done, err
		}
	}
	dead, err := b.pick(ctx, deadRows, lastDead, which)
	if err != nil {
		return done, err
	}
	for _, p := range dead {
		n := 0
		err := b.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			n, err = drop(tx, `DELETE FROM dead WHERE n = ?`, p.rows)
			return err
		})
		if err != nil {
			return done, err
		}
		done.DeadLetters += n
	}
	return done, b.db.Purge(ctx)
}

// picked are rows of one mailbox.
type picked struct {
	topic bus.Topic
	key   string
	rows  []int64
}

// Where to pick from: rows by number, with their messages.
const (
	waitingRows = `SELECT seq, topic, key, id, seq, urgent, not_before, body FROM message WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?`
	lastWaiting = `SELECT coalesce(max(seq), 0) FROM message`
	deadRows    = `SELECT n, topic, key, id, seq, urgent, not_before, body FROM dead WHERE n > ? AND n <= ? ORDER BY n LIMIT ?`
	lastDead    = `SELECT coalesce(max(n), 0) FROM dead`
)

// pick asks about each message that there is now, a page at a time.
func (b *Bus) pick(ctx context.Context, query, last string, which func(bus.Topic, bus.Message) bool) ([]picked, error) {
	var upto int64
	if err := b.db.Read.QueryRowContext(ctx, last).Scan(&upto); err != nil {
		return nil, err
	}
	type box struct {
		topic bus.Topic
		key   string
	}
	var list []picked
	place := map[box]int{}
	for after := int64(0); after < upto; {
		page, err := b.pickPage(ctx, query, after, upto)
		if err != nil || len(page) == 0 {
			return list, err
		}
		for _, c := range page {
			after = c.row
			if !which(c.topic, c.m) {
				continue
			}
			at := box{c.topic, c.m.Key}
			i, ok := place[at]
			if !ok {
				i = len(list)
				place[at], list = i, append(list, picked{topic: c.topic, key: c.m.Key})
			}
			list[i].rows = append(list[i].rows, c.row)
		}
	}
	return list, nil
}

// A candidate is a row that may be picked.
type candidate struct {
	row   int64
	topic bus.Topic
	m     bus.Message
}

func (b *Bus) pickPage(ctx context.Context, query string, after, upto int64) (page []candidate, err error) {
	found, err := b.db.Read.QueryContext(ctx, query, after, upto, pageLetters)
	if err != nil {
		return nil, err
	}
	defer func() { _ = found.Close() }() // found.Err has told already
	for size := 0; size < pageBytes && found.Next(); {
		var c candidate
		var notBefore int64
		if err := found.Scan(&c.row, &c.topic, &c.m.Key, &c.m.ID, &c.m.Seq, &c.m.Urgent, &notBefore, &c.m.Body); err != nil {
			return nil, err
		}
		c.m.NotBefore = fromMicro(notBefore)
		size += letterSize + len(c.m.Body)
		page = append(page, c)
	}
	return page, found.Err()
}

// drop deletes rows and counts them.
func drop(tx *sqldb.Tx, query string, rows []int64) (n int, err error) {
	for _, row := range rows {
		gone, err := tx.Exec(query, row)
		if err != nil {
			return 0, err
		}
		n += int(gone)
	}
	return n, nil
}

// sizeOfRows is how long the bodies of waiting messages are.
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

// forgetMail drops messages of one mailbox, which it holds meanwhile.
func (b *Bus) forgetMail(ctx context.Context, p picked) (n int, taken bool, err error) {
	h := b.sched.seize(p.topic, p.key)
	if h == nil {
		return 0, false, nil // settled meanwhile
	}
	// What was committed a moment ago and is not in the mailbox yet stays: it
	// was published since.
	h.rows = slices.DeleteFunc(p.rows, func(seq int64) bool { return seq > h.last })
	err = b.db.Write(ctx, func(tx *sqldb.Tx) error {
		if h.bytes, err = sizeOfRows(tx, h.rows); err != nil {
			return err
		}
		if n, err = drop(tx, `DELETE FROM message WHERE seq = ?`, h.rows); err != nil || n == 0 {
			return err
		}
		return h.look(tx)
	})
	if err != nil {
		n = 0
	}
	if known := b.sched.takeOut(h, n); !known {
		b.findFirst(h.box, &settlement{claim: h.claim})
	}
	b.sched.handBack(h, n)
	return n, h.taken, err
}

// A seizure is a mailbox held by nobody else while messages are taken out of it.
type seizure struct {
	*lease
	taken bool // from a holder
	due   time.Time
	last  int64   // its highest number when it was seized
	rows  []int64 // what is taken out
	bytes int     // of their bodies
	left  leftover
}

// A leftover says what is left of the messages that were there.
type leftover struct{ first, last, urgent, published, notBefore int64 }

func (h *seizure) look(tx *sqldb.Tx) error {
	const left = `
		SELECT coalesce(min(seq), 0), coalesce(max(seq), 0), coalesce(max(CASE WHEN urgent THEN seq ELSE 0 END), 0)
		FROM message WHERE topic = ? AND key = ? AND seq <= ?`
	x := &h.left
	err := tx.Get(left, []any{h.claim.Topic, h.claim.Key, h.last}, &x.first, &x.last, &x.urgent)
	if err != nil || x.first == 0 {
		return err
	}
	return tx.Get(`SELECT published, not_before FROM message WHERE seq = ?`, []any{x.first}, &x.published, &x.notBefore)
}

// seize takes a mailbox: from the line, from its wait, or from its holder. Nil
// if there is none. A settlement under way comes first.
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

// trySeize returns the mailbox's holder, if it has one, instead.
func (s *scheduler) trySeize(name bus.Topic, key string) (*lease, *seizure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.topic(name).boxes[key]
	if s.closed || x == nil || x.mail.n == 0 {
		return nil, nil
	}
	h := &seizure{}
	switch x.state {
	case leased:
		return x.lease, nil
	case ready:
		x.topic.ready.remove(x)
	case delayed:
		h.due = x.at
		s.stopAlarm(x)
	case idle:
	}
	s.hold(x, h)
	return nil, h
}

func (s *scheduler) seizeFrom(holder *lease) *seizure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder.end != nil {
		return nil // it has changed hands
	}
	x := holder.box
	holder.ending.Store(true) // what the claim has not written yet is void
	s.lose(holder, bus.ErrFenced)
	x.attempts--
	x.wary = true
	h := &seizure{taken: true, due: time.Now().Add(windDown)}
	s.hold(x, h)
	return h
}

// hold keeps x from everybody else; s.mu is held.
func (s *scheduler) hold(x *box, h *seizure) {
	h.lease = &lease{box: x, claim: bus.Claim{Topic: x.topic.name, Key: x.key}, lost: make(chan struct{})}
	h.last = x.mail.last
	x.state, x.lease = leased, h.lease
}

// takeOut takes n messages out of what is known of the mailbox; false if its
// first one is not known any more.
func (s *scheduler) takeOut(h *seizure, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > 0 {
		h.box.bytes -= h.bytes
	}
	return n == 0 || h.box.mail.without(h, n, &s.budget)
}

// handBack lets others have what is left of the mailbox.
func (s *scheduler) handBack(h *seizure, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.end != nil {
		return // closed meanwhile: the rows are right
	}
	x := h.box
	s.endLease(h.lease, bus.ErrFenced)
	x.mail.trim(&s.budget)
	if n > 0 && (h.left.first == 0 || slices.Min(h.rows) < h.left.first) {
		x.attempts = 0 // they were the claims of the first, which is gone
		if !h.taken {
			h.due = time.Time{} // and so was the wait
		}
	}
	if x.mail.n == 0 {
		s.forget(x)
		return
	}
	s.schedule(x, h.due, h.last)
}

// without takes out n of the messages that there were up to h.last, and tells
// whether the first one is known then. What has come since stays as it is.
func (m *mail) without(h *seizure, n int, budget *int) bool {
	m.n -= n
	m.head = slices.DeleteFunc(m.head, func(l letter) bool {
		out := slices.Contains(h.rows, l.Seq)
		if out {
			*budget += l.size()
		}
		return out
	})
	if m.last == h.last {
		m.last = h.left.last
	}
	if m.urgent <= h.last {
		m.urgent = h.left.urgent
	}
	switch {
	case m.n == 0:
	case h.left.first > 0:
		m.published, m.notBefore = h.left.published, fromMicro(h.left.notBefore)
	case len(m.head) > 0:
		m.published, m.notBefore = m.head[0].published, m.head[0].NotBefore
	default:
		return false
	}
	return true
}

// remove takes a box out of the middle of the line.
func (q *line) remove(x *box) {
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

// forget drops the events that are held of sessions. In the feed of a channel
// they keep their places, without what they say.
func (f *feeds) forget(sessions []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range sessions {
		x := f.byName[bus.SessionFeed(key)]
		if x == nil {
			continue
		}
		for len(x.events) > 0 {
			f.dropFirst(x)
		}
		f.tidy(x)
	}
	for _, x := range f.byName {
		for i, e := range x.events {
			if slices.Contains(sessions, e.Session) {
				silent := &bus.Event{ID: e.ID, Type: e.Type, Session: e.Session, Route: e.Route, Turn: e.Turn, Causes: e.Causes, Block: e.Block, Kind: e.Kind, Call: e.Call}
				f.bytes += sizeOf(silent) - sizeOf(e)
				x.events[i] = silent
			}
		}
	}
}
