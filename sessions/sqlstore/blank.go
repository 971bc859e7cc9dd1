package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"parley/sessions"
	"parley/sessions/sqldb"
)

var _ sessions.Blanker = (*log)(nil)

// Blank implements sessions.Blanker: it empties the entries in one transaction. It locks the
// session's row, as an append does.
func (l *log) Blank(ctx context.Context, cause string) error {
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
		return l.blank(tx, cause)
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return fmt.Errorf("blank what was said: %w", err)
	}
	return nil
}

func (l *log) blank(tx *sqldb.Tx, cause string) error {
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
		data, is := sessions.BlankedData(e, cause)
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
	return schedulePurge(tx)
}
