// Package stagetest provides what tests of a gateway or a dispatcher need around it: a real bus and book, and a
// platform in memory.
package stagetest

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/channels/channelstest"
	"parley/channels/sqlbook"
)

// A Stage is a bus, a book and a platform in memory, with a log.
type Stage struct {
	Bus      *sqlitebus.Bus
	Book     *sqlbook.Book
	Platform *channelstest.MemoryChannel
	Log      *strings.Builder
	Close    func()
}

// Open opens the stage with files in a directory that was made before the testing/synctest bubble began; the test
// must call Close inside the bubble.
func Open(t *testing.T, dir string, c sqlitebus.Config) *Stage {
	t.Helper()
	c.Path = filepath.Join(dir, "bus.db")
	b := openBus(t, c)
	book, err := sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	return &Stage{
		Bus: b, Book: book, Platform: channelstest.NewMemoryChannel(), Log: &strings.Builder{},
		Close: func() {
			if err := errors.Join(book.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		},
	}
}

// openBus opens the bus. If its lock is held by a child process that another test has just forked and that
// inherited the lock, it waits: the child releases the lock as soon as it executes its own program.
func openBus(t *testing.T, c sqlitebus.Config) *sqlitebus.Bus {
	t.Helper()
	for patience := time.After(2 * time.Minute); ; {
		b, err := sqlitebus.Open(t.Context(), c)
		if err == nil {
			return b
		}
		if _, inUse := errors.AsType[*sqlitebus.InUseError](err); !inUse {
			t.Fatal(err)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-patience:
			t.Fatal(err)
		}
	}
}

// Logger returns a logger that writes to the stage's Log.
func (s *Stage) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(s.Log, nil)) }

// TakeMail takes the messages that are waiting in the inbound topic off the bus.
func (s *Stage) TakeMail(t *testing.T) []bus.Inbound {
	t.Helper()
	var all []bus.Inbound
	for _, m := range bustest.Take(t, s.Bus, bus.InboundTopic) {
		in, err := bus.DecodeInbound(m.Body)
		if err != nil || in.ID != m.ID {
			t.Fatalf("message %+v: %v", m, err)
		}
		all = append(all, in)
	}
	return all
}

// PrivateMessage returns a message from a person to the bot in their private chat.
func PrivateMessage(id, user, text string) bus.Inbound {
	return bus.Inbound{
		ID: id, From: bus.Person{ID: "c:" + user, Name: "Mallory"}, At: bus.Address{Channel: "c", Chat: user},
		Mentioned: true, Text: text,
	}
}

// TopicDepth returns how many messages are waiting in a topic.
func (s *Stage) TopicDepth(t *testing.T, topic bus.Topic) bus.Depth {
	t.Helper()
	d, err := s.Bus.Depth(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
