package slack

import (
	"context"
	"time"

	"parley/bus"
)

// JoinedThreads remembers which threads the bot takes part in.
type JoinedThreads interface {
	// TalkedSince reports whether a person whom the gate admits has talked to the bot in that thread, and since when:
	// from then on, messages there need no mention.
	TalkedSince(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
	// Threads lists the threads of a chat that the bot has joined, in any order.
	Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error)
}

// Cursors remembers how far a channel has been read, so that a restarted process can read what came since.
type Cursors interface {
	// Cursor returns the cursor that SetCursor last saved for that address; "" if it has saved none.
	Cursor(ctx context.Context, at bus.Address) (string, error)
	SetCursor(ctx context.Context, at bus.Address, cursor string) error
}

// noBook is used as JoinedThreads and Cursors by a Channel that has none: it remembers nothing.
type noBook struct{}

func (noBook) TalkedSince(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
func (noBook) Threads(context.Context, bus.Address) ([]bus.Address, error) { return nil, nil }
func (noBook) Cursor(context.Context, bus.Address) (string, error)         { return "", nil }
func (noBook) SetCursor(context.Context, bus.Address, string) error        { return nil }
