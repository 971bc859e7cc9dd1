package sqlbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/sessions/sqldb"
)

// Meet implements channels.Chats: it inserts the chat, or updates its person and name.
func (b *Book) Meet(ctx context.Context, chat channels.Chat) error {
	at := chat.Address
	person, name := sqldb.Text(chat.Person), nameText(chat.Name)
	known := 0
	query, args := `SELECT count(*) FROM chats WHERE channel = ? AND chat = ? AND thread = ?`, textArgs(at.Channel, at.Chat, at.Thread)
	if name != "" {
		query, args = query+` AND person = ? AND name = ?`, append(args, person, name)
	}
	err := b.db.Read.QueryRowContext(ctx, query, args...).Scan(&known)
	if err == nil && known > 0 {
		return nil
	}
	_, err = b.db.Exec(ctx, `INSERT INTO chats (channel, chat, thread, session, shared, seen, person, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (channel, chat, thread) DO UPDATE SET person = excluded.person, name = excluded.name
		WHERE excluded.name <> ''`,
		append(textArgs(at.Channel, at.Chat, at.Thread, chat.Session), bit(chat.Group), stamp(chat.Seen), person, name)...)
	if err != nil {
		return fmt.Errorf("note a chat: %w", err)
	}
	return nil
}

// Chats implements channels.Chats: it lists all chats, sorted by address.
func (b *Book) Chats(ctx context.Context) ([]channels.Chat, error) {
	return queryAll(ctx, b.db.Read, scanChat, `SELECT channel, chat, thread, session, shared, seen, person, name FROM chats ORDER BY channel, chat, thread`)
}

// Names returns the names that people have on their platforms, by id, for those whose private chat
// the book knows. It reads few rows where Chats would read all.
func (b *Book) Names(ctx context.Context, people ...string) (map[string]string, error) {
	names := map[string]string{}
	if len(people) == 0 {
		return names, nil
	}
	chats, err := queryAll(ctx, b.db.Read, scanChat, `SELECT channel, chat, thread, session, shared, seen, person, name FROM chats
		WHERE person IN (?`+strings.Repeat(", ?", len(people)-1)+`) ORDER BY channel, chat, thread`, textArgs(people...)...)
	for _, c := range chats {
		names[c.Person] = c.Name
	}
	return names, err
}

// Assign implements channels.Chats: it inserts the chat, or updates its session.
func (b *Book) Assign(ctx context.Context, chat channels.Chat) error {
	at := chat.Address
	_, err := b.db.Exec(ctx, `INSERT INTO chats (channel, chat, thread, session, shared, seen, person, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (channel, chat, thread) DO UPDATE SET session = excluded.session`,
		append(textArgs(at.Channel, at.Chat, at.Thread, chat.Session), bit(chat.Group), stamp(chat.Seen), sqldb.Text(chat.Person), nameText(chat.Name))...)
	if err != nil {
		return fmt.Errorf("note a chat's session: %w", err)
	}
	return nil
}

// SessionAt implements channels.Chats: it reads the session from the row of the chat.
func (b *Book) SessionAt(ctx context.Context, at bus.Address) (string, error) {
	return b.sessionBy(ctx, `SELECT session FROM chats WHERE channel = ? AND chat = ? AND thread = ?`, at.Channel, at.Chat, at.Thread)
}

// SessionOf implements channels.Chats: it finds the sent part with that id, and returns the
// session of its send.
func (b *Book) SessionOf(ctx context.Context, at bus.Address, message string) (string, error) {
	return b.sessionBy(ctx, `SELECT s.session FROM parts p JOIN sends s ON s.id = p.send
		WHERE p.platform_id = ? AND p.platform_id <> '' AND s.channel = ? AND s.chat = ? AND s.session <> '' LIMIT 1`, message, at.Channel, at.Chat)
}

// sessionBy returns the session that a query finds; "" if it finds none.
func (b *Book) sessionBy(ctx context.Context, query string, args ...string) (session string, err error) {
	err = b.db.Read.QueryRowContext(ctx, query, textArgs(args...)...).Scan(&session)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look up a session: %w", err)
	}
	restoreTexts(&session)
	return session, nil
}

func scanChat(scan func(...any) error) (c channels.Chat, err error) {
	var group int
	var seen int64
	err = scan(&c.Address.Channel, &c.Address.Chat, &c.Address.Thread, &c.Session, &group, &seen, &c.Person, &c.Name)
	restoreTexts(&c.Address.Channel, &c.Address.Chat, &c.Address.Thread, &c.Session, &c.Person, &c.Name)
	c.Group, c.Seen = group != 0, timeOf(seen)
	return c, err
}

// queryAll runs a query and returns what scan makes of each row.
func queryAll[T any](ctx context.Context, db *sql.DB, scan func(func(...any) error) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read the book: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("read the book: %w", err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the book: %w", err)
	}
	return all, nil
}
