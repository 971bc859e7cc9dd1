package asks_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/asks"
	"parley/channels/sqlbook"
)

// Run finishes what a dead process has left undone, and restores timers that a bus has lost with its data.
func TestInterruptedWorkIsFinished(t *testing.T) {
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
		for _, id := range []string{"decided", "forgotten"} { // neither ask has a timer
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

// A long call is approved only in a chat that could show all of it: one that is asked, and where the file has
// arrived or texts of any length are shown.
func TestOnlyFullyShownCallsAreApproved(t *testing.T) {
	dir := t.TempDir()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	book, err := sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	at := func(channel, chat, thread string) bus.Address {
		return bus.Address{Channel: channel, Chat: chat, Thread: thread}
	}
	full, bare, text := at("s", "full", "1"), at("s", "bare", ""), at("s", "text", "")
	d := &asks.Service{Bus: b, Book: book, Sends: book, ShowsAll: func(channel string) bool { return channel == "terminal" }, Log: slog.New(slog.DiscardHandler)}
	owner := bus.Person{ID: "s:own", Owner: true}
	for name, c := range map[string]struct {
		asked []bus.Address
		from  bus.Address
		short bool
		deny  bool
		want  error
	}{
		"where the file is":                {asked: []bus.Address{full, bare}, from: full},
		"in a thread where the file is":    {asked: []bus.Address{full, bare}, from: at("s", "full", "2")},
		"where the file is not":            {asked: []bus.Address{full, bare}, from: bare, want: bus.ErrNotShown},
		"where its text alone is":          {asked: []bus.Address{full, text}, from: text, want: bus.ErrNotShown},
		"elsewhere, and the file is there": {asked: []bus.Address{bare, full}, from: at("t", "9", ""), want: bus.ErrNotShown},
		"elsewhere, and it is nowhere":     {asked: []bus.Address{bare, text}, from: at("t", "9", ""), want: bus.ErrNotShown},
		"in the conversation":              {from: at("s", "home", ""), want: bus.ErrNotShown},
		"in a terminal that asks":          {asked: []bus.Address{bare, at("terminal", "x", "")}, from: at("terminal", "x", "")},
		"in a terminal that does not ask":  {asked: []bus.Address{bare}, from: at("terminal", "x", ""), want: bus.ErrNotShown},
		"in another terminal":              {asked: []bus.Address{at("terminal", "x", "")}, from: at("terminal", "y", ""), want: bus.ErrNotShown},
		"elsewhere, and a terminal asks":   {asked: []bus.Address{at("terminal", "x", "")}, from: at("t", "9", ""), want: bus.ErrNotShown},
		"in the conversation, not asked":   {asked: []bus.Address{full}, from: at("s", "home", ""), want: bus.ErrNotShown},
		"by a program":                     {asked: []bus.Address{bare}},
		"a short call":                     {asked: []bus.Address{bare}, from: bare, short: true},
		"a short call, elsewhere":          {asked: []bus.Address{bare}, from: at("t", "9", ""), short: true},
		"a denial, elsewhere":              {asked: []bus.Address{bare}, from: at("t", "9", ""), deny: true},
		"a denial, where the file is not":  {asked: []bus.Address{bare}, from: bare, deny: true},
	} {
		t.Run(name, func(t *testing.T) {
			ask := bus.Ask{
				ID: bus.AskApproval + name, Kind: bus.AskApproval, Session: "main:s:home", Filed: !c.short, At: at("s", "home", ""), Asked: c.asked,
				Made: time.Now(), Expires: time.Now().Add(time.Hour),
			}
			if err := d.Open(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			for to, part := range map[bus.Address]channels.SentPart{
				full: {File: true, State: channels.Sent}, bare: {File: true, State: channels.Failed, Code: "refused"}, text: {State: channels.Sent},
			} {
				if _, _, err := book.Begin(t.Context(), channels.Send{ID: ask.FileID(to), To: to, Parts: []channels.SentPart{part}}); err != nil {
					t.Fatal(err)
				}
				if part.State == channels.Sent {
					part.PlatformID = "1"
					if err := book.Mark(t.Context(), ask.FileID(to), 0, part); err != nil {
						t.Fatal(err)
					}
				}
			}
			answer := bus.Answer{Text: bus.Approve, By: owner, Cause: "m", At: c.from}
			if c.deny {
				answer.Text = bus.Deny
			}
			of, err := d.Answer(t.Context(), ask.ID, answer)
			if !errors.Is(err, c.want) || (of.State == bus.AskOpen) != (c.want != nil) {
				t.Errorf("the ask is %s, %v; want %v", of.State, err, c.want)
			}
			if c.want == nil {
				if _, err := d.Answer(t.Context(), ask.ID, answer); err != nil { // the same answer, delivered again
					t.Errorf("the same answer again: %v", err)
				}
				return
			}
			if of, err := d.Answer(t.Context(), ask.ID, bus.Answer{Text: bus.Deny, By: owner, Cause: "m2", At: c.from}); err != nil || of.State != bus.AskAnswered {
				t.Errorf("a denial after it: %s, %v", of.State, err)
			}
		})
	}
}
