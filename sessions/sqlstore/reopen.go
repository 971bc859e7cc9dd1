package sqlstore

import (
	"context"
	"fmt"

	"parley/sessions"
)

var _ sessions.Reopener = (*log)(nil)

// Release removes the entries from memory; see [sessions.Reopener].
func (l *log) Release() { l.entries = nil }

// Reopen raises the session's fence if the log is as this holder has left it; see
// [sessions.Reopener]. All of the condition is in the session's row: on PostgreSQL an
// UPDATE that has waited for another transaction sees that row as it is then, and
// everything else as it was before. The number of a row that was deleted may be given
// again, but not together with the key and the fence.
func (l *log) Reopen(ctx context.Context, fence int64) (bool, error) {
	if fence < l.fence {
		return false, fmt.Errorf("reopen session %s: %w", l.key, sessions.ErrFenced)
	}
	changed, err := l.store.db.Group(ctx, `
		UPDATE sessions SET fence = ? WHERE id = ? AND key = ? AND fence = ? AND last = ? AND erasures = ?`,
		[]any{fence, l.session, l.key, l.fence, l.state.last, l.erasures})
	if err != nil {
		return false, fmt.Errorf("reopen session %s: %w", l.key, err)
	}
	if changed > 0 {
		l.fence = fence
	}
	return changed > 0, nil
}
