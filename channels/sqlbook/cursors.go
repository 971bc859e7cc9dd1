package sqlbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"parley/bus"
	"parley/sessions/sqldb"
)

// schemaCursors adds the table that says how far each chat, or a whole channel, has been read.
const schemaCursors = `
CREATE TABLE cursors (
	place  TEXT PRIMARY KEY,
	cursor TEXT NOT NULL
)`

// cursors stores how far each chat, or a whole channel, has been read.
type cursors struct{ db *sqldb.DB }

// Cursor returns how far the chat at an address has been read, as last stored by SetCursor; "" if it has stored
// nothing.
func (c *cursors) Cursor(ctx context.Context, at bus.Address) (string, error) {
	var cursor string
	err := c.db.Read.QueryRowContext(ctx, `SELECT cursor FROM cursors WHERE place = ?`, sqldb.Text(at.String())).Scan(&cursor)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read a cursor: %w", err)
	}
	return sqldb.Untext(cursor), nil
}

// SetCursor stores how far a chat has been read, in the adapter's own form.
func (c *cursors) SetCursor(ctx context.Context, at bus.Address, cursor string) error {
	_, err := c.db.Exec(ctx, `INSERT INTO cursors (place, cursor) VALUES (?, ?) ON CONFLICT (place) DO UPDATE SET cursor = excluded.cursor`,
		sqldb.Text(at.String()), sqldb.Text(cursor))
	if err != nil {
		return fmt.Errorf("write a cursor: %w", err)
	}
	return nil
}
