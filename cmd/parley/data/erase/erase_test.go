package erase_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/files"
	"parley/channels/files/copies"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/sessions/audit"
)

const (
	secret = "xyzzyplugh" // a text that only the person says
	others = "frobozzmagic"
	anna   = "telegram:42"
	group  = "-100"
)

func eraser(h *hometest.Home) *erase.Eraser { return erase.New(config(h)) }

func config(h *hometest.Home) erase.Config {
	return erase.Config{
		Bus: h.Bus, Store: h.Store, Book: h.Book, Workspaces: h.Workspaces, Files: copies.Files{Store: h.Outgoing}, Memory: h.SessionCache.Clear,
		Kept: []erase.NotErased{{What: "the moon", Why: "nobody can reach it"}}, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// bury turns the messages of the next mailbox into dead letters.
func bury(t *testing.T, h *hometest.Home, topic bus.Topic) {
	t.Helper()
	l, err := h.Bus.Claim(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(t.Context(), bus.End{Dead: 1 << 60, Reason: "poison"}); err != nil {
		t.Fatal(err)
	}
}

// stuck returns a platform that accepts nothing for now.
func stuck() *channelstest.MemoryChannel {
	p := channelstest.NewMemoryChannel()
	p.OnSend = func(context.Context, bus.Address, channels.Part) (bool, error) {
		return false, &channels.SendError{Fault: channels.Retry, RetryAfter: time.Hour}
	}
	return p
}

// homeWithHistory returns a home with messages of Anna and others in every state: answered, being sent, waiting, and given
// up.
func homeWithHistory(t *testing.T) *hometest.Home {
	h := hometest.Open(t, t.TempDir())
	asked, err := h.Book.RequestPairing(t.Context(), anna, anna)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Book.Admit(t.Context(), channels.Admission{Code: asked.Code}); err != nil {
		t.Fatal(err)
	}
	if err := h.Book.SetName(t.Context(), anna, "Anna "+secret); err != nil {
		t.Fatal(err)
	}
	working := h.RunWorker(nil)
	sending := h.RunDispatcher(channelstest.NewMemoryChannel())
	h.Say("a1", "42", "42", "write "+secret+" to notes.txt then read notes.txt")
	h.Say("b1", "43", "43", "write "+others+" to notes.txt then read notes.txt")
	h.Say("b2", "43", group, "find "+others)
	h.Say("a2", "42", group, "find "+secret)
	h.Say("a3", "42", "42", "remember that I like "+secret)
	h.WaitIdle()
	sending()
	sending = h.RunDispatcher(stuck())
	h.Say("a4", "42", "42", "find "+secret)
	h.Say("a5", "42", group, "find "+secret)
	h.Say("b3", "43", "43", "find "+others)
	hometest.WaitFor(t, "replies that cannot be sent", func() bool {
		return h.Depth(bus.OutboundTopic(hometest.Channel)).Delayed == 3 && h.Depth(bus.InboundTopic).Waiting+h.Depth(bus.InboundTopic).Leased == 0
	})
	sending()
	h.Say("a6", "42", "42", "find "+secret)
	h.WaitIdle(bus.InboundTopic)
	working()
	for _, id := range []string{"a7", "b4"} {
		h.Say(id, map[string]string{"a7": "42", "b4": "43"}[id], group, map[string]string{"a7": secret, "b4": others}[id])
		bury(t, h, bus.InboundTopic)
	}
	h.Say("a8", "42", "7", secret) // in a session that has no log yet
	h.Say("a9", "42", group, secret)
	h.Say("b5", "43", group, others)
	return h
}

// tell publishes a notice by which the session of chat 43 learns what it was told on behalf of chat 42.
func tell(t *testing.T, h *hometest.Home, id string) {
	t.Helper()
	body, err := bus.Inbound{
		ID: id + "#told", Kind: bus.Notice, At: bus.Address{Channel: hometest.Channel, Chat: "43"},
		Quotes: []bus.Quote{{Kind: bus.Told, From: bus.Person{ID: anna}, Text: secret}},
	}.Encode()
	if err == nil {
		err = h.Bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id + "#told", Key: hometest.Key(t, "43"), Body: body})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tablesContaining returns the tables in a home's database that have a row with a text.
func tablesContaining(t *testing.T, dir, text string) (tables []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "sessions.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for table, column := range map[string]string{"message": "body", "dead": "body", "entries": "data", "parts": "body"} {
		var found bool
		if err := db.QueryRowContext(t.Context(), "SELECT EXISTS (SELECT 1 FROM "+table+" WHERE instr(CAST("+column+" AS TEXT), ?) > 0)", text).Scan(&found); err != nil {
			t.Fatal(err)
		}
		if found {
			tables = append(tables, table)
		}
	}
	return tables
}

func TestPersonLeavesNoTrace(t *testing.T) {
	h := homeWithHistory(t)
	tell(t, h, "a9")
	holding := append(hometest.FilesContaining(t, h.Dir, secret), tablesContaining(t, h.Dir, secret)...)
	for _, place := range []string{"message", "dead", "entries", "parts", "sessions.db", "notes.txt", "MEMORY.md"} {
		if !slices.ContainsFunc(holding, func(name string) bool { return strings.Contains(filepath.Base(name), place) }) {
			t.Fatalf("%s does not hold what she said, only %q: the test cannot fail", place, holding)
		}
	}
	e := eraser(h)
	r, err := e.Person(t.Context(), anna)
	if err != nil {
		t.Fatal(err)
	}
	if left := hometest.FilesContaining(t, h.Dir, secret); len(left) > 0 {
		t.Errorf("what she said is left in %q", left)
	}
	private, shared := hometest.Key(t, "42"), hometest.Key(t, group)
	if !slices.Equal(r.Log.Sessions, []string{private}) || !slices.Equal(r.Log.PartlyErased, []string{shared}) || !slices.Equal(r.Workspaces, []string{private}) {
		t.Errorf("the receipt says %+v", r)
	}
	// Six messages: two replies in her chat, one in the group, two that wait, and a notice for another session.
	if r.Bus.Messages != 6 || r.Bus.DeadLetters != 1 || r.Book.Chats != 1 || r.Book.Sends < 3 {
		t.Errorf("the receipt says %+v", r)
	}
	checkReceipt(t, r, anna+"'s permission", shared, "the moon", "backups")

	// What others said is still there, and their conversations go on.
	if got := hometest.FilesContaining(t, h.Dir, others); len(got) < 2 {
		t.Errorf("what others said is left in %q", got)
	}
	if got := tablesContaining(t, h.Dir, others); !slices.Contains(got, "message") || !slices.Contains(got, "entries") || !slices.Contains(got, "parts") {
		t.Errorf("what others said is left in the tables %q", got)
	}
	platform := channelstest.NewMemoryChannel()
	h.RunWorker(nil)
	h.RunDispatcher(platform)
	h.Say("a1", "42", "42", "read notes.txt") // the platform delivers it again
	h.Say("a10", "42", "42", "read notes.txt")
	hometest.WaitFor(t, "answers", func() bool { return len(platform.Texts("42")) == 1 && len(platform.Texts(group)) == 1 })
	if got := platform.Texts("42")[0]; !strings.Contains(got, "does not exist") {
		t.Errorf("the new conversation begins with %q", got)
	}
	if r, err = e.Person(t.Context(), "telegram:4711"); err != nil || !r.Empty() {
		t.Errorf("somebody unknown: %+v, %v", r, err)
	}
	for _, nobody := range []string{"", "telegram", "telegram:", ":42"} {
		if _, err := e.Person(t.Context(), nobody); err == nil {
			t.Errorf("%q was erased", nobody)
		}
	}
}

func checkReceipt(t *testing.T, r erase.Receipt, words ...string) {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{string(raw), r.String()} {
		for _, word := range words {
			if !strings.Contains(form, word) {
				t.Errorf("the receipt does not name %q:\n%s", word, form)
			}
		}
		if strings.Contains(form, secret) {
			t.Errorf("the receipt says what she said:\n%s", form)
		}
	}
}

func TestSessionLeavesNoTrace(t *testing.T) {
	h := homeWithHistory(t)
	// Erasing a session keeps the names of paired people, so this name must not contain the text that is looked for.
	if err := h.Book.SetName(t.Context(), anna, "Anna"); err != nil {
		t.Fatal(err)
	}
	e := eraser(h)
	for _, chat := range []string{"42", group, "7"} {
		r, err := e.Session(t.Context(), hometest.Key(t, chat))
		if err != nil || r.Empty() {
			t.Fatalf("%s: %+v, %v", chat, r, err)
		}
	}
	if left := hometest.FilesContaining(t, h.Dir, secret); len(left) > 0 {
		t.Errorf("what she said is left in %q", left)
	}
	r, err := e.Session(t.Context(), hometest.Key(t, "42"))
	if err != nil || !r.Empty() {
		t.Errorf("once more: %+v, %v", r, err)
	}
	if _, err := e.Session(t.Context(), "no key"); !errors.Is(err, sessions.ErrInvalidKey) {
		t.Errorf("no key: %v", err)
	}
	if len(hometest.FilesContaining(t, h.Dir, others)) == 0 {
		t.Error("others' sessions are gone too")
	}
}

// When several agents are in one chat, erasing a session keeps what other agents have sent there, and removes what
// the session has sent in any chat. Records of an earlier release don't name the session; they are erased with the
// chat.
func TestSessionLeavesWhatAnotherAgentHasSent(t *testing.T) {
	h := hometest.Open(t, t.TempDir())
	mine := hometest.Key(t, "42")
	theirs := "ops" + strings.TrimPrefix(mine, "main")
	at, elsewhere := bus.Address{Channel: hometest.Channel, Chat: "42"}, bus.Address{Channel: hometest.Channel, Chat: "7"}
	for _, out := range []bus.Outbound{
		{ID: bus.ReplyID("m1"), Turn: "m1", Session: mine, To: at}, {ID: "m1#question", Turn: "m1", Session: mine, To: at},
		{ID: "m1#told", Turn: "m1", Session: mine, To: elsewhere}, {ID: "nobody's", To: at},
		{ID: bus.ReplyID("o1"), Turn: "o1", Session: theirs, To: at}, {ID: "o1#question", Turn: "o1", Session: theirs, To: at},
		{ID: "o1#told", Turn: "o1", Session: theirs, To: elsewhere}, {ID: "nobody's elsewhere", To: elsewhere},
	} {
		out.Text, out.At = "x", time.Now()
		if err := bus.PublishOutbound(t.Context(), h.Bus, out); err != nil {
			t.Fatal(err)
		}
	}
	stop := h.RunDispatcher(channelstest.NewMemoryChannel())
	h.WaitIdle(bus.OutboundTopic(hometest.Channel))
	stop()
	r, err := eraser(h).Session(t.Context(), mine)
	if err != nil || r.Book.Sends != 4 {
		t.Errorf("erased are %d sends, %v; want 4", r.Book.Sends, err)
	}
	for id, want := range map[string]error{
		bus.ReplyID("m1"): channels.ErrNoSend, "m1#question": channels.ErrNoSend, "m1#told": channels.ErrNoSend, "nobody's": channels.ErrNoSend,
		bus.ReplyID("o1"): nil, "o1#question": nil, "o1#told": nil, "nobody's elsewhere": nil,
	} {
		if _, err := h.Book.Lookup(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("the send %s: %v, want %v", id, err, want)
		}
	}
}

// When a person is erased at any point of their turn, nothing of the turn remains, and the turn of another person in
// the same session is answered.
func TestPersonInMidTurn(t *testing.T) {
	for _, place := range []string{"c1:before", "c1", "c3:before", "c3", "c4", "c5", "c6:before", "c6", "c7:published", "c7", "settled"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel() // what is left of a mailbox waits for some seconds
			h := hometest.Open(t, t.TempDir())
			h.Say("b1", "43", group, "find "+others)
			stop := h.RunWorker(nil)
			h.WaitIdle(bus.InboundTopic)
			stop()
			reached, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			h.RunWorker(func(name string) {
				if name == place {
					once.Do(func() { close(reached); <-release })
				}
			})
			h.Say("a1", "42", group, "write "+secret+" to notes.txt")
			<-reached
			h.Say("b2", "43", group, "find "+others)
			type outcome struct {
				r   erase.Receipt
				err error
			}
			ended := make(chan outcome, 1)
			go func() {
				r, err := eraser(h).Person(t.Context(), anna)
				ended <- outcome{r, err}
			}()
			got := <-ended
			close(release)
			if got.err != nil {
				t.Fatal(got.err)
			}
			platform := channelstest.NewMemoryChannel()
			h.RunDispatcher(platform)
			hometest.WaitFor(t, "the other's answers", func() bool { return len(platform.Texts(group)) >= 2 })
			h.WaitIdle()
			for _, text := range platform.Texts(group) {
				if strings.Contains(text, secret) {
					t.Errorf("it was sent: %q", text)
				}
			}
			for _, name := range hometest.FilesContaining(t, h.Dir, secret) {
				if !strings.Contains(name, "workspaces") { // a folder that others share
					t.Errorf("what she said is left in %q", name)
				}
			}
		})
	}
}

var errCut = errors.New("cut off")

// These parts return an error when a test tells them to, as if the process was cut off there.
type (
	cutBook struct {
		erase.Book
		cut func() error
	}
	cutStore struct {
		erase.Store
		cut func() error
	}
	cutWorkspaces struct {
		erase.Workspaces
		cut func() error
	}
	cutAudit struct {
		erase.AuditFiles
		cut func() error
	}
)

func (c cutAudit) Forget(which func(sessions.AuditRecord) bool) (int, error) {
	if err := c.cut(); err != nil {
		return 0, err
	}
	return c.AuditFiles.Forget(which)
}

func (c cutBook) Erase(ctx context.Context, what sqlbook.Erasure) (sqlbook.Erased, error) {
	if err := c.cut(); err != nil {
		return sqlbook.Erased{}, err
	}
	return c.Book.Erase(ctx, what)
}

func (c cutStore) Find(ctx context.Context, key, id string) (sessions.Entry, error) {
	if err := c.cut(); err != nil {
		return sessions.Entry{}, err
	}
	return c.Store.Find(ctx, key, id)
}

func (c cutStore) ErasePerson(ctx context.Context, person string) (sessions.Erased, error) {
	if err := c.cut(); err != nil {
		return sessions.Erased{}, err
	}
	return c.Store.ErasePerson(ctx, person)
}

func (c cutStore) EraseBefore(ctx context.Context, before time.Time) (sessions.Erased, error) {
	done, err := c.Store.EraseBefore(ctx, before)
	return done, errors.Join(err, c.cut())
}

func (c cutWorkspaces) Remove(ctx context.Context, key string) (bool, error) {
	if err := c.cut(); err != nil {
		return false, err
	}
	return c.Workspaces.Remove(ctx, key)
}

// cutAfter returns an Eraser that is cut off at step n.
func cutAfter(h *hometest.Home, n int) *erase.Eraser {
	cut := func() error {
		if n--; n < 0 {
			return errCut
		}
		return nil
	}
	cfg := config(h)
	cfg.Book, cfg.Store, cfg.Workspaces = cutBook{cfg.Book, cut}, cutStore{cfg.Store, cut}, cutWorkspaces{cfg.Workspaces, cut}
	cfg.Audit = cutAudit{auditFile(h), cut}
	return erase.New(cfg)
}

func auditFile(h *hometest.Home) *audit.File {
	return audit.NewFile(filepath.Join(h.Dir, "audit.jsonl"), 1<<20)
}

// An erasure that is cut off at any of its steps is completed by the next attempt.
func TestErasingGoesOnWhereItWasCutOff(t *testing.T) {
	for n := range 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			h := homeWithHistory(t)
			// In a session of hers: only its log says whose it is.
			r := sessions.AuditRecord{Kind: sessions.AuditTool, By: "telegram:9", Session: hometest.Key(t, "42"), Arguments: []byte(`"` + secret + `"`), At: time.Now()}
			if err := auditFile(h).Write(r); err != nil {
				t.Fatal(err)
			}
			if _, err := cutAfter(h, n).Person(t.Context(), anna); !errors.Is(err, errCut) {
				t.Fatalf("cut off: %v", err)
			}
			if _, err := cutAfter(h, 1000).Person(t.Context(), anna); err != nil {
				t.Fatal(err)
			}
			if left := hometest.FilesContaining(t, h.Dir, secret); len(left) > 0 {
				t.Errorf("what she said is left in %q", left)
			}
		})
	}
}

// Each kind of erasure also clears what a worker remembers of sessions. Retention erases an old session whole, erases
// the old part of a living one, and keeps waiting messages.
func TestNothingErasedIsRemembered(t *testing.T) {
	for name, forget := range map[string]func(context.Context, *erase.Eraser) (erase.Receipt, error){
		"a person": func(ctx context.Context, e *erase.Eraser) (erase.Receipt, error) { return e.Person(ctx, anna) },
		"a session": func(ctx context.Context, e *erase.Eraser) (erase.Receipt, error) {
			return e.Session(ctx, hometest.Key(t, "42"))
		},
		"what is old": func(ctx context.Context, e *erase.Eraser) (erase.Receipt, error) {
			return e.EraseBefore(ctx, time.Now().Add(time.Hour))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				h := hometest.Open(t, dir)
				h.RunWorker(nil)
				h.Say("a1", "42", "42", "find "+secret)
				synctest.Wait()
				if n, _ := h.SessionCache.Size(); n != 1 {
					t.Fatalf("%d sessions are remembered before", n)
				}
				r, err := forget(t.Context(), eraser(h))
				if err != nil || r.Log.Entries == 0 {
					t.Fatalf("erased %+v, %v", r.Log, err)
				}
				if n, _ := h.SessionCache.Size(); n != 0 {
					t.Errorf("%d sessions are remembered", n)
				}
				h.Say("a2", "42", "42", "find "+others)
				synctest.Wait()
				if left := hometest.FilesContaining(t, dir, secret); len(left) > 0 && name != "what is old" {
					t.Errorf("it came back into %q", left)
				}
			})
		})
	}
}

func TestRetention(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := hometest.Open(t, dir)
		working := h.RunWorker(nil)
		sending := h.RunDispatcher(channelstest.NewMemoryChannel())
		h.Say("a1", "42", "42", "write "+secret+" to notes.txt")
		h.Say("a2", "42", group, "find "+secret)
		synctest.Wait()
		<-time.After(20 * 24 * time.Hour)
		h.Say("b1", "43", group, "find "+others)
		synctest.Wait()
		working()
		sending()
		h.Say("a3", "42", "44", "waiting")
		h.Say("a4", "42", "45", secret)
		bury(t, h, bus.InboundTopic)
		bury(t, h, bus.InboundTopic)
		h.Say("a5", "42", "46", "waiting too")

		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 2 { // two processes, of which one erases
			running.Go(func() {
				if err := eraser(h).Run(ctx, h.Bus, 30); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if len(hometest.FilesContaining(t, dir, secret)) == 0 {
			t.Error("what is not old is gone")
		}
		<-time.After(11 * 24 * time.Hour)
		synctest.Wait()
		left := hometest.FilesContaining(t, dir, secret)
		if len(left) != 1 || !strings.HasSuffix(left[0], "sessions.db") {
			t.Errorf("what is old is left in %q", left)
		} else if raw, err := os.ReadFile(left[0]); err != nil || bytes.Count(raw, []byte(secret)) != 1 { // the dead letter
			t.Errorf("what is old is left %d times, %v, want once", bytes.Count(raw, []byte(secret)), err)
		}
		if len(hometest.FilesContaining(t, dir, others)) == 0 {
			t.Error("what is not old is gone")
		}
		<-time.After(21 * 24 * time.Hour)
		cancel()
		running.Wait()
		if left := hometest.FilesContaining(t, dir, secret); len(left) > 0 {
			t.Errorf("what is old is left in %q", left)
		}
		if d := h.Depth(bus.InboundTopic); d.Waiting != 1 || d.Dead != 0 {
			t.Errorf("the bus is at %+v: what waits is not old", d)
		}
	})
}

// At its start a process rewrites the database's file only if it has erased something old, because all writes wait
// for that. Each night it rewrites the file in any case.
func TestAStartRewritesTheFileOnlyAfterErasing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := hometest.Open(t, dir)
		working, sending := h.RunWorker(nil), h.RunDispatcher(channelstest.NewMemoryChannel())
		h.Say("a1", "42", "42", "find "+secret)
		synctest.Wait()
		working()
		sending()
		// after runs the retention for some time and returns how often it has rewritten the file.
		after := func(lasts time.Duration) int {
			t.Helper()
			before := hometest.Rewritings(t, dir)
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() {
				if err := eraser(h).Run(ctx, h.Bus, 30); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			<-time.After(lasts)
			synctest.Wait()
			cancel()
			running.Wait()
			return hometest.Rewritings(t, dir) - before
		}
		now := time.Now()
		<-time.After(time.Until(time.Date(now.Year(), now.Month(), now.Day()+1, 12, 0, 0, 0, now.Location())))
		if n := after(time.Hour); n != 0 {
			t.Errorf("with nothing old it is rewritten %d times at a start", n)
		}
		if n := after(24 * time.Hour); n != 1 {
			t.Errorf("it is rewritten %d times in a day", n)
		}
		<-time.After(32 * 24 * time.Hour)
		if n := after(time.Hour); n != 1 || len(hometest.FilesContaining(t, dir, secret)) > 0 {
			t.Errorf("with something old it is rewritten %d times at a start; what is old is left in %q", n, hometest.FilesContaining(t, dir, secret))
		}
		if n := after(time.Hour); n != 0 {
			t.Errorf("once that is erased it is rewritten %d times at a start", n)
		}
		if _, err := h.Store.NotePurge(t.Context()); err != nil { // like a process that dies while it erases
			t.Fatal(err)
		}
		for start, want := range []int{1, 0} {
			if n := after(time.Hour); n != want {
				t.Errorf("start %d after an erasure was cut off: it is rewritten %d times, want %d", start+1, n, want)
			}
		}
	})
}

func TestRetentionGoesOnWhereItWasCutOff(t *testing.T) {
	h := hometest.Open(t, t.TempDir())
	stop := h.RunWorker(nil)
	h.Say("a1", "42", "42", "write "+secret+" to notes.txt")
	h.WaitIdle(bus.InboundTopic)
	stop()
	h.RunDispatcher(channelstest.NewMemoryChannel())
	h.WaitIdle()
	before := time.Now().Add(time.Second)
	if _, err := cutAfter(h, 0).EraseBefore(t.Context(), before); !errors.Is(err, errCut) {
		t.Fatalf("cut off: %v", err)
	}
	if r, err := eraser(h).EraseBefore(t.Context(), before); err != nil || len(r.Workspaces) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if left := hometest.FilesContaining(t, h.Dir, secret); len(left) > 0 {
		t.Errorf("what is old is left in %q", left)
	}
}

// If a bus can't erase messages, its dead letters are dropped, and the receipt says so.
func TestBusThatDoesNotForget(t *testing.T) {
	h := homeWithHistory(t)
	for n := range 250 {
		h.Say(fmt.Sprint("more", n), map[bool]string{true: "42", false: "43"}[n%2 == 0], fmt.Sprint(1000+n), "x")
	}
	for h.Depth(bus.InboundTopic).Waiting > 0 {
		bury(t, h, bus.InboundTopic)
	}
	cfg := config(h)
	cfg.Bus = struct{ erase.Bus }{h.Bus}
	r, err := erase.New(cfg).Person(t.Context(), anna)
	if err != nil {
		t.Fatal(err)
	}
	if d := h.Depth(bus.InboundTopic); r.Bus.DeadLetters != 125+3 || d.Dead != 125+2 {
		t.Errorf("%d dead letters dropped, %d are left", r.Bus.DeadLetters, d.Dead)
	}
	checkReceipt(t, r, "messages that are waiting or being answered")
}

// Erasing a session removes the files that it is about to send. In a shared session it removes only the files of the
// erased messages.
func TestFilesThatWaitToBeSentAreForgotten(t *testing.T) {
	h := hometest.Open(t, t.TempDir())
	store := copies.Files{Store: h.Outgoing}
	send := func(session, turn string) bus.FileRef {
		t.Helper()
		dir, err := h.Workspaces.Open(session)
		if err == nil {
			err = dir.Write("a", []byte(secret))
		}
		if err != nil {
			t.Fatal(err)
		}
		id := turn + "#call"
		refs, err := store.Keep(t.Context(), copies.Messages{Session: session, Call: id, MaxBytes: 100}, dir, []string{"a"})
		if err == nil {
			err = store.Refer(session, id, refs)
		}
		if err == nil {
			err = bus.PublishOutbound(t.Context(), h.Bus, bus.Outbound{
				ID: id, To: bus.Address{Channel: hometest.Channel, Chat: "7"}, Text: "x", Session: session, Turn: turn, Files: refs, At: time.Now(),
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		return refs[0]
	}
	h.Say("p1", "43", "43", "hello")
	h.Say("g1", "42", group, "hello")
	h.Say("g2", "43", group, "hello")
	stop := h.RunWorker(nil)
	h.WaitIdle(bus.InboundTopic)
	stop()
	alone, hers, theirs := send(hometest.Key(t, "43"), "p1"), send(hometest.Key(t, group), "g1"), send(hometest.Key(t, group), "g2")
	if _, err := eraser(h).Session(t.Context(), hometest.Key(t, "43")); err != nil {
		t.Fatal(err)
	}
	if _, err := eraser(h).Person(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]struct {
		ref  bus.FileRef
		gone bool
	}{"of the session": {alone, true}, "of her": {hers, true}, "of another": {theirs, false}} {
		if _, err := store.Read(f.ref); errors.Is(err, files.ErrMissing) != f.gone {
			t.Errorf("the file %s: %v", what, err)
		}
	}
}

// Erasing many sessions rewrites the home's database once. A session that can't be erased doesn't stop the others.
func TestSessionsAreErasedTogether(t *testing.T) {
	h := homeWithHistory(t)
	before := hometest.Rewritings(t, h.Dir)
	keys := []string{hometest.Key(t, "42"), "no key", hometest.Key(t, "43"), hometest.Key(t, "7")}
	erased, err := eraser(h).Sessions(t.Context(), keys)
	if !errors.Is(err, sessions.ErrInvalidKey) || !slices.Equal(erased, []string{keys[0], keys[2], keys[3]}) {
		t.Errorf("erased are %q, %v", erased, err)
	}
	if n := hometest.Rewritings(t, h.Dir) - before; n != 1 {
		t.Errorf("the database was rewritten %d times", n)
	}
	for _, key := range erased {
		for _, err := range h.Store.Read(t.Context(), key, 1) {
			if !errors.Is(err, sessions.ErrNotFound) {
				t.Errorf("%s is still there: %v", key, err)
			}
			break
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if erased, err := eraser(h).Sessions(stopped, keys[:1]); err == nil || len(erased) > 0 {
		t.Errorf("then erased are %q, %v", erased, err)
	}
}
