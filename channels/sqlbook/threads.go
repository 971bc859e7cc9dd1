package sqlbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// schemaCursors adds the table of how far each chat was read.
const schemaCursors = `
CREATE TABLE cursors (
	place  TEXT PRIMARY KEY,
	cursor TEXT NOT NULL
)`

// Joined tells whether an admitted person has spoken to the bot in a thread, and since
// when.
func (b *Book) Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error) {
	var seen int64
	err = b.db.Read.QueryRowContext(ctx, `SELECT seen FROM chats WHERE channel = ? AND chat = ? AND thread = ?`,
		texts(at.Channel, at.Chat, at.Thread)...).Scan(&seen)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look up a thread: %w", err)
	}
	return moment(seen), true, nil
}

// Threads lists the threads of a chat in which an admitted person has spoken to the
// bot.
func (b *Book) Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error) {
	return list(ctx, b.db.Read, func(scan func(...any) error) (bus.Address, error) {
		at := bus.Address{Channel: chat.Channel, Chat: chat.Chat}
		err := scan(&at.Thread)
		untext(&at.Thread)
		return at, err
	}, `SELECT thread FROM chats WHERE channel = ? AND chat = ? AND thread <> '' ORDER BY seen`, texts(chat.Channel, chat.Chat)...)
}

// Cursor returns what SetCursor stored last for an address; "" if nothing was.
func (b *Book) Cursor(ctx context.Context, at bus.Address) (string, error) {
	var cursor string
	err := b.db.Read.QueryRowContext(ctx, `SELECT cursor FROM cursors WHERE place = ?`, sqldb.Text(at.String())).Scan(&cursor)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read a cursor: %w", err)
	}
	return sqldb.Untext(cursor), nil
}

// SetCursor stores how far a chat was read.
func (b *Book) SetCursor(ctx context.Context, at bus.Address, cursor string) error {
	_, err := b.db.Exec(ctx, `INSERT INTO cursors (place, cursor) VALUES (?, ?) ON CONFLICT (place) DO UPDATE SET cursor = excluded.cursor`,
		sqldb.Text(at.String()), sqldb.Text(cursor))
	if err != nil {
		return fmt.Errorf("write a cursor: %w", err)
	}
	return nil
}
