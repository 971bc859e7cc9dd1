package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/outbox"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
)

// An openFunc opens a bus and a book in a directory.
type openFunc func(t testing.TB, dir string, caps bus.Caps) (*sqlitebus.Bus, *sqlbook.Book)

// shared is the database that the bus and the book have in common.
const shared = "shared.db"

// openShared opens both in one database, as in a home.
func openShared(t testing.TB, dir string, caps bus.Caps) (*sqlitebus.Bus, *sqlbook.Book) {
	t.Helper()
	var db *sqldb.DB
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{
		Path: filepath.Join(dir, "bus.db"), Caps: caps,
		Database: func(ctx context.Context) (_ *sqldb.DB, err error) {
			db, err = sqldb.OpenFile(ctx, filepath.Join(dir, shared), sqlbook.Schema(), sqlitebus.Schema())
			return db, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	book, err := sqlbook.Use(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	book.PublishBy(b)
	return b, book
}

// openApart opens each in a file of its own.
func openApart(t testing.TB, dir string, caps bus.Caps) (*sqlitebus.Bus, *sqlbook.Book) {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db"), Caps: caps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	book, err := sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	return b, book
}

// outboxOf returns the outbox of a bus and a book.
func outboxOf(b *sqlitebus.Bus, book *sqlbook.Book) *outbox.Outbox {
	return &outbox.Outbox{
		Bus: b, Book: book, Channels: func() []string { return []string{"slack"} },
		Targets: func() map[string][]bus.Address { return nil },
	}
}

// waiting returns how many messages wait for the channel.
func waiting(t *testing.T, b *sqlitebus.Bus) int {
	t.Helper()
	d, err := b.Depth(t.Context(), bus.OutboundTopic("slack"))
	if err != nil {
		t.Fatal(err)
	}
	return d.Waiting
}

// A request is accepted with the same outcome whether the bus and the book share a file or not.
func TestAcceptTogetherAndApart(t *testing.T) {
	for name, open := range map[string]openFunc{"together": openShared, "apart": openApart} {
		t.Run(name, func(t *testing.T) {
			b, book := open(t, t.TempDir(), bus.Caps{Outbound: 2})
			o := outboxOf(b, book)
			r := outbox.Request{Origin: "ci", To: []string{"slack:C1"}, Text: "hello", Key: "k", Digest: "d"}
			accept := func(want int) outbox.Status {
				t.Helper()
				s, err := o.Accept(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if n := waiting(t, b); n != want {
					t.Fatalf("%d messages wait, want %d", n, want)
				}
				return s
			}
			first := accept(1)
			if again := accept(1); again.ID != first.ID {
				t.Errorf("the same request is %s and %s", first.ID, again.ID)
			}
			other := r
			other.Digest = "another"
			if _, err := o.Accept(t.Context(), other); !errors.Is(err, channels.ErrKeyReused) || waiting(t, b) != 1 {
				t.Errorf("another request with the same key: %v", err)
			}
			r.Key = "l"
			accept(2)
			r.Key = "m"
			full := &outbox.FullError{}
			if _, err := o.Accept(t.Context(), r); !errors.As(err, &full) || len(full.Full) != 1 || waiting(t, b) != 2 {
				t.Errorf("where the mailbox is full: %v", err)
			}
			l, err := b.Claim(t.Context(), bus.OutboundTopic("slack"))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Settle(t.Context(), bus.End{Done: 1 << 60}); err != nil {
				t.Fatal(err)
			}
			if s := accept(1); s.ID != full.ID {
				t.Errorf("what was refused is %s, and accepted later as %s", full.ID, s.ID)
			}
			r.Key = "k"
			accept(1) // what was published once is not published again
		})
	}
}

// A request and its only message are stored together or not at all, and when Accept returns both
// are durable.
func TestARequestAndItsMessageAreOneWrite(t *testing.T) {
	dir := t.TempDir()
	b, book := openShared(t, dir, bus.Caps{})
	o := outboxOf(b, book)
	file := filepath.Join(dir, shared)
	beside, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	r := outbox.Request{Origin: "ci", To: []string{"slack:C1"}, Text: "hello", Key: "k", Digest: "d"}
	for _, table := range []string{"message", "posts"} {
		if _, err := beside.ExecContext(t.Context(), "CREATE TRIGGER broken AFTER INSERT ON "+table+" BEGIN SELECT RAISE(ABORT, 'the disk fails'); END"); err != nil {
			t.Fatal(err)
		}
		if s, err := o.Accept(t.Context(), r); err == nil {
			t.Errorf("accepted as %s, though table %s takes nothing", s.ID, table)
		}
		for _, empty := range []string{"message", "seen", "posts", "post_keys"} {
			var n int
			if err := beside.QueryRowContext(t.Context(), "SELECT count(*) FROM "+empty).Scan(&n); err != nil || n != 0 {
				t.Errorf("table %s takes nothing, and table %s has %d rows, %v", table, empty, n, err)
			}
		}
		if n := waiting(t, b); n != 0 {
			t.Errorf("table %s takes nothing, and %d messages wait", table, n)
		}
		if _, err := beside.ExecContext(t.Context(), "DROP TRIGGER broken"); err != nil {
			t.Fatal(err)
		}
	}
	s, err := o.Accept(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir() // what the next process would find if this one died now
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(file + suffix)
		if err == nil {
			err = os.WriteFile(filepath.Join(copied, shared)+suffix, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, book = openShared(t, copied, bus.Caps{})
	if n := waiting(t, b); n != 1 {
		t.Errorf("after a crash %d messages wait, want 1", n)
	}
	if known, err := book.Submission(t.Context(), s.ID); err != nil || known.Key != "k" {
		t.Errorf("after a crash the request is %+v, %v", known, err)
	}
	if again, err := outboxOf(b, book).Accept(t.Context(), r); err != nil || again.ID != s.ID || waiting(t, b) != 1 {
		t.Errorf("the same request after a crash: %+v, %v", again, err)
	}
}
