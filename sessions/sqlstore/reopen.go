package sqlstore

import (
	"context"
	"fmt"
	"sync/atomic"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// Reopen raises the session's fence if the log is as this holder has left it; see [sessions.ReopenableLog].
// The whole condition is in the session's row, because on PostgreSQL an UPDATE that has waited for
// another transaction sees that row as it is then, but everything else as it was before. The number of a
// deleted row may be given out again, but not together with the same key and fence.
func (l *log) Reopen(ctx context.Context, fence int64) (bool, error) {
	if fence < l.fence {
		return false, fmt.Errorf("reopen session %s: %w", l.key, sessions.ErrFenced)
	}
	changed, err := l.raise(ctx, `
		UPDATE sessions SET fence = ? WHERE id = ? AND key = ? AND fence = ? AND last = ? AND erasures = ?`,
		fence, l.session, l.key, l.state.fence, l.state.lastEntry, l.erasures)
	if err != nil {
		return false, fmt.Errorf("reopen session %s: %w", l.key, err)
	}
	if changed > 0 {
		l.fence, l.state.fence = fence, fence
	}
	return changed > 0, nil
}

// ReopenLater makes the next append raise the session's fence; see [sessions.ReopenableLog].
func (l *log) ReopenLater(fence int64) error {
	if fence < l.fence {
		return fmt.Errorf("reopen session %s: %w", l.key, sessions.ErrFenced)
	}
	l.fence = fence
	return nil
}

// raise runs the statement with which Reopen raises a fence, and returns how many rows it has changed. On
// SQLite it shares the disk flush of the turn's beginning: a crash that loses it ends all holders, too.
func (l *log) raise(ctx context.Context, query string, args ...any) (int64, error) {
	db := l.logs.db
	if db.IsPostgres() {
		return db.Group(ctx, query, args)
	}
	var changed atomic.Int64 // the function may run again when Soon has returned
	err := db.Soon(ctx, reserveFlushTime, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(query, args...)
		changed.Store(n)
		return err
	})
	return changed.Load(), err
}
