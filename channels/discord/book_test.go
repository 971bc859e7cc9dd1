package discord_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// A book remembers in memory what must outlive a process.
type book struct {
	mu         sync.Mutex
	cursors    map[string]string
	chats      []channels.Chat
	writesFail bool // whether writes fail
}

// newBook returns the book of a bot that was running until now and that people have talked to in these chats.
func newBook(direct ...string) *book {
	b := &book{cursors: map[string]string{"dc:": idAtTime(time.Now().Add(-time.Second))}}
	for _, chat := range direct {
		b.chats = append(b.chats, channels.Chat{Address: address(chat)})
	}
	return b
}

// idAtTime returns a Discord id that was created at a given time.
func idAtTime(at time.Time) string {
	return strconv.FormatUint(uint64(at.UnixMilli()-1420070400000)<<22, 10)
}

func (b *book) TalkedSince(_ context.Context, at bus.Address) (time.Time, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.chats {
		if c.Address == at {
			return c.Seen, true, nil
		}
	}
	return time.Time{}, false, nil
}

func (b *book) join(at bus.Address, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.chats = append(b.chats, channels.Chat{Address: at, Group: true, Seen: since})
}

func (b *book) Chats(context.Context) ([]channels.Chat, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]channels.Chat(nil), b.chats...), nil
}

func (b *book) Cursor(_ context.Context, at bus.Address) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cursors[at.String()], nil
}

func (b *book) SetCursor(_ context.Context, at bus.Address, cursor string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writesFail {
		return errors.New("the book cannot be written")
	}
	b.cursors[at.String()] = cursor
	return nil
}

// setWritesFail sets whether writes fail.
func (b *book) setWritesFail(full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writesFail = full
}

// savedCursor returns the id up to which everything is published.
func (b *book) savedCursor() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, _ := strconv.ParseUint(b.cursors["dc:"], 10, 64) // 0 if there is none
	return n
}
