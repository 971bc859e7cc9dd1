//go:build linux

package device_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// connect opens a connection to the fleet, on which a node may begin a link.
func (f *fleet) connect() net.Conn {
	f.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(f.t.Context(), "tcp", strings.TrimPrefix(f.address, "http://"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return conn
}

// A held is a tool whose calls run until they are let go.
type held struct {
	begun chan string
	let   chan struct{}
}

func newHeld() *held { return &held{make(chan string, 10), make(chan struct{})} }

func (h *held) tool() tools.Tool {
	return tools.New(tools.Spec{Name: "hold", Description: "Hold.", Effect: tools.Once, Touches: tools.TouchesAlways(tools.Touch{Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: tools.Inside{}})},
		func(ctx context.Context, call tools.Call, _ struct{}) (any, error) {
			h.begun <- call.ID
			select {
			case <-h.let:
				return "let go", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
}

// serve has a node serve connections beside the test; ended gets how it has ended.
func (f *fleet) serve(ctx context.Context, dir string, h *held, first net.Conn) (others chan net.Conn, ended chan error) {
	n := newNode("ssh", dir, h.tool())
	others, ended = make(chan net.Conn), make(chan error, 1)
	go func() { ended <- n.Serve(ctx, first, others) }()
	return others, ended
}

// within waits for something that a channel brings.
func within[T any](t *testing.T, what string, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("in vain: %s", what)
	}
	return got
}

// outcome waits for the outcome of a call.
func outcome(t *testing.T, c *wire.Conn, id string) nodes.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		f, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.Result && f.ID == id {
			return *f.Outcome
		}
	}
}

// Calls go on when the link has ended, and the node with them. A later connection gets the outcome; once there is none, and
// nothing runs, the node ends.
func TestServeOutlivesItsLink(t *testing.T) {
	t.Parallel()
	f, h := newFleet(t), newHeld()
	first := f.connect()
	others, ended := f.serve(t.Context(), t.TempDir(), h, first)
	link := f.link()
	send(t, link, call("a", "hold", `{}`))
	within(t, "the call", h.begun)
	first.Close()
	second := f.connect()
	select {
	case others <- second:
	case err := <-ended:
		t.Fatalf("the node has ended in the middle of a call: %v", err)
	}
	link = f.link()
	send(t, link, call("a", "hold", `{}`)) // as a server does
	close(h.let)
	if out := outcome(t, link, "a"); out.Status != nodes.Done || string(out.Content) != `"let go"` {
		t.Errorf("it has ended as %+v", out)
	}
	select {
	case err := <-ended:
		t.Fatalf("the node has ended although it has a link: %v", err)
	default:
	}
	link.Close()
	if err := within(t, "the end", ended); err != nil {
		t.Error(err)
	}
	if len(h.begun) != 0 {
		t.Error("the call was run twice")
	}
}

// The next connection ends the link before it: whoever has opened that one may not know yet that it is dead.
func TestServeTakesTheNextConnection(t *testing.T) {
	t.Parallel()
	f, h := newFleet(t), newHeld()
	others, ended := f.serve(t.Context(), t.TempDir(), h, f.connect())
	old := f.link()
	others <- f.connect()
	link := f.link()
	if _, err := old.Read(t.Context()); err == nil {
		t.Error("the old link says something")
	}
	close(h.let)
	send(t, link, call("a", "hold", `{}`))
	if out := outcome(t, link, "a"); out.Status != nodes.Done {
		t.Errorf("it has ended as %+v", out)
	}
	link.Close()
	if err := within(t, "the end", ended); err != nil {
		t.Error(err)
	}
}

// A node that ends with calls that have ended after its last link leaves their outcomes to the next one.
func TestServeLeavesOutcomes(t *testing.T) {
	t.Parallel()
	f, h, dir := newFleet(t), newHeld(), t.TempDir()
	_, ended := f.serve(t.Context(), dir, h, f.connect())
	link := f.link()
	send(t, link, call("a", "hold", `{}`))
	within(t, "the call", h.begun)
	link.Close()
	select {
	case err := <-ended:
		t.Fatalf("the node has ended in the middle of a call: %v", err)
	case h.let <- struct{}{}:
	}
	if err := within(t, "the end", ended); err != nil {
		t.Fatal(err)
	}
	f.serve(t.Context(), dir, h, f.connect())
	if out := outcome(t, f.link(), "a"); out.Status != nodes.Done {
		t.Errorf("it has ended as %+v", out)
	}
	if len(h.begun) != 0 {
		t.Error("the call was run twice")
	}
}

// A node that is stopped ends its calls, and says so at the next link. A connection that begins no link ends it, too.
func TestServeIsStopped(t *testing.T) {
	t.Parallel()
	f, h, dir := newFleet(t), newHeld(), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	_, ended := f.serve(ctx, dir, h, f.connect())
	send(t, f.link(), call("a", "hold", `{}`))
	within(t, "the call", h.begun)
	stop()
	if err := within(t, "the end", ended); err != nil {
		t.Fatal(err)
	}
	dead, other := net.Pipe()
	other.Close()
	_, ended = f.serve(t.Context(), dir, h, dead)
	if err := within(t, "the end without a link", ended); err != nil {
		t.Fatal(err)
	}
	f.serve(t.Context(), dir, h, f.connect())
	if out := outcome(t, f.link(), "a"); out.Status != nodes.Failed || out.Error.Code != tools.Cancelled {
		t.Errorf("it has ended as %+v", out)
	}
}
