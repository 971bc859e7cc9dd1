// Package stagetest is the stage on which tests let a gateway or a dispatcher play: a real bus and book, and a platform in memory.
package stagetest

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels/channelstest"
	"parley/channels/sqlbook"
)

// A Stage is a bus and a book with a platform before them.
type Stage struct {
	Bus      *sqlitebus.Bus
	Book     *sqlbook.Book
	Platform *channelstest.MemoryChannel
	Log      *strings.Builder
	Close    func()
}

// Open opens the parts in a directory made before a bubble; what it starts must be
// closed within.
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

// openBus waits for a lock that a child has inherited, which another test was
// just forking: it lets go as soon as it runs its own program.
func openBus(t *testing.T, c sqlitebus.Config) *sqlitebus.Bus {
	t.Helper()
	for patience := time.After(10 * time.Second); ; {
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

// Logger writes to Log.
func (s *Stage) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(s.Log, nil)) }

// Mail is what waits in the inbound topic, claimed and given back.
func (s *Stage) Mail(t *testing.T) []bus.Inbound {
	t.Helper()
	var all []bus.Inbound
	depth, err := s.Bus.Depth(t.Context(), bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	for len(all) < depth.Waiting {
		lease, err := s.Bus.Claim(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := lease.Mail(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			in, err := bus.DecodeInbound(m.Body)
			if err != nil || in.ID != m.ID {
				t.Fatalf("message %+v: %v", m, err)
			}
			all = append(all, in)
		}
		if err := lease.Settle(t.Context(), bus.End{Done: ms[len(ms)-1].Seq}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Said is what a person says to the bot, alone with it.
func Said(id, user, text string) bus.Inbound {
	return bus.Inbound{
		ID: id, From: bus.Person{ID: "c:" + user, Name: "Mallory"}, At: bus.Address{Channel: "c", Chat: user},
		Mentioned: true, Text: text,
	}
}

// Depth is how much lies in a topic.
func (s *Stage) Depth(t *testing.T, topic bus.Topic) bus.Depth {
	t.Helper()
	d, err := s.Bus.Depth(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
