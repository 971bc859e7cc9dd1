package search

import (
	"fmt"
	"strings"

	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
)

// The log itself says what is not in the index yet: a session's column indexed is the number of the entry up to which
// all are. An append leaves it behind, whichever release it is of; Fill indexes what has come since, many entries in
// one transaction, because an index that is written with each entry would make that cost half as much again; and a
// search reads the entries behind that number. So nothing is found later for it, and nothing is lost if a process dies.

// SQLite is the migration that adds the index to a schema with entries and sessions. Its rows have no content: who has
// found one reads the entry. The number of a row is that of the entry behind that of its session; see rowOf.
//
// An erasure deletes or changes rows of entries, whichever of its steps does it, and the triggers take what the
// index has of them in the same transaction: so nothing that is erased is found, and none of the steps has to know
// the index. What is left of a changed entry is indexed by Fill.
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
` + cutTable

// Postgres is the same migration for PostgreSQL. The triggers work for the release before, too, which knows no
// index. No insertion merges what is pending into the index; Fill does, and the server's own upkeep.
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
` + cutTable

// SQLiteVectors and PostgresVectors are the migrations that add the vectors of entries; see [vectors.SQLite].
const (
	SQLiteVectors   = vectors.SQLite
	PostgresVectors = vectors.Postgres
)

// cutTable has one row: in which way the words of the index are cut.
const cutTable = `
CREATE TABLE word_cut (
	one BIGINT PRIMARY KEY,
	cut BIGINT NOT NULL
);
INSERT INTO word_cut (one, cut) VALUES (1, 1);
`

// Tables are the tables of the index and of the vectors, which are made anew where the entries are copied to.
func Tables() []string {
	return append(vectors.Tables(), "entry_words", "entry_words_config", "entry_words_data", "entry_words_docsize", "entry_words_idx", "word_cut")
}

// Copied has the index filled of a database to which the entries of another were copied.
func Copied(tx *sqldb.Tx) error {
	if _, err := tx.Exec("UPDATE sessions SET indexed = 0 WHERE indexed > 0"); err != nil {
		return err
	}
	return vectors.Copied(tx)
}

var _ interface {
	Index
	Rebuilder
} = (*Table)(nil)

// A Table is the index of a database. Several processes may use the same one at a time.
type Table struct {
	db      *sqldb.DB
	filling filling
}

// NewTable returns the index of a database that has the tables of a store.
func NewTable(db *sqldb.DB) *Table { return &Table{db: db} }

// mostEntries bounds the numbers of a session's entries that are indexed: rowOf has no room for higher ones.
const (
	numberBits  = 28
	mostEntries = 1 << numberBits
)

// rowOf is the number of an entry's row on SQLite, and while a query is answered.
func rowOf(session, n int64) int64 { return session<<numberBits + n }

// A row is an entry for the index.
type row struct {
	n     int64
	words string // as wordsOf returns them, not empty
}

// putSQLite replaces what the index has of a session's entries with the numbers from to to.
func putSQLite(tx *sqldb.Tx, session, from, to int64, rows []row) error {
	if _, err := tx.Exec("DELETE FROM entry_words WHERE rowid BETWEEN ? AND ?", rowOf(session, from), rowOf(session, min(to, mostEntries-1))); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := tx.Exec("INSERT INTO entry_words (rowid, words) VALUES (?, ?)", rowOf(session, r.n), sessionKey(session)+" "+r.words); err != nil {
			return fmt.Errorf("index entry %d: %w", r.n, err)
		}
	}
	return nil
}

// putPostgres does what putSQLite does on PostgreSQL, in two statements.
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

// placeholders returns as many ? as a list has texts, and these as arguments.
func placeholders(texts []string) (marks string, args []any) {
	for _, s := range texts {
		args = append(args, sqldb.Text(s))
	}
	return strings.TrimPrefix(strings.Repeat(", ?", len(texts)), ", "), args
}
