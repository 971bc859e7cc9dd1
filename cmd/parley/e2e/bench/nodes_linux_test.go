package bench

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/agent/nodes"
	"parley/bus"
	"parley/bus/redisbus"
	"parley/channels/sqlbook"
	"parley/cmd/parley/hometest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/device"
	"parley/tools/nodes/wire"
)

// measuredSession is the session that makes the measured calls.
const measuredSession = "main:telegram:42"

// noop returns a tool that does nothing.
func noop() tools.Tool {
	return tools.New(tools.Spec{Name: "noop", Description: "Do nothing.", Effect: tools.Pure, Touches: tools.TouchesNothing()},
		func(context.Context, tools.Call, struct{}) (any, error) { return "done", nil })
}

// A nodeEnd is a node that has joined a server.
type nodeEnd struct {
	name string
	key  ed25519.PrivateKey
	of   ed25519.PublicKey // the server's public key
}

func newNodeEnd(b *testing.B, name string) *nodeEnd {
	b.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	parleytest.Must(b, err)
	return &nodeEnd{name: name, key: key}
}

func (n *nodeEnd) public() ed25519.PublicKey { return n.key.Public().(ed25519.PublicKey) }

// wire returns the node's end of a link to the server at url.
func (n *nodeEnd) wire(url string, set *tools.Set) wire.Node {
	return wire.Node{Server: url, ServerKey: n.of, Name: n.name, Key: n.key, Offer: device.OfferOf(set, nil, "1", runtime.GOOS+"/"+runtime.GOARCH)}
}

// run runs the node with these tools until the benchmark ends.
func (n *nodeEnd) run(b *testing.B, url string, set *tools.Set) {
	b.Helper()
	aside(b, func(ctx context.Context) error {
		return device.Node{Link: n.wire(url, set), Tools: set, Journal: b.TempDir(), Log: slog.New(slog.DiscardHandler)}.Run(ctx)
	})
}

// aside runs a function in the background until the benchmark ends.
func aside(b *testing.B, run func(ctx context.Context) error) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// A bareLink is a server without a record of calls: it sends one call over the link and acknowledges the result.
type bareLink struct {
	b    *testing.B
	conn *wire.Conn
	n    int
}

// newBareLink starts a bare server and links a node with these tools to it.
func newBareLink(b *testing.B, set *tools.Set) *bareLink {
	b.Helper()
	server, n := newNodeEnd(b, "server"), newNodeEnd(b, "bare")
	n.of = server.public()
	links := make(chan *wire.Conn)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lookup := func(context.Context, string) ([]byte, error) { return n.public(), nil }
		guest, err := wire.Server{Key: server.key, Lookup: lookup}.Accept(w, r)
		if err != nil {
			b.Error(err)
			return
		}
		conn, err := guest.Welcome()
		if err != nil {
			b.Error(err)
			return
		}
		links <- conn
	}))
	b.Cleanup(s.Close)
	n.run(b, s.URL, set)
	l := &bareLink{b: b, conn: <-links}
	b.Cleanup(l.conn.Close)
	return l
}

// call makes one call over the link and waits for its result.
func (l *bareLink) call() {
	l.n++
	id := fmt.Sprint("call-", l.n)
	parleytest.Must(l.b, l.conn.Write(wire.Frame{Type: wire.Call, ID: id, Tool: "noop", Args: json.RawMessage(`{}`), Timeout: 10_000}))
	for {
		f, err := l.conn.Read(l.b.Context())
		parleytest.Must(l.b, err)
		if f.Type == wire.Result {
			break
		}
	}
	parleytest.Must(l.b, l.conn.Write(wire.Frame{Type: wire.Ack, ID: id}))
}

// newNodeService starts the part of a process that serves nodes.
func newNodeService(b *testing.B, store *sqlstore.Store, events bus.Events, key func(context.Context) (ed25519.PrivateKey, error)) *nodes.Service {
	b.Helper()
	table := store.Nodes()
	s := nodes.New(nodes.Config{
		Registry: table, Links: table, Calls: table, Events: events, Key: key, Process: rand.Text(),
		MayUse: func(tools.Call, string) bool { return true }, Trusted: func(string) bool { return false },
		TellOwners: func(context.Context, string, string, string) {}, WaitTime: func(string) time.Duration { return 0 }, WaitOver: func() {},
		Ready: func(context.Context) (string, error) { return "", nil }, CountCall: func(string, string, time.Duration) {}, Log: slog.New(slog.DiscardHandler),
	})
	parleytest.Must(b, s.Load(b.Context()))
	aside(b, s.Run)
	return s
}

// A nodeBench contains a node, the service that gives it calls, and the service that has its link. In a home, both
// services are the same one.
type nodeBench struct {
	worker, gateway *nodes.Service
}

func nodesAtHome(b *testing.B) nodeBench {
	b.Helper()
	h := hometest.Open(b, b.TempDir())
	_, err := h.Store.Open(b.Context(), measuredSession, 1)
	parleytest.Must(b, err)
	s := newNodeService(b, h.Store, h.Bus, newNodeEnd(b, "fleet").private)
	return nodeBench{s, s}
}

// private returns the private key of the fleet.
func (n *nodeEnd) private(context.Context) (ed25519.PrivateKey, error) { return n.key, nil }

func nodesInAFleet(b *testing.B) nodeBench {
	b.Helper()
	url, place, key := parleytest.StartRedis(b).URL(), sqldbtest.New(b), newNodeEnd(b, "fleet").private
	var both []*nodes.Service
	for range 2 {
		events, err := redisbus.Open(b.Context(), redisbus.Config{URL: url, Prefix: "bench"})
		parleytest.Must(b, err)
		b.Cleanup(func() { _ = events.Close() })
		store, err := sqlstore.Open(b.Context(), place)
		parleytest.Must(b, err)
		b.Cleanup(func() { _ = store.Close() })
		if both == nil {
			_, err = store.Open(b.Context(), measuredSession, 1)
			parleytest.Must(b, err)
		}
		both = append(both, newNodeService(b, store, events, key))
	}
	return nodeBench{both[0], both[1]}
}

// BenchmarkNodeCall measures the cost of a call of a node's tool without its link and its process: it compares a call
// of a tool that does nothing with the same call over the link of a server that records nothing, in turns. In a fleet,
// one process makes the calls, and another one has the link.
func BenchmarkNodeCall(b *testing.B) {
	for name, open := range map[string]func(*testing.B) nodeBench{"home": nodesAtHome, "fleet": nodesInAFleet} {
		b.Run(name, func(b *testing.B) {
			x, set := open(b), tools.NewSet(noop())
			bare := newBareLink(b, set)
			gateway := httptest.NewServer(http.HandlerFunc(x.gateway.ServeLink))
			b.Cleanup(gateway.Close)
			n := newNodeEnd(b, "pi")
			code, _, err := x.gateway.Invite(b.Context())
			parleytest.Must(b, err)
			n.of, err = x.gateway.Join(b.Context(), code, n.name, n.public())
			parleytest.Must(b, err)
			n.run(b, gateway.URL, set)
			parleytest.WaitFor(b, "the node to be here", func() bool {
				found, err := x.worker.Find(b.Context(), n.name)
				return err == nil && len(found.Offer.Tools) == 1
			})
			_, err = x.worker.Accept(b.Context(), n.name, "")
			parleytest.Must(b, err)
			var with, without []time.Duration
			call := func(key string) {
				c := tools.Call{ID: key, Key: key, Session: measuredSession, Agent: "main", Person: "telegram:42", Turn: "t1"}
				out, err := x.worker.Call(b.Context(), n.name, "noop", json.RawMessage(`{}`), c)
				if err != nil || out.Status != toolnodes.Done {
					b.Fatalf("the call has ended with %+v, %v", out, err)
				}
			}
			parleytest.WaitFor(b, "the node's tools", func() bool {
				all, _ := x.worker.View()
				return len(all) == 1 && len(all[0].Tools) == 1
			})
			for i := range 50 { // to warm up
				call(fmt.Sprint("warm-", i))
				bare.call()
			}
			for b.Loop() {
				time.Sleep(12 * time.Millisecond) // measuring, not testing: a server reads 100 frames a second from a node
				began := time.Now()
				call(fmt.Sprint("call-", len(with)))
				with = append(with, time.Since(began))
				began = time.Now()
				bare.call()
				without = append(without, time.Since(began))
			}
			slices.Sort(with)
			slices.Sort(without)
			at := func(all []time.Duration, percent int) time.Duration { return all[len(all)*percent/100] }
			parleytest.Milliseconds(b, "p50-ms", at(with, 50))
			parleytest.Milliseconds(b, "p99-ms", at(with, 99))
			parleytest.Milliseconds(b, "bare-p50-ms", at(without, 50))
			parleytest.Milliseconds(b, "cost-p50-ms", at(with, 50)-at(without, 50))
			b.ReportMetric(0, "ns/op")
		})
	}
}

// deviceTools returns tools like those that a typical device offers.
func deviceTools() *tools.Set {
	var all []tools.Tool
	for n := range 10 {
		all = append(all, tools.New(tools.Spec{Name: fmt.Sprint("tool_", n), Description: strings.Repeat("It does what it does. ", 20), Effect: tools.Pure, Touches: tools.TouchesNothing()},
			func(context.Context, tools.Call, struct {
				Path    string `json:"path" desc:"The path of the file, in the folder of the node."`
				Content string `json:"content,omitempty" desc:"The text that the file is to have."`
				Lines   int    `json:"lines,omitempty" desc:"How many lines to read."`
			}) (any, error) {
				return "done", nil
			}))
	}
	return tools.NewSet(all...)
}

// idleNodes is the number of nodes that BenchmarkIdleNodes links.
const idleNodes = 1000

// BenchmarkIdleNodes measures the memory that a gateway needs for a thousand idle nodes with ten accepted tools each:
// before the nodes link, and after they were linked for a while.
func BenchmarkIdleNodes(b *testing.B) {
	b.Run("home", func(b *testing.B) {
		dir := b.TempDir()
		h := hometest.Open(b, dir)
		all := recordNodes(b, h.Store, h.Book)
		h.Close()
		measureIdle(b, dir, all, "")
	})
	b.Run("fleet", func(b *testing.B) {
		place := sqldbtest.New(b)
		store, err := sqlstore.Open(b.Context(), place)
		parleytest.Must(b, err)
		book, err := sqlbook.Open(b.Context(), place)
		parleytest.Must(b, err)
		all := recordNodes(b, store, book)
		parleytest.Must(b, store.Close())
		parleytest.Must(b, book.Close())
		measureIdle(b, b.TempDir(), all, fmt.Sprintf("[bus]\nurl = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n", parleytest.StartRedis(b).URL(), place, b.TempDir()), "--role", "gateway")
	})
}

// recordNodes records nodes that have joined and are accepted, and returns them.
func recordNodes(b *testing.B, store *sqlstore.Store, book *sqlbook.Book) (all []*nodeEnd) {
	b.Helper()
	table := store.Nodes()
	s := nodes.New(nodes.Config{Registry: table, Log: slog.New(slog.DiscardHandler), Events: discard{}, Key: nodes.FleetKey(func(ctx context.Context, value string) (string, error) {
		return book.SetNoteOnce(ctx, "nodes_key", "fleet", value)
	})})
	offer, err := json.Marshal(device.OfferOf(deviceTools(), nil, "1", runtime.GOOS+"/"+runtime.GOARCH))
	parleytest.Must(b, err)
	for i := range idleNodes {
		n := newNodeEnd(b, fmt.Sprintf("node-%04d", i))
		code, _, err := s.Invite(b.Context())
		parleytest.Must(b, err)
		n.of, err = s.Join(b.Context(), code, n.name, n.public())
		parleytest.Must(b, err)
		_, err = table.Link(b.Context(), n.name, "earlier", offer, time.Now())
		parleytest.Must(b, err)
		_, err = s.Accept(b.Context(), n.name, "")
		parleytest.Must(b, err)
		all = append(all, n)
	}
	return all
}

// discard is a bus that delivers no events.
type discard struct{ bus.Events }

func (discard) Emit(bus.Event) {}

// measureIdle measures the memory of a gateway without links, and with a link of each node.
func measureIdle(b *testing.B, home string, all []*nodeEnd, more string, args ...string) {
	b.Helper()
	x := newBotBench(b, func(agenttest.Request) agenttest.Response { return agenttest.Reply("fine") }, more)
	address := parleytest.FreeAddress(b)
	raw, err := os.ReadFile(x.file)
	parleytest.Must(b, err)
	parleytest.Must(b, os.WriteFile(x.file, []byte(strings.Replace(string(raw), "[http]\nlisten = \"\"", fmt.Sprintf("[http]\nlisten = %q", address), 1)), 0o600))
	x.serveIn(home, args...)
	x.polled()
	before := x.atRest()
	set := deviceTools()
	var dialing sync.WaitGroup
	next := make(chan *nodeEnd)
	for range 20 {
		dialing.Go(func() {
			for n := range next {
				conn, err := n.wire("http://"+address, set).Dial(b.Context())
				if err != nil {
					b.Errorf("node %s: %v", n.name, err)
					continue
				}
				aside(b, func(ctx context.Context) error {
					defer conn.Close()
					_, _ = conn.Read(ctx) // nothing is sent
					return nil
				})
			}
		})
	}
	for _, n := range all {
		next <- n
	}
	close(next)
	dialing.Wait()
	after := x.atRest()
	for b.Loop() {
	}
	for _, name := range []string{"VmRSS:", "RssAnon:"} {
		unit := strings.TrimSuffix(name, ":")
		b.ReportMetric(before[name], unit+"-before-MB")
		b.ReportMetric(after[name], unit+"-after-MB")
		b.ReportMetric(after[name]-before[name], unit+"-more-MB")
	}
	b.ReportMetric(0, "ns/op")
}

// settles is how long a process is left alone before its memory is read. The garbage collector runs at least every two
// minutes.
const settles = 2*time.Minute + 15*time.Second

// atRest waits until the process was left alone for a while, and returns figures of its memory.
func (x *bench) atRest() map[string]float64 {
	x.b.Helper()
	time.Sleep(settles) // measuring, not testing
	all := map[string]float64{}
	for _, name := range []string{"VmRSS:", "RssAnon:"} {
		all[name] = memoryOf(x.b, x.cmd.Process.Pid, name)
	}
	return all
}
