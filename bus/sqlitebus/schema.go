package sqlitebus

import (
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
`}, AdoptStatements: adoption()}
}

// adoption returns the statements that copy the data from another bus's file; see [sqldb.Schema]. What
// was published in both files, or was copied before, stays as it is here. If two messages have the same
// number, all copied messages get higher numbers, so that mailboxes keep their order.
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
