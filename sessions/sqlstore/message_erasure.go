package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// EraseMessage implements sessions.MessageEraser: it empties the entries in one transaction. It locks the
// session's row, as an append does.
func (l *log) EraseMessage(ctx context.Context, cause string) error {
	if l.raisesFence() {
		switch still, err := l.Reopen(ctx, l.fence); {
		case err != nil:
			return fmt.Errorf("erase a message: %w", err)
		case !still:
			return fmt.Errorf("erase a message: %w", sessions.ErrConflict)
		}
	}
	var refused error
	var erasures int64 // increased so that whoever has read the log before notices that it has changed
	err := l.logs.db.Write(ctx, func(tx *sqldb.Tx) error {
		refused = nil
		var fence int64
		err := tx.Get("UPDATE sessions SET erasures = erasures + 1 WHERE id = ? RETURNING fence, erasures", []any{l.session}, &fence, &erasures)
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
	l.erasures = erasures
	return nil
}

func (l *log) emptyEntries(tx *sqldb.Tx, cause string) error {
	found, err := tx.Query("SELECT "+entryColumns+" FROM entries WHERE session = ? AND (cause = ? AND cause <> '' OR kind IN (?, ?, ?))",
		l.session, sqldb.Text(cause), string(sessions.KindNotice), string(sessions.KindAttached), string(sessions.KindFetched))
	if err != nil {
		return err
	}
	rows, err := scanRows(found, nil, func(r *row) (row, error) { return *r, nil })
	if err != nil {
		return err
	}
	for _, r := range rows {
		e, err := r.toEntry()
		if err != nil {
			return err
		}
		data, is := sessions.DataAfterDeletion(e, cause)
		if !is {
			continue
		}
		raw, err := plainjson.Marshal(data)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("UPDATE entries SET data = ? WHERE session = ? AND n = ?", string(raw), l.session, r.n); err != nil {
			return err
		}
	}
	if err := retitle(tx, l.session); err != nil {
		return err
	}
	return schedulePurge(tx)
}
