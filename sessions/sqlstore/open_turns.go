package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// entriesSearched is how many entries OpenTurns looks through: those after a turn's first
// entry, for how the turn began, and those at the end of the log, for its calls.
const entriesSearched = 200

// OpenTurns returns the turns of a session that have not ended; see [sessions.TurnReader].
func (s *reader) OpenTurns(ctx context.Context, key string) (open []sessions.OpenTurn, err error) {
	s.db.Flush()
	var session, last int64
	var unfinished turns
	err = s.db.Read.QueryRowContext(ctx, "SELECT id, last, unfinished FROM sessions WHERE key = ?", sqldb.Text(key)).Scan(&session, &last, &unfinished)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	for _, t := range unfinished {
		if err != nil || t.Done {
			continue
		}
		found := sessions.OpenTurn{Session: key, Turn: t.ID}
		if err = s.readBeginning(ctx, &found, session, t.From); err == nil {
			err = s.readProgress(ctx, &found, session, max(t.From, last-entriesSearched+1))
		}
		open = append(open, found)
	}
	if err != nil {
		return nil, fmt.Errorf("look for the turns of %s that have not ended: %w", key, err)
	}
	return open, nil
}

// readBeginning fills in what the turn_started entry of the turn says. That entry is at
// most a few entries after number from, because only files and a sub-agent's task come
// before it.
func (s *reader) readBeginning(ctx context.Context, t *sessions.OpenTurn, session, from int64) error {
	entries, err := s.entriesOf(ctx, session, "n >= ? AND n < ? AND turn = ? AND kind = 'turn_started'", from, from+entriesSearched, sqldb.Text(t.Turn))
	if err != nil || len(entries) == 0 {
		return err
	}
	began, err := sessions.Decode[sessions.TurnStarted](entries[0])
	t.Person, t.Agent, t.Started = entries[0].Person, began.Agent, entries[0].At
	return err
}

// readProgress fills in whether the turn waits, and which calls are running.
func (s *reader) readProgress(ctx context.Context, t *sessions.OpenTurn, session, from int64) (err error) {
	rows, err := s.db.Read.QueryContext(ctx, `SELECT kind, at, call FROM entries WHERE session = ? AND n >= ? AND turn = ?
		AND kind IN ('tool_started', 'tool_result', 'turn_parked', 'turn_unparked') ORDER BY n`, session, from, sqldb.Text(t.Turn))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var kind, at, call string
		if err := rows.Scan(&kind, &at, &call); err != nil {
			return err
		}
		call = sqldb.Untext(call)
		is := func(c sessions.OpenCall) bool { return c.Call == call }
		switch sessions.Kind(kind) {
		case sessions.KindTurnParked:
			t.Parked = true
		case sessions.KindTurnUnparked:
			t.Parked = false
		case sessions.KindToolResult:
			t.Calls = slices.DeleteFunc(t.Calls, is)
		case sessions.KindToolStarted:
			since, err := sqldb.ParseTime(at)
			if err != nil {
				return err
			}
			t.Calls = append(slices.DeleteFunc(t.Calls, is), sessions.OpenCall{Call: call, Since: since})
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return s.nameCalls(ctx, t, session, from)
}

// nameCalls fills in the names of the called tools.
func (s *reader) nameCalls(ctx context.Context, t *sessions.OpenTurn, session, from int64) error {
	for i := range t.Calls {
		entries, err := s.entriesOf(ctx, session, "n >= ? AND turn = ? AND kind = 'tool_use' AND call = ?", from-entriesSearched, sqldb.Text(t.Turn), sqldb.Text(t.Calls[i].Call))
		if err != nil {
			return err
		}
		for _, e := range entries {
			use, err := sessions.Decode[sessions.ToolUse](e)
			if err != nil {
				return err
			}
			t.Calls[i].Tool = use.Name
		}
	}
	return nil
}

// entriesOf returns the entries of a session for which the SQL condition is true.
func (s *reader) entriesOf(ctx context.Context, session int64, condition string, args ...any) (found []sessions.Entry, err error) {
	rows, err := s.db.Read.QueryContext(ctx, "SELECT "+entryColumns+" FROM entries WHERE session = ? AND "+condition+" ORDER BY n", append([]any{session}, args...)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r row
		if err := rows.Scan(r.scanTargets()...); err != nil {
			return nil, err
		}
		e, err := r.toEntry()
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, rows.Err()
}
