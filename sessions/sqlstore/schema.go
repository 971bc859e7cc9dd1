package sqlstore

import (
	"slices"
	"strings"

	"parley/sessions/activity"
	"parley/sessions/archive"
	"parley/sessions/bill"
	"parley/sessions/jobs"
	"parley/sessions/nodes"
	"parley/sessions/participants"
	"parley/sessions/rates"
	"parley/sessions/schedules"
	"parley/sessions/search"
	"parley/sessions/sqldb"
	"parley/sessions/subagents"
	"parley/sessions/subscriptions"
)

// A dialect contains what differs between the databases in the SQL of the tables.
type dialect struct {
	id, bytes              string // types of columns
	session, sessions      string // the type of a reference to a session, and the storage options of the table of sessions
	usage, bill            string // the tables of what models cost
	searchIndex, vectors   string // the full-text index, and the table of vectors
	fillRecency, scheduled string // how the index columns of old sessions are filled, and which entries are runs of a schedule
	counts                 string // the storage options of the table of counts
	keyOnlyTable           string // the storage options of a table that is no more than its key
	participants           string // the table of who has spoken in which session
	sums                   string // the triggers that keep the sums of usage up to date
	// Statements that only SQLite needs; "" elsewhere.
	compactReservations, packs string // migrations of their own
	dropSession, dropByTurn    string // how two migrations drop an index
}

// Schema returns the store's tables for SQLite and for PostgreSQL: the same tables, with different types.
func Schema() sqldb.Schema {
	return sqldb.Schema{
		Name: "store", DerivedTables: slices.Concat(search.Tables(), participants.Tables(), bill.KeptTables(), []string{"packs"}),
		SQLite: dialect{
			id: "INTEGER", bytes: "TEXT",
			session: "BIGINT REFERENCES sessions(id)",
			usage:   usageView, bill: bill.SQLite, searchIndex: search.SQLite, vectors: search.SQLiteVectors, fillRecency: fillRecency, scheduled: scheduledBy,
			counts: " WITHOUT ROWID", keyOnlyTable: " WITHOUT ROWID", participants: participants.SQLite, sums: bill.KeptTriggers(), compactReservations: compactReservations, packs: packsMigration, dropSession: "DROP INDEX audit_session;", dropByTurn: "DROP INDEX audit_by_turn;",
		}.migrations(),
		Postgres: dialect{
			id: "BIGINT GENERATED ALWAYS AS IDENTITY", bytes: `TEXT COLLATE "C"`, // sorted as in SQLite
			// No foreign key: an append locks its session's row, so that entries
			// without a session cannot come to be, and a check would cost time.
			session: "BIGINT",
			// Each append updates its session's row; free room on its page makes that cheap.
			sessions: " WITH (fillfactor = 50)",
			usage:    usagePostgres, bill: bill.Postgres, searchIndex: search.Postgres, vectors: search.PostgresVectors, fillRecency: fillRecencyPostgres, scheduled: scheduledByPostgres,
			counts:       " WITH (fillfactor = 50)", // as for sessions
			participants: participants.Postgres, sums: bill.KeptTriggersPostgres(),
		}.migrations(),
		LockOrder: []string{"sessions", "entries", "audit"},
	}
}

// migrations returns the migrations that make the tables, in the order in which releases have added them.
// A migration never changes.
func (d dialect) migrations() []string {
	sql := strings.NewReplacer("{id}", d.id, "{bytes}", d.bytes, "{session}", d.session, "{sessions}", d.sessions, "{fill}", d.fillRecency, "{schedule}", d.scheduled, "{counts}", d.counts, "{keyed}", d.keyOnlyTable, "{sums}", d.sums).Replace
	all := []string{
		sql(firstTables) + d.usage,
		sql(erasureTables),
		sql(auditTable),
		sql(jobs.Migration),
		sql(schedules.Migration),
		d.bill,
		sql(bill.Budgets),
		sql(subagents.Migration),
		erasureCount,
		d.compactReservations,
		sql(bill.Holders + holdersMigration),
		erasingIndexes,
		auditByTurn + d.dropSession,
		sql(auditNotes) + d.dropByTurn,
		titlesMigration,
		sql(recencyMigration),
		schedules.PauseMigration,
		modelTitles,
		sql(scheduleRuns),
		modelTitlesSince,
		sql(activity.Migration),
		d.searchIndex,
		d.vectors,
		d.packs,
		sql(subscriptions.Migration),
		sql(rates.Migration),
		sql(archive.Migration),
		subscriptions.PlaceMigration,
		sql(d.participants),
		sql(bill.KeptSums),
		sql(nodes.Migration),
		sql(nodes.WaitMigration),
	}
	return slices.DeleteFunc(all, func(step string) bool { return step == "" })
}

// firstTables creates the tables of the first release. Later tables are added as further
// migrations.
//
// Times are texts in UTC with a fixed width, so that they sort, and a day is their first ten characters.
// A missing cause, person or call is stored as "".
const firstTables = `
CREATE TABLE sessions (
	id         {id} PRIMARY KEY,
	key        {bytes} NOT NULL UNIQUE,
	fence      BIGINT NOT NULL,  -- the lowest that may write
	last       BIGINT NOT NULL,  -- the number of the last entry, 0 for none
	summary    BIGINT NOT NULL,  -- the number of the newest summary, 0 for none
	covers     BIGINT NOT NULL,  -- the last number that it stands for
	unfinished TEXT NOT NULL,    -- JSON: the turns that are not finished; empty for none
	created    TEXT NOT NULL,
	updated    TEXT NOT NULL     -- its last append
){sessions};

CREATE TABLE entries (
	session {session} NOT NULL,
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
`

// compactReservations is the migration that stores reservations in one B-tree of SQLite instead of three,
// so that each turn writes fewer pages of the file. Reservations stay for a week, so there are few; the
// index by day only served to delete old ones once a day.
const compactReservations = `
CREATE TABLE compact (
	id      TEXT PRIMARY KEY,
	person  TEXT NOT NULL,
	day     TEXT NOT NULL,
	tokens  BIGINT NOT NULL,
	settled BOOLEAN NOT NULL
) WITHOUT ROWID;
INSERT INTO compact (id, person, day, tokens, settled) SELECT id, person, day, tokens, settled FROM reservations;
DROP TABLE reservations;
ALTER TABLE compact RENAME TO reservations;
`

// holdersMigration is the migration that records who holds reserved tokens, and how long they count as being
// worked on; bill.Holders does the same for money.
const holdersMigration = `
ALTER TABLE reservations ADD COLUMN session {bytes} NOT NULL DEFAULT '';
ALTER TABLE reservations ADD COLUMN used BIGINT NOT NULL DEFAULT 0;
ALTER TABLE reservations ADD COLUMN sent BIGINT NOT NULL DEFAULT 0;
ALTER TABLE reservations ADD COLUMN until BIGINT NOT NULL DEFAULT 0;       -- 0: the release before has made it
ALTER TABLE reservations ADD COLUMN abandoned BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX reservations_open ON reservations (until) WHERE NOT settled;
`

// usageView creates a view for operators that sums up the use of models.
const usageView = `
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

// usagePostgres leaves out documents with an escaped NUL: PostgreSQL can store them as text but cannot
// read them as JSON.
const usagePostgres = `
CREATE VIEW usage AS
SELECT s.key                         AS session,
       e.person                      AS person,
       coalesce(d ->> 'agent', '')   AS agent,
       coalesce(d ->> 'model', '')   AS model,
       substr(e.at, 1, 10)           AS day,
       count(*)                      AS calls,
       coalesce(sum((d ->> 'input')::bigint), 0)      AS input,
       coalesce(sum((d ->> 'cached')::bigint), 0)     AS cached,
       coalesce(sum((d ->> 'output')::bigint), 0)     AS output,
       count(*) FILTER (WHERE d ->> 'estimated' = 'true') AS estimated
FROM entries e JOIN sessions s ON s.id = e.session,
     LATERAL (SELECT CASE WHEN position('\u0000' IN e.data) = 0 THEN e.data::json END AS d) AS doc
WHERE e.kind = 'usage' AND e.data <> ''
GROUP BY 1, 2, 3, 4, 5;
`
