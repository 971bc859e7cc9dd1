package web_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/dispatch"
	"parley/channels/sqlbook"
	"parley/channels/web"
)

func open(t *testing.T, caps bus.Caps) (*sqlitebus.Bus, *web.Channel) {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db"), Caps: caps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, web.New(b, "main")
}

const session = "main:web:ci:deploy"

func newMessage(id, text string) bus.Inbound {
	return bus.Inbound{ID: id, From: bus.Person{ID: web.Person("ci")}, At: web.Address("ci", "deploy"), Text: text}
}

func TestSay(t *testing.T) {
	b, c := open(t, bus.Caps{Inbound: 1})
	ctx := t.Context()
	if err := c.Say(ctx, session, newMessage("m_1", "hello")); err != nil {
		t.Fatal(err)
	}
	if err := c.Say(ctx, session, newMessage("m_1", "hello")); err != nil {
		t.Errorf("the same message again: %v", err)
	}
	if err := c.Say(ctx, session, newMessage("m_2", "more")); !errors.Is(err, bus.ErrFull) {
		t.Errorf("a full mailbox gave %v", err)
	}
	if err := c.Say(ctx, session, newMessage("m_3", "/stop")); err != nil {
		t.Errorf("what is urgent does not pass: %v", err)
	}
	l, err := b.Claim(ctx, bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	if l.Claim().Key != session {
		t.Errorf("published under %s", l.Claim().Key)
	}
	mail, err := l.Mail(ctx, 0)
	if err != nil || len(mail) != 2 {
		t.Fatalf("%d messages, %v", len(mail), err)
	}
	var got []bus.Inbound
	for _, m := range mail {
		in, err := bus.DecodeInbound(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, in)
	}
	if in := got[0]; in.Kind != bus.Said || in.Text != "hello" || !in.Mentioned || in.From.ID != "web:ci" || in.At.String() != "web:ci/deploy" {
		t.Errorf("published %+v", in)
	}
	if in := got[1]; in.Kind != bus.Command || in.Text != "stop" || !mail[1].Urgent {
		t.Errorf("published %+v", in)
	}
}

// Messages to an address of this channel do not pile up on the bus.
func TestRepliesAreAcknowledged(t *testing.T) {
	b, c := open(t, bus.Caps{})
	book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	done := make(chan struct{})
	d := &dispatch.Dispatcher{
		Name: web.Name, Channel: c, Bus: b, Book: book, Log: slog.New(slog.DiscardHandler),
		Observe: func(result string, _ time.Duration) {
			if result != "sent" {
				t.Errorf("a reply was %s", result)
			}
			close(done)
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		if err := c.Receive(ctx, nil); err != nil {
			t.Error(err)
		}
	})
	out := bus.Outbound{ID: "m_1#reply", To: web.Address("ci", "deploy"), Text: "hello"}
	body, err := out.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(ctx, bus.OutboundTopic(web.Name), bus.Message{ID: out.ID, Key: out.To.String(), Body: body}); err != nil {
		t.Fatal(err)
	}
	<-done
	cancel()
	wg.Wait()
	if s, err := book.Lookup(t.Context(), out.ID); err != nil || s.State() != channels.Sent {
		t.Errorf("the book has %+v, %v", s, err)
	}
}

// Events of a turn's messages name the turn; events of other messages do not.
func TestRepliesNameTheirTurn(t *testing.T) {
	b, w := open(t, bus.Caps{})
	at := bus.Address{Channel: "console", Chat: "default"}
	news, err := b.Subscribe(t.Context(), bus.SessionFeed("main:console:default"), 0)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{"m_1#reply/0": "m_1", "m_1#reply/12": "m_1", "m_2/0/0": "", "m_1#reply": ""}
	for key := range keys {
		if _, err := w.Send(t.Context(), at, channels.Part{Key: key, Text: "hello"}); err != nil {
			t.Fatal(err)
		}
	}
	for e, err := range news {
		if err != nil {
			t.Fatal(err)
		}
		turn, known := keys[e.Call]
		if !known || e.Type != bus.Spoken || e.Delta != "hello" || e.Turn != turn {
			t.Errorf("%s said in turn %q, want %q", e.Call, e.Turn, turn)
		}
		if delete(keys, e.Call); len(keys) == 0 {
			return
		}
	}
}
