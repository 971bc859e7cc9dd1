package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// page is how many entries Read fetches at once. It holds no connection between
// pages, so that a slow consumer does not keep one.
const page = 100

// List lists sessions; see [sessions.Reader].
func (s *Store) List(ctx context.Context, after string, limit int) (list []sessions.Info, err error) {
	defer func() {
		if err != nil {
			list, err = nil, fmt.Errorf("list sessions: %w", err)
		}
	}()
	if limit <= 0 {
		return nil, nil
	}
	// Databases refuse invalid UTF-8 and NUL. No key has them, and what replaces them
	// sorts in the same place.
	after = strings.ReplaceAll(strings.ToValidUTF8(after, "\uFFFD"), "\x00", "\x01")
	s.db.Flush()
	found, err := s.queries.list.QueryContext(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		info, err := scanInfo(found.Scan)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, found.Err()
}

// Info returns what List returns of one session; see [sessions.Reader].
func (s *Store) Info(ctx context.Context, key string) (sessions.Info, error) {
	s.db.Flush()
	info, err := scanInfo(s.queries.info.QueryRowContext(ctx, sqldb.Text(key)).Scan)
	if err != nil {
		return sessions.Info{}, fmt.Errorf("look up session %s: %w", key, asNotFound(err))
	}
	return info, nil
}

// scanInfo reads a session's row.
func scanInfo(scan func(dest ...any) error) (info sessions.Info, err error) {
	var created, updated string
	if err := scan(&info.Key, &info.Entries, &created, &updated); err != nil {
		return sessions.Info{}, err
	}
	if info.Created, err = time.Parse(stampLayout, created); err != nil {
		return sessions.Info{}, err
	}
	info.Updated, err = time.Parse(stampLayout, updated)
	return info, err
}

// Read yields a session's entries; see [sessions.Reader].
func (s *Store) Read(ctx context.Context, key string, from int64) iter.Seq2[sessions.Entry, error] {
	return func(yield func(sessions.Entry, error) bool) {
		fail := func(err error) { yield(sessions.Entry{}, fmt.Errorf("read session %s: %w", key, err)) }
		s.db.Flush()
		var session int64
		err := s.queries.session.QueryRowContext(ctx, sqldb.Text(key)).Scan(&session)
		if err != nil {
			fail(asNotFound(err))
			return
		}
		for {
			entries, err := readEntries(ctx, s.queries.page, nil, session, from, page)
			if err != nil {
				fail(err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if len(entries) < page {
				return
			}
			from = entries[len(entries)-1].N + 1
		}
	}
}

// Find returns the entry whose Cause is cause; see [sessions.Reader].
func (s *Store) Find(ctx context.Context, key, cause string) (sessions.Entry, error) {
	s.db.Flush()
	var r row
	err := s.queries.find.QueryRowContext(ctx, sqldb.Text(key), sqldb.Text(cause)).Scan(r.scanTargets()...)
	if err != nil {
		return sessions.Entry{}, fmt.Errorf("find cause %s in session %s: %w", cause, key, asNotFound(err))
	}
	return r.toEntry()
}

// asNotFound turns sql.ErrNoRows into sessions.ErrNotFound.
func asNotFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return sessions.ErrNotFound
	}
	return err
}

// queries holds the prepared statements of the frequent queries.
type queries struct {
	span, turn, page, session, find, list, info, spent, tombstone *sql.Stmt
}

func prepare(ctx context.Context, db *sql.DB) (q queries, err error) {
	for _, p := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&q.span, "SELECT " + columns + " FROM entries WHERE session = ? AND n >= ? AND n <= ? ORDER BY n"},
		{&q.turn, "SELECT " + columns + " FROM entries WHERE session = ? AND n >= ? AND n <= ? AND turn = ? ORDER BY n"},
		{&q.page, "SELECT " + columns + " FROM entries WHERE session = ? AND n >= ? ORDER BY n LIMIT ?"},
		{&q.session, "SELECT id FROM sessions WHERE key = ?"},
		{&q.find, "SELECT " + columns + " FROM entries WHERE session = (SELECT id FROM sessions WHERE key = ?) AND cause = ? AND cause <> ''"},
		{&q.list, "SELECT key, last, created, updated FROM sessions WHERE key > ? ORDER BY key LIMIT ?"},
		{&q.info, "SELECT key, last, created, updated FROM sessions WHERE key = ?"},
		{&q.spent, "SELECT tokens FROM spending WHERE person = ? AND day = ?"},
		{&q.tombstone, "SELECT EXISTS (SELECT 1 FROM graves WHERE key = ? AND fence >= ?)"},
	} {
		if *p.stmt, err = db.PrepareContext(ctx, p.text); err != nil {
			return q, errors.Join(fmt.Errorf("prepare %q: %w", p.text, err), q.close())
		}
	}
	return q, nil
}

func (q queries) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{q.span, q.turn, q.page, q.session, q.find, q.list, q.info, q.spent, q.tombstone} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// readEntries runs a query that selects columns, and appends the entries that it finds to entries.
func readEntries(ctx context.Context, stmt *sql.Stmt, entries []sessions.Entry, args ...any) ([]sessions.Entry, error) {
	found, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, err
	}
	return scanRows(found, entries, func(r row) (sessions.Entry, error) { return r.toEntry() })
}

// scanRows converts each row of a result by the function convert, appends it to list, and closes
// the result.
func scanRows[T any](found *sql.Rows, list []T, convert func(row) (T, error)) (_ []T, err error) {
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var r row
		if err := found.Scan(r.scanTargets()...); err != nil {
			return nil, err
		}
		v, err := convert(r)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, found.Err()
}
