// Package hometest runs a whole bot with a real home (the directory that contains its data), for
// tests of what happens to that data.
package hometest

import (
	"bytes"
	"context"
	"database/sql"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/demo"
	"parley/agent/sessioncache"
	"parley/agent/worker"
	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/dispatch"
	"parley/channels/files/copies"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/homedb"
	"parley/sessions"
	"parley/sessions/outgoing"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/memory"
)

// Channel is the name of the home's only channel.
const Channel = "telegram"

// patience is how long a test waits for something before it fails.
const patience = 2 * time.Minute

// A Home is an open home, with its databases and folders, in a directory of a test's own.
type Home struct {
	t            testing.TB
	Dir          string
	Bus          *sqlitebus.Bus
	Store        *sqlstore.Store
	Book         *sqlbook.Book
	Workspaces   *workspace.Workspaces
	Outgoing     *outgoing.Store
	SessionCache *sessioncache.Journals // what workers keep in memory about sessions
	closed       bool
}

// Open opens the home in dir, or creates it; it is closed when the test ends.
func Open(t testing.TB, dir string) *Home {
	t.Helper()
	var db *sqldb.DB
	return open(t, dir, parts{
		database: func(ctx context.Context) (_ *sqldb.DB, err error) {
			db, err = homedb.Open(ctx, dir, homedb.Options{})
			return db, err
		},
		store: func(ctx context.Context) (*sqlstore.Store, error) { return sqlstore.Use(ctx, db) },
		book:  func(ctx context.Context) (*sqlbook.Book, error) { return sqlbook.Use(ctx, db) },
	})
}

// OpenBefore opens the home in dir, or creates it, like the previous release did, with separate
// files for the bus, the store and the book.
func OpenBefore(t testing.TB, dir string) *Home {
	t.Helper()
	return open(t, dir, parts{
		store: func(ctx context.Context) (*sqlstore.Store, error) {
			return sqlstore.Open(ctx, filepath.Join(dir, homedb.File))
		},
		book: func(ctx context.Context) (*sqlbook.Book, error) {
			return sqlbook.Open(ctx, filepath.Join(dir, homedb.BookFile))
		},
	})
}

// parts contains the functions that open the databases of a home, in this order; database may be nil.
type parts struct {
	database func(context.Context) (*sqldb.DB, error)
	store    func(context.Context) (*sqlstore.Store, error)
	book     func(context.Context) (*sqlbook.Book, error)
}

func open(t testing.TB, dir string, p parts) *Home {
	t.Helper()
	h := &Home{t: t, Dir: dir, SessionCache: sessioncache.New(sessioncache.Bounds{})}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	h.Bus, err = sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, homedb.BusFile), Database: p.database})
	must(err)
	h.Store, err = p.store(t.Context())
	must(err)
	if p.database != nil {
		h.Store.PublishBy(h.Bus)
	}
	h.Book, err = p.book(t.Context())
	must(err)
	if p.database != nil {
		h.Book.PublishBy(h.Bus)
	}
	h.Workspaces, err = workspace.New(workspace.Config{Root: filepath.Join(dir, "workspaces")})
	must(err)
	h.Outgoing, err = outgoing.Open(filepath.Join(dir, "workspaces"), 1<<20)
	must(err)
	t.Cleanup(h.Close)
	return h
}

// Close closes the home; it may be called twice.
func (h *Home) Close() {
	h.t.Helper()
	if h.closed {
		return
	}
	h.closed = true
	for _, part := range []interface{ Close() error }{h.Outgoing, h.Workspaces, h.Book, h.Store, h.Bus} {
		if err := part.Close(); err != nil {
			h.t.Error(err)
		}
	}
}

// Key returns the key of a chat's session.
func Key(t testing.TB, chat string) string {
	t.Helper()
	key, err := sessions.Key("main", Channel, chat, "")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Say publishes a message from a person in a chat.
func (h *Home) Say(id, user, chat, text string) {
	h.t.Helper()
	in := bus.Inbound{
		ID: id, Kind: bus.Said, From: bus.Person{ID: Channel + ":" + user, Name: "User " + user},
		At: bus.Address{Channel: Channel, Chat: chat}, Text: text, SentAt: time.Now(), Group: user != chat, Mentioned: true,
	}
	body, err := in.Encode()
	if err != nil {
		h.t.Fatal(err)
	}
	key := Key(h.t, chat)
	if err := h.Bus.Publish(h.t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: key, Body: body}); err != nil {
		h.t.Fatal(err)
	}
	if err := h.Book.RecordChat(h.t.Context(), channels.Chat{Address: in.At, Session: key, Group: in.Group, Seen: time.Now()}); err != nil {
		h.t.Fatal(err)
	}
}

// RunWorker runs a worker with the demo model and the tools for files and memory until stop is
// called. The worker calls point wherever a test may want the process to die.
func (h *Home) RunWorker(point func(string)) (stop func()) {
	all := files.New(func(_ context.Context, call tools.Call) (files.Dir, error) { return h.Workspaces.Open(call.Session) }, nil)
	all = append(all, memory.New(func(_ context.Context, call tools.Call) (memory.Dir, error) { return h.Workspaces.Open(call.Session) }, nil)...)
	main := agent.Agent{
		Name: "main", Model: demo.New(), Tools: tools.NewSet(all...),
		Prompt:        func(context.Context, agent.Asker) (string, error) { return "be brief", nil },
		MaxIterations: 20, ErrorLimit: 3, MaxParallelTools: 5, ContextTokens: 64000,
	}
	return h.run(worker.New(agent.Config{
		Bus: h.Bus, Events: h.Bus, Store: h.Store, Budget: h.Store, SessionCache: h.SessionCache,
		Agents: func(context.Context, string) (agent.Agent, error) { return main, nil },
		Limits: func() agent.Limits {
			return agent.Limits{Turns: 100, TurnsHour: 10_000, TokensDay: 1 << 40, MaxWaiting: 1000}
		},
		MaxInFlight: 64, Drain: time.Second, Log: slog.New(slog.DiscardHandler), Point: point,
	}).Run)
}

// RunDispatcher sends the messages that wait for the home's channel through ch, until stop is called.
func (h *Home) RunDispatcher(ch channels.Channel) (stop func()) {
	return h.run((&dispatch.Dispatcher{
		Name: Channel, Channel: ch, Bus: h.Bus, Book: h.Book, Files: copies.Files{Store: h.Outgoing}, Notify: dispatch.TellSession(h.Bus),
		Policy: dispatch.Policy{Drain: time.Second}, Log: slog.New(slog.DiscardHandler),
	}).Run)
}

func (h *Home) run(work func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(stop)
	return stop
}

// Depth returns how many messages of a topic are waiting, are being worked on, are delayed or were given up.
func (h *Home) Depth(topic bus.Topic) bus.Depth {
	h.t.Helper()
	d, err := h.Bus.Depth(h.t.Context(), topic)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// WaitIdle waits until no message waits in these topics and nobody is working on one; without
// topics, it waits for all topics.
func (h *Home) WaitIdle(topics ...bus.Topic) {
	h.t.Helper()
	if len(topics) == 0 {
		topics = []bus.Topic{bus.InboundTopic, bus.OutboundTopic(Channel)}
	}
	for _, topic := range topics {
		WaitFor(h.t, "the topic "+string(topic)+" to be empty", func() bool {
			d := h.Depth(topic)
			return d.Waiting+d.Leased == 0
		})
	}
}

// WaitFor waits until cond returns true; if that takes too long, it fails the test and says what
// it waited for.
func WaitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// FilesContaining returns the files below dir that contain a text.
func FilesContaining(t testing.TB, dir, text string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Rewritings returns a number that grows by one each time the database of the home in dir is
// rewritten.
func Rewritings(t testing.TB, dir string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, homedb.File)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), "PRAGMA schema_version").Scan(&n); err != nil { // VACUUM increments it
		t.Fatal(err)
	}
	return n
}
