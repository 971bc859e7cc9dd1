package home

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/homedb"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
)

// If the bus and the store share the home's file, a log publishes messages in the same transaction as its entries.
func TestTheLogsOfAHomePublish(t *testing.T) {
	dir := t.TempDir()
	c := &config.Config{Home: dir}
	c.Workspace.Root, c.Workspace.MaxMB = dir+"/workspaces", 1
	h, err := Open(t.Context(), c, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const key = "main:telegram:42"
	log, err := h.Store.Open(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	publisher, ok := log.(sessions.Publisher)
	if !ok {
		t.Fatalf("%T is no Publisher", log)
	}
	mail := sessions.Mail{Topic: string(bus.OutboundTopic("telegram")), Key: "telegram:42", ID: "m1#reply", Body: []byte("hello")}
	if log, ok = publisher.Publishing(mail); !ok {
		t.Fatal("the home's logs do not publish")
	}
	entry, err := sessions.NewEntry("m1", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), 1, entry); err != nil {
		t.Fatal(err)
	}
	lease, err := h.Bus.Claim(t.Context(), bus.OutboundTopic("telegram"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := lease.Mail(t.Context(), 0)
	if err != nil || len(got) != 1 || got[0].ID != mail.ID || got[0].Key != mail.Key || string(got[0].Body) != "hello" {
		t.Errorf("on the bus is %+v, %v", got, err)
	}
	if err := lease.Settle(context.WithoutCancel(t.Context()), bus.End{Done: got[0].Seq}); err != nil {
		t.Error(err)
	}
}

// The send of an answer begins in the transaction that publishes it. The process that wrote it sends it without a
// look at the book; the next process has to look.
func TestAnAnswersSendBeginsWithItsPublication(t *testing.T) {
	dir := t.TempDir()
	open := func() *Home {
		c := &config.Config{Home: dir}
		c.Workspace.Root, c.Workspace.MaxMB = dir+"/workspaces", 1
		h, err := Open(t.Context(), c, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		h.PlanReplies(func(topic, id string, body []byte) (channels.Send, bool) {
			to := bus.Address{Channel: "telegram", Chat: "42"}
			return channels.Send{ID: id, To: to, Parts: []channels.SentPart{{Text: string(body)}, {Text: "more"}}}, id != "unplanned#reply"
		})
		return h
	}
	publish := func(h *Home, at int64, id string) error {
		t.Helper()
		log, err := h.Store.Open(t.Context(), "main:telegram:42", 1)
		if err != nil {
			t.Fatal(err)
		}
		log, ok := log.(sessions.Publisher).Publishing(sessions.Mail{Topic: string(bus.OutboundTopic("telegram")), Key: "telegram:42", ID: id, Body: []byte("hello")})
		if !ok {
			t.Fatal("the home's logs do not publish")
		}
		entry, err := sessions.NewEntry(id, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
		if err != nil {
			t.Fatal(err)
		}
		return log.Append(t.Context(), at, entry)
	}
	wantBegin := func(h *Home, id string, wantFresh bool, wantText string) {
		t.Helper()
		known, fresh, err := h.Book.Begin(t.Context(), channels.Send{ID: id, To: bus.Address{Channel: "telegram", Chat: "42"}, Parts: []channels.SentPart{{Text: "rendered anew"}}})
		if err != nil || fresh != wantFresh || known.Parts[0].State != channels.Sending || known.Parts[0].Text != wantText {
			t.Errorf("Begin of %s gives %+v, %v, %v, want fresh = %v and the text %q", id, known, fresh, err, wantFresh, wantText)
		}
	}
	h := open()
	for i, id := range []string{"a#reply", "b#reply", "unplanned#reply", "c#reply", "d#reply"} {
		if err := publish(h, int64(i+1), id); err != nil {
			t.Fatal(err)
		}
	}
	if send, err := h.Book.Lookup(t.Context(), "a#reply"); err != nil || len(send.Parts) != 2 || send.Parts[0].State != channels.Sending || send.Parts[1].State != channels.Queued {
		t.Errorf("with its publication the book has %+v, %v", send, err)
	}
	wantBegin(h, "a#reply", true, "hello")
	wantBegin(h, "a#reply", false, "hello")
	wantBegin(h, "unplanned#reply", true, "rendered anew")
	if err := publish(h, 1, "refused#reply"); err == nil { // the log is longer by now
		t.Error("an entry was appended at the wrong place")
	}
	if _, err := h.Book.Lookup(t.Context(), "refused#reply"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("a send whose publication was undone: %v", err)
	}
	wantBegin(h, "refused#reply", true, "rendered anew")
	if err := publish(h, 6, "a#reply"); err != nil { // like a turn that continues after a crash
		t.Error(err)
	}
	wantBegin(h, "a#reply", false, "hello")
	// A message that the bus has sent before isn't begun again, even if its record was erased.
	if _, err := h.Book.Erase(t.Context(), sqlbook.Erasure{Sends: []string{"a#reply"}}); err != nil {
		t.Fatal(err)
	}
	if err := publish(h, 7, "a#reply"); err != nil {
		t.Error(err)
	}
	if _, err := h.Book.Lookup(t.Context(), "a#reply"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("a message that the bus had before: %v", err)
	}
	wantBegin(h, "d#reply", true, "hello")
	if _, err := h.Book.Erase(t.Context(), sqlbook.Erasure{Sends: []string{"c#reply"}}); err != nil {
		t.Fatal(err)
	}
	wantBegin(h, "c#reply", true, "rendered anew")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	// If nobody has begun a send, the next process knows that it was not sent.
	h = open()
	for id, want := range map[string]string{"b#reply": channels.Queued, "d#reply": channels.Sending} {
		if send, err := h.Book.Lookup(t.Context(), id); err != nil || send.Parts[0].State != want {
			t.Errorf("after a restart %s is %+v, %v, want it %s", id, send, err, want)
		}
	}
}

// Writes that nobody waits for are counted if the disk or the database server refuses them.
func TestLostWritesAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		place  func(t *testing.T) string // of the store; "" is the home's database
		refuse []string
	}{
		"embedded": {func(*testing.T) string { return "" }, []string{
			"CREATE TRIGGER refuse BEFORE DELETE ON spending BEGIN SELECT RAISE(ABORT, 'refused'); END",
		}},
		"postgres": {func(t *testing.T) string { return sqldbtest.New(t) }, []string{
			"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$",
			"CREATE TRIGGER refuse BEFORE DELETE ON spending FOR EACH ROW EXECUTE FUNCTION refuse()",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, place := t.TempDir(), c.place(t)
			cfg := &config.Config{Home: dir}
			cfg.Store.URL = config.Secret(place)
			cfg.Workspace.Root, cfg.Workspace.MaxMB = dir+"/workspaces", 1
			h, err := Open(t.Context(), cfg, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			driver, source := "pgx", place
			if place == "" {
				driver, source = "sqlite", "file:"+filepath.Join(dir, homedb.File)+"?_pragma=busy_timeout(5000)"
			}
			other, err := sql.Open(driver, source)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			for _, query := range append(c.refuse, "INSERT INTO spending (person, day, tokens) VALUES ('telegram:42', '2001-01-01', 7)") {
				if _, err := other.ExecContext(t.Context(), query); err != nil {
					t.Fatal(err)
				}
			}
			// The first reservation of a day deletes old records, and nobody waits for that.
			if err := h.Store.Reserve(t.Context(), sessions.Reservation{ID: "r", Person: "telegram:42", Tokens: 1, Cap: 100, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
			if err := h.Book.SetName(t.Context(), "telegram:42", "Anna"); err != nil { // written after it
				t.Fatal(err)
			}
			if n := h.LostWrites(); n != 1 {
				t.Errorf("%d writes are counted as lost, want 1", n)
			}
		})
	}
}
