package sqlbook_test

import (
	"path/filepath"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
)

func TestThreadsAndCursors(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "book.db")
	b, err := sqlbook.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	first := time.Now().Truncate(time.Microsecond)
	thread := bus.Address{Channel: "slack", Chat: "C1", Thread: "17.5"}
	if _, joined, err := b.TalkedSince(ctx, thread); err != nil || joined {
		t.Errorf("before anybody spoke: %t, %v", joined, err)
	}
	for _, at := range []bus.Address{thread, {Channel: "slack", Chat: "C1"}, {Channel: "slack", Chat: "C2", Thread: "18"}} {
		if err := b.RecordChat(ctx, channels.Chat{Address: at, Session: "main:slack:C1", Seen: first}); err != nil {
			t.Fatal(err)
		}
	}
	if since, joined, err := b.TalkedSince(ctx, thread); err != nil || !joined || !since.Equal(first) {
		t.Errorf("after somebody spoke at %v: since %v, %t, %v", first, since, joined, err)
	}
	if threads, err := b.Threads(ctx, bus.Address{Channel: "slack", Chat: "C1"}); err != nil || len(threads) != 1 || threads[0] != thread {
		t.Errorf("threads %v, %v", threads, err)
	}
	place := bus.Address{Channel: "slack"}
	for _, cursor := range []string{"1", "2"} {
		if err := b.SetCursor(ctx, place, cursor); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b, err = sqlbook.Open(ctx, path); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if cursor, err := b.Cursor(ctx, place); err != nil || cursor != "2" {
		t.Errorf("cursor %q, %v", cursor, err)
	}
	if cursor, err := b.Cursor(ctx, thread); err != nil || cursor != "" {
		t.Errorf("a place that was never read has cursor %q, %v", cursor, err)
	}
}
