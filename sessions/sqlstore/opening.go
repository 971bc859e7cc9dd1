package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// Open raises the session's fence and returns its log; see [sessions.Store].
func (s *logs) Open(ctx context.Context, key string, fence int64) (sessions.Log, error) {
	l, err := s.open(ctx, key, fence)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", key, err)
	}
	return l, nil
}

// open raises the session's fence and reads its log.
func (s *logs) open(ctx context.Context, key string, fence int64) (*log, error) {
	if err := sessions.CheckKey(key); err != nil {
		return nil, err
	}
	l := &log{logs: s, key: key, fence: fence, state: state{fence: fence}}
	now := sqldb.FormatTime(time.Now())
	agent, channel, chat := keyColumns(key)
	// One statement creates the session or raises its fence. It returns no row if a holder of a higher
	// fence has opened the session, or its tombstone forbids this fence.
	_, err := s.db.Group(ctx, `
		INSERT INTO sessions (key, fence, last, summary, covers, unfinished, created, updated, active, agent, channel, chat)
		SELECT CAST(? AS TEXT), CAST(? AS BIGINT), 0, 0, 0, '', CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT)
		WHERE NOT EXISTS (SELECT 1 FROM graves WHERE key = ? AND fence >= ?)
		ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE sessions.fence <= excluded.fence
		RETURNING id, erasures, last, summary, covers, unfinished, title`,
		[]any{key, fence, now, now, activeOf(now), agent, channel, chat, key, fence},
		&l.session, &l.erasures, &l.state.lastEntry, &l.state.summary, &l.state.summaryCovers, &l.state.unfinished, &l.state.storedTitle)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, sessions.ErrFenced
	case err != nil:
		return nil, err
	}
	if err := s.checkTombstone(ctx, l, key); err != nil {
		return nil, err
	}
	if l.entries, err = s.readRelevant(ctx, l, false); err != nil {
		return l, err
	}
	l.state.findTitle(l.entries)
	return l, nil
}

// Peek returns a session's log without opening it; see [sessions.Peeker]. It reads the session's row
// first, so that the row's condition in Reopen detects everything that changes afterwards.
func (s *logs) Peek(ctx context.Context, key string) (sessions.Log, bool, error) {
	if err := sessions.CheckKey(key); err != nil {
		return nil, false, err
	}
	l := &log{logs: s, key: key}
	st := &l.state
	err := s.queries.peek.QueryRowContext(ctx, key).Scan(&l.session, &l.erasures, &st.fence, &st.lastEntry, &st.summary, &st.summaryCovers, &st.unfinished, &st.storedTitle)
	if errors.Is(err, sql.ErrNoRows) || err == nil && st.lastEntry == 0 { // on PostgreSQL, Open looks again for the tombstone of an empty session
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read session %s: %w", key, err)
	}
	l.fence = st.fence
	if l.entries, err = s.readRelevant(ctx, l, len(st.unfinished) == 0); err != nil {
		return nil, false, fmt.Errorf("read session %s: %w", key, err)
	}
	st.findTitle(l.entries)
	return l, true, nil
}

// readRelevant reads the entries that a log's holder needs: all entries after those that the newest
// summary covers, and of the covered ones those that the summary keeps and those of unfinished turns. If
// brief is true, it leaves out entries that only record the progress of turns; see sessions.Peeker.
func (s *logs) readRelevant(ctx context.Context, l *log, brief bool) ([]sessions.Entry, error) {
	session, st := l.session, l.state
	if st.lastEntry == 0 {
		return nil, nil
	}
	var entries []sessions.Entry
	var err error
	for _, t := range st.unfinished {
		if t.From > st.summaryCovers {
			continue
		}
		if entries, err = readEntries(ctx, s.queries.turn, entries, session, t.From, st.summaryCovers, t.ID); err != nil {
			return nil, err
		}
	}
	span := func() ([]sessions.Entry, error) {
		if brief {
			return s.readBrief(ctx, l, st.summaryCovers+1, st.lastEntry)
		}
		return readEntries(ctx, s.queries.span, nil, session, st.summaryCovers+1, st.lastEntry)
	}
	uncovered, err := span()
	if err != nil {
		return nil, err
	}
	if entries, err = s.appendKept(ctx, entries, uncovered, session, st); err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b sessions.Entry) int { return cmp.Compare(a.N, b.N) })
	if len(entries) == 0 {
		return uncovered, nil
	}
	return append(entries, uncovered...), nil
}

// appendKept appends the covered entries that the newest summary keeps and that are not
// among entries already.
func (s *logs) appendKept(ctx context.Context, entries, uncovered []sessions.Entry, session int64, st state) ([]sessions.Entry, error) {
	i := slices.IndexFunc(uncovered, func(e sessions.Entry) bool { return e.N == st.summary })
	if i < 0 {
		return entries, nil
	}
	sum, err := sessions.Decode[sessions.Summary](uncovered[i])
	if err != nil {
		return nil, err
	}
	args := []any{session}
	for _, n := range sum.Keep {
		if n <= st.summaryCovers && !slices.ContainsFunc(entries, func(e sessions.Entry) bool { return e.N == n }) {
			args = append(args, n)
		}
	}
	if len(args) == 1 {
		return entries, nil
	}
	found, err := s.db.Read.QueryContext(ctx, "SELECT "+entryColumns+" FROM entries WHERE session = ? AND n IN (?"+strings.Repeat(", ?", len(args)-2)+")", args...)
	if err != nil {
		return nil, err
	}
	return scanRows(found, entries, func(r *row) (sessions.Entry, error) { return r.toEntry() })
}

// checkTombstone looks again for the tombstone of a session that Open has just created.
// Open's INSERT may have waited while the same session was being erased, and had looked
// for the tombstone before there was one. Such a session is deleted again, and
// checkTombstone returns ErrFenced. An erasure that begins later finds the session that
// Open has created.
func (s *logs) checkTombstone(ctx context.Context, l *log, key string) error {
	if !s.db.IsPostgres() || l.state.lastEntry > 0 {
		return nil
	}
	var buried bool
	err := s.queries.tombstone.QueryRowContext(ctx, key, l.fence).Scan(&buried)
	if err != nil || !buried {
		return err
	}
	if _, err := s.db.Exec(ctx, "DELETE FROM sessions WHERE id = ? AND fence = ? AND last = 0", l.session, l.fence); err != nil {
		return err
	}
	return sessions.ErrFenced
}
