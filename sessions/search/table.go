package search

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
)

// The log itself shows what is not in the index yet: the column indexed of a session is the number of the
// entry up to which all are indexed. An append by any release leaves it unchanged; Fill indexes the later
// entries, many in one transaction, because updating the index with each entry would make an append half
// as expensive again; and a search reads the entries after that number. So this delays no hits, and
// nothing is lost if a process dies.

// SQLite is the migration that adds the index to a schema with entries and sessions. Its rows have no
// content: a search reads the entries of the rows that it finds. The number of a row consists of those of
// the session and the entry; see rowOf.
//
// Every step of an erasure deletes or changes rows of entries, and triggers remove their words from the
// index in the same transaction. So nothing that was erased is found, and no step has to know about the
// index. Fill indexes what is left of a changed entry.
const SQLite = `
ALTER TABLE sessions ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0;
CREATE VIRTUAL TABLE entry_words USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
INSERT INTO entry_words (entry_words, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER entries_gone AFTER DELETE ON entries WHEN old.kind IN ('user', 'text', 'summary', 'tool_result', 'notice', 'attached', 'fetched')
BEGIN DELETE FROM entry_words WHERE rowid = (old.session << 28) + old.n; END;
CREATE TRIGGER entries_changed AFTER UPDATE OF data ON entries WHEN old.kind IN ('user', 'text', 'summary', 'tool_result', 'notice', 'attached', 'fetched')
BEGIN
	DELETE FROM entry_words WHERE rowid = (old.session << 28) + old.n;
	UPDATE sessions SET indexed = old.n - 1 WHERE id = old.session AND indexed >= old.n;
END;
` + wordRulesTable

// Postgres is the same migration for PostgreSQL. The triggers also work for the release before, which
// does not know about the index. No insertion merges pending entries into the index; Fill does so, and
// the server's own maintenance.
const Postgres = `
ALTER TABLE sessions ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0;
CREATE TABLE entry_words (
	session BIGINT NOT NULL,
	n       BIGINT NOT NULL,
	words   TSVECTOR NOT NULL,
	PRIMARY KEY (session, n)
);
CREATE INDEX entry_words_words ON entry_words USING gin (words) WITH (gin_pending_list_limit = 65536);
CREATE FUNCTION parley_forget_words() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	DELETE FROM entry_words w USING gone g WHERE w.session = g.session AND w.n = g.n;
	RETURN NULL;
END $$;
CREATE TRIGGER entries_gone AFTER DELETE ON entries REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION parley_forget_words();
CREATE FUNCTION parley_renew_words() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	DELETE FROM entry_words WHERE session = OLD.session AND n = OLD.n;
	UPDATE sessions SET indexed = OLD.n - 1 WHERE id = OLD.session AND indexed >= OLD.n;
	RETURN NULL;
END $$;
CREATE TRIGGER entries_changed AFTER UPDATE OF data ON entries FOR EACH ROW WHEN (OLD.kind IN ('user', 'text', 'summary', 'tool_result', 'notice', 'attached', 'fetched'))
	EXECUTE FUNCTION parley_renew_words();
` + wordRulesTable

// SQLiteVectors and PostgresVectors are the migrations that add the vectors of entries; see [vectors.SQLite].
const (
	SQLiteVectors   = vectors.SQLite
	PostgresVectors = vectors.Postgres
)

// wordRulesTable has one row, which says in which way the words of the index were cut.
const wordRulesTable = `
CREATE TABLE word_cut (
	one BIGINT PRIMARY KEY,
	cut BIGINT NOT NULL
);
INSERT INTO word_cut (one, cut) VALUES (1, 1);
`

// Tables returns the tables that Copied fills or has filled.
func Tables() []string {
	return append(vectors.Tables(), "entry_words", "entry_words_config", "entry_words_data", "entry_words_docsize", "entry_words_idx", "word_cut")
}

// Copied completes the copy of a store in SQLite in a transaction that has copied its other tables to PostgreSQL. It
// has the index filled there, and copies the vectors. It returns the number of these.
func Copied(ctx context.Context, from *sqldb.DB, tx *sqldb.Tx) (copied int64, err error) {
	if _, err := tx.Exec("UPDATE sessions SET indexed = 0 WHERE indexed > 0"); err != nil {
		return 0, err
	}
	return vectors.Copy(ctx, from, tx)
}

var _ interface {
	Index
	Rebuilder
} = (*Table)(nil)

// A Table is the index in a database. Several processes may use the same one at a time.
type Table struct {
	db          *sqldb.DB
	filling     filling
	frequencies atomic.Pointer[frequencies] // nil until they are read, and on SQLite
}

// NewTable returns the index in a database that has the tables of a store.
func NewTable(db *sqldb.DB) *Table { return &Table{db: db} }

// maxEntries limits the numbers of a session's indexed entries: rowOf has no room for higher ones.
const (
	numberBits = 28
	maxEntries = 1 << numberBits
)

// rowOf returns the number of an entry's row: in the index on SQLite, and on both databases while a query
// is answered.
func rowOf(session, n int64) int64 { return session<<numberBits + n }

// A row is an entry to be indexed.
type row struct {
	n     int64
	words string // the result of wordsOf, not empty
}

// putSQLite replaces the index's rows for a session's entries from number from to number to.
func putSQLite(tx *sqldb.Tx, session, from, to int64, rows []row) error {
	if _, err := tx.Exec("DELETE FROM entry_words WHERE rowid BETWEEN ? AND ?", rowOf(session, from), rowOf(session, min(to, maxEntries-1))); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := tx.Exec("INSERT INTO entry_words (rowid, words) VALUES (?, ?)", rowOf(session, r.n), sessionKey(session)+" "+r.words); err != nil {
			return fmt.Errorf("index entry %d: %w", r.n, err)
		}
	}
	return nil
}

// putPostgres does on PostgreSQL what putSQLite does, in two statements.
func putPostgres(tx *sqldb.Tx, session, from, to int64, rows []row) error {
	if _, err := tx.Exec("DELETE FROM entry_words WHERE session = ? AND n BETWEEN ? AND ?", session, from, to); err != nil {
		return err
	}
	if len(rows) == 0 {
		return nil
	}
	numbers, words := make([]int64, len(rows)), make([]string, len(rows))
	for i, r := range rows {
		numbers[i], words[i] = r.n, sessionKey(session)+" "+r.words
	}
	_, err := tx.Exec("INSERT INTO entry_words (session, n, words) SELECT CAST(? AS BIGINT), new.n, CAST(new.words AS tsvector) FROM unnest(CAST(? AS bigint[]), CAST(? AS text[])) AS new (n, words) ON CONFLICT (session, n) DO UPDATE SET words = excluded.words",
		session, numbers, words)
	if err != nil {
		return fmt.Errorf("index entries %d to %d: %w", from, to, err)
	}
	return nil
}

// placeholders returns a ? for each of the texts, and the texts as arguments.
func placeholders(texts []string) (marks string, args []any) {
	for _, s := range texts {
		args = append(args, sqldb.Text(s))
	}
	return strings.TrimPrefix(strings.Repeat(", ?", len(texts)), ", "), args
}
