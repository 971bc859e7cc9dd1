package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels/outbox"
	"parley/channels/sqlbook"
	"parley/channels/web"
	"parley/cmd/parley/api"
	"parley/cmd/parley/data/home"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqlstore"
	"parley/tools/testlog"
	"parley/tools/testrace"
)

// These are the tokens of the callers in the tests.
const (
	ownerToken = "owner-secret"
	ciToken    = "ci-secret"   // scope send:ci
	opsToken   = "ops-secret"  // scope send
	chatToken  = "chat-secret" // scope agent
	readToken  = "read-secret"
	scrapeTok  = "scrape-secret"
	adminToken = "admin-secret"
)

func tokens() []api.Token {
	return []api.Token{
		{Name: "ci", Secret: ciToken, May: []string{"send:ci"}},
		{Name: "ops", Secret: opsToken, May: []string{"send"}},
		{Name: "chat", Secret: chatToken, May: []string{"agent"}},
		{Name: "reader", Secret: readToken, May: []string{"read"}},
		{Name: "prometheus", Secret: scrapeTok, May: []string{"metrics"}},
		{Name: "boss", Secret: adminToken, May: []string{"admin"}},
		{Name: "empty", Secret: "", May: []string{"admin"}},
	}
}

var (
	builds = bus.Address{Channel: "slack", Chat: "C0BUILDS"}
	alerts = bus.Address{Channel: "telegram", Chat: "-10033"}
)

// A rig is an API over a real bus, store and book, on a loopback port.
type rig struct {
	audited []sessions.AuditRecord // set only by rigs that record the audit
	*api.API
	t        testing.TB
	cfg      api.Config
	bus      *sqlitebus.Bus
	store    *sqlstore.Store
	book     *sqlbook.Book
	base     string
	client   *http.Client
	log      *testlog.Buffer
	memories home.EditedMemories // set only by rigs with memories
}

func TestMain(m *testing.M) { os.Exit(testrace.Run(m.Run)) }

// newRig starts a rig. The options may change its configuration first.
func newRig(t testing.TB, change ...func(*rig)) *rig {
	t.Helper()
	return newRigOf(t, bus.Caps{Inbound: 3, Outbound: 1000}, change...)
}

func newRigOf(t testing.TB, caps bus.Caps, change ...func(*rig)) *rig {
	t.Helper()
	dir := t.TempDir()
	x := &rig{t: t, log: new(testlog.Buffer), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(x.client.CloseIdleConnections)
	var err error
	if x.bus, err = sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db"), Caps: caps}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.bus.Close() })
	if x.store, err = sqlstore.Open(t.Context(), filepath.Join(dir, "sessions.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.store.Close() })
	if x.book, err = sqlbook.Open(t.Context(), filepath.Join(dir, "book.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.book.Close() })
	x.cfg = x.config()
	for _, c := range change {
		c(x)
	}
	x.API = api.New(x.cfg)
	x.base = x.serve(x.API, "tcp", "127.0.0.1:0")
	return x
}

func (x *rig) config() api.Config {
	return api.Config{
		Outbox: &outbox.Outbox{
			Bus: x.bus, Book: x.book, DeadLetters: x.bus,
			Channels: func() []string { return []string{"slack", "telegram"} },
			Targets: func() map[string][]bus.Address {
				return map[string][]bus.Address{"ci": {builds}, "oncall": {builds, alerts}}
			},
		},
		Sessions: x.store, Words: x.store.Words(), Activity: x.store.Activity(), Events: x.bus, Mail: x.bus, People: x.book, Links: x.book,
		Access: api.Access{
			Owner: ownerToken, Tokens: tokens,
			Hosts:     func() []string { return []string{"parley.internal", "parley.example"} },
			Encrypted: func() []string { return []string{"parley.example"} }, SignIns: x.book,
		},
		Pages:    func() []string { return []string{"http://127.0.0.1:7275", "https://parley.example"} },
		Agent:    api.Agent{Name: "main", Say: web.New(x.bus, "main").Say, Models: func() map[string]bool { return map[string]bool{"main": true, "ops": true, "mute": false} }},
		Usage:    api.Usage{Sums: x.store.Bill().Usage, Caps: x.caps, Prices: "2026-06-20"},
		Channels: func() []string { return []string{"discord", "slack", "telegram"} },
		Health: api.Health{
			Version: "test", Role: "gateway,worker", Started: time.Now(),
			Channels: func() map[string]bool { return map[string]bool{"telegram": true, "slack": false} },
		},
		Timeouts: api.Timeouts{Body: 10 * time.Second, Write: 10 * time.Second, Quiet: 10 * time.Second},
		Log:      slog.New(slog.NewJSONHandler(x.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// serve serves an API until the test ends, and returns its base URL.
func (x *rig) serve(a *api.API, network, address string) string {
	x.t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		x.t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { done <- a.Serve(ctx, l) }()
	x.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
			x.t.Errorf("serve: %v", err)
		}
	})
	return "http://" + l.Addr().String()
}

// A reply is a response with its body.
type reply struct {
	*http.Response
	body []byte
}

// into decodes the body of a reply.
func into[T any](t testing.TB, r reply) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return v
}

// code returns the error code in a reply, or "".
func (r reply) code() string {
	var e struct{ Error bus.Failure }
	if json.Unmarshal(r.body, &e) != nil {
		return ""
	}
	return e.Error.Code
}

// An option changes a request before it is sent.
type option func(*http.Request)

func header(name, value string) option {
	return func(r *http.Request) {
		if name == "Host" {
			r.Host = value
			return
		}
		r.Header.Set(name, value)
	}
}

// do sends a request, reads the response, and checks it against the description.
func (x *rig) do(method, path, token, body string, options ...option) reply {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), method, x.base+path, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	if body != "" {
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for _, o := range options {
		o(req)
	}
	resp, err := x.client.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	return x.read(req, resp)
}

func (x *rig) read(req *http.Request, resp *http.Response) reply {
	x.t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	docs(x.t).check(x.t, req.Method, req.URL.EscapedPath(), resp, body)
	return reply{resp, body}
}

func (x *rig) get(path, token string) reply {
	x.t.Helper()
	return x.do("GET", path, token, "")
}

func (x *rig) post(token, body string, options ...option) reply {
	x.t.Helper()
	return x.do("POST", "/v1/messages", token, body, options...)
}

// waiting returns the number of messages that wait in all topics.
func (x *rig) waiting() int {
	x.t.Helper()
	n := 0
	topics, err := x.bus.Topics(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	for _, topic := range topics {
		d, err := x.bus.Depth(x.t.Context(), topic)
		if err != nil {
			x.t.Fatal(err)
		}
		n += d.Waiting
	}
	return n
}

// claim leases the next mailbox of a topic and returns its messages.
func (x *rig) claim(topic bus.Topic) (bus.Lease, []bus.Message) {
	x.t.Helper()
	l, err := x.bus.Claim(x.t.Context(), topic)
	if err != nil {
		x.t.Fatal(err)
	}
	mail, err := l.Mail(x.t.Context(), 0)
	if err != nil {
		x.t.Fatal(err)
	}
	return l, mail
}

func (x *rig) settle(l bus.Lease, end bus.End) {
	x.t.Helper()
	if err := l.Settle(x.t.Context(), end); err != nil {
		x.t.Fatal(err)
	}
}

func sessionPath(key, rest string) string { return "/v1/sessions/" + url.PathEscape(key) + rest }

// useSocket sends the rig's requests to a Unix socket.
func (x *rig) useSocket(path string) {
	x.client = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	x.t.Cleanup(x.client.CloseIdleConnections)
}

// caps returns the state of a spending limit for all people, as the rig's store has it.
func (x *rig) caps(ctx context.Context) ([]bill.CapState, error) {
	aside, err := x.store.Money().SetAside(ctx)
	if err != nil {
		return nil, err
	}
	all, err := x.store.Money().CapState(ctx, aside, bill.Cap{Limit: 20_000_000}, "[budget] day", time.Now())
	return []bill.CapState{all}, err
}
