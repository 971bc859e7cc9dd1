package nodes_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/agent/nodes"
	"parley/agent/nodes/waits"
	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/sqlitebus"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/wire"
)

const testSession = "main:telegram:42"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitUntil waits until a condition is true.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(20 * time.Second); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// A fleet is several processes over one database and one bus.
type fleet struct {
	t     *testing.T
	place string
	bus   func() eventBus // returns the bus of one more process
	key   func(context.Context) (ed25519.PrivateKey, error)

	mu      sync.Mutex
	notices []string
}

// An eventBus is a bus on which events are published, too.
type eventBus interface {
	bus.Bus
	bus.Events
}

// onHomeAndFleet runs a test on a home, and on the servers of a fleet.
func onHomeAndFleet(t *testing.T, test func(t *testing.T, f *fleet)) {
	t.Parallel()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	keyOf := func(context.Context) (ed25519.PrivateKey, error) { return key, nil }
	t.Run("home", func(t *testing.T) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
		must(t, err)
		t.Cleanup(func() { b.Close() })
		test(t, &fleet{t: t, place: filepath.Join(t.TempDir(), "store.db"), bus: func() eventBus { return b }, key: keyOf})
	})
	t.Run("fleet", func(t *testing.T) {
		url := os.Getenv("PARLEY_TEST_REDIS_URL")
		if url == "" {
			t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
		}
		prefix := "nodes-" + rand.Text()
		test(t, &fleet{t: t, place: sqldbtest.New(t), key: keyOf, bus: func() eventBus {
			b, err := redisbus.Open(t.Context(), redisbus.Config{URL: url, Prefix: prefix})
			must(t, err)
			t.Cleanup(func() { b.Close() })
			return b
		}})
	})
}

// A process is one process of a fleet.
type process struct {
	*nodes.Service
	*waits.Waits
	t     *testing.T
	store *sqlstore.Store
	url   string
	stop  func()
}

// process starts one more process.
func (f *fleet) process(change ...func(*nodes.Config)) *process {
	t := f.t
	t.Helper()
	store, err := sqlstore.Open(t.Context(), f.place)
	must(t, err)
	t.Cleanup(func() { store.Close() })
	if _, err := store.Open(t.Context(), testSession, 1); err != nil && len(change) == 0 {
		t.Log(err) // another process has opened the store
	}
	table, over := store.Nodes(), f.bus()
	waiting := waits.New(table, over, nil, slog.New(slog.DiscardHandler))
	c := nodes.Config{
		Registry: table, Links: table, Calls: table, Events: over, Key: f.key, Process: rand.Text(),
		MayUse:   func(call tools.Call, node string) bool { return call.Agent == "main" && node != "forbidden" },
		Trusted:  func(node string) bool { return node == "trusted" },
		WaitTime: func(string) time.Duration { return 0 },
		WaitOver: waiting.Look,
		TellOwners: func(_ context.Context, node, set, text string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.notices = append(f.notices, text)
		},
		Ready:     func(context.Context) (string, error) { return "", nil },
		CountCall: func(string, string, time.Duration) {}, Log: slog.New(slog.DiscardHandler),
	}
	for _, one := range change {
		one(&c)
	}
	p := &process{Service: nodes.New(c), Waits: waiting, t: t, store: store}
	must(t, p.Load(t.Context()))
	server := httptest.NewServer(http.HandlerFunc(p.ServeLink))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		var both sync.WaitGroup
		both.Go(func() { _ = p.Waits.Run(ctx) }) // it returns nil
		if err := p.Service.Run(ctx); err != nil {
			t.Error(err)
		}
		both.Wait()
	}()
	p.url = server.URL
	p.stop = sync.OnceFunc(func() { cancel(); <-done; server.Close() })
	t.Cleanup(p.stop)
	return p
}

// A device is a test's node. It remembers the outcomes of its calls, as real nodes do in their journal.
type device struct {
	t      *testing.T
	name   string
	key    ed25519.PrivateKey
	fleet  ed25519.PublicKey
	offer  toolnodes.Offer
	dialer func(context.Context) (net.Conn, error) // opens the connections of its links; nil means to the process's address
	// run runs a call; cancelled is closed when it is to end.
	run func(f wire.Frame, report func(string), cancelled <-chan struct{}) toolnodes.Outcome

	mu        sync.Mutex
	runs      map[string]int                // how often a call was run
	outcomes  map[string]*toolnodes.Outcome // those that the server has not acknowledged
	cancels   map[string]chan struct{}
	received  []wire.Frame
	conn      *wire.Conn
	connected int
}

func tool(name string, pure bool) toolnodes.Tool {
	return toolnodes.Tool{Name: name, Description: "It is " + name + ".", Schema: json.RawMessage(`{"type":"object"}`), Pure: pure, Timeout: 20_000}
}

// doneOutcome returns the outcome of a successful call.
func doneOutcome(content string) toolnodes.Outcome {
	return toolnodes.Outcome{Status: toolnodes.Done, Content: json.RawMessage(content)}
}

// join has a device with these tools join, and has an owner accept it.
func (p *process) join(name string, all ...toolnodes.Tool) *device {
	p.t.Helper()
	d := p.joinWaiting(name, all...)
	_, err := p.Accept(p.t.Context(), name, "")
	must(p.t, err)
	return d
}

// joinWaiting has a device with these tools join. The server knows its offer, and it has no link.
func (p *process) joinWaiting(name string, all ...toolnodes.Tool) *device {
	t := p.t
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	code, _, err := p.Invite(t.Context())
	must(t, err)
	d := &device{
		t: t, name: name, key: key, offer: toolnodes.Offer{Tools: all, Release: "1", Platform: "linux/arm64"},
		runs: map[string]int{}, outcomes: map[string]*toolnodes.Outcome{}, cancels: map[string]chan struct{}{},
		run: func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome { return doneOutcome(`"done"`) },
	}
	d.fleet, err = p.Join(t.Context(), code, name, public)
	must(t, err)
	d.link(p)
	d.leave()
	waitUntil(t, "the link is gone", func() bool { return p.node(name).Process == "" })
	return d
}

// node returns the record of a node.
func (p *process) node(name string) nodes.Node {
	p.t.Helper()
	n, err := p.Find(p.t.Context(), name)
	must(p.t, err)
	return n
}

// dial opens a link to a process.
func (d *device) dial(p *process) (*wire.Conn, error) {
	return wire.Node{Server: p.url, ServerKey: d.fleet, Name: d.name, Key: d.key, Offer: d.offer, OpenConn: d.dialer}.Dial(context.WithoutCancel(d.t.Context()))
}

// link opens a link and serves it, until it ends.
func (d *device) link(p *process) {
	d.t.Helper()
	conn, err := d.dial(p)
	must(d.t, err)
	d.mu.Lock()
	d.conn = conn
	d.connected++
	var again []wire.Frame
	for id, out := range d.outcomes {
		if out != nil {
			again = append(again, wire.Frame{Type: wire.Result, ID: id, Outcome: out})
		}
	}
	d.mu.Unlock()
	var serving sync.WaitGroup
	serving.Go(func() {
		for _, f := range again {
			_ = conn.Write(f)
		}
		for {
			f, err := conn.Read(context.WithoutCancel(d.t.Context()))
			if err != nil {
				return
			}
			d.handle(f, &serving)
		}
	})
	d.t.Cleanup(func() {
		conn.Close()
		d.mu.Lock()
		for _, c := range d.cancels {
			select {
			case <-c:
			default:
				close(c)
			}
		}
		d.mu.Unlock()
		serving.Wait()
	})
}

// leave closes the link.
func (d *device) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn.Close()
}

// handle handles a frame of the server.
func (d *device) handle(f wire.Frame, serving *sync.WaitGroup) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.received = append(d.received, f)
	switch f.Type {
	case wire.Call:
		out, known := d.outcomes[f.ID]
		if known {
			if out != nil {
				d.sendOutcome(f.ID, out)
			}
			return
		}
		d.outcomes[f.ID] = nil
		d.runs[f.ID]++
		cancelled := make(chan struct{})
		d.cancels[f.ID] = cancelled
		serving.Go(func() {
			out := d.run(f, func(text string) { d.send(wire.Frame{Type: wire.Progress, ID: f.ID, Text: text}) }, cancelled)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.outcomes[f.ID] = &out
			d.sendOutcome(f.ID, &out)
		})
	case wire.Cancel:
		if c := d.cancels[f.ID]; c != nil {
			close(c)
			delete(d.cancels, f.ID)
		}
	case wire.Ack:
		delete(d.outcomes, f.ID)
	}
}

// sendOutcome sends a call's outcome over the current link. The caller holds mu.
func (d *device) sendOutcome(id string, out *toolnodes.Outcome) {
	_ = d.conn.Write(wire.Frame{Type: wire.Result, ID: id, Outcome: out})
}

// send sends a frame over the current link.
func (d *device) send(f wire.Frame) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.conn.Write(f)
}

// unacknowledged returns how many outcomes the server has not acknowledged.
func (d *device) unacknowledged() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.outcomes)
}

func (d *device) ran() (calls, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.runs {
		most = max(most, n)
	}
	return len(d.runs), most
}

// countReceived returns how many frames of a type the server has sent.
func (d *device) countReceived(kind string) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.received {
		if f.Type == kind {
			n++
		}
	}
	return n
}

// A callResult is how a call has ended.
type callResult struct {
	out toolnodes.Outcome
	err error
}

// toolCall returns a test's tool call.
func toolCall(key string) tools.Call {
	return tools.Call{ID: key, Key: key, Session: testSession, Agent: "main", Person: "telegram:42", Turn: "t1"}
}

// startCall gives a call to a node, and returns the channel of its outcome.
func (p *process) startCall(ctx context.Context, node, tool string, c tools.Call) <-chan callResult {
	came := make(chan callResult, 1)
	go func() {
		out, err := p.Call(ctx, node, tool, json.RawMessage(`{"x":1}`), c)
		came <- callResult{out, err}
	}()
	return came
}

// wantOutcome checks how a call has ended.
func wantOutcome(t *testing.T, got callResult, status toolnodes.Status, content string) {
	t.Helper()
	if got.err != nil || got.out.Status != status || string(got.out.Content) != content {
		t.Errorf("got %s %s (%v) and the error %v, want %s %s", got.out.Status, got.out.Content, got.out.Error, got.err, status, content)
	}
}

// wantCode checks the code with which a call was refused or has failed.
func wantCode(t *testing.T, got callResult, code tools.Code) {
	t.Helper()
	failed, _ := errors.AsType[*tools.Error](got.err)
	if failed == nil {
		failed = got.out.Error
	}
	if failed == nil || failed.Code != code {
		t.Errorf("got %s %s and the error %v, want the code %s", got.out.Status, got.out.Content, failed, code)
	}
}

func callKey(n int) string { return fmt.Sprint("key-", n) }
