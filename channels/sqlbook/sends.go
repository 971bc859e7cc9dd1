package sqlbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/bus"
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
	if b.begins.Add(1)%pruneEvery == 0 {
		b.db.Start(func(tx *sqldb.Tx) error { return prune(tx, now) }) // the next pruning deletes what this one leaves
	}
	return known, fresh, nil
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
// process finished the part. For the same reason interruptions only grow.
func (b *Book) Mark(ctx context.Context, id string, part int, now channels.SentPart) error {
	const set = `UPDATE parts SET state = ?, platform_id = ?, interrupted = CASE WHEN interrupted < ? THEN ? ELSE interrupted END, code = ?, edits = ?, under = ?, changed = ?`
	const open = ` AND state NOT IN ('sent', 'failed', 'unknown')`
	query := set + `, body = '', plain = '' WHERE send = ? AND part = ?`
	switch now.State {
	case channels.Queued, channels.Sending:
		query = set + ` WHERE send = ? AND part = ?` + open
	case channels.Drafted:
		query += open
	}
	n, err := b.db.Group(ctx, query, []any{now.State, sqldb.Text(now.PlatformID), now.Interrupted, now.Interrupted, sqldb.Text(now.Code),
		sqldb.Text(now.Edits), sqldb.Text(now.Under), stamp(time.Now()), sqldb.Text(id), part})
	if err == nil && n == 0 {
		err = b.checkPart(ctx, id, part)
	}
	if err != nil {
		return fmt.Errorf("mark part %d of send %s: %w", part, id, err)
	}
	return nil
}

// checkPart returns channels.ErrNoSend if the book has no such part.
func (b *Book) checkPart(ctx context.Context, id string, part int) error {
	var one int
	err := b.db.Read.QueryRowContext(ctx, `SELECT 1 FROM parts WHERE send = ? AND part = ?`, sqldb.Text(id), part).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return channels.ErrNoSend
	}
	return err
}

// Lookup implements channels.Sends: it reads a send with its parts.
func (b *Book) Lookup(ctx context.Context, id string) (channels.Send, error) {
	send, err := b.read(ctx, id)
	if err != nil {
		return channels.Send{}, fmt.Errorf("look up send %s: %w", id, err)
	}
	return send, nil
}

// read reads a send and its parts by one query, so that both are of the same moment.
func (b *Book) read(ctx context.Context, id string) (send channels.Send, err error) {
	rows, err := b.db.Read.QueryContext(ctx, `SELECT s.channel, s.chat, s.thread, s.session, s.writer, s.begun, p.state, p.body, p.plain, p.platform_id,
		p.interrupted, p.code, p.edits, p.under, p.file, p.changed
		FROM sends s LEFT JOIN parts p ON p.send = s.id WHERE s.id = ? ORDER BY p.part`, sqldb.Text(id))
	if err != nil {
		return channels.Send{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found := false
	for rows.Next() {
		var r sendRow
		if err := r.scan(rows); err != nil {
			return channels.Send{}, err
		}
		if !found {
			found, send = true, channels.Send{ID: id, To: r.to, Session: r.session, Writer: r.writer, At: timeOf(r.begun)}
		}
		if !r.state.Valid { // a message without parts
			continue
		}
		send.Parts = append(send.Parts, r.part())
		if at := timeOf(r.changed.Int64); at.After(send.At) {
			send.At = at
		}
	}
	if err := rows.Err(); err != nil {
		return channels.Send{}, err
	}
	if !found {
		return channels.Send{}, channels.ErrNoSend
	}
	return send, nil
}

// A sendRow is one row of read: a send with one of its parts, or with none.
type sendRow struct {
	to                                           bus.Address
	session, writer                              string
	begun                                        int64
	changed, interrupted, file                   sql.NullInt64
	state, body, plain, sent, code, edits, under sql.NullString
}

func (r *sendRow) scan(rows *sql.Rows) error {
	err := rows.Scan(&r.to.Channel, &r.to.Chat, &r.to.Thread, &r.session, &r.writer, &r.begun, &r.state, &r.body, &r.plain, &r.sent,
		&r.interrupted, &r.code, &r.edits, &r.under, &r.file, &r.changed)
	restoreTexts(&r.to.Channel, &r.to.Chat, &r.to.Thread, &r.session, &r.writer, &r.body.String, &r.plain.String, &r.sent.String, &r.code.String,
		&r.edits.String, &r.under.String)
	return err
}

// part returns the row's part.
func (r *sendRow) part() channels.SentPart {
	return channels.SentPart{
		Text: r.body.String, Plain: r.plain.String, State: r.state.String, Edits: r.edits.String, Under: r.under.String,
		File: r.file.Int64 != 0, PlatformID: r.sent.String, Interrupted: int(r.interrupted.Int64), Code: r.code.String,
	}
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

// Drafts implements channels.Drafts: it lists a channel's drafts, the oldest first.
func (b *Book) Drafts(ctx context.Context, channel string) ([]channels.Send, error) {
	ids, err := queryAll(ctx, b.db.Read, func(scan func(...any) error) (id string, err error) {
		err = scan(&id)
		restoreTexts(&id)
		return id, err
	}, `SELECT send FROM parts JOIN sends ON sends.id = send WHERE state = '`+channels.Drafted+`' AND channel = ? ORDER BY begun, send`, sqldb.Text(channel))
	if err != nil {
		return nil, fmt.Errorf("list the drafts of %s: %w", channel, err)
	}
	drafts := make([]channels.Send, 0, len(ids))
	for _, id := range ids {
		draft, err := b.Lookup(ctx, id)
		if errors.Is(err, channels.ErrNoSend) { // erased meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, draft)
	}
	return drafts, nil
}
