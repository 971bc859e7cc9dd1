package telegram

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
)

// A Book is what must outlive the process, and what the processes share.
type Book interface {
	channels.Notes
	// Joined reports whether the bot was spoken to at an address.
	Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
}

// A group that becomes a supergroup gets another id. Its conversation goes on under the
// old one, here and in all that Parley keeps, and only Telegram is told the new one.
// These are the subjects of the notes that say so, one for each direction.
const (
	movedTo   = "moved to"
	movedFrom = "moved from"
)

// unmovedFor is how long it is believed that a group has not moved.
const unmovedFor = time.Minute

// A moves remembers what the book has of groups that moved.
type moves struct {
	book    Book
	channel string

	mu    sync.Mutex
	known map[string]move // by subject and chat
}

type move struct {
	chat  string // "" is: it has not moved
	until time.Time
}

func newMoves(book Book, channel string) *moves {
	return &moves{book: book, channel: channel, known: map[string]move{}}
}

// now is the id that Telegram knows a chat by.
func (m *moves) now(ctx context.Context, chat string) (string, error) {
	return m.lookup(ctx, movedTo, chat)
}

// origin is the id that Parley knows a chat by.
func (m *moves) origin(ctx context.Context, chat string) (string, error) {
	return m.lookup(ctx, movedFrom, chat)
}

func (m *moves) lookup(ctx context.Context, subject, chat string) (string, error) {
	if !isGroup(chat) {
		return chat, nil
	}
	key, now := subject+" "+chat, time.Now()
	m.mu.Lock()
	found, ok := m.known[key]
	m.mu.Unlock()
	if !ok || found.chat == "" && now.After(found.until) {
		noted, err := m.book.Noted(ctx, subject, m.channel+":"+chat)
		if err != nil {
			return "", fmt.Errorf("look up where a group has moved: %w", err)
		}
		found = move{noted.Value, now.Add(unmovedFor)}
		m.keep(key, found)
	}
	if found.chat == "" {
		return chat, nil
	}
	return found.chat, nil
}

func (m *moves) keep(key string, found move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[key] = found
}

// note writes into the book that a group has a new id. Its conversation goes on under the
// old one, unless the bot was spoken to under the new id already: then that conversation
// is the group's, and only what is sent to the old id is sent to the new one.
func (m *moves) note(ctx context.Context, from, to string) error {
	old, young := m.channel+":"+from, m.channel+":"+to
	_, spoken, err := m.book.Joined(ctx, bus.Address{Channel: m.channel, Chat: to})
	if err != nil {
		return fmt.Errorf("look up a group that has moved: %w", err)
	}
	// What is said under the new id is read as said under the old one before anything is
	// sent to the new one for it.
	if !spoken {
		if _, err := m.book.NoteFirst(ctx, movedFrom, young, from); err != nil {
			return fmt.Errorf("note that a group has moved: %w", err)
		}
	}
	if _, err := m.book.NoteFirst(ctx, movedTo, old, to); err != nil {
		return fmt.Errorf("note that a group has moved: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, movedFrom+" "+to)
	delete(m.known, movedTo+" "+from)
	return nil
}

// publishMove keeps what a message says about its group having moved, trying until it
// is kept; handled is false if it says nothing of the kind, and ok if ctx ended first.
func (p *publisher) publishMove(ctx context.Context, m *models.Message) (handled, ok bool) {
	from, to := m.Chat.ID, m.MigrateToChatID
	if m.MigrateFromChatID != 0 {
		from, to = m.MigrateFromChatID, m.Chat.ID
	}
	if to == 0 {
		return false, true
	}
	err := p.surely(ctx, "a group's move", func() error {
		return p.channel.moves.note(ctx, strconv.FormatInt(from, 10), strconv.FormatInt(to, 10))
	})
	if err == nil {
		p.channel.log.LogAttrs(ctx, slog.LevelInfo, "a group has become a supergroup; its conversation goes on",
			slog.Int64("from", from), slog.Int64("to", to))
	}
	return true, err == nil
}

// ReplyAddress implements channels.Replier: what is said in a group that has moved is
// said under its old id.
func (c *Channel) ReplyAddress(ctx context.Context, to bus.Address, _ string) (bus.Address, error) {
	chat, err := c.moves.origin(ctx, to.Chat)
	if err != nil {
		return bus.Address{}, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
	}
	to.Chat = chat
	return to, nil
}

// noBook is a Book that remembers nothing.
type noBook struct{}

func (noBook) Note(context.Context, string, string, string) error { return nil }
func (noBook) NoteFirst(_ context.Context, _, _, value string) (string, error) {
	return value, nil
}
func (noBook) Noted(context.Context, string, string) (channels.Remark, error) {
	return channels.Remark{}, nil
}
func (noBook) AllNoted(context.Context, string) ([]channels.Remark, error) { return nil, nil }
func (noBook) Joined(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
