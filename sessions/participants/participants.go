// Package participants keeps a table of who has said something in which session.
//
// With it, a page of somebody's sessions is read by index, no matter how many sessions there are, and how many of them
// are theirs. The database's triggers write to it in the transaction that appends or erases entries, no matter which
// release does that. So it names nobody in a session whose entries there are erased.
package participants

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"parley/sessions/sqldb"
)

// The rows name the hour of the session's last append, by which pages are ordered. That of a session is written once in
// an hour, and not with each append. Usage is never all that somebody has in a session, so the triggers leave it out, and
// an answer costs less.
//
// Only the first people in a session have an hour, so that an append to a large group writes few rows. The rows of all
// others there have none. A page reads all of these that somebody has, because nobody is in so many large groups.
//
// The rows of the entries that are there already are added in steps, while the server serves: those of sessions with
// lower numbers than participants_filled says are still missing.

// SQLite and Postgres are the migrations that add the table to a schema with entries and sessions. {bytes} is replaced by
// a text type that sorts by bytes, and {keyed} by the storage options of a table that is no more than its key.
const (
	SQLite   = createTable + createTriggers + createFilled
	Postgres = createTable + triggersPostgres + createFilled
)

const createTable = `
CREATE TABLE participants (
	session BIGINT NOT NULL,
	person  TEXT NOT NULL,
	hour    {bytes} NOT NULL,   -- the beginning of the session's column active; empty for those who came late to many
	PRIMARY KEY (session, person)
){keyed};
CREATE INDEX participants_by_person ON participants (person, hour);
`

const createFilled = `
CREATE TABLE participants_filled (
	one    BIGINT PRIMARY KEY,
	before BIGINT NOT NULL
);
INSERT INTO participants_filled (one, before) SELECT 1, coalesce(max(id) + 1, 0) FROM sessions;
`

// hourExpression is an SQL value for the column hour of a new row, from a row of sessions: at most 100 rows of a session get
// an hour; see above.
const hourExpression = "CASE WHEN (SELECT count(*) FROM (SELECT 1 FROM participants WHERE session = sessions.id LIMIT 100) AS few) < 100 THEN substr(active, 1, 13) ELSE '' END"

const createTriggers = `
CREATE TRIGGER participants_come AFTER INSERT ON entries WHEN new.person <> '' AND new.kind <> 'usage'
	AND NOT EXISTS (SELECT 1 FROM participants WHERE session = new.session AND person = new.person)
BEGIN INSERT INTO participants (session, person, hour) SELECT new.session, new.person, ` + hourExpression + ` FROM sessions WHERE id = new.session; END;
CREATE TRIGGER participants_speak AFTER UPDATE OF active ON sessions WHEN substr(new.active, 1, 13) <> substr(old.active, 1, 13)
BEGIN UPDATE participants SET hour = substr(new.active, 1, 13) WHERE session = new.id AND hour <> ''; END;
CREATE TRIGGER participants_go AFTER DELETE ON entries WHEN old.person <> ''
BEGIN
	DELETE FROM participants WHERE session = old.session AND person = old.person
		AND NOT EXISTS (SELECT 1 FROM entries WHERE person = old.person AND person <> '' AND session = old.session);
END;
CREATE TRIGGER participants_unnamed AFTER UPDATE OF person ON entries WHEN old.person <> '' AND old.person <> new.person
BEGIN
	DELETE FROM participants WHERE session = old.session AND person = old.person
		AND NOT EXISTS (SELECT 1 FROM entries WHERE person = old.person AND person <> '' AND session = old.session);
END;
`

// A loop has the server look for each of few rows by index, whatever it assumes about the number of erased ones.
const triggersPostgres = `
CREATE FUNCTION parley_note_participant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF NOT EXISTS (SELECT 1 FROM participants WHERE session = NEW.session AND person = NEW.person) THEN
		INSERT INTO participants (session, person, hour) SELECT NEW.session, NEW.person, ` + hourExpression + ` FROM sessions WHERE id = NEW.session
			ON CONFLICT DO NOTHING;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER participants_come AFTER INSERT ON entries FOR EACH ROW WHEN (NEW.person <> '' AND NEW.kind <> 'usage')
	EXECUTE FUNCTION parley_note_participant();
CREATE FUNCTION parley_move_participants() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	UPDATE participants SET hour = substr(NEW.active, 1, 13) WHERE session = NEW.id AND hour <> '';
	RETURN NULL;
END $$;
CREATE TRIGGER participants_speak AFTER UPDATE OF updated ON sessions FOR EACH ROW WHEN (substr(NEW.active, 1, 13) <> substr(OLD.active, 1, 13))
	EXECUTE FUNCTION parley_move_participants();
CREATE FUNCTION parley_forget_participants() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE g RECORD; BEGIN
	FOR g IN SELECT DISTINCT session, person FROM gone WHERE person <> '' LOOP
		DELETE FROM participants WHERE session = g.session AND person = g.person
			AND NOT EXISTS (SELECT 1 FROM entries WHERE person = g.person AND person <> '' AND session = g.session);
	END LOOP;
	RETURN NULL;
END $$;
CREATE TRIGGER participants_go AFTER DELETE ON entries REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION parley_forget_participants();
CREATE FUNCTION parley_forget_participant() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	DELETE FROM participants WHERE session = OLD.session AND person = OLD.person
		AND NOT EXISTS (SELECT 1 FROM entries WHERE person = OLD.person AND person <> '' AND session = OLD.session);
	RETURN NULL;
END $$;
CREATE TRIGGER participants_unnamed AFTER UPDATE OF person ON entries FOR EACH ROW WHEN (OLD.person <> '' AND OLD.person <> NEW.person)
	EXECUTE FUNCTION parley_forget_participant();
`

// Tables returns the names of the tables, which are not copied to another database: Refill has them filled there.
func Tables() []string { return []string{"participants", "participants_filled"} }

// Hour returns the value of the column hour for a value of the sessions' column active.
func Hour(active string) string { return active[:len("2006-01-02T15")] }

// SpokeIn is an SQL condition for rows of sessions: a person has spoken there. It is for few sessions.
const SpokeIn = "EXISTS (SELECT 1 FROM entries WHERE entries.person = ? AND entries.person <> '' AND entries.session = sessions.id)"

// A Table is the table in a database. Several processes may use the same one at a time.
type Table struct {
	db     *sqldb.DB
	filled atomic.Bool // whether it is known that nothing is missing
}

// NewTable returns the table in a database that has the tables of a store.
func NewTable(db *sqldb.DB) *Table { return &Table{db: db} }

const (
	// fillSessions is how many sessions a step of Fill looks at, and fillPeople how many rows one transaction adds, so
	// that writes wait for it only for a few milliseconds.
	fillSessions = 50
	fillPeople   = 100
)

// Fill adds the rows of some sessions, the newest first, and reports whether there are more. Several processes may call
// it, and one that dies leaves the rest to the next.
func (t *Table) Fill(ctx context.Context) (more bool, err error) {
	before, err := t.missingBelow(ctx)
	if err != nil || before == 0 {
		return false, err
	}
	all, lowest, err := t.unlisted(ctx, before)
	for len(all) > fillPeople && err == nil {
		err = t.add(ctx, all[:fillPeople], before, before)
		all = all[fillPeople:]
	}
	if err == nil {
		err = t.add(ctx, all, before, lowest)
	}
	if err != nil {
		return false, fmt.Errorf("fill the table of participants: %w", err)
	}
	return lowest > 0, nil
}

// Complete reports whether the table has all sessions. Until it has, somebody's sessions are found by the index of
// entries, which takes longer if there are many.
func (t *Table) Complete(ctx context.Context) (bool, error) {
	before, err := t.missingBelow(ctx)
	return err == nil && before == 0, err
}

// missingBelow returns the number below which sessions are still missing; 0 if none is.
func (t *Table) missingBelow(ctx context.Context) (before int64, err error) {
	if t.filled.Load() {
		return 0, nil
	}
	if err := t.db.Read.QueryRowContext(ctx, "SELECT before FROM participants_filled").Scan(&before); err != nil {
		return 0, fmt.Errorf("look whether the table of participants is complete: %w", err)
	}
	t.filled.Store(before == 0)
	return before, nil
}

// A participant is somebody who has spoken in a session.
type participant struct {
	session int64
	person  string
}

// unlisted returns who has spoken in the sessions with the highest numbers below one, and the lowest of these
// numbers; 0 if there are no more.
func (t *Table) unlisted(ctx context.Context, before int64) (all []participant, lowest int64, err error) {
	ids, err := t.below(ctx, before)
	if err != nil {
		return nil, 0, err
	}
	for _, id := range ids {
		people, err := sqldb.Column(t.db.Read.QueryContext(ctx, "SELECT DISTINCT person FROM entries WHERE session = ? AND person <> '' ORDER BY person", id))
		if err != nil {
			return nil, 0, err
		}
		for _, person := range people {
			all = append(all, participant{id, person})
		}
	}
	if len(ids) < fillSessions {
		return all, 0, nil
	}
	return all, ids[len(ids)-1], nil
}

// below returns the highest numbers of sessions below one.
func (t *Table) below(ctx context.Context, before int64) (ids []int64, err error) {
	found, err := t.db.Read.QueryContext(ctx, "SELECT id FROM sessions WHERE id < ? ORDER BY id DESC LIMIT ?", before, fillSessions)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var id int64
		if err := found.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, found.Err()
}

// add adds rows in one transaction, and records that those of sessions below a number are missing, unless another
// process has done so. Whoever erases from a session locks its row first: so whom add finds in the locked session, no
// erasure has removed in the meantime.
func (t *Table) add(ctx context.Context, all []participant, before, now int64) error {
	lock := ""
	if t.db.IsPostgres() { // on SQLite, nobody else writes meanwhile
		lock = " FOR UPDATE"
	}
	return t.db.Write(ctx, func(tx *sqldb.Tx) error {
		locked := int64(math.MinInt64)
		for _, one := range all {
			if one.session != locked {
				err := tx.Get("SELECT id FROM sessions WHERE id = ?"+lock, []any{one.session}, &locked)
				if errors.Is(err, sql.ErrNoRows) {
					continue // it was erased
				}
				if err != nil {
					return err
				}
			}
			_, err := tx.Exec(`INSERT INTO participants (session, person, hour) SELECT id, CAST(? AS TEXT), `+hourExpression+` FROM sessions
				WHERE id = ? AND `+SpokeIn+` ON CONFLICT DO NOTHING`, one.person, one.session, one.person)
			if err != nil {
				return err
			}
		}
		_, err := tx.Exec("UPDATE participants_filled SET before = ? WHERE before = ?", now, before)
		return err
	})
}

// Refill has Fill add the rows of all sessions, in a transaction that has copied sessions and entries.
func Refill(tx *sqldb.Tx) error {
	_, err := tx.Exec("UPDATE participants_filled SET before = (SELECT coalesce(max(id) + 1, 0) FROM sessions)")
	return err
}
