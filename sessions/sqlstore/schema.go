package sqlstore

// This file holds what one kind of database says differently from another. All
// other queries are in the tongue that SQLite and PostgreSQL share.

// migrations are the versions of the schema, each a script that runs once.
func migrations() []string { return []string{first} }

// first is the schema of the first release.
//
// Times are text in UTC of one width, so that they sort, and a day is their
// first ten characters. An absent cause, person or call is the empty text.
const first = `
CREATE TABLE sessions (
	id         INTEGER PRIMARY KEY,
	key        TEXT NOT NULL UNIQUE,
	fence      BIGINT NOT NULL,  -- the lowest that may write
	last       BIGINT NOT NULL,  -- the number of the last entry, 0 for none
	summary    BIGINT NOT NULL,  -- the number of the newest summary, 0 for none
	covers     BIGINT NOT NULL,  -- the last number that it stands for
	unfinished TEXT NOT NULL,    -- JSON: the turns that are not finished; empty for none
	created    TEXT NOT NULL,
	updated    TEXT NOT NULL     -- its last append
);

CREATE TABLE entries (
	session BIGINT NOT NULL REFERENCES sessions(id),
	n       BIGINT NOT NULL,
	turn    TEXT NOT NULL,
	kind    TEXT NOT NULL,
	at      TEXT NOT NULL,
	cause   TEXT NOT NULL,
	person  TEXT NOT NULL,
	call    TEXT NOT NULL,
	data    TEXT NOT NULL,       -- JSON, or empty
	PRIMARY KEY (session, n)
);

CREATE UNIQUE INDEX entries_cause ON entries (session, cause) WHERE cause <> '';

CREATE TABLE spending (
	person TEXT NOT NULL,
	day    TEXT NOT NULL,
	tokens BIGINT NOT NULL,      -- spent and reserved
	PRIMARY KEY (person, day)
);

CREATE TABLE reservations (
	id      TEXT PRIMARY KEY,
	person  TEXT NOT NULL,
	day     TEXT NOT NULL,
	tokens  BIGINT NOT NULL,     -- reserved, or once settled what it has cost
	settled BOOLEAN NOT NULL
);

CREATE INDEX reservations_day ON reservations (day);

CREATE VIEW usage AS
SELECT s.key                            AS session,
       e.person                         AS person,
       coalesce(e.data ->> 'agent', '') AS agent,
       coalesce(e.data ->> 'model', '') AS model,
       substr(e.at, 1, 10)              AS day,
       count(*)                         AS calls,
       sum(coalesce(e.data ->> 'input', 0))     AS input,
       sum(coalesce(e.data ->> 'cached', 0))    AS cached,
       sum(coalesce(e.data ->> 'output', 0))    AS output,
       sum(coalesce(e.data ->> 'estimated', 0)) AS estimated
FROM entries e JOIN sessions s ON s.id = e.session
WHERE e.kind = 'usage' AND e.data <> ''
GROUP BY 1, 2, 3, 4, 5;
`
