package sqlbook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

const (
	keepSubmissions = 30 * 24 * time.Hour
	keepKeys        = 24 * time.Hour
	keepSubjects    = 30 * 24 * time.Hour
)

// schemaPosts adds the tables for submissions (what programs have posted), for their idempotency keys and for their
// subjects; and the columns for parts that edit another part, belong to another part, or contain a file. Keys have
// a table of their own because a key may be used again after a day.
const schemaPosts = `
CREATE TABLE posts (
	id           TEXT PRIMARY KEY,
	origin       TEXT NOT NULL,
	idem         TEXT NOT NULL,
	digest       TEXT NOT NULL,
	destinations TEXT NOT NULL,
	expires      BIGINT NOT NULL,
	made         BIGINT NOT NULL
);
CREATE INDEX posts_by_age ON posts (made);
CREATE TABLE post_keys (
	origin TEXT NOT NULL,
	idem   TEXT NOT NULL,
	post   TEXT NOT NULL,
	made   BIGINT NOT NULL,
	PRIMARY KEY (origin, idem)
);
CREATE INDEX post_keys_by_age ON post_keys (made);
CREATE TABLE subjects (
	origin      TEXT NOT NULL,
	subject     TEXT NOT NULL,
	channel     TEXT NOT NULL,
	chat        TEXT NOT NULL,
	thread      TEXT NOT NULL,
	platform_id TEXT NOT NULL,
	used        BIGINT NOT NULL,
	PRIMARY KEY (origin, subject, channel, chat, thread)
);
CREATE INDEX subjects_by_age ON subjects (used);
ALTER TABLE parts ADD COLUMN edits TEXT NOT NULL DEFAULT '';
ALTER TABLE parts ADD COLUMN under TEXT NOT NULL DEFAULT '';
ALTER TABLE parts ADD COLUMN file INTEGER NOT NULL DEFAULT 0`

// A Sharer is a bus that keeps its messages in the book's database, and so can publish a message in one of the
// book's writes.
type Sharer interface {
	// Share returns the publication of a message as a share in a write of the book, or an error if the message can
	// never be published.
	Share(topic, key, id string, body []byte) (sqldb.Share, error)
}

// submissions stores what programs have posted, and the last message about each of their subjects.
type submissions struct {
	db      *sqldb.DB
	sharer  Sharer        // publishes messages in the book's writes; nil if there is no such bus
	changes atomic.Uint64 // counts calls of pruneSometimes; at every pruneEvery-th, old submissions are deleted
}

// PublishBy lets the book publish a submission's message together with the submission, through a bus in the same
// database. It must be called before anything is submitted.
func (s *submissions) PublishBy(c Sharer) { s.sharer = c }

// Accept implements channels.Submissions: it records the submission in one transaction. If there are two requests
// with the same key, the second waits for the first and then finds its submission.
func (s *submissions) Accept(ctx context.Context, p channels.Submission) (recorded channels.Submission, fresh bool, err error) {
	recorded, fresh, _, err = s.accept(ctx, p, nil)
	return recorded, fresh, err
}

// AcceptAndPublish implements channels.SubmissionPublisher: the transaction that records the submission also stores
// the message.
func (s *submissions) AcceptAndPublish(ctx context.Context, p channels.Submission, topic bus.Topic, m bus.Message) (recorded channels.Submission, published bool, err error) {
	var share sqldb.Share
	if s.sharer != nil && !m.Urgent && m.NotBefore.IsZero() {
		// If it can never be published, the caller will learn why when it tries to publish it.
		share, _ = s.sharer.Share(string(topic), m.Key, m.ID, m.Body)
	}
	recorded, _, published, err = s.accept(ctx, p, share)
	if share != nil {
		share.End(published)
	}
	return recorded, published, err
}

// accept records a submission, and writes the share if the submission is new (fresh). published reports whether that
// was written. If accept fails, nothing is published.
func (s *submissions) accept(ctx context.Context, p channels.Submission, share sqldb.Share) (recorded channels.Submission, fresh, published bool, err error) {
	if p.At.IsZero() {
		p.At = time.Now()
	}
	p.At, p.Expires = timeOf(toStamp(p.At)), timeOf(toStamp(p.Expires))
	places, err := plainjson.Marshal(p.Destinations)
	if err != nil {
		return channels.Submission{}, false, false, fmt.Errorf("accept submission %s: %w", p.ID, err)
	}
	err = s.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		published = false
		if recorded, fresh, err = record(tx, p, string(places)); err != nil || !fresh || share == nil {
			return err
		}
		refused, err := share.Write(tx)
		published = refused == nil
		return err
	})
	switch {
	case err != nil:
		return channels.Submission{}, false, false, fmt.Errorf("accept submission %s: %w", p.ID, err)
	case recorded.Digest != p.Digest:
		return channels.Submission{}, false, false, fmt.Errorf("accept submission %s: %w", p.ID, channels.ErrKeyReused)
	}
	s.pruneSometimes()
	return recorded, fresh, published, nil
}

// record records a submission to places in a transaction, unless the submission or its key is already recorded; then it
// returns what is recorded, and fresh is false.
func record(tx *sqldb.Tx, p channels.Submission, places string) (recorded channels.Submission, fresh bool, err error) {
	id, err := claimKey(tx, p)
	if err != nil {
		return channels.Submission{}, false, err
	}
	if id == p.ID {
		n, err := tx.Exec(`INSERT INTO posts (id, origin, idem, digest, destinations, expires, made)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
			append(textArgs(p.ID, p.Origin, p.Key, p.Digest, places), toStamp(p.Expires), toStamp(p.At))...)
		if err != nil || n > 0 {
			return p, true, err
		}
	}
	recorded, err = scanSubmission(func(dest ...any) error { return tx.Get(submissionByID, textArgs(id), dest...) })
	return recorded, false, err
}

// claimKey returns the id of the submission that owns p's key: p itself, unless another submission has used the key
// within the last day.
func claimKey(tx *sqldb.Tx, p channels.Submission) (id string, err error) {
	if p.Key == "" {
		return p.ID, nil
	}
	n, err := tx.Exec(`INSERT INTO post_keys (origin, idem, post, made) VALUES (?, ?, ?, ?)
		ON CONFLICT (origin, idem) DO UPDATE SET post = excluded.post, made = excluded.made WHERE post_keys.made < ?`,
		append(textArgs(p.Origin, p.Key, p.ID), toStamp(p.At), toStamp(p.At.Add(-keepKeys)))...)
	if err != nil || n > 0 {
		return p.ID, err
	}
	err = tx.Get(`SELECT post FROM post_keys WHERE origin = ? AND idem = ?`, textArgs(p.Origin, p.Key), &id)
	return sqldb.Untext(id), err
}

const submissionByID = `SELECT id, origin, idem, digest, destinations, expires, made FROM posts WHERE id = ?`

// scanSubmission reads a submission from the columns of submissionByID.
func scanSubmission(scan func(...any) error) (p channels.Submission, err error) {
	var places string
	var expires, made int64
	if err := scan(&p.ID, &p.Origin, &p.Key, &p.Digest, &places, &expires, &made); err != nil {
		return channels.Submission{}, err
	}
	restoreTexts(&p.ID, &p.Origin, &p.Key, &p.Digest, &places)
	p.Expires, p.At = timeOf(expires), timeOf(made)
	return p, json.Unmarshal([]byte(places), &p.Destinations)
}

// Submission implements channels.Submissions: it reads one submission by its id.
func (s *submissions) Submission(ctx context.Context, id string) (channels.Submission, error) {
	p, err := scanSubmission(s.db.Read.QueryRowContext(ctx, submissionByID, textArgs(id)...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = channels.ErrNoSend
	}
	if err != nil {
		return channels.Submission{}, fmt.Errorf("look up submission %s: %w", id, err)
	}
	return p, nil
}

// BindMessage implements channels.Subjects: it replaces the id that is stored for the subject.
func (s *submissions) BindMessage(ctx context.Context, origin, subject string, at bus.Address, platformID string) error {
	_, err := s.db.Exec(ctx, `INSERT INTO subjects (origin, subject, channel, chat, thread, platform_id, used) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (origin, subject, channel, chat, thread) DO UPDATE SET platform_id = excluded.platform_id, used = excluded.used`,
		append(textArgs(origin, subject, at.Channel, at.Chat, at.Thread, platformID), toStamp(time.Now()))...)
	if err != nil {
		return fmt.Errorf("bind a subject: %w", err)
	}
	s.pruneSometimes()
	return nil
}

// BoundMessage implements channels.Subjects: it reads the id that is stored for the subject.
func (s *submissions) BoundMessage(ctx context.Context, origin, subject string, at bus.Address) (platformID string, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT platform_id FROM subjects
		WHERE origin = ? AND subject = ? AND channel = ? AND chat = ? AND thread = ?`,
		textArgs(origin, subject, at.Channel, at.Chat, at.Thread)...).Scan(&platformID)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up a subject: %w", err)
	}
	restoreTexts(&platformID)
	return platformID, nil
}

// pruneSometimes starts deleting old submissions in the background, at every pruneEvery-th call.
func (s *submissions) pruneSometimes() {
	if s.changes.Add(1)%pruneEvery == 0 {
		s.db.Start(func(tx *sqldb.Tx) error { return pruneSubmissions(tx, time.Now()) }) // the next call deletes what this one leaves
	}
}

// pruneSubmissions deletes old submissions, keys and subjects, at most pruneLimit of each.
func pruneSubmissions(tx *sqldb.Tx, now time.Time) error {
	for _, old := range []struct {
		query  string
		before time.Time
	}{
		{`DELETE FROM posts WHERE id IN (SELECT id FROM posts WHERE made < ? ORDER BY made, id LIMIT ?)`, now.Add(-keepSubmissions)},
		{`DELETE FROM post_keys WHERE (origin, idem) IN (SELECT origin, idem FROM post_keys WHERE made < ? ORDER BY made LIMIT ?)`, now.Add(-keepKeys)},
		{`DELETE FROM subjects WHERE (origin, subject, channel, chat, thread) IN (
			SELECT origin, subject, channel, chat, thread FROM subjects WHERE used < ? ORDER BY used LIMIT ?)`, now.Add(-keepSubjects)},
	} {
		if _, err := tx.Exec(old.query, toStamp(old.before), pruneLimit); err != nil {
			return err
		}
	}
	return nil
}
