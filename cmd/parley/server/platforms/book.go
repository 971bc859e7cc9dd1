package platforms

import (
	"context"
	"time"

	"parley/bus"
	"parley/channels"
)

// A DeferredBook is the Book for adapters that are made before the book is open: its methods wait
// until it is.
type DeferredBook struct {
	opened chan struct{}
	book   Book // set before opened is closed
}

var _ Book = (*DeferredBook)(nil)

// NewDeferredBook returns a DeferredBook that is not open.
func NewDeferredBook() *DeferredBook { return &DeferredBook{opened: make(chan struct{})} }

// Open passes all calls on to book, including those that are waiting. It must be called at most
// once.
func (l *DeferredBook) Open(book Book) {
	l.book = book
	close(l.opened)
}

// wait waits until the book is open, and returns it. It fails only if ctx ends first.
func (l *DeferredBook) wait(ctx context.Context) (Book, error) {
	select {
	case <-l.opened:
		return l.book, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// SetNote waits for the book, and calls its SetNote.
func (l *DeferredBook) SetNote(ctx context.Context, subject, about, value string) error {
	b, err := l.wait(ctx)
	if err != nil {
		return err
	}
	return b.SetNote(ctx, subject, about, value)
}

// SetNoteOnce waits for the book, and calls its SetNoteOnce.
func (l *DeferredBook) SetNoteOnce(ctx context.Context, subject, about, value string) (kept string, err error) {
	b, err := l.wait(ctx)
	if err != nil {
		return "", err
	}
	return b.SetNoteOnce(ctx, subject, about, value)
}

// Noted waits for the book, and calls its Noted.
func (l *DeferredBook) Noted(ctx context.Context, subject, about string) (channels.Note, error) {
	b, err := l.wait(ctx)
	if err != nil {
		return channels.Note{}, err
	}
	return b.Noted(ctx, subject, about)
}

// AllNoted waits for the book, and calls its AllNoted.
func (l *DeferredBook) AllNoted(ctx context.Context, subject string) ([]channels.Note, error) {
	b, err := l.wait(ctx)
	if err != nil {
		return nil, err
	}
	return b.AllNoted(ctx, subject)
}

// TalkedSince waits for the book, and calls its TalkedSince.
func (l *DeferredBook) TalkedSince(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error) {
	b, err := l.wait(ctx)
	if err != nil {
		return time.Time{}, false, err
	}
	return b.TalkedSince(ctx, at)
}

// Threads waits for the book, and calls its Threads.
func (l *DeferredBook) Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error) {
	b, err := l.wait(ctx)
	if err != nil {
		return nil, err
	}
	return b.Threads(ctx, chat)
}

// Chats waits for the book, and calls its Chats.
func (l *DeferredBook) Chats(ctx context.Context) ([]channels.Chat, error) {
	b, err := l.wait(ctx)
	if err != nil {
		return nil, err
	}
	return b.Chats(ctx)
}

// Cursor waits for the book, and calls its Cursor.
func (l *DeferredBook) Cursor(ctx context.Context, at bus.Address) (string, error) {
	b, err := l.wait(ctx)
	if err != nil {
		return "", err
	}
	return b.Cursor(ctx, at)
}

// SetCursor waits for the book, and calls its SetCursor.
func (l *DeferredBook) SetCursor(ctx context.Context, at bus.Address, cursor string) error {
	b, err := l.wait(ctx)
	if err != nil {
		return err
	}
	return b.SetCursor(ctx, at, cursor)
}
