package asks_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels/asks"
	"parley/channels/sqlbook"
)

// What a process that died has not come to, and what a bus that lost its data does not
// know any more, is made up for.
func TestWhatWasCutOffIsMadeUpFor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db")})
		if err != nil {
			t.Fatal(err)
		}
		book, err := sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		for _, id := range []string{"decided", "forgotten"} { // neither has a timer
			ask := bus.Ask{ID: id, Kind: bus.AskApproval, Session: "main:c:" + id, Made: now, Expires: now.Add(30 * time.Minute)}
			if err := book.OpenAsk(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
		}
		// Whoever decided this died before the session was told.
		if _, _, err := book.EndAsk(t.Context(), "decided", bus.AskAnswered, bus.Answer{Text: bus.Approve, By: bus.Person{ID: "c:own"}}); err != nil {
			t.Fatal(err)
		}
		d := &asks.Service{Bus: b, Book: book, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(2 * time.Minute)
		for _, c := range []struct{ id, state string }{{"decided", bus.AskAnswered}, {"forgotten", bus.AskExpired}} {
			if c.state == bus.AskExpired {
				time.Sleep(time.Hour)
			}
			lease, err := b.Claim(ctx, bus.InboundTopic)
			if err != nil {
				t.Fatal(err)
			}
			mail, err := lease.Mail(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			in, err := bus.DecodeInbound(mail[0].Body)
			if err != nil || in.ID != c.id || in.Kind != bus.Decided || in.Decision == nil || in.Decision.State != c.state {
				t.Errorf("%s was told %+v, %v", c.id, in, err)
			}
			if err := lease.Settle(ctx, bus.End{Done: mail[0].Seq}); err != nil {
				t.Fatal(err)
			}
			if err := d.NoteTold(ctx, c.id); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		book.Close()
		b.Close()
	})
}
