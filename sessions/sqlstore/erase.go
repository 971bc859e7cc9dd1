package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/purges"
	"parley/sessions/schedules"
	"parley/sessions/sqldb"
	"parley/sessions/tasks"
)

var _ sessions.Eraser = (*Store)(nil)

// erasureTables creates the tables of what must stay known about erased sessions. They
// hold no text that people wrote.
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
` + purges.Migration

// erasureCount is the migration that counts for each session how often something of it was erased
// while its fence stayed the same. By the count a process that has the session's entries in memory
// knows whether they are still right.
const erasureCount = `ALTER TABLE sessions ADD COLUMN erasures BIGINT NOT NULL DEFAULT 0;`

// EraseSession erases a session; see [sessions.Eraser].
func (s *Store) EraseSession(ctx context.Context, key string) (sessions.Erased, error) {
	if err := sessions.CheckKey(key); err != nil {
		return sessions.Erased{}, fmt.Errorf("erase session: %w", err)
	}
	done, err := s.erase(ctx, func(e *eraserCall) error {
		err := s.eraseRows(ctx, func(tx *sqldb.Tx) (int64, error) { return schedules.EraseSession(tx, key) },
			func(tx *sqldb.Tx) (int64, error) { return tasks.EraseSession(tx, key) })
		if err != nil {
			return err
		}
		return e.eraseOne(ctx, key, (*sessionErasure).eraseWhole)
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
func (s *Store) ErasePerson(ctx context.Context, person string) (sessions.Erased, error) {
	if person == "" {
		return sessions.Erased{}, errors.New("erase person: nobody is named")
	}
	person = sqldb.Text(person)
	done, err := s.erase(ctx, func(e *eraserCall) error {
		const spokeIn = "EXISTS (SELECT 1 FROM entries WHERE session = s.id AND person = ?)"
		err := s.eraseRows(ctx, func(tx *sqldb.Tx) (int64, error) { return schedules.ErasePerson(tx, sqldb.Untext(person)) },
			func(tx *sqldb.Tx) (int64, error) { return tasks.ErasePerson(tx, sqldb.Untext(person)) })
		if err != nil {
			return err
		}
		err = e.eachSession(ctx, func(p *sessionErasure) error { return p.erasePerson(person) }, spokeIn, person)
		if err != nil {
			return err
		}
		return s.db.Write(ctx, func(tx *sqldb.Tx) error {
			return errors.Join(anonymiseSpending(tx, person), bill.Forget(tx, bill.Person(sqldb.Untext(person))), anonymiseAudit(tx, person), deleteJobs(tx, "person = ?", person))
		})
	})
	if err != nil {
		return done, fmt.Errorf("erase person %s: %w", person, err)
	}
	return done, nil
}

// EraseBefore erases what is old; see [sessions.Eraser]. A worker that holds a
// session keeps its fence, as only turns that ended long ago are erased.
func (s *Store) EraseBefore(ctx context.Context, before time.Time) (sessions.Erased, error) {
	at := formatTime(before)
	done, err := s.erase(ctx, func(e *eraserCall) error {
		const old = "updated < ? OR EXISTS (SELECT 1 FROM entries WHERE session = s.id AND at < ?)"
		if err := e.eachSession(ctx, func(p *sessionErasure) error { return p.eraseBefore(at) }, old, at, at); err != nil {
			return err
		}
		return s.db.Write(ctx, func(tx *sqldb.Tx) error {
			if err := deleteJobs(tx, "state <> 'running' AND ended < ?", at); err != nil {
				return err
			}
			if n, err := tasks.EraseEndedBefore(tx, before); err != nil || n > 0 {
				if err = errors.Join(err, purges.Schedule(tx)); err != nil {
					return err
				}
			}
			n, err := tx.Exec("DELETE FROM audit WHERE at < ?", at)
			if err != nil || n == 0 {
				return err
			}
			return purges.Schedule(tx)
		})
	})
	if err != nil {
		return done, fmt.Errorf("erase what is before %s: %w", at, err)
	}
	return done, nil
}

// eraseRows calls each of the functions erase, which delete schedules or tasks. This comes before
// sessions are erased, so that what those might still add to a session is erased too.
func (s *Store) eraseRows(ctx context.Context, erase ...func(*sqldb.Tx) (int64, error)) error {
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
		return purges.Schedule(tx)
	})
}

// An eraserCall is one call of a method of sessions.Eraser, with the counts that it returns. Each
// session is erased in a transaction of its own; if the process dies between them, the next call
// finds the sessions that are left.
type eraserCall struct {
	store *Store
	done  sessions.Erased
}

// erase runs do, and then removes the traces of deleted rows from the database's files,
// including those left by an earlier call that was cut off. Only one call at a time runs.
func (s *Store) erase(ctx context.Context, do func(*eraserCall) error) (sessions.Erased, error) {
	e := &eraserCall{store: s}
	err := s.purges.Erase(ctx, func() error { return do(e) })
	return e.done, err
}

// PurgeDue purges the files if an erasure has left that undone: it was cut off, or has put it off.
func (s *Store) PurgeDue(ctx context.Context) error {
	return s.purges.Erase(ctx, func() error { return nil })
}

// NotePurge records that something is about to be erased by others whose tables may be in the
// store's files; see [purges.Record.Announce].
func (s *Store) NotePurge(ctx context.Context) (end func(ctx context.Context, erased bool) error, err error) {
	return s.purges.Announce(ctx)
}

// sessionsAtOnce bounds how many sessions one query looks through, as queries have a
// timeout.
const sessionsAtOnce = 200

// eachSession calls erase for every session s (in SQL) that meets the condition.
func (e *eraserCall) eachSession(ctx context.Context, erase func(*sessionErasure) error, condition string, args ...any) error {
	query := fmt.Sprintf("SELECT key, %s FROM (SELECT id, key, updated FROM sessions WHERE key > ? ORDER BY key LIMIT %d) s ORDER BY key", condition, sessionsAtOnce)
	for last := ""; ; {
		page, err := e.readPage(ctx, query, append(slices.Clone(args), last)...)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, found := range page {
			last = found.key
			if !found.holds {
				continue
			}
			if err := e.eraseOne(ctx, found.key, erase); err != nil {
				return fmt.Errorf("session %s: %w", found.key, err)
			}
		}
	}
}

// A candidate is a session, and whether the condition of eachSession holds for it.
type candidate struct {
	key   string
	holds bool
}

// readPage reads the next sessions, and for each whether it meets the condition.
func (e *eraserCall) readPage(ctx context.Context, query string, args ...any) (page []candidate, err error) {
	rows, err := e.store.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.key, &c.holds); err != nil {
			return nil, err
		}
		page = append(page, c)
	}
	return page, rows.Err()
}

// SessionsOf lists the sessions from which ErasePerson would erase: those in which only
// the person has spoken, and those in which others have too.
func (s *Store) SessionsOf(ctx context.Context, person string) (alone, shared []string, err error) {
	const query = `
		SELECT s.key, EXISTS (SELECT 1 FROM entries e WHERE e.session = s.id AND ` + spokenByOthers + `)
		FROM sessions s WHERE s.id IN (SELECT session FROM entries WHERE person = ?) ORDER BY s.key`
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

// EraseMessage implements sessions.MessageEraser: it empties the entries in one transaction. It locks the
// session's row, as an append does.
func (l *log) EraseMessage(ctx context.Context, cause string) error {
	if l.raises() {
		switch still, err := l.Reopen(ctx, l.fence); {
		case err != nil:
			return fmt.Errorf("erase a message: %w", err)
		case !still:
			return fmt.Errorf("erase a message: %w", sessions.ErrConflict)
		}
	}
	var refused error
	err := l.store.db.Write(ctx, func(tx *sqldb.Tx) error {
		refused = nil
		var fence int64
		err := tx.Get("UPDATE sessions SET fence = fence WHERE id = ? RETURNING fence", []any{l.session}, &fence)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			refused = sessions.ErrConflict // it was erased
			return nil
		case err != nil:
			return err
		case fence != l.fence:
			refused = sessions.ErrFenced
			return nil
		}
		return l.emptyEntries(tx, cause)
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("erase a message: %w", err)
	}
	return nil
}

func (l *log) emptyEntries(tx *sqldb.Tx, cause string) error {
	found, err := tx.Query("SELECT "+columns+" FROM entries WHERE session = ? AND (cause = ? AND cause <> '' OR kind IN (?, ?, ?))",
		l.session, sqldb.Text(cause), string(sessions.KindNotice), string(sessions.KindAttached), string(sessions.KindFetched))
	if err != nil {
		return err
	}
	rows, err := scanRows(found, nil, func(r row) (row, error) { return r, nil })
	if err != nil {
		return err
	}
	for _, r := range rows {
		e, err := r.toEntry()
		if err != nil {
			return err
		}
		data, is := sessions.EmptiedData(e, cause)
		if !is {
			continue
		}
		raw, err := json.Marshal(data)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE entries SET data = ? WHERE session = ? AND n = ?", string(raw), l.session, r.n); err != nil {
			return err
		}
	}
	return purges.Schedule(tx)
}
