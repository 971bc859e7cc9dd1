package sqlitebus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// Schema returns the bus's tables. Times are microseconds since 1970. The number of a mailbox's
// claims and the end of its wait are in the row of its first message (attempts, due) and are
// deleted with it, so that an empty mailbox leaves nothing.
func Schema() sqldb.Schema {
	return sqldb.Schema{Name: "bus", SQLite: []string{`
CREATE TABLE message (
	seq        INTEGER PRIMARY KEY,
	topic      TEXT NOT NULL,
	key        TEXT NOT NULL,
	id         TEXT NOT NULL,
	replays    INTEGER NOT NULL,
	urgent     INTEGER NOT NULL,
	not_before INTEGER NOT NULL,
	published  INTEGER NOT NULL,
	attempts   INTEGER NOT NULL DEFAULT 0,
	due        INTEGER NOT NULL DEFAULT 0,
	body       BLOB NOT NULL
);
CREATE INDEX message_key ON message (topic, key);
CREATE TABLE seen (
	day   INTEGER NOT NULL,
	topic TEXT NOT NULL,
	id    TEXT NOT NULL,
	PRIMARY KEY (day, topic, id)
) WITHOUT ROWID;
CREATE TABLE dead (
	n          INTEGER PRIMARY KEY,
	topic      TEXT NOT NULL,
	id         TEXT NOT NULL,
	key        TEXT NOT NULL,
	seq        INTEGER NOT NULL,
	replays    INTEGER NOT NULL,
	urgent     INTEGER NOT NULL,
	not_before INTEGER NOT NULL,
	published  INTEGER NOT NULL,
	attempts   INTEGER NOT NULL,
	reason     TEXT NOT NULL,
	buried     INTEGER NOT NULL,
	body       BLOB NOT NULL,
	UNIQUE (topic, id)
);
CREATE TABLE pause (topic TEXT PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
`}, Adopt: adoption()}
}

// adoption returns the statements that add what another file of a bus has; see [sqldb.Schema]. What
// was published in both, or was taken over before, stays as it is here. If two messages have the
// same number, all that come get higher ones, so that mailboxes keep their order.
func adoption() []string {
	const day = "86400000000" // in microseconds
	return []string{
		`INSERT INTO main.message (seq, topic, key, id, replays, urgent, not_before, published, attempts, due, body)
		SELECT f.seq + CASE
			WHEN EXISTS (SELECT 1 FROM main.message AS m JOIN {from}.message AS o ON m.seq = o.seq WHERE m.id <> o.id OR m.topic <> o.topic OR m.published <> o.published)
			THEN max((SELECT coalesce(max(seq), 0) FROM main.message), (SELECT coalesce(max(value), 0) FROM main.meta WHERE name = '` + metaSeq + `'))
			ELSE 0 END,
			f.topic, f.key, f.id, f.replays, f.urgent, f.not_before, f.published, f.attempts, f.due, f.body
		FROM {from}.message AS f
		WHERE NOT EXISTS (SELECT 1 FROM main.seen AS s
				WHERE s.day IN (f.published / ` + day + ` - 1, f.published / ` + day + `, f.published / ` + day + ` + 1) AND s.topic = f.topic AND s.id = f.id)
			AND NOT EXISTS (SELECT 1 FROM main.message AS m WHERE m.topic = f.topic AND m.key = f.key AND m.id = f.id AND m.published = f.published)
			AND NOT EXISTS (SELECT 1 FROM main.dead AS d WHERE d.topic = f.topic AND d.id = f.id AND d.published = f.published)
		ORDER BY f.seq`,
		`INSERT OR IGNORE INTO main.dead (topic, id, key, seq, replays, urgent, not_before, published, attempts, reason, buried, body)
		SELECT topic, id, key, seq, replays, urgent, not_before, published, attempts, reason, buried, body FROM {from}.dead ORDER BY n`,
		`INSERT OR IGNORE INTO main.seen (day, topic, id) SELECT day, topic, id FROM {from}.seen`,
		`INSERT INTO main.pause (topic, until) SELECT topic, until FROM {from}.pause WHERE true
		ON CONFLICT (topic) DO UPDATE SET until = max(until, excluded.until)`,
		`INSERT INTO main.meta (name, value) SELECT name, value FROM {from}.meta WHERE true
		ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`,
		`INSERT INTO main.meta (name, value) SELECT '` + metaSeq + `', coalesce(max(seq), 0) FROM main.message WHERE true
		ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`,
	}
}

// The names in table meta.
const (
	metaClock = "clock" // a number above every fence ever given out
	metaSeq   = "seq"   // the highest sequence number that may have been given out
)

const (
	setMeta   = `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	raiseMeta = `INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)`
	// getNumbers reads two of the values.
	getNumbers = `SELECT coalesce((SELECT value FROM meta WHERE name = ?), 0), coalesce((SELECT value FROM meta WHERE name = ?), 0)`
)

// reserveAndLoad reserves numbers and builds the scheduler from the rows. The numbers are reserved
// before any is given out, because they must not repeat even if this process crashes at once. While
// the disk is flushed for that, the rows are read.
func (b *Bus) reserveAndLoad(ctx context.Context, maxHold time.Duration) error {
	var stamp, seq int64
	if err := b.db.Read.QueryRowContext(ctx, getNumbers, metaClock, metaSeq).Scan(&stamp, &seq); err != nil {
		return fmt.Errorf("read the numbers given so far: %w", err)
	}
	stamp = max(stamp, time.Now().UnixMicro())
	reserved := make(chan error, 1)
	go func() {
		reserved <- b.db.Write(ctx, func(tx *sqldb.Tx) error {
			if _, err := tx.Exec(setMeta, metaClock, stamp+clockAhead.Microseconds()); err != nil {
				return err
			}
			_, err := tx.Exec(setMeta, metaSeq, seq+seqAhead)
			return err
		})
	}()
	b.clock = newClock(stamp)
	b.seqs = newSequence(seq)
	b.sched = newScheduler(b.clock, maxHold)
	b.feeds = newFeeds(b.clock)
	b.holds = &holds{names: map[string]*hold{}}
	err := b.loadMail(ctx)
	if wrong := <-reserved; wrong != nil {
		err = errors.Join(fmt.Errorf("reserve numbers: %w", wrong), err)
	}
	return err
}

// loadMail restores the topics and the mailboxes.
func (b *Bus) loadMail(ctx context.Context) error {
	if err := b.loadTopics(ctx); err != nil {
		return fmt.Errorf("read topics: %w", err)
	}
	if err := b.loadMailboxes(ctx); err != nil {
		return fmt.Errorf("read mailboxes: %w", err)
	}
	return nil
}

// loadTopics restores the topics with their pauses.
func (b *Bus) loadTopics(ctx context.Context) error {
	rows, err := b.db.Read.QueryContext(ctx, `
		SELECT topic, max(until) FROM (
			SELECT topic, until FROM pause UNION ALL
			SELECT DISTINCT topic, 0 FROM dead)
		GROUP BY topic`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	for rows.Next() {
		var name bus.Topic
		var until int64
		if err := rows.Scan(&name, &until); err != nil {
			return err
		}
		b.sched.restoreTopic(name, fromMicro(until))
	}
	return rows.Err()
}

// loadMailboxes restores the mailboxes in the order of their first messages, which is
// nearest to the order in which they became due: that is not stored. Bodies stay on disk
// until somebody asks for them. A mailbox may have been worked on before a crash, so its
// next claim has to be durable first.
func (b *Bus) loadMailboxes(ctx context.Context) error {
	rows, err := b.db.Read.QueryContext(ctx, `
		SELECT m.topic, m.key, m.published, m.not_before, m.attempts, m.due, g.n, g.last, g.urgent, g.bytes
		FROM (SELECT min(seq) AS first, max(seq) AS last, count(*) AS n, max(CASE WHEN urgent THEN seq ELSE 0 END) AS urgent,
				sum(length(body)) AS bytes
			FROM message GROUP BY topic, key) AS g
		JOIN message AS m ON m.seq = g.first
		ORDER BY m.seq`)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported errors already
	for rows.Next() {
		var topic bus.Topic
		var notBefore, due int64
		x := &box{recordFirst: true, heapIndex: -1}
		err := rows.Scan(&topic, &x.key, &x.mail.published, &notBefore, &x.attempts, &due, &x.mail.n, &x.mail.last, &x.mail.urgent,
			&x.bytes)
		if err != nil {
			return err
		}
		x.mail.notBefore = fromMicro(notBefore)
		b.sched.restoreMailbox(topic, x, fromMicro(due))
	}
	return rows.Err()
}

// toMicro and fromMicro convert times for the tables; the zero time is 0.
func toMicro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}
