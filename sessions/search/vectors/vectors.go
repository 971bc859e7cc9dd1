// Package vectors stores vectors of entries in addition to the index of their words, and finds entries
// whose vectors are alike.
//
// vectors.go contains the tables, and replaces one model's vectors with another's; pack.go packs and
// compares vectors; near.go searches those of some sessions.
//
// A vector belongs to its entry: whatever deletes or changes the entry deletes the vector in the same
// transaction. All vectors in a database have the same identity; those of different identities are never
// compared.
package vectors

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"parley/sessions/sqldb"
)

// SQLite is the migration that adds the vectors to a schema with entries, and with sessions that have the
// column indexed. The number of a row consists of those of the session and the entry, so that the vectors
// of a session are next to each other in the file. The column embedded of a session is the number of the
// entry up to which all entries that should have vectors have them.
const SQLite = `
ALTER TABLE sessions ADD COLUMN embedded BIGINT NOT NULL DEFAULT 0;
CREATE TABLE entry_vectors (
	row    INTEGER PRIMARY KEY,
	vector BLOB NOT NULL
);
CREATE TRIGGER entry_vectors_gone AFTER DELETE ON entries BEGIN DELETE FROM entry_vectors WHERE row = (old.session << 28) + old.n; END;
CREATE TRIGGER entry_vectors_changed AFTER UPDATE OF data ON entries
BEGIN
	DELETE FROM entry_vectors WHERE row = (old.session << 28) + old.n;
	UPDATE sessions SET embedded = old.n - 1 WHERE id = old.session AND embedded >= old.n;
END;
` + identityTable

// Postgres is the same migration for PostgreSQL. The triggers also work for the release before, which
// does not know about vectors.
const Postgres = `
ALTER TABLE sessions ADD COLUMN embedded BIGINT NOT NULL DEFAULT 0;
CREATE TABLE entry_vectors (
	session BIGINT NOT NULL,
	n       BIGINT NOT NULL,
	vector  BYTEA NOT NULL,
	PRIMARY KEY (session, n)
);
CREATE FUNCTION parley_forget_vectors() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	DELETE FROM entry_vectors v USING gone g WHERE v.session = g.session AND v.n = g.n;
	RETURN NULL;
END $$;
CREATE TRIGGER entry_vectors_gone AFTER DELETE ON entries REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION parley_forget_vectors();
CREATE FUNCTION parley_renew_vectors() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	DELETE FROM entry_vectors WHERE session = OLD.session AND n = OLD.n;
	UPDATE sessions SET embedded = OLD.n - 1 WHERE id = OLD.session AND embedded >= OLD.n;
	RETURN NULL;
END $$;
CREATE TRIGGER entry_vectors_changed AFTER UPDATE OF data ON entries FOR EACH ROW EXECUTE FUNCTION parley_renew_vectors();
` + identityTable

// identityTable has one row: the identity of the vectors, and until when only one process may fill them.
const identityTable = `
CREATE TABLE vector_identity (
	one        BIGINT PRIMARY KEY,
	model      TEXT NOT NULL,
	prompt     TEXT NOT NULL,
	dimensions BIGINT NOT NULL,
	taken      BIGINT NOT NULL -- microseconds since 1970
);
INSERT INTO vector_identity (one, model, prompt, dimensions, taken) VALUES (1, '', '', 0, 0);
`

// Tables returns the tables of the vectors. They differ between the databases; Copy copies them.
func Tables() []string { return []string{"entry_vectors", "vector_identity"} }

// Copy copies the vectors of a SQLite database to a PostgreSQL database, in the transaction that has copied the entries and
// the sessions, because a provider may have been paid for them. It returns how many there are.
func Copy(ctx context.Context, from *sqldb.DB, tx *sqldb.Tx) (n int64, err error) {
	var model, prompt string
	var dimensions int
	if err := from.Read.QueryRowContext(ctx, "SELECT model, prompt, dimensions FROM vector_identity").Scan(&model, &prompt, &dimensions); err != nil {
		return 0, fmt.Errorf("copy the vectors: %w", err)
	}
	if _, err := tx.Exec("UPDATE vector_identity SET model = ?, prompt = ?, dimensions = ?", model, prompt, dimensions); err != nil {
		return 0, fmt.Errorf("copy the vectors: %w", err)
	}
	for after := int64(0); ; {
		rows, list, err := readVectors(ctx, from, after)
		if err == nil && len(rows) > 0 {
			_, err = tx.Exec("INSERT INTO entry_vectors (session, n, vector) SELECT v.row >> 28, v.row & 268435455, v.vector FROM unnest(CAST(? AS bigint[]), CAST(? AS bytea[])) AS v (row, vector)", rows, list)
		}
		if err != nil {
			return 0, fmt.Errorf("copy the vectors: %w", err)
		}
		if len(rows) == 0 {
			return n, nil
		}
		n, after = n+int64(len(rows)), rows[len(rows)-1]
	}
}

// readVectors reads some vectors of a SQLite database, those with the lowest rows after one.
func readVectors(ctx context.Context, from *sqldb.DB, after int64) (rows []int64, list [][]byte, err error) {
	found, err := from.Read.QueryContext(ctx, "SELECT row, vector FROM entry_vectors WHERE row > ? ORDER BY row LIMIT ?", after, rowsPerDelete)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var row int64
		var vector []byte
		if err := found.Scan(&row, &vector); err != nil {
			return nil, nil, err
		}
		rows, list = append(rows, row), append(list, vector)
	}
	return rows, list, found.Err()
}

// The errors of methods that find that another process has changed or taken the vectors.
var (
	// ErrOtherIdentity says that the vectors in the database are now of another identity.
	ErrOtherIdentity = errors.New("the vectors are those of another model")
	// ErrOvertaken says that this process may not fill the vectors anymore.
	ErrOvertaken = errors.New("another process may fill the vectors now")
)

// An Identity is what vectors must have in common to be comparable. The zero Identity means that there
// are no vectors.
type Identity struct {
	Model      string
	Prompt     string // names the texts that are put before the model's input
	Dimensions int
}

// A Store contains the vectors of a database. Several processes may use the same one at a time.
type Store struct{ DB *sqldb.DB }

// Identity returns the identity of the existing vectors; the zero Identity while they are being replaced.
func (s Store) Identity(ctx context.Context) (of Identity, err error) {
	err = s.DB.Read.QueryRowContext(ctx, "SELECT model, prompt, dimensions FROM vector_identity").Scan(&of.Model, &of.Prompt, &of.Dimensions)
	of.Model, of.Prompt = sqldb.Untext(of.Model), sqldb.Untext(of.Prompt)
	return of, err
}

// A Hold is a process's right to be the only one that fills the vectors. The zero Hold is never valid.
type Hold struct{ until int64 } // the value of the column taken: no two holds have the same

// Take makes this process the only one that may fill the vectors, for the time most, so that no text is
// paid for twice. It returns false if another process may. After that time, another process may take
// them: whatever this one still does with its hold then changes nothing, and returns ErrOvertaken.
func (s Store) Take(ctx context.Context, most time.Duration) (h Hold, taken bool, err error) {
	now := time.Now()
	h = Hold{now.Add(most).UnixMicro()}
	n, err := s.DB.Exec(ctx, "UPDATE vector_identity SET taken = ? WHERE taken < ?", h.until, now.UnixMicro())
	return h, n > 0, err
}

// Leave lets other processes fill the vectors, if this hold is still valid.
func (s Store) Leave(ctx context.Context, h Hold) error {
	_, err := s.DB.Exec(ctx, "UPDATE vector_identity SET taken = 0 WHERE taken = ?", h.until)
	return err
}

// writeIfHeld carries out a write if the hold is valid, and keeps other processes from taking the vectors until
// it has ended.
func (s Store) writeIfHeld(ctx context.Context, h Hold, write func(tx *sqldb.Tx) error) error {
	return s.DB.Write(ctx, func(tx *sqldb.Tx) error {
		if err := s.checkHeld(tx, h); err != nil {
			return err
		}
		return write(tx)
	})
}

// checkHeld returns ErrOvertaken if the hold is not valid, and keeps others from taking the vectors until
// the transaction has ended.
func (s Store) checkHeld(tx *sqldb.Tx, h Hold) error {
	query := "SELECT one FROM vector_identity WHERE taken = ?"
	if s.DB.IsPostgres() {
		query += " FOR UPDATE"
	}
	var one int64
	err := tx.Get(query, []any{h.until}, &one)
	if errors.Is(err, sql.ErrNoRows) || h == (Hold{}) {
		return ErrOvertaken
	}
	return err
}

const (
	rowsPerDelete     = 2000 // the most rows that one transaction deletes
	sessionsPerUpdate = 1000
)

// Begin removes all vectors, and then allows those of an identity to be added. If a process dies before
// Begin has ended, another one begins again: until then there is no identity, and nothing is added or
// found.
func (s Store) Begin(ctx context.Context, h Hold, of Identity) error {
	identify := func(of Identity) error {
		return s.writeIfHeld(ctx, h, func(tx *sqldb.Tx) error {
			_, err := tx.Exec("UPDATE vector_identity SET model = ?, prompt = ?, dimensions = ?", sqldb.Text(of.Model), sqldb.Text(of.Prompt), of.Dimensions)
			return err
		})
	}
	if err := identify(Identity{}); err != nil {
		return err
	}
	if err := s.removeAll(ctx, h); err != nil {
		return err
	}
	for before := int64(math.MaxInt64); before > 0; {
		var lowest sql.NullInt64
		err := s.DB.Read.QueryRowContext(ctx, "SELECT min(id) FROM (SELECT id FROM sessions WHERE id < ? ORDER BY id DESC LIMIT ?) AS page", before, sessionsPerUpdate).Scan(&lowest)
		if err == nil {
			err = s.writeIfHeld(ctx, h, func(tx *sqldb.Tx) error {
				_, err := tx.Exec("UPDATE sessions SET embedded = 0 WHERE id < ? AND id >= ? AND embedded > 0", before, lowest.Int64)
				return err
			})
		}
		if err != nil {
			return err
		}
		before = lowest.Int64
	}
	return identify(of)
}

// removeAll removes all vectors, some in each transaction.
func (s Store) removeAll(ctx context.Context, h Hold) error {
	some := "DELETE FROM entry_vectors WHERE row IN (SELECT row FROM entry_vectors LIMIT ?)"
	if s.DB.IsPostgres() {
		some = "DELETE FROM entry_vectors WHERE (session, n) IN (SELECT session, n FROM entry_vectors LIMIT ?)"
	}
	for removed := int64(1); removed > 0; {
		err := s.writeIfHeld(ctx, h, func(tx *sqldb.Tx) (err error) {
			removed, err = tx.Exec(some, rowsPerDelete)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A Row is the vector of an entry.
type Row struct {
	N      int64
	Vector Packed
}

// Check returns ErrOvertaken if the hold is not valid, or ErrOtherIdentity if the vectors are of another
// identity, and keeps both from changing until the transaction has ended.
func (s Store) Check(tx *sqldb.Tx, h Hold, of Identity) error {
	if err := s.checkHeld(tx, h); err != nil {
		return err
	}
	var one int64
	err := tx.Get("SELECT one FROM vector_identity WHERE model = ? AND prompt = ? AND dimensions = ?", []any{sqldb.Text(of.Model), sqldb.Text(of.Prompt), of.Dimensions}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrOtherIdentity
	}
	return err
}

// Put adds the vectors of a session's entries in a transaction that has called Check. The caller has to
// make sure that the entries have not changed since their texts were read.
func (s Store) Put(tx *sqldb.Tx, session int64, rows []Row) error {
	for _, r := range rows {
		query, args := "INSERT INTO entry_vectors (row, vector) VALUES (?, ?) ON CONFLICT DO NOTHING", []any{rowOf(session, r.N), []byte(r.Vector)}
		if s.DB.IsPostgres() {
			query, args = "INSERT INTO entry_vectors (session, n, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", []any{session, r.N, []byte(r.Vector)}
		}
		if _, err := tx.Exec(query, args...); err != nil {
			return fmt.Errorf("put the vector of entry %d: %w", r.N, err)
		}
	}
	return nil
}

// A State says how complete the vectors are.
type State struct {
	Identity Identity
	Vectors  int64
	Waiting  int64 // entries whose vectors may be missing, including some that will have none
}

// maxCountedRows is the most rows that PostgreSQL counts; above that, its estimate is good enough.
const maxCountedRows = 200_000

// State counts the vectors.
func (s Store) State(ctx context.Context) (st State, err error) {
	if st.Identity, err = s.Identity(ctx); err != nil {
		return st, err
	}
	if err := s.DB.Read.QueryRowContext(ctx, "SELECT CAST(coalesce(sum(indexed - embedded), 0) AS BIGINT) FROM sessions WHERE embedded < indexed").Scan(&st.Waiting); err != nil {
		return st, err
	}
	if s.DB.IsPostgres() {
		err := s.DB.Read.QueryRowContext(ctx, "SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = to_regclass('entry_vectors')").Scan(&st.Vectors)
		if err != nil || st.Vectors > maxCountedRows {
			return st, err
		}
	}
	err = s.DB.Read.QueryRowContext(ctx, "SELECT count(*) FROM entry_vectors").Scan(&st.Vectors)
	return st, err
}

// maxEntries limits the numbers of entries that have vectors; rowOf has no room for higher ones.
const (
	numberBits = 28
	maxEntries = 1 << numberBits
)

func rowOf(session, n int64) int64 { return session<<numberBits + n }

// LacksVectorCondition returns a condition that is true of an entry e without a vector.
func (s Store) LacksVectorCondition() string {
	if s.DB.IsPostgres() {
		return "NOT EXISTS (SELECT 1 FROM entry_vectors v WHERE v.session = e.session AND v.n = e.n)"
	}
	return "NOT EXISTS (SELECT 1 FROM entry_vectors v WHERE v.row = (e.session << 28) + e.n)"
}
