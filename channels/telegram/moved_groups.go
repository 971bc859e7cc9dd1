package telegram

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// A Book stores what a Channel must still know after a restart, and what all processes must know.
type Book interface {
	channels.Notes
	// TalkedSince reports whether people have talked to the bot at an address, and since when.
	TalkedSince(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
}

// The subjects under which the book notes the two ids of a group that has become a supergroup, which gives it a new
// id; there is one subject for each direction. Parley keeps the group's conversation under the old id everywhere,
// and uses the new one only when talking to Telegram.
const (
	movedToSubject   = "moved to"
	movedFromSubject = "moved from"
)

// unmovedTTL is how long movedGroups assumes that a group has not moved before it asks the book again.
const unmovedTTL = time.Minute

// movedGroups looks up in the book which groups have moved to a new id, and caches the answers.
type movedGroups struct {
	book    Book
	channel string

	mu     sync.Mutex
	cached map[string]cachedMove // by subject and chat id
}

// A cachedMove is the book's answer about a group's move.
type cachedMove struct {
	chat  string    // the other id; "" if the group has not moved
	until time.Time // how long the answer that the group has not moved may be used
}

// newMovedGroups makes movedGroups for the channel with that name.
func newMovedGroups(book Book, channel string) *movedGroups {
	return &movedGroups{book: book, channel: channel, cached: map[string]cachedMove{}}
}

// currentID returns the id that Telegram now uses for a chat.
func (m *movedGroups) currentID(ctx context.Context, chat string) (string, error) {
	return m.lookup(ctx, movedToSubject, chat)
}

// originalID returns the id under which Parley keeps a chat.
func (m *movedGroups) originalID(ctx context.Context, chat string) (string, error) {
	return m.lookup(ctx, movedFromSubject, chat)
}

// lookup returns the id that the book notes for a chat under a subject, or chat itself if there is no such note.
func (m *movedGroups) lookup(ctx context.Context, subject, chat string) (string, error) {
	if !isGroup(chat) {
		return chat, nil
	}
	key, now := subject+" "+chat, time.Now()
	m.mu.Lock()
	found, ok := m.cached[key]
	m.mu.Unlock()
	if !ok || found.chat == "" && now.After(found.until) {
		noted, err := m.book.Noted(ctx, subject, m.channel+":"+chat)
		if err != nil {
			return "", fmt.Errorf("look up where a group has moved: %w", err)
		}
		found = cachedMove{noted.Value, now.Add(unmovedTTL)}
		m.remember(key, found)
	}
	if found.chat == "" {
		return chat, nil
	}
	return found.chat, nil
}

// remember caches an answer from the book.
func (m *movedGroups) remember(key string, found cachedMove) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cached[key] = found
}

// recordMove notes in the book that a group has a new id. The group's conversation continues under the old one,
// unless people have already talked to the bot under the new id: then that is the group's conversation, and only
// messages to the old id are redirected to the new one.
func (m *movedGroups) recordMove(ctx context.Context, from, to string) error {
	old, young := m.channel+":"+from, m.channel+":"+to
	_, spoken, err := m.book.TalkedSince(ctx, bus.Address{Channel: m.channel, Chat: to})
	if err != nil {
		return fmt.Errorf("look up a group that has moved: %w", err)
	}
	// Messages from the new id must be mapped to the old one before sends to the old id are redirected to the new
	// one.
	if !spoken {
		if _, err := m.book.SetNoteOnce(ctx, movedFromSubject, young, from); err != nil {
			return fmt.Errorf("note that a group has moved: %w", err)
		}
	}
	if _, err := m.book.SetNoteOnce(ctx, movedToSubject, old, to); err != nil {
		return fmt.Errorf("note that a group has moved: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.cached, movedFromSubject+" "+to)
	delete(m.cached, movedToSubject+" "+from)
	return nil
}

// ReplyAddress implements channels.Replier: for a group that has moved, it returns the original id, under which
// replies are published; it returns any other address unchanged.
func (m *movedGroups) ReplyAddress(ctx context.Context, to bus.Address, _ string) (bus.Address, error) {
	chat, err := m.originalID(ctx, to.Chat)
	if err != nil {
		return bus.Address{}, &channels.SendError{Fault: channels.Retry, Code: "book", Err: err}
	}
	to.Chat = chat
	return to, nil
}

// noBook is used as the Book by a Channel that has none: it remembers nothing.
type noBook struct{}

func (noBook) SetNote(context.Context, string, string, string) error { return nil }
func (noBook) SetNoteOnce(_ context.Context, _, _, value string) (string, error) {
	return value, nil
}
func (noBook) Noted(context.Context, string, string) (channels.Note, error) {
	return channels.Note{}, nil
}
func (noBook) AllNoted(context.Context, string) ([]channels.Note, error) { return nil, nil }
func (noBook) TalkedSince(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
