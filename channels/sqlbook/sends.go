package sqlbook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

const (
	keepSends  = 30 * 24 * time.Hour
	pruneEvery = 256
	pruneLimit = 512
	maxDoubts  = 100_000
)

// Begin implements channels.Sends: it inserts the send and its parts in one transaction. If the
// answer of an earlier Begin was lost, the send that it may have recorded counts as recorded by
// this call.
func (b *Book) Begin(ctx context.Context, send channels.Send) (known channels.Send, fresh bool, err error) {
	if known, ok := b.early.take(send.ID); ok {
		return known, true, nil
	}
	now := b.doubts.beginTime(send.ID, time.Now())
	known = recordOf(send, now)
	if b.db.Postgres() {
		fresh, err = b.beginAtOnce(ctx, known, now)
	} else {
		err = b.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			fresh, err = begin(tx, known, now)
			return err
		})
	}
	if err == nil && !fresh {
		known, err = b.read(ctx, send.ID)
	}
	doubted := b.doubts.recordOutcome(send.ID, now, err)
	// If an earlier Begin committed but its answer was lost, this send is still ours:
	// that caller sent nothing, and nobody has changed the send since.
	fresh = fresh || err == nil && doubted && untouched(known, now)
	if err != nil {
		return channels.Send{}, false, fmt.Errorf("begin send %s: %w", send.ID, err)
	}
	b.pruneSends(now)
	return known, fresh, nil
}

// pruneSends deletes old sends, in one of pruneEvery calls.
func (b *Book) pruneSends(now time.Time) {
	if b.begins.Add(1)%pruneEvery == 0 {
		b.db.Start(func(tx *sqldb.Tx) error { return prune(tx, now) }) // the next pruning deletes what this one leaves
	}
}

// BeginShare returns what Begin writes for a send as a share in the write that publishes the
// message. If that recorded the send, the first Begin of the same id in this process writes nothing
// and returns the send as fresh: nothing of it was sent before. It returns false if already so many
// sends wait for their Begin that this one is better left to its own.
func (b *Book) BeginShare(send channels.Send) (sqldb.Share, bool) {
	if !b.early.hasRoom() {
		return nil, false
	}
	return &beginShare{book: b, send: send}, true
}

// A beginShare is the Begin of a send in a transaction that another component has begun.
type beginShare struct {
	book  *Book
	send  channels.Send
	known channels.Send // the send as the last Write has recorded it
	fresh bool          // whether the last Write has recorded the send
}

// Write implements sqldb.Share: it records the send, unless its id is known. The send begins now
// and not when the share was made: an erasure takes an older one that the bus does not have for one
// that nobody will ever send.
func (s *beginShare) Write(tx *sqldb.Tx) (refused, err error) {
	now := time.Now()
	s.known = recordOf(s.send, now)
	s.fresh, err = begin(tx, s.known, now)
	return nil, err
}

// End implements sqldb.Share: it keeps the send for Begin.
func (s *beginShare) End(durable bool) {
	if durable && s.fresh {
		s.book.early.add(s.known)
		s.book.pruneSends(s.known.At)
	}
}

// mostEarly is from how many sends on that were recorded by a BeginShare and wait for their Begin no
// more are recorded so: the platform does not keep up with the answers, so a write more or less
// delays none of them.
const mostEarly = 1024

// earlySends remembers the sends that were recorded by a BeginShare and that nobody has begun to
// send yet. One that it does not remember is found as cut off, like one of a process that has died.
// It keeps those whose messages are removed from the bus unsent, which are few, until the book is
// closed.
type earlySends struct {
	mu    sync.Mutex
	sends map[string]channels.Send
}

// hasRoom reports whether one more send may be recorded early.
func (e *earlySends) hasRoom() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sends) < mostEarly
}

// add remembers a send.
func (e *earlySends) add(send channels.Send) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sends == nil {
		e.sends = map[string]channels.Send{}
	}
	e.sends[send.ID] = send
}

// take returns the send with that id, once.
func (e *earlySends) take(id string) (send channels.Send, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	send, ok = e.sends[id]
	delete(e.sends, id)
	return send, ok
}

// ids returns the ids of the sends.
func (e *earlySends) ids() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.sends))
}

// forgetErased forgets the early sends that an erasure has erased. Their messages were taken off the
// bus before.
func (b *Book) forgetErased(ctx context.Context) {
	for _, id := range b.early.ids() {
		if _, err := b.Lookup(ctx, id); err != nil { // if it is there after all, it is found as cut off
			b.early.take(id)
		}
	}
}

// requeueEarly records of the early sends that nothing of them was sent, for the process that opens
// the book next.
func (b *Book) requeueEarly(ctx context.Context) error {
	ids := b.early.ids()
	if len(ids) == 0 {
		return nil
	}
	err := b.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, id := range ids {
			_, err := tx.Exec(`UPDATE parts SET state = 'queued' WHERE send = ? AND part = 0 AND state = 'sending'`, sqldb.Text(id))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record that %d messages were not sent: %w", len(ids), err)
	}
	return nil
}

// untouched reports whether a send is still as Begin recorded it at that time, so that certainly
// nothing of it was sent since.
func untouched(send channels.Send, at time.Time) bool {
	for i, p := range send.Parts {
		first := p.State == channels.Sending || p.State == channels.Drafted && p.PlatformID == ""
		if i == 0 && !first || i > 0 && p.State != channels.Queued || p.Interrupted != 0 {
			return false
		}
	}
	return stamp(send.At) == stamp(at)
}

// uncertainSends remembers the sends whose Begin failed in this process, although it may have
// committed. Each is kept with the time of its first Begin.
type uncertainSends struct {
	mu sync.Mutex
	at map[string]time.Time
}

// beginTime returns the time of a send's first Begin if that is in doubt, and else now. The
// repeated Begin uses the same time, by which it recognizes its own record.
func (d *uncertainSends) beginTime(id string, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.at[id]; ok {
		return at
	}
	return now
}

// recordOutcome records the outcome of a Begin, and reports whether an earlier one was in doubt.
func (d *uncertainSends) recordOutcome(id string, at time.Time, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, doubted := d.at[id]
	switch {
	case err == nil:
		delete(d.at, id)
	case len(d.at) < maxDoubts:
		if d.at == nil {
			d.at = map[string]time.Time{}
		}
		d.at[id] = at
	}
	return doubted
}

// begin inserts a send with its parts; fresh is false if its id is known.
func begin(tx *sqldb.Tx, send channels.Send, now time.Time) (fresh bool, err error) {
	n, err := tx.Exec(`INSERT INTO sends (id, channel, chat, thread, session, writer, begun) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		append(textArgs(send.ID, send.To.Channel, send.To.Chat, send.To.Thread, send.Session, send.Writer), stamp(now))...)
	if err != nil || n == 0 {
		return false, err
	}
	for i, p := range send.Parts {
		if _, err := tx.Exec(`INSERT INTO parts (send, part, state, body, plain, code, edits, under, file, platform_id, interrupted, changed)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, ?)`,
			sqldb.Text(send.ID), i, p.State, sqldb.Text(p.Text), sqldb.Text(p.Plain), sqldb.Text(p.Code),
			sqldb.Text(p.Edits), sqldb.Text(p.Under), bit(p.File), stamp(now)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// recordOf returns a send in the form in which Begin records it.
func recordOf(send channels.Send, now time.Time) channels.Send {
	parts := make([]channels.SentPart, len(send.Parts))
	for i, p := range send.Parts {
		if p.State == channels.Failed {
			parts[i] = channels.SentPart{State: channels.Failed, Code: p.Code, File: p.File}
			continue
		}
		parts[i] = channels.SentPart{Text: p.Text, Plain: p.Plain, State: channels.Queued, Edits: p.Edits, Under: p.Under, File: p.File}
		switch {
		case p.State == channels.Drafted:
			parts[i].State = channels.Drafted
		case i == 0:
			parts[i].State = channels.Sending
		}
	}
	send.Parts, send.At = parts, timeOf(stamp(now))
	return send
}

// Mark implements channels.Sends: it updates the part in one statement. A finished part loses its
// texts and is never moved back to sending, because the caller may have been paused while another
// process finished the part. For the same reason a sent part stays sent, and interruptions only grow.
func (b *Book) Mark(ctx context.Context, id string, part int, now channels.SentPart) error {
	const set = `UPDATE parts SET state = ?, platform_id = ?, interrupted = CASE WHEN interrupted < ? THEN ? ELSE interrupted END, code = ?, edits = ?, under = ?, changed = ?`
	const open = ` AND state NOT IN ('sent', 'failed', 'unknown')`
	query := set + `, body = '', plain = '' WHERE send = ? AND part = ?`
	switch now.State {
	case channels.Queued, channels.Sending:
		query = set + ` WHERE send = ? AND part = ?` + open
	case channels.Drafted:
		query += open
	case channels.Failed, channels.Unsure:
		query += ` AND state <> 'sent'`
	}
	n, err := b.db.Group(ctx, query, []any{now.State, sqldb.Text(now.PlatformID), now.Interrupted, now.Interrupted, sqldb.Text(now.Code),
		sqldb.Text(now.Edits), sqldb.Text(now.Under), stamp(time.Now()), sqldb.Text(id), part})
	if err == nil && n == 0 {
		if err = b.checkPart(ctx, id, part); err == nil {
			err = channels.ErrFinished
		}
	}
	if err != nil {
		return fmt.Errorf("mark part %d of send %s: %w", part, id, err)
	}
	return nil
}

// prune deletes finished sends that began more than keepSends ago, at most pruneLimit of them. It
// runs after every pruneEvery sends, which are fewer, so that none are left behind for long.
func prune(tx *sqldb.Tx, now time.Time) error {
	const old = `SELECT id FROM sends WHERE begun < ? AND NOT EXISTS (
		SELECT 1 FROM parts WHERE parts.send = sends.id AND state IN ('queued', 'sending')) ORDER BY begun, id LIMIT ?`
	before := stamp(now.Add(-keepSends))
	if _, err := tx.Exec(`DELETE FROM parts WHERE send IN (`+old+`)`, before, pruneLimit); err != nil {
		return err
	}
	// Old sends without parts are those whose parts were just deleted.
	_, err := tx.Exec(`DELETE FROM sends WHERE begun < ? AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.send = sends.id)`, before)
	return err
}

// schemaWriters records of other messages than answers, too, which session wrote them, so that
// they can be erased with it.
const schemaWriters = `ALTER TABLE sends ADD COLUMN writer TEXT NOT NULL DEFAULT ''`

// schemaCompact keeps sends and parts in a tree each, ordered by their keys, where there
// were two, so that each send writes fewer pages of a SQLite file. They stay for 30 days,
// and their texts until they are sent, so there is little to copy.
const schemaCompact = `
CREATE TABLE compact_sends (
	id      TEXT PRIMARY KEY,
	channel TEXT NOT NULL,
	chat    TEXT NOT NULL,
	thread  TEXT NOT NULL,
	begun   BIGINT NOT NULL,
	session TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
INSERT INTO compact_sends (id, channel, chat, thread, begun, session) SELECT id, channel, chat, thread, begun, session FROM sends;
DROP TABLE sends;
ALTER TABLE compact_sends RENAME TO sends;
CREATE INDEX sends_by_age ON sends (begun);
CREATE TABLE compact_parts (
	send        TEXT NOT NULL,
	part        INTEGER NOT NULL,
	state       TEXT NOT NULL,
	body        TEXT NOT NULL,
	plain       TEXT NOT NULL,
	platform_id TEXT NOT NULL,
	interrupted INTEGER NOT NULL,
	code        TEXT NOT NULL,
	changed     BIGINT NOT NULL,
	edits       TEXT NOT NULL DEFAULT '',
	under       TEXT NOT NULL DEFAULT '',
	file        INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (send, part)
) WITHOUT ROWID;
INSERT INTO compact_parts (send, part, state, body, plain, platform_id, interrupted, code, changed, edits, under, file)
	SELECT send, part, state, body, plain, platform_id, interrupted, code, changed, edits, under, file FROM parts;
DROP TABLE parts;
ALTER TABLE compact_parts RENAME TO parts;
CREATE INDEX parts_unknown ON parts (send) WHERE state = 'unknown';
CREATE INDEX parts_drafts ON parts (send) WHERE state = '` + channels.Drafted + `';
CREATE INDEX parts_by_platform_id ON parts (platform_id) WHERE platform_id <> ''`

// schemaDrafts adds an index of the few parts that are drafts.
const schemaDrafts = `CREATE INDEX parts_drafts ON parts (send) WHERE state = '` + channels.Drafted + `'`
