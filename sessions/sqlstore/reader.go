package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"strings"

	"parley/sessions"
	"parley/sessions/participants"
	"parley/sessions/sqldb"
)

// entriesPerPage is how many entries Read fetches at once. Read holds no connection between pages, so
// that a slow consumer does not keep one.
const entriesPerPage = 100

// A reader reads sessions for callers that do not hold them.
type reader struct {
	db           *sqldb.DB
	queries      *queries
	participants *participants.Table
}

// List lists sessions; see [sessions.Reader].
func (s *reader) List(ctx context.Context, after string, limit int) (list []sessions.Info, err error) {
	defer func() {
		if err != nil {
			list, err = nil, fmt.Errorf("list sessions: %w", err)
		}
	}()
	if limit <= 0 {
		return nil, nil
	}
	// Databases refuse invalid UTF-8 and NUL. No key contains them, and what replaces them sorts in the
	// same place.
	after = strings.ReplaceAll(strings.ToValidUTF8(after, "\uFFFD"), "\x00", "\x01")
	s.db.Flush()
	found, err := s.queries.list.QueryContext(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	return scanInfos(found)
}

// infoColumns are the columns of a session s in a list, and titledInfo is the JOIN that they need.
const (
	infoColumns = "s.key, s.last, s.erasures, s.created, s.updated, coalesce(t.person, ''), coalesce(substr(t.data, 1, " + titleBytes + "), ''), CASE WHEN s.named_for = t.n AND s.named_erasures = s.erasures THEN s.named ELSE '' END"
	titledInfo  = " LEFT JOIN entries t ON t.session = s.id AND t.n = " + titleEntryExpression
)

// placeRange returns the bounds of the session keys at a place: the place itself, and the keys that begin
// with it and a colon.
func placeRange(place string) []any {
	return []any{sqldb.Text(place), sqldb.Text(place + ":"), sqldb.Text(place + ";")} // ";" follows ":" in the sort order
}

const placeCondition = "(s.key = ? OR s.key > ? AND s.key < ?)"

// FindIn finds a session of a place by a message; see [sessions.Finder]. The subquery makes the database
// go from the sessions to their entries, and not the other way round.
func (s *reader) FindIn(ctx context.Context, place, cause string) (key string, err error) {
	s.db.Flush()
	err = s.db.Read.QueryRowContext(ctx, `SELECT key FROM (SELECT s.key, (SELECT n FROM entries WHERE session = s.id AND cause = ? AND cause <> '') AS n
		FROM sessions s WHERE `+placeCondition+`) AS found WHERE n IS NOT NULL LIMIT 1`, append([]any{sqldb.Text(cause)}, placeRange(place)...)...).Scan(&key)
	if err != nil {
		return "", fmt.Errorf("find message %s at %s: %w", cause, place, asNotFound(err))
	}
	return sqldb.Untext(key), nil
}

// RecentIn lists the sessions of a place; see [sessions.Finder].
func (s *reader) RecentIn(ctx context.Context, place string, limit int) ([]sessions.Info, error) {
	s.db.Flush()
	found, err := s.db.Read.QueryContext(ctx, "SELECT s.key, s.last, s.erasures, s.created, s.updated, '', '', '' FROM sessions s WHERE "+placeCondition+" ORDER BY s.updated DESC, s.key LIMIT ?",
		append(placeRange(place), max(0, limit))...)
	if err != nil {
		return nil, fmt.Errorf("list the sessions at %s: %w", place, err)
	}
	list, err := scanInfos(found)
	if err != nil {
		return nil, fmt.Errorf("list the sessions at %s: %w", place, err)
	}
	return list, nil
}

// scanInfos reads all rows of sessions, and closes found.
func scanInfos(found *sql.Rows) (list []sessions.Info, err error) {
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

// Info returns what List returns for one session, without title and person; see [sessions.Reader].
func (s *reader) Info(ctx context.Context, key string) (sessions.Info, error) {
	s.db.Flush()
	info, err := scanInfo(s.queries.info.QueryRowContext(ctx, sqldb.Text(key)).Scan)
	if err != nil {
		return sessions.Info{}, fmt.Errorf("look up session %s: %w", key, asNotFound(err))
	}
	return info, nil
}

// scanInfo reads a session's row.
func scanInfo(scan func(dest ...any) error) (info sessions.Info, err error) {
	var created, updated, said, named string
	if err := scan(&info.Key, &info.LastEntry, &info.Erasures, &created, &updated, &info.Person, &said, &named); err != nil {
		return sessions.Info{}, err
	}
	if parts, err := sessions.ParseKey(info.Key); err == nil {
		info.Agent, info.Channel = parts.Agent, parts.Channel
	}
	info.Person, info.Title = sqldb.Untext(info.Person), cmp.Or(sqldb.Untext(named), titleOf(said))
	if info.Created, err = sqldb.ParseTime(created); err != nil {
		return sessions.Info{}, err
	}
	info.Updated, err = sqldb.ParseTime(updated)
	return info, err
}

// Read yields a session's entries; see [sessions.Reader].
func (s *reader) Read(ctx context.Context, key string, from int64) iter.Seq2[sessions.Entry, error] {
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
			entries, err := readEntries(ctx, s.queries.page, nil, session, from, entriesPerPage)
			if err != nil {
				fail(err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if len(entries) < entriesPerPage {
				return
			}
			from = entries[len(entries)-1].N + 1
		}
	}
}

// Find returns the entry whose Cause is cause; see [sessions.Reader].
func (s *reader) Find(ctx context.Context, key, cause string) (sessions.Entry, error) {
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
