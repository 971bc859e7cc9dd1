package sqlbook

import (
	"strings"

	"parley/sessions/sqldb"
)

// Schema returns the book's tables, for backup and doctor.
func Schema() sqldb.Schema {
	return sqldb.Schema{
		Name:     "book",
		SQLite:   []string{schema, schemaPosts, schemaCursors, schemaDrafts, schemaNames, schemaAsks, schemaNotes, schemaRatings, schemaPeople, schemaCompact, schemaWriters, schemaErasing, schemaPlaces, schemaSignIns, schemaProposals, schemaAbout},
		Postgres: []string{asPostgres(schema), asPostgres(schemaPosts), asPostgres(schemaCursors), schemaDrafts, asPostgres(schemaNames), asPostgres(schemaAsks), asPostgres(schemaNotes), asPostgres(schemaRatings), asPostgres(schemaPeople), asPostgres(schemaWriters), schemaErasing, schemaPlaces, asPostgres(schemaSignIns), asPostgres(schemaProposals), asPostgres(schemaAbout)},
	}
}

// Times are stored as microseconds since 1970, booleans as 0 or 1.
const schema = `
CREATE TABLE IF NOT EXISTS sends (
	id      TEXT PRIMARY KEY,
	channel TEXT NOT NULL,
	chat    TEXT NOT NULL,
	thread  TEXT NOT NULL,
	begun   BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS sends_by_age ON sends (begun);
CREATE TABLE IF NOT EXISTS parts (
	send        TEXT NOT NULL,
	part        INTEGER NOT NULL,
	state       TEXT NOT NULL,
	body        TEXT NOT NULL,
	plain       TEXT NOT NULL,
	platform_id TEXT NOT NULL,
	interrupted INTEGER NOT NULL,
	code        TEXT NOT NULL,
	changed     BIGINT NOT NULL,
	PRIMARY KEY (send, part)
);
CREATE INDEX IF NOT EXISTS parts_unknown ON parts (send) WHERE state = 'unknown';
CREATE TABLE IF NOT EXISTS pairings (
	person   TEXT PRIMARY KEY,
	chat     TEXT NOT NULL,
	code     TEXT NOT NULL,
	approved INTEGER NOT NULL,
	owner    INTEGER NOT NULL,
	changed  BIGINT NOT NULL,
	expires  BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS pairings_by_code ON pairings (code);
CREATE INDEX IF NOT EXISTS pairings_by_age ON pairings (approved, expires, person);
CREATE TABLE IF NOT EXISTS offers (
	channel TEXT PRIMARY KEY,
	code    TEXT NOT NULL,
	made    BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS chats (
	channel TEXT NOT NULL,
	chat    TEXT NOT NULL,
	thread  TEXT NOT NULL,
	session TEXT NOT NULL,
	shared  INTEGER NOT NULL,
	seen    BIGINT NOT NULL,
	PRIMARY KEY (channel, chat, thread)
)`

// asPostgres changes a schema so that PostgreSQL sorts texts by their bytes, as SQLite does.
func asPostgres(schema string) string { return strings.ReplaceAll(schema, "TEXT", `TEXT COLLATE "C"`) }
