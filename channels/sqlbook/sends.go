package sqlbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

const (
	keepSends = 30 * 24 * time.Hour
)

// sends records what is sent, part by part.
type sends struct {
	db     *sqldb.DB
	begins atomic.Uint64 // counts calls of Begin; at every pruneEvery-th, old sends are deleted
	doubts uncertainSends
	early  earlySends
}

// pruneSends deletes old sends, at every pruneEvery-th call.
func (s *sends) pruneSends(now time.Time) {
	if s.begins.Add(1)%pruneEvery == 0 {
		s.db.Start(func(tx *sqldb.Tx) error { return prune(tx, now) }) // the next call deletes what this one leaves
	}
}

// Mark implements channels.Sends: it updates the part in one statement. A finished part loses its texts and never
// goes back to sending, because the caller may have been paused while another process finished the part. For the
// same reason, a sent part stays sent, and the number of interruptions never gets lower.
func (s *sends) Mark(ctx context.Context, id string, part int, now channels.SentPart) error {
	const set = `UPDATE parts SET state = ?, platform_id = ?, interrupted = CASE WHEN interrupted < ? THEN ? ELSE interrupted END, code = ?, edits = ?, under = ?, changed = ?`
	const open = ` AND state NOT IN ('sent', 'failed', 'unknown')`
	query := set + `, body = '', plain = '' WHERE send = ? AND part = ?`
	switch now.State {
	case channels.Queued, channels.Sending:
		query = set + ` WHERE send = ? AND part = ?` + open
	case channels.Drafted:
		query += open
	case channels.Failed, channels.OutcomeUnknown:
		query += ` AND state <> 'sent'`
	}
	n, err := s.db.Group(ctx, query, []any{now.State, sqldb.Text(now.PlatformID), now.Interrupted, now.Interrupted, sqldb.Text(now.Code),
		sqldb.Text(now.Edits), sqldb.Text(now.Under), toStamp(time.Now()), sqldb.Text(id), part})
	if err == nil && n == 0 {
		if err = s.checkPart(ctx, id, part); err == nil {
			err = channels.ErrFinished
		}
	}
	if err != nil {
		return fmt.Errorf("mark part %d of send %s: %w", part, id, err)
	}
	return nil
}

// prune deletes finished sends that began more than keepSends ago, at most pruneLimit of them. Because pruneLimit
// is greater than pruneEvery, old sends do not pile up.
func prune(tx *sqldb.Tx, now time.Time) error {
	const old = `SELECT id FROM sends WHERE begun < ? AND NOT EXISTS (
		SELECT 1 FROM parts WHERE parts.send = sends.id AND state IN ('queued', 'sending')) ORDER BY begun, id LIMIT ?`
	before := toStamp(now.Add(-keepSends))
	if _, err := tx.Exec(`DELETE FROM parts WHERE send IN (`+old+`)`, before, pruneLimit); err != nil {
		return err
	}
	// These are the same sends, unless another process has just deleted them: then it leaves alone those whose parts are
	// still there.
	_, err := tx.Exec(`DELETE FROM sends WHERE id IN (`+old+`) AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.send = sends.id)`, before, pruneLimit)
	return err
}

// schemaWriters records which session wrote a message even if the message is not an answer, so that it can be
// erased with the session.
const schemaWriters = `ALTER TABLE sends ADD COLUMN writer TEXT NOT NULL DEFAULT ''`

// schemaCompact stores sends and parts in one tree each, ordered by key, instead of two, so that each send writes
// fewer pages of a SQLite file. Sends are kept for 30 days, and their texts until they are sent, so there is little
// to copy.
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

// schemaDrafts adds an index of those few parts that are drafts.
const schemaDrafts = `CREATE INDEX parts_drafts ON parts (send) WHERE state = '` + channels.Drafted + `'`

// checkPart returns channels.ErrNoSend if the book has no such part.
func (s *sends) checkPart(ctx context.Context, id string, part int) error {
	var one int
	err := s.db.Read.QueryRowContext(ctx, `SELECT 1 FROM parts WHERE send = ? AND part = ?`, sqldb.Text(id), part).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return channels.ErrNoSend
	}
	return err
}
