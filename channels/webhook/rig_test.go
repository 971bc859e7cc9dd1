package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/channels/outbox"
	"parley/channels/sqlbook"
	"parley/channels/webhook"
)

const (
	token  = "the-token-of-the-webhook"
	secret = "the-secret-of-the-webhook"
)

// A testConfig is the configuration of a webhook in a test.
type testConfig struct {
	kind        string
	template    string
	routes      []webhook.Route
	cap         int // the capacity of each address's mailbox
	bodyTimeout time.Duration
	agent       bool // whether the webhook has an agent
	group       string
}

// A rig is a webhook with a real outbox and bus.
type rig struct {
	testing.TB
	testConfig
	handler *webhook.Handler
	url     string
	bus     *sqlitebus.Bus
	book    *sqlbook.Book
	outbox  *outbox.Outbox
	clock   *clock
}

func newRig(t testing.TB, s testConfig) *rig {
	t.Helper()
	dir := t.TempDir()
	if s.cap == 0 {
		s.cap = 1000
	}
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db"), Caps: bus.Caps{Outbound: s.cap, Inbound: 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	book, err := sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	d := &rig{TB: t, testConfig: s, bus: b, book: book, clock: &clock{at: time.Date(2046, 3, 14, 9, 27, 30, 0, time.UTC)}}
	d.outbox = &outbox.Outbox{
		Bus: b, Book: book,
		Channels: func() []string { return []string{"slack"} },
		Targets: func() map[string][]bus.Address {
			return map[string][]bus.Address{"ci": {{Channel: "slack", Chat: "CI"}}, "oncall": {{Channel: "slack", Chat: "ONCALL"}}}
		},
		Now: d.clock.now,
	}
	d.restart()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	d.url = server.URL
	return d
}

// A clock advances only when it is told to. It is ahead of the book's clock, because the book deletes what is
// old.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (d *rig) advance(by time.Duration) {
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	d.clock.at = d.clock.at.Add(by)
}

func (d *rig) config() webhook.Config {
	c := webhook.Config{
		Name: "hook", Kind: d.kind, Token: token, Secret: secret, Template: d.template, Routes: d.routes, To: []string{"ci"},
		Outbox: d.outbox, Log: slog.New(slog.DiscardHandler), Now: d.clock.now, BodyTimeout: d.bodyTimeout,
	}
	if c.Group = d.group; d.agent {
		c.Agent, c.Resolve = d.eventsChannel(), d.outbox.Resolve
	}
	switch d.kind {
	case webhook.Alertmanager:
		c.Secret = ""
	case webhook.GitHub:
		c.Token = ""
	}
	return c
}

// restart makes a new handler, as a new process does.
func (d *rig) restart() {
	d.Helper()
	h, err := webhook.New(d.config())
	if err != nil {
		d.Fatal(err)
	}
	d.handler = h
}

// request returns a delivery as its sender would post it.
func (d *rig) request(event, body string) *http.Request {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), http.MethodPost, d.url, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	switch d.kind {
	case webhook.GitHub:
		r.Header.Set("X-GitHub-Event", event)
		r.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
		r.Header.Set("X-Hub-Signature-256", sign(body))
	default:
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// readExample returns the text of an example.
func (d *rig) readExample(name string) string {
	d.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		d.Fatal(err)
	}
	return string(body)
}

// exampleRequest returns a file of testdata as a request.
func (d *rig) exampleRequest(name string) *http.Request {
	d.Helper()
	return d.request(strings.Split(name, ".")[1], d.readExample(name))
}

// A response is what a sender gets back.
type response struct {
	status       int
	header       http.Header
	ID           string
	Destinations []struct{ Address, State string }
	Error        struct{ Code, Message string }
}

func (d *rig) send(r *http.Request) response {
	d.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.Fatal(err)
	}
	a := response{status: resp.StatusCode, header: resp.Header}
	if err := json.Unmarshal(body, &a); err != nil {
		d.Fatalf("the answer is %q: %v", body, err)
	}
	return a
}

func (d *rig) mustAccept(r *http.Request) response {
	d.Helper()
	a := d.send(r)
	if a.status != http.StatusAccepted {
		d.Fatalf("refused: %+v", a)
	}
	return a
}

// takeOutbound removes the messages that wait to be sent from the bus, and returns them.
func (d *rig) takeOutbound() []bus.Outbound {
	d.Helper()
	return bustest.TakeOutbound(d, d.bus, "slack")
}

// onlyMessage returns the only message that waits to be sent.
func (d *rig) onlyMessage() bus.Outbound {
	d.Helper()
	all := d.takeOutbound()
	if len(all) != 1 {
		d.Fatalf("%d messages wait, want one", len(all))
	}
	return all[0]
}

// formBody returns a body in the form in which GitHub sends it if it is configured to send forms.
func formBody(body string) string { return url.Values{"payload": {body}}.Encode() }
