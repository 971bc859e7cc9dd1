package sqlbook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions/sqldb"
)

// chats stores where people have talked to the bot, and in which sessions.
type chats struct{ db *sqldb.DB }

// RecordChat implements channels.Chats: it inserts the chat, or updates its person and name, if chat.Name is known.
func (c *chats) RecordChat(ctx context.Context, chat channels.Chat) error {
	at := chat.Address
	person, name := sqldb.Text(chat.Person), toStoredName(chat.Name)
	known := 0
	query, args := `SELECT count(*) FROM chats WHERE channel = ? AND chat = ? AND thread = ?`, textArgs(at.Channel, at.Chat, at.Thread)
	if name != "" {
		query, args = query+` AND person = ? AND name = ?`, append(args, person, name)
	}
	err := c.db.Read.QueryRowContext(ctx, query, args...).Scan(&known)
	if err == nil && known > 0 {
		return nil
	}
	_, err = c.db.Exec(ctx, `INSERT INTO chats (channel, chat, thread, session, shared, seen, person, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (channel, chat, thread) DO UPDATE SET person = excluded.person, name = excluded.name
		WHERE excluded.name <> ''`,
		append(textArgs(at.Channel, at.Chat, at.Thread, chat.Session), toBit(chat.Group), toStamp(chat.Seen), person, name)...)
	if err != nil {
		return fmt.Errorf("note a chat: %w", err)
	}
	return nil
}

// Chats implements channels.Chats: it lists all chats, sorted by address.
func (c *chats) Chats(ctx context.Context) ([]channels.Chat, error) {
	return queryAll(ctx, c.db.Read, scanChat, `SELECT channel, chat, thread, session, shared, seen, person, name FROM chats ORDER BY channel, chat, thread`)
}

// ChatsAfter implements channels.Chats: it reads a page by the index of addresses.
func (c *chats) ChatsAfter(ctx context.Context, channel string, after bus.Address, limit int) ([]channels.Chat, error) {
	where, args := `(channel, chat, thread) > (?, ?, ?)`, textArgs(after.Channel, after.Chat, after.Thread)
	if channel != "" {
		where, args = where+` AND channel = ?`, append(args, sqldb.Text(channel))
	}
	return queryAll(ctx, c.db.Read, scanChat, `SELECT channel, chat, thread, session, shared, seen, person, name FROM chats WHERE `+where+`
		ORDER BY channel, chat, thread LIMIT ?`, append(args, max(0, limit))...)
}

// SessionsBefore lists sessions that have a chat that was first seen before a time. They are sorted by key and
// start after the key `after`; there are at most limit of them.
func (c *chats) SessionsBefore(ctx context.Context, before time.Time, after string, limit int) ([]string, error) {
	return queryAll(ctx, c.db.Read, func(scan func(...any) error) (key string, err error) {
		err = scan(&key)
		restoreTexts(&key)
		return key, err
	}, `SELECT DISTINCT session FROM chats WHERE session > ? AND seen < ? ORDER BY session LIMIT ?`, sqldb.Text(after), toStamp(before), limit)
}

// Names returns people's names on their platforms, by id. It includes only those whose private chat the book knows.
// It reads few rows, whereas Chats would read all of them.
func (c *chats) Names(ctx context.Context, people ...string) (map[string]string, error) {
	names := map[string]string{}
	if len(people) == 0 {
		return names, nil
	}
	chats, err := queryAll(ctx, c.db.Read, scanChat, `SELECT channel, chat, thread, session, shared, seen, person, name FROM chats
		WHERE person IN (?`+strings.Repeat(", ?", len(people)-1)+`) ORDER BY channel, chat, thread`, textArgs(people...)...)
	for _, c := range chats {
		names[c.Person] = c.Name
	}
	return names, err
}

// AssignSession implements channels.Chats: it inserts the chat, or updates its session.
func (c *chats) AssignSession(ctx context.Context, chat channels.Chat) error {
	at := chat.Address
	_, err := c.db.Exec(ctx, `INSERT INTO chats (channel, chat, thread, session, shared, seen, person, name) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (channel, chat, thread) DO UPDATE SET session = excluded.session`,
		append(textArgs(at.Channel, at.Chat, at.Thread, chat.Session), toBit(chat.Group), toStamp(chat.Seen), sqldb.Text(chat.Person), toStoredName(chat.Name))...)
	if err != nil {
		return fmt.Errorf("note a chat's session: %w", err)
	}
	return nil
}

// SessionAt implements channels.Chats: it reads the session from the chat's row.
func (c *chats) SessionAt(ctx context.Context, at bus.Address) (string, error) {
	return c.queryText(ctx, `SELECT session FROM chats WHERE channel = ? AND chat = ? AND thread = ?`, at.Channel, at.Chat, at.Thread)
}

// ChatOfThread returns the chat that contains the thread with that id on a channel; "" if none is known.
func (c *chats) ChatOfThread(ctx context.Context, channel, thread string) (chat string, err error) {
	return c.queryText(ctx, `SELECT chat FROM chats WHERE channel = ? AND thread = ? AND thread <> '' LIMIT 1`, channel, thread)
}

// PrivateChatAt implements channels.Chats: it reads the chat's first row that is not a group's.
func (c *chats) PrivateChatAt(ctx context.Context, at bus.Address) (person string, alone bool, err error) {
	err = c.db.Read.QueryRowContext(ctx, `SELECT person FROM chats WHERE channel = ? AND chat = ? AND shared = 0 ORDER BY thread LIMIT 1`,
		textArgs(at.Channel, at.Chat)...).Scan(&person)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look up who is alone in a chat: %w", err)
	}
	restoreTexts(&person)
	return person, true, nil
}

// ChatAt returns what is known about the chat at an address, ignoring the thread; false if no admitted person has
// talked there. Like PrivateChatAt, it treats a chat as private if one of its threads is.
func (c *chats) ChatAt(ctx context.Context, at bus.Address) (chat channels.Chat, known bool, err error) {
	found, err := queryAll(ctx, c.db.Read, scanChat, `SELECT channel, chat, thread, session, shared, seen, person, name FROM chats
		WHERE channel = ? AND chat = ? ORDER BY shared, thread LIMIT 1`, textArgs(at.Channel, at.Chat)...)
	if err != nil {
		return chat, false, fmt.Errorf("look up a chat: %w", err)
	}
	if len(found) == 0 {
		return chat, false, nil
	}
	return found[0], true, nil
}

// SessionOf implements channels.Chats: it finds the sent part with that id, and returns the session of its send.
func (c *chats) SessionOf(ctx context.Context, at bus.Address, message string) (string, error) {
	return c.queryText(ctx, `SELECT s.session FROM parts p JOIN sends s ON s.id = p.send
		WHERE p.platform_id = ? AND p.platform_id <> '' AND s.channel = ? AND s.chat = ? AND s.session <> '' LIMIT 1`, message, at.Channel, at.Chat)
}

// queryText returns the one text that a query finds, such as a session; "" if it finds none.
func (c *chats) queryText(ctx context.Context, query string, args ...string) (session string, err error) {
	err = c.db.Read.QueryRowContext(ctx, query, textArgs(args...)...).Scan(&session)
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

// TalkedSince reports whether an admitted person has talked to the bot in a thread, and since when.
func (c *chats) TalkedSince(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error) {
	var seen int64
	err = c.db.Read.QueryRowContext(ctx, `SELECT seen FROM chats WHERE channel = ? AND chat = ? AND thread = ?`,
		textArgs(at.Channel, at.Chat, at.Thread)...).Scan(&seen)
	if errors.Is(err, sql.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look up a thread: %w", err)
	}
	return timeOf(seen), true, nil
}

// Threads lists the threads of a chat in which an admitted person has talked to the bot, earliest first.
func (c *chats) Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error) {
	return queryAll(ctx, c.db.Read, func(scan func(...any) error) (bus.Address, error) {
		at := bus.Address{Channel: chat.Channel, Chat: chat.Chat}
		err := scan(&at.Thread)
		restoreTexts(&at.Thread)
		return at, err
	}, `SELECT thread FROM chats WHERE channel = ? AND chat = ? AND thread <> '' ORDER BY seen`, textArgs(chat.Channel, chat.Chat)...)
}
