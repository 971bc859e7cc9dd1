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

// schemaCursors adds the table that says how far each chat was read.
const schemaCursors = `
CREATE TABLE cursors (
	place  TEXT PRIMARY KEY,
	cursor TEXT NOT NULL
)`

// Joined reports whether somebody who is admitted has spoken to the bot in a thread, and
// when first.
func (b *Book) Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error) {
	var seen int64
	err = b.db.Read.QueryRowContext(ctx, `SELECT seen FROM chats WHERE channel = ? AND chat = ? AND thread = ?`,
		textArgs(at.Channel, at.Chat, at.Thread)...).Scan(&seen)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look up a thread: %w", err)
	}
	return timeOf(seen), true, nil
}

// Threads lists the threads of a chat in which somebody who is admitted has spoken to the
// bot, the earliest first.
func (b *Book) Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error) {
	return queryAll(ctx, b.db.Read, func(scan func(...any) error) (bus.Address, error) {
		at := bus.Address{Channel: chat.Channel, Chat: chat.Chat}
		err := scan(&at.Thread)
		restoreTexts(&at.Thread)
		return at, err
	}, `SELECT thread FROM chats WHERE channel = ? AND chat = ? AND thread <> '' ORDER BY seen`, textArgs(chat.Channel, chat.Chat)...)
}

// Cursor returns how far the chat at an address was read, as SetCursor stored it last; "" if it
// stored nothing.
func (b *Book) Cursor(ctx context.Context, at bus.Address) (string, error) {
	var cursor string
	err := b.db.Read.QueryRowContext(ctx, `SELECT cursor FROM cursors WHERE place = ?`, sqldb.Text(at.String())).Scan(&cursor)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read a cursor: %w", err)
	}
	return sqldb.Untext(cursor), nil
}

// SetCursor stores how far a chat was read, in the adapter's own form.
func (b *Book) SetCursor(ctx context.Context, at bus.Address, cursor string) error {
	_, err := b.db.Exec(ctx, `INSERT INTO cursors (place, cursor) VALUES (?, ?) ON CONFLICT (place) DO UPDATE SET cursor = excluded.cursor`,
		sqldb.Text(at.String()), sqldb.Text(cursor))
	if err != nil {
		return fmt.Errorf("write a cursor: %w", err)
	}
	return nil
}
