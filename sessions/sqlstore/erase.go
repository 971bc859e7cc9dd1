package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/sessions"
	"parley/sessions/archive"
	"parley/sessions/bill"
	"parley/sessions/rates"
	"parley/sessions/schedules"
	"parley/sessions/sqldb"
	"parley/sessions/subagents"
	"parley/sessions/subscriptions"
)

// erasureTables creates the tables of what must stay known about erased sessions. They contain no text
// that people wrote.
const erasureTables = `
CREATE TABLE erased (
	key   {bytes} NOT NULL,     -- of the session
	cause TEXT NOT NULL,        -- the id of a message that was dealt with in it
	turn  TEXT NOT NULL,
	PRIMARY KEY (key, cause)
);

CREATE TABLE graves (
	key   {bytes} PRIMARY KEY,  -- of a session that was erased
	fence BIGINT NOT NULL       -- only a higher fence may open the session again
);
` + purgesMigration

// erasureCount is the migration that counts for each session how often something was erased from it while
// its fence stayed the same. The count tells a process that has the session's entries in memory whether
// they are still right.
const erasureCount = `ALTER TABLE sessions ADD COLUMN erasures BIGINT NOT NULL DEFAULT 0;`

// erasingIndexes is the migration that adds the indexes with which an erasure finds what it erases.
// Without them it would read all entries for each person, and all counters for each session.
const erasingIndexes = `
CREATE INDEX entries_by_person ON entries (person, session) WHERE person <> '';
CREATE INDEX counters_by_subject ON counters (subject);
CREATE INDEX audit_by_detail ON audit (detail) WHERE detail <> '';
CREATE INDEX tasks_by_end ON tasks (ended) WHERE told = 1 AND dropped = 0;
`

// auditByTurn is the migration that adds an index for the audit records of one turn. On SQLite it
// replaces the index by session; on PostgreSQL the release before may still use that one.
const auditByTurn = `
CREATE INDEX audit_by_turn ON audit (session, turn) WHERE arguments <> '';
`

// An eraser erases from all sessions.
type eraser struct {
	db     *sqldb.DB
	tokens *tokens
	audits *audits
	tasks  subagents.Table
	purger *purger
}

func newEraser(db *sqldb.DB, t *tokens, a *audits, tasks subagents.Table) *eraser {
	return &eraser{db: db, tokens: t, audits: a, tasks: tasks, purger: newPurger(
		db, "entries", "entry_words", "entry_vectors", "participants", "sessions", "spending", "reservations", "audit", "jobs", "node_calls", "node_waits", "schedules", "tasks", "time_zones", "counters", "charges", "used_days", "rated_calls", "subscription_events", "audit_keys")}
}

// EraseSession erases a session; see [sessions.Eraser].
func (s *eraser) EraseSession(ctx context.Context, key string) (sessions.Erased, error) {
	if err := sessions.CheckKey(key); err != nil {
		return sessions.Erased{}, fmt.Errorf("erase session: %w", err)
	}
	done, err := s.erase(ctx, func(e *eraserCall) error {
		err := s.eraseRows(ctx, func(tx *sqldb.Tx) (int64, error) { return schedules.EraseSession(tx, key) },
			func(tx *sqldb.Tx) (int64, error) { return s.tasks.EraseSession(tx, key) })
		if err != nil {
			return err
		}
		early, err := e.eraseEarly(ctx, key, selectAllTurns)
		if err != nil {
			return err
		}
		return e.eraseOne(ctx, key, early, (*sessionErasure).eraseWhole)
	})
	if err == nil && len(done.Sessions) == 0 {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return done, fmt.Errorf("erase session %s: %w", key, err)
	}
	return done, nil
}

// ErasePerson erases what a person has said; see [sessions.Eraser].
func (s *eraser) ErasePerson(ctx context.Context, person string) (sessions.Erased, error) {
	if person == "" {
		return sessions.Erased{}, errors.New("erase person: nobody is named")
	}
	person = sqldb.Text(person)
	done, err := s.erase(ctx, func(e *eraserCall) error {
		err := s.eraseRows(ctx, func(tx *sqldb.Tx) (int64, error) { return schedules.ErasePerson(tx, sqldb.Untext(person)) },
			func(tx *sqldb.Tx) (int64, error) { return s.tasks.ErasePerson(tx, sqldb.Untext(person)) })
		if err != nil {
			return err
		}
		alone, shared, err := s.SessionsOf(ctx, sqldb.Untext(person))
		if err != nil {
			return err
		}
		for i, key := range slices.Concat(alone, shared) {
			early := int64(0)
			if i < len(alone) {
				if early, err = e.eraseEarly(ctx, key, selectAllTurns); err != nil {
					return fmt.Errorf("session %s: %w", key, err)
				}
			}
			if err := e.eraseOne(ctx, key, early, func(p *sessionErasure) error { return p.erasePerson(person) }); err != nil {
				return fmt.Errorf("session %s: %w", key, err)
			}
		}
		reservations, err := s.tokens.reservationsOf(ctx, person)
		if err != nil {
			return err
		}
		err = s.db.Write(ctx, func(tx *sqldb.Tx) error {
			return errors.Join(anonymizeSpending(tx, person, reservations), bill.Forget(tx, bill.Person(sqldb.Untext(person))), bill.Detach(tx, "", bill.Person(sqldb.Untext(person))), rates.Forget(tx, sqldb.Untext(person)), deleteRows(tx, "jobs", "person = ?", person), deleteRows(tx, "node_calls", "person = ?", person), deleteRows(tx, "node_waits", "person = ?", person))
		})
		if err != nil {
			return err
		}
		return s.audits.anonymizeAudit(ctx, person)
	})
	if err != nil {
		return done, fmt.Errorf("erase person %s: %w", person, err)
	}
	return done, nil
}

// EraseBefore erases old sessions and turns; see [sessions.Eraser]. Unlike EraseSession, it does not
// fence off a worker that holds a session, unless it erases the whole session: otherwise it erases only
// turns that ended long ago.
func (s *eraser) EraseBefore(ctx context.Context, before time.Time) (sessions.Erased, error) {
	at := sqldb.FormatTime(before)
	done, err := s.erase(ctx, func(e *eraserCall) error {
		const old = "updated < ? OR EXISTS (SELECT 1 FROM entries WHERE session = s.id AND at < ?)"
		err := e.eachSession(ctx, func(key string) error {
			early, err := e.eraseEarly(ctx, key, selectOldTurns, at)
			if err != nil {
				return err
			}
			return e.eraseOne(ctx, key, early, func(p *sessionErasure) error { return p.eraseBefore(at) })
		}, old, at, at)
		if err != nil {
			return err
		}
		err = s.db.Write(ctx, func(tx *sqldb.Tx) error {
			err := errors.Join(deleteRows(tx, "jobs", "state <> 'running' AND ended < ?", at),
				deleteRows(tx, "node_calls", "settled > 0 AND settled < ?", before.UnixMicro()), deleteRows(tx, "node_waits", "until < ?", before.UnixMicro()))
			if err != nil {
				return err
			}
			n, err := subagents.EraseEndedBefore(tx, before)
			if err == nil && n > 0 {
				err = schedulePurge(tx)
			}
			return err
		})
		if err != nil {
			return err
		}
		if _, err = s.audits.dropBefore(ctx, schedulePurge, at); err != nil {
			return err
		}
		return archive.Table{DB: s.db}.ForgetGone(ctx, personRemainsQuery, schedulePurge)
	})
	if err != nil {
		return done, fmt.Errorf("erase what is before %s: %w", at, err)
	}
	return done, nil
}

// personRemainsQuery selects whether anything is left of a person. Rows of the book don't count: permissions
// aren't something that the person has said or done, and the rest expires by itself.
const personRemainsQuery archive.Naming = `SELECT CASE WHEN EXISTS (SELECT 1 FROM entries WHERE person = ? AND person <> '')
	OR EXISTS (SELECT 1 FROM audit WHERE person = ? AND person <> '') OR EXISTS (SELECT 1 FROM audit WHERE detail = ? AND detail <> '')
	OR EXISTS (SELECT 1 FROM jobs WHERE person = ?) OR EXISTS (SELECT 1 FROM schedules WHERE person = ?) OR EXISTS (SELECT 1 FROM tasks WHERE person = ?)
	OR EXISTS (SELECT 1 FROM node_calls WHERE person = ?) OR EXISTS (SELECT 1 FROM node_waits WHERE person = ?)
	THEN 1 ELSE 0 END`

// eraseRows calls each of the functions erase, which delete schedules or tasks. It runs before sessions
// are erased, so that what schedules and tasks may still add to a session is erased too.
func (s *eraser) eraseRows(ctx context.Context, erase ...func(*sqldb.Tx) (int64, error)) error {
	return s.db.Write(ctx, func(tx *sqldb.Tx) error {
		var sum int64
		for _, one := range erase {
			n, err := one(tx)
			if err != nil {
				return err
			}
			sum += n
		}
		if sum == 0 {
			return nil
		}
		return schedulePurge(tx)
	})
}

// erase runs do and then, unless do fails, purges the database's files from traces of deleted rows, including
// those that an interrupted earlier call has left. Only one call runs at a time.
func (s *eraser) erase(ctx context.Context, do func(*eraserCall) error) (sessions.Erased, error) {
	e := &eraserCall{eraser: s}
	err := s.purger.erase(ctx, func() error { return do(e) })
	return e.counts, err
}

// PurgeDue purges the files if an erasure was interrupted before it did so, or put it off.
func (s *eraser) PurgeDue(ctx context.Context) error {
	return s.purger.erase(ctx, func() error { return nil })
}

// NotePurge records that somebody else is about to erase something from tables that may be in the store's
// files; see purger.announce.
func (s *eraser) NotePurge(ctx context.Context) (end func(ctx context.Context, erased bool) error, err error) {
	return s.purger.announce(ctx)
}

// sessionsPerQuery limits how many sessions one query looks through, because queries have a timeout.
const sessionsPerQuery = 200

// eachSession calls erase for every session s (in SQL) that meets the condition.
func (e *eraserCall) eachSession(ctx context.Context, erase func(key string) error, condition string, args ...any) error {
	query := fmt.Sprintf("SELECT key, %s FROM (SELECT id, key, updated FROM sessions WHERE key > ? ORDER BY key LIMIT %d) s ORDER BY key", condition, sessionsPerQuery)
	for last := ""; ; {
		page, err := e.readPage(ctx, query, append(slices.Clone(args), last)...)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, found := range page {
			last = found.key
			if !found.matches {
				continue
			}
			if err := erase(found.key); err != nil {
				return fmt.Errorf("session %s: %w", found.key, err)
			}
		}
	}
}

// A candidate is a session, and whether the condition of eachSession holds for it.
type candidate struct {
	key     string
	matches bool
}

// readPage reads the next sessions, and for each whether it meets the condition.
func (e *eraserCall) readPage(ctx context.Context, query string, args ...any) (page []candidate, err error) {
	rows, err := e.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.key, &c.matches); err != nil {
			return nil, err
		}
		page = append(page, c)
	}
	return page, rows.Err()
}

// SessionsOf lists the sessions from which ErasePerson would erase: those in which only
// the person has spoken, and those in which others have too.
func (s *eraser) SessionsOf(ctx context.Context, person string) (alone, shared []string, err error) {
	const query = `
		SELECT s.key, EXISTS (SELECT 1 FROM entries e WHERE e.session = s.id AND ` + spokenByOthers + `)
		FROM sessions s WHERE s.id IN (SELECT session FROM entries WHERE person = ? AND person <> '') ORDER BY s.key`
	person = sqldb.Text(person)
	found, err := s.db.Read.QueryContext(ctx, query, person, person)
	if err != nil {
		return nil, nil, fmt.Errorf("look for what %s has said: %w", person, err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var key string
		var others bool
		if err := found.Scan(&key, &others); err != nil {
			return nil, nil, fmt.Errorf("look for what %s has said: %w", person, err)
		}
		if others {
			shared = append(shared, key)
		} else {
			alone = append(alone, key)
		}
	}
	return alone, shared, found.Err()
}

var _ sessions.MessageEraser = (*log)(nil)

// An eraserCall is one call of a method of sessions.Eraser, with the counts that it returns. Each session
// is erased in a transaction of its own, a long one in several; if the process dies between them, the
// next call finds the sessions that are left.
type eraserCall struct {
	*eraser
	counts sessions.Erased
}

// eraseEarly erases the turns that a query finds in a long session, in many transactions, before eraseOne
// erases the rest in one; so others can write in between. It leaves turns that are still going on. It
// returns how many entries it has erased. If it is interrupted, only whole turns are missing from the
// session, and the next erasure finds the rest.
func (e *eraserCall) eraseEarly(ctx context.Context, key, query string, args ...any) (sum int64, err error) {
	var id, last int64
	err = e.db.Read.QueryRowContext(ctx, "SELECT id, last FROM sessions WHERE key = ?", key).Scan(&id, &last)
	if errors.Is(err, sql.ErrNoRows) || err == nil && last <= longSessionEntries {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	found, err := e.db.Read.QueryContext(ctx, query, append([]any{id}, args...)...)
	if err != nil {
		return 0, err
	}
	turns, err := scanSpans(found)
	if err != nil {
		return 0, err
	}
	for len(turns) > 0 && err == nil {
		n, size := 0, int64(0)
		for n < len(turns) && (n == 0 || size < longSessionEntries) {
			size += turns[n].to - turns[n].from + 1
			n++
		}
		var erased int64
		erased, err = e.eraseTurns(ctx, key, id, last, turns[:n])
		sum, turns = sum+erased, turns[n:]
	}
	return sum, err
}

// longSessionEntries is the number of entries above which one transaction does not erase a whole session.
const longSessionEntries = 500

// eraseTurns erases turns of a session in one transaction, except turns that are still going on or that
// have entries after the number last.
func (e *eraserCall) eraseTurns(ctx context.Context, key string, id, last int64, turns []span) (int64, error) {
	var p *sessionErasure
	err := e.db.Write(ctx, func(tx *sqldb.Tx) error {
		p = &sessionErasure{tx: tx, tasks: e.tasks, key: key, id: id}
		// This locks the row, so that appends wait, and nobody reopens the session with erased entries
		// still in memory.
		err := tx.Get("UPDATE sessions SET erasures = erasures + 1 WHERE id = ? AND key = ? RETURNING unfinished", []any{id, key}, &p.unfinished)
		if errors.Is(err, sql.ErrNoRows) {
			return nil // somebody else has erased it
		}
		if err != nil {
			return err
		}
		for _, s := range turns {
			var later int64
			err := tx.Get("SELECT count(*) FROM entries WHERE session = ? AND n > ? AND turn = ?", []any{id, last, s.turn}, &later)
			if err != nil {
				return err
			}
			if later > 0 || slices.ContainsFunc(p.unfinished, func(t turn) bool { return t.ID == s.turn }) {
				continue
			}
			if err := p.removeTurns([]span{s}); err != nil {
				return err
			}
		}
		if err := retitle(tx, id); err != nil {
			return err
		}
		return schedulePurge(tx)
	})
	if err != nil {
		return 0, err
	}
	return p.erased, nil
}

// eraseOne calls erase, which erases from one session, in a transaction. early is how many of its entries
// eraseEarly has already erased.
func (e *eraserCall) eraseOne(ctx context.Context, key string, early int64, erase func(*sessionErasure) error) error {
	var p *sessionErasure
	err := e.db.Write(ctx, func(tx *sqldb.Tx) error {
		p = &sessionErasure{tx: tx, tasks: e.tasks, key: key, erased: early}
		// The update changes nothing but locks the row: appends to the session wait.
		err := tx.Get("UPDATE sessions SET fence = fence WHERE key = ? RETURNING id, fence, updated, unfinished",
			[]any{key}, &p.id, &p.fence, &p.updated, &p.unfinished)
		if errors.Is(err, sql.ErrNoRows) {
			// The audit may still have records of the session: a release without an audit erased its log,
			// or the records came after that.
			if err := errors.Join(p.redactAudit(""), deleteRows(tx, "jobs", "session = ?", key), deleteRows(tx, "node_calls", "session = ?", key), deleteRows(tx, "node_waits", "session = ?", key)); err != nil {
				return err
			}
			if _, err := subscriptions.EraseSession(tx, key); err != nil {
				return err
			}
			keys, err := archive.ForgetSession(tx, sqldb.Untext(key))
			if err != nil {
				return err
			}
			if p.redacted+keys > 0 {
				if err := schedulePurge(tx); err != nil {
					return err
				}
			}
			return p.leaveTombstone() // a worker may be about to create the session for mail that has to be erased
		}
		if err != nil {
			return err
		}
		if err := erase(p); err != nil || p.erased+p.redacted == 0 && !p.whollyErased {
			return err
		}
		return schedulePurge(tx)
	})
	if err != nil {
		return err
	}
	e.counts.Entries += p.erased
	switch {
	case p.whollyErased:
		e.counts.Sessions = append(e.counts.Sessions, key)
	case p.erased > 0:
		e.counts.PartlyErased = append(e.counts.PartlyErased, key)
	}
	return nil
}

// deleteRows deletes the rows of a table for which the SQL condition is true, and records that traces of them may
// remain in the files.
func deleteRows(tx *sqldb.Tx, table, condition string, args ...any) error {
	n, err := tx.Exec("DELETE FROM "+table+" WHERE "+condition, args...)
	if err != nil || n == 0 {
		return err
	}
	return schedulePurge(tx)
}
