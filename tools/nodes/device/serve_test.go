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

// connect opens a connection to the server, on which a node may open a link.
func (f *fakeServer) connect() net.Conn {
	f.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(f.t.Context(), "tcp", strings.TrimPrefix(f.address, "http://"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return conn
}

// A blockingTool is a tool whose calls run until release is closed.
type blockingTool struct {
	begun   chan string
	release chan struct{}
}

func newBlockingTool() *blockingTool {
	return &blockingTool{make(chan string, 10), make(chan struct{})}
}

func (h *blockingTool) tool() tools.Tool {
	return tools.New(tools.Spec{Name: "hold", Description: "Hold.", Effect: tools.Once, Touches: tools.TouchesAlways(tools.Touch{Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}})},
		func(ctx context.Context, call tools.Call, _ struct{}) (any, error) {
			h.begun <- call.ID
			select {
			case <-h.release:
				return "let go", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
}

// serve has a node serve connections; ended receives how Serve has ended.
func (f *fakeServer) serve(ctx context.Context, dir string, h *blockingTool, first net.Conn) (others chan net.Conn, ended chan error) {
	n := newNode("ssh", dir, h.tool())
	others, ended = make(chan net.Conn), make(chan error, 1)
	go func() { ended <- n.Serve(ctx, first, others) }()
	return others, ended
}

// receiveWithin waits for a value from a channel.
func receiveWithin[T any](t *testing.T, what string, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("in vain: %s", what)
	}
	return got
}

// waitOutcome waits for the outcome of a call.
func waitOutcome(t *testing.T, c *wire.Conn, id string) nodes.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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

// Calls, and the node, continue after the link has ended. A later connection gets the outcome. When there is no
// connection and no call, the node ends.
func TestServeOutlivesItsLink(t *testing.T) {
	t.Parallel()
	f, h := newFakeServer(t), newBlockingTool()
	first := f.connect()
	others, ended := f.serve(t.Context(), t.TempDir(), h, first)
	link := f.link()
	sendFrame(t, link, callFrame("a", "hold", `{}`))
	receiveWithin(t, "the call", h.begun)
	first.Close()
	second := f.connect()
	select {
	case others <- second:
	case err := <-ended:
		t.Fatalf("the node has ended in the middle of a call: %v", err)
	}
	link = f.link()
	sendFrame(t, link, callFrame("a", "hold", `{}`)) // as a server does
	close(h.release)
	if out := waitOutcome(t, link, "a"); out.Status != nodes.Done || string(out.Content) != `"let go"` {
		t.Errorf("it has ended as %+v", out)
	}
	select {
	case err := <-ended:
		t.Fatalf("the node has ended although it has a link: %v", err)
	default:
	}
	link.Close()
	if err := receiveWithin(t, "the end", ended); err != nil {
		t.Error(err)
	}
	if len(h.begun) != 0 {
		t.Error("the call was run twice")
	}
}

// The next connection ends the link before it: its opener may not know yet that the old one is dead.
func TestServeTakesTheNextConnection(t *testing.T) {
	t.Parallel()
	f, h := newFakeServer(t), newBlockingTool()
	others, ended := f.serve(t.Context(), t.TempDir(), h, f.connect())
	old := f.link()
	others <- f.connect()
	link := f.link()
	if _, err := old.Read(t.Context()); err == nil {
		t.Error("the old link says something")
	}
	close(h.release)
	sendFrame(t, link, callFrame("a", "hold", `{}`))
	if out := waitOutcome(t, link, "a"); out.Status != nodes.Done {
		t.Errorf("it has ended as %+v", out)
	}
	link.Close()
	if err := receiveWithin(t, "the end", ended); err != nil {
		t.Error(err)
	}
}

// A node ends when its calls have ended without a link, and leaves their outcomes to the next link.
func TestServeLeavesOutcomes(t *testing.T) {
	t.Parallel()
	f, h, dir := newFakeServer(t), newBlockingTool(), t.TempDir()
	_, ended := f.serve(t.Context(), dir, h, f.connect())
	link := f.link()
	sendFrame(t, link, callFrame("a", "hold", `{}`))
	receiveWithin(t, "the call", h.begun)
	link.Close()
	select {
	case err := <-ended:
		t.Fatalf("the node has ended in the middle of a call: %v", err)
	case h.release <- struct{}{}:
	}
	if err := receiveWithin(t, "the end", ended); err != nil {
		t.Fatal(err)
	}
	f.serve(t.Context(), dir, h, f.connect())
	if out := waitOutcome(t, f.link(), "a"); out.Status != nodes.Done {
		t.Errorf("it has ended as %+v", out)
	}
	if len(h.begun) != 0 {
		t.Error("the call was run twice")
	}
}

// A node that is stopped ends its calls, and reports them at the next link. A connection that opens no link also ends.
func TestServeIsStopped(t *testing.T) {
	t.Parallel()
	f, h, dir := newFakeServer(t), newBlockingTool(), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	_, ended := f.serve(ctx, dir, h, f.connect())
	sendFrame(t, f.link(), callFrame("a", "hold", `{}`))
	receiveWithin(t, "the call", h.begun)
	stop()
	if err := receiveWithin(t, "the end", ended); err != nil {
		t.Fatal(err)
	}
	dead, other := net.Pipe()
	other.Close()
	_, ended = f.serve(t.Context(), dir, h, dead)
	if err := receiveWithin(t, "the end without a link", ended); err != nil {
		t.Fatal(err)
	}
	f.serve(t.Context(), dir, h, f.connect())
	if out := waitOutcome(t, f.link(), "a"); out.Status != nodes.Failed || out.Error.Code != tools.Cancelled {
		t.Errorf("it has ended as %+v", out)
	}
}
