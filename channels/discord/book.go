package discord

import (
	"context"
	"time"

	"parley/bus"
	"parley/channels"
)

// A Book remembers for a Channel what must outlive the process.
type Book interface {
	// TalkedSince reports whether a person whom the gate admits has talked to the bot in that thread, and since when.
	// Where the setting mention is "threads", messages from then on need no mention.
	TalkedSince(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
	// Chats lists the chats in which people have talked to the bot.
	Chats(ctx context.Context) ([]channels.Chat, error)
	// Cursor returns the cursor that SetCursor last saved for that address; "" if it has saved none.
	Cursor(ctx context.Context, at bus.Address) (string, error)
	SetCursor(ctx context.Context, at bus.Address, cursor string) error
}

// noBook is used as the Book by a Channel that has none: it remembers nothing.
type noBook struct{}

func (noBook) TalkedSince(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}

func (noBook) Chats(context.Context) ([]channels.Chat, error) { return nil, nil }

func (noBook) Cursor(context.Context, bus.Address) (string, error) { return "", nil }

func (noBook) SetCursor(context.Context, bus.Address, string) error { return nil }
