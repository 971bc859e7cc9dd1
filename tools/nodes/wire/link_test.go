package wire_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// testEnds has the keys of both ends, and the links that the server has accepted.
type testEnds struct {
	node       ed25519.PrivateKey
	server     ed25519.PrivateKey
	lookup     func(context.Context, string) ([]byte, error)
	timing     wire.Timing
	address    string
	open       func(context.Context) (net.Conn, error)
	guests     chan *wire.Guest
	acceptErrs chan error
}

func newKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func publicKey(k ed25519.PrivateKey) []byte { return k.Public().(ed25519.PublicKey) }

func startServer(t *testing.T, change func(*testEnds)) *testEnds {
	t.Helper()
	e := &testEnds{node: newKey(t), server: newKey(t), guests: make(chan *wire.Guest, 1), acceptErrs: make(chan error, 1)}
	e.lookup = func(_ context.Context, name string) ([]byte, error) {
		if name != "pi" {
			return nil, &wire.Refusal{Reason: wire.ReasonUnknown, Text: "no node of that name"}
		}
		return publicKey(e.node), nil
	}
	if change != nil {
		change(e)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g, err := wire.Server{Key: e.server, Lookup: e.lookup, Timing: e.timing}.Accept(w, r)
		if err != nil {
			e.acceptErrs <- err
			return
		}
		e.guests <- g
	}))
	t.Cleanup(s.Close)
	e.address = s.URL
	return e
}

func (e *testEnds) asNode() wire.Node {
	return wire.Node{
		Server: e.address, ServerKey: publicKey(e.server), Name: "pi", Key: e.node, Timing: e.timing, OpenConn: e.open,
		Offer: nodes.Offer{Release: "1.0", Platform: "linux/arm64", Tools: []nodes.Tool{{Name: "read_file", Schema: json.RawMessage(`{"type":"object"}`)}}},
	}
}

// link opens a link, and returns the node's end and the server's.
func (e *testEnds) link(t *testing.T) (node, server *wire.Conn) {
	t.Helper()
	welcomed := make(chan *wire.Conn, 1)
	go func() {
		defer close(welcomed)
		g := <-e.guests
		if g.Name != "pi" || len(g.Offer.Tools) != 1 || g.Offer.Tools[0].Name != "read_file" {
			t.Errorf("the guest is %q with the offer %+v", g.Name, g.Offer)
		}
		c, err := g.Welcome()
		if err != nil {
			t.Error(err)
			return
		}
		welcomed <- c
	}()
	node, err := e.asNode().Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server = <-welcomed
	t.Cleanup(node.Close)
	t.Cleanup(server.Close)
	return node, server
}

func TestLinkCarriesFramesBothWays(t *testing.T) {
	t.Parallel()
	node, server := startServer(t, nil).link(t)
	call := wire.Frame{Type: wire.Call, ID: "1", Tool: "read_file", Args: json.RawMessage(`{"path":"<a>"}`), Timeout: 5}
	if err := server.Write(wire.Frame{Type: "from the future"}); err != nil {
		t.Fatal(err)
	}
	if err := server.Write(call); err != nil {
		t.Fatal(err)
	}
	got, err := node.Read(t.Context())
	if err != nil || got.Type != wire.Call || got.ID != "1" || string(got.Args) != string(call.Args) {
		t.Fatalf("the node read %+v, %v; want the call after the unknown frame", got, err)
	}
	large := wire.Frame{Type: wire.Result, ID: "1", Outcome: &nodes.Outcome{
		Status: nodes.Done, Content: json.RawMessage(`"` + strings.Repeat("x", nodes.MaxResult-100) + `"`),
	}}
	if err := node.Write(large); err != nil {
		t.Fatal(err)
	}
	got, err = server.Read(t.Context())
	if err != nil || got.Outcome == nil || len(got.Outcome.Content) != len(large.Outcome.Content) {
		t.Fatalf("the server read another result, %v", err)
	}
}

// A link may use any connection. Then the server's address is only a name.
func TestLinkOnAnotherConnection(t *testing.T) {
	t.Parallel()
	e := startServer(t, nil)
	at := strings.TrimPrefix(e.address, "http://")
	e.address = "nowhere"
	e.open = func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", at) }
	node, there := e.link(t)
	if err := node.Write(wire.Frame{Type: wire.Progress, Text: "here"}); err != nil {
		t.Fatal(err)
	}
	if f, err := there.Read(t.Context()); err != nil || f.Text != "here" {
		t.Fatalf("read %+v, %v", f, err)
	}
}

// A slowConn delays the data that it reads.
type slowConn struct {
	net.Conn
	arrivals chan delayedData
	unread   []byte
	delay    atomic.Int64 // the delay
}

type delayedData struct {
	raw  []byte
	from time.Time
}

// newSlowConn delays the data from a connection, without changing its order.
func newSlowConn(c net.Conn) *slowConn {
	s := &slowConn{Conn: c, arrivals: make(chan delayedData, 1000)}
	go func() {
		defer close(s.arrivals)
		for {
			raw := make([]byte, 64<<10)
			n, err := c.Read(raw)
			if err != nil {
				return
			}
			s.arrivals <- delayedData{raw[:n], time.Now().Add(time.Duration(s.delay.Load()))}
		}
	}()
	return s
}

func (s *slowConn) Read(into []byte) (int, error) {
	for len(s.unread) == 0 {
		one, ok := <-s.arrivals
		if !ok {
			return 0, io.EOF
		}
		<-time.After(time.Until(one.from))
		s.unread = one.raw
	}
	n := copy(into, s.unread)
	s.unread = s.unread[n:]
	return n, nil
}

func (s *slowConn) SetReadDeadline(time.Time) error { return nil }
func (s *slowConn) SetDeadline(time.Time) error     { return nil }

// A relay holds back the server's data, more and more, but is never silent. A call that is too old is not read.
func TestDelayedFramesAreNotRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer time.Duration
		reads  bool
	}{"and nobody minds": {0, true}, "": {200 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startServer(t, nil)
			at := strings.TrimPrefix(e.address, "http://")
			e.timing = wire.Timing{Ping: 20 * time.Millisecond, Answer: c.answer}
			lines := make(chan *slowConn, 1)
			e.open = func(ctx context.Context) (net.Conn, error) {
				conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
				if err != nil {
					return nil, err
				}
				line := newSlowConn(conn)
				lines <- line
				return line, nil
			}
			node, server := e.link(t)
			(<-lines).delay.Store(int64(time.Second))
			if err := server.Write(wire.Frame{Type: wire.Call, ID: "late"}); err != nil {
				t.Fatal(err)
			}
			f, err := node.Read(t.Context())
			if c.reads && (err != nil || f.ID != "late") || !c.reads && err == nil {
				t.Errorf("read %+v, %v", f, err)
			}
		})
	}
}

func TestFrameThatIsTooLarge(t *testing.T) {
	t.Parallel()
	e := startServer(t, nil)
	node, server := e.link(t)
	if err := node.Write(wire.Frame{Type: wire.Progress, Text: strings.Repeat("x", wire.MaxFrame)}); !errors.Is(err, wire.ErrTooLarge) {
		t.Fatalf("err = %v, want ErrTooLarge", err)
	}
	if err := node.Write(wire.Frame{Type: wire.Progress, Text: "still here"}); err != nil {
		t.Fatal(err)
	}
	if f, err := server.Read(t.Context()); err != nil || f.Text != "still here" {
		t.Fatalf("read %+v, %v", f, err)
	}
}

// A hostile peer sends a frame that is too large, or not JSON.
func TestBadFramesEndTheLink(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string][]byte{
		"too large": bytes.Repeat([]byte(" "), wire.MaxFrame+1),
		"no JSON":   []byte("hello"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startServer(t, nil)
			raw := e.openRaw(t)
			e.sendProof(t, raw, e.node)
			c, err := (<-e.guests).Welcome()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go func() { _ = raw.WriteMessage(websocket.TextMessage, frame) }() // the other end may close before it is sent
			if f, err := c.Read(t.Context()); err == nil {
				t.Errorf("read %+v", f)
			}
		})
	}
}

// openRaw opens a WebSocket without the rest of the protocol.
func (e *testEnds) openRaw(t *testing.T) *websocket.Conn {
	t.Helper()
	c, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(e.address, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func writeFrame(t *testing.T, c *websocket.Conn, f wire.Frame) {
	t.Helper()
	if err := c.WriteJSON(f); err != nil {
		t.Fatal(err)
	}
}

func readFrame(t *testing.T, c *websocket.Conn) wire.Frame {
	t.Helper()
	var f wire.Frame
	if err := c.ReadJSON(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

// sendProof takes a node's steps up to the proof, and returns the proof.
func (e *testEnds) sendProof(t *testing.T, c *websocket.Conn, with ed25519.PrivateKey) wire.Frame {
	t.Helper()
	nonce := bytes.Repeat([]byte{1}, wire.NonceSize)
	writeFrame(t, c, wire.Frame{Type: wire.Hello, Node: "pi", Nonce: nonce})
	challenge := readFrame(t, c)
	proof := wire.Frame{Type: wire.Proof, Offer: &nodes.Offer{}, Signature: ed25519.Sign(with, wire.NodeText("pi", nonce, challenge.Nonce))}
	writeFrame(t, c, proof)
	return proof
}

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*testEnds)
		as     func(*wire.Node)
		reason string
	}{
		{"a wrong key", nil, func(n *wire.Node) { n.Key = newKey(t) }, wire.ReasonProof},
		{"an unknown node", nil, func(n *wire.Node) { n.Name = "mars" }, wire.ReasonUnknown},
		{"a node while it can't look", func(e *testEnds) {
			e.lookup = func(context.Context, string) ([]byte, error) { return nil, errors.New("no store") }
		}, nil, wire.ReasonBusy},
		{"a node without a key", func(e *testEnds) {
			e.lookup = func(context.Context, string) ([]byte, error) { return nil, nil }
		}, nil, wire.ReasonProof},
		{"an offer beyond the bounds", nil, func(n *wire.Node) {
			n.Offer.Tools = append(n.Offer.Tools, n.Offer.Tools...)
		}, wire.ReasonOffer},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := startServer(t, c.change)
			n := e.asNode()
			if c.as != nil {
				c.as(&n)
			}
			_, err := n.Dial(t.Context())
			if refusal, ok := errors.AsType[*wire.Refusal](err); !ok || refusal.Reason != c.reason {
				t.Errorf("err = %v, want a refusal for %s", err, c.reason)
			}
			if err := <-e.acceptErrs; err == nil {
				t.Error("the server got no error")
			}
		})
	}
}

func TestServerRefusesAfterTheProof(t *testing.T) {
	t.Parallel()
	e := startServer(t, nil)
	go func() { (<-e.guests).Refuse(wire.ReasonRevoked, "revoked by an owner") }()
	_, err := e.asNode().Dial(t.Context())
	if refusal, ok := errors.AsType[*wire.Refusal](err); !ok || refusal.Reason != wire.ReasonRevoked || refusal.Text != "revoked by an owner" {
		t.Errorf("err = %v", err)
	}
}

func TestNodeBreaksOffWithAnotherServer(t *testing.T) {
	t.Parallel()
	e := startServer(t, nil)
	n := e.asNode()
	n.ServerKey = publicKey(newKey(t))
	if _, err := n.Dial(t.Context()); !errors.Is(err, wire.ErrOtherServer) {
		t.Errorf("err = %v, want ErrServer", err)
	}
	if err := <-e.acceptErrs; err == nil {
		t.Error("the server met a node that has broken off")
	}
}

// A proof is valid for one link: an attacker who has seen it can't use it again, or the server's signature.
func TestRelayedProofIsRefused(t *testing.T) {
	t.Parallel()
	e := startServer(t, nil)
	first := e.openRaw(t)
	proof := e.sendProof(t, first, e.node)
	(<-e.guests).Refuse(wire.ReasonBusy, "")

	second := e.openRaw(t)
	writeFrame(t, second, wire.Frame{Type: wire.Hello, Node: "pi", Nonce: bytes.Repeat([]byte{1}, wire.NonceSize)})
	challenge := readFrame(t, second)
	writeFrame(t, second, proof)
	if f := readFrame(t, second); f.Type != wire.Refused || f.Reason != wire.ReasonProof {
		t.Errorf("the server answered a proof of another link with %+v", f)
	}

	// The server's own signature, sent back as the proof.
	third := e.openRaw(t)
	writeFrame(t, third, wire.Frame{Type: wire.Hello, Node: "pi", Nonce: challenge.Nonce})
	writeFrame(t, third, wire.Frame{Type: wire.Proof, Offer: &nodes.Offer{}, Signature: readFrame(t, third).Signature})
	if f := readFrame(t, third); f.Type != wire.Refused || f.Reason != wire.ReasonProof {
		t.Errorf("the server took its own signature for the node's: %+v", f)
	}
}

func TestRelayedChallengeIsRefused(t *testing.T) {
	t.Parallel()
	server := newKey(t)
	old := make([]byte, wire.NonceSize)
	challenge := wire.Frame{Type: wire.Challenge, Nonce: old, Signature: ed25519.Sign(server, wire.ServerText("pi", old, old))}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		c, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		readFrame(t, c)
		writeFrame(t, c, challenge)
		if _, _, err := c.ReadMessage(); err == nil {
			t.Error("the node went on")
		}
	}))
	defer s.Close()
	_, err := wire.Node{Server: s.URL, ServerKey: publicKey(server), Name: "pi", Key: newKey(t)}.Dial(t.Context())
	if !errors.Is(err, wire.ErrOtherServer) {
		t.Errorf("err = %v, want ErrServer", err)
	}
}

func TestSilentPeers(t *testing.T) {
	t.Parallel()
	const soon = 100 * time.Millisecond
	t.Run("before the hello", func(t *testing.T) {
		t.Parallel()
		e := startServer(t, func(e *testEnds) { e.timing.Step = soon })
		e.openRaw(t)
		if err := <-e.acceptErrs; err == nil {
			t.Error("the server waits for ever")
		}
	})
	t.Run("before the proof, with frames that say nothing", func(t *testing.T) {
		t.Parallel()
		e := startServer(t, func(e *testEnds) { e.timing.Step = soon })
		c := e.openRaw(t)
		writeFrame(t, c, wire.Frame{Type: wire.Hello, Node: "pi", Nonce: make([]byte, wire.NonceSize)})
		go func() {
			for c.WriteJSON(wire.Frame{Type: "x"}) == nil && c.WriteControl(websocket.PingMessage, nil, time.Now().Add(soon)) == nil {
			}
		}()
		if err := <-e.acceptErrs; err == nil {
			t.Error("the server waits for ever")
		}
	})
	t.Run("server that does not welcome", func(t *testing.T) {
		t.Parallel()
		e := startServer(t, func(e *testEnds) { e.timing.Step = soon })
		if _, err := e.asNode().Dial(t.Context()); err == nil {
			t.Error("the node has a link")
		}
		(<-e.guests).Refuse(wire.ReasonBusy, "")
	})
	t.Run("in the link", func(t *testing.T) {
		t.Parallel()
		e := startServer(t, func(e *testEnds) { e.timing.Silence = soon })
		raw := e.openRaw(t)
		e.sendProof(t, raw, e.node)
		c, err := (<-e.guests).Welcome()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Read(t.Context()); err == nil {
			t.Error("the link lives on without a sign of life")
		}
	})
}

func TestPingsKeepAnIdleLink(t *testing.T) {
	t.Parallel()
	e := startServer(t, func(e *testEnds) { e.timing = wire.Timing{Ping: 20 * time.Millisecond, Silence: 5 * time.Second} })
	raw := e.openRaw(t)
	e.sendProof(t, raw, e.node)
	c, err := (<-e.guests).Welcome()
	if err != nil {
		t.Fatal(err)
	}
	pinged := make(chan struct{})
	n := 0
	raw.SetPingHandler(func(string) error {
		if n++; n == 3 {
			close(pinged)
		}
		return nil
	})
	go func() { // reading handles pings
		for {
			if _, _, err := raw.ReadMessage(); err != nil {
				return
			}
		}
	}()
	<-pinged
	c.Close()
	c.Close() // closing twice does no harm
}

func TestContextEndsARead(t *testing.T) {
	t.Parallel()
	node, _ := startServer(t, nil).link(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := node.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server, want string
		err          error
	}{
		{"https://parley.example.org", "https://parley.example.org/v1/x", nil},
		{"https://example.org/parley/", "https://example.org/parley/v1/x", nil},
		{"wss://example.org:8443", "https://example.org:8443/v1/x", nil},
		{"http://localhost:8080", "http://localhost:8080/v1/x", nil},
		{"ws://[::1]:1", "http://[::1]:1/v1/x", nil},
		{"http://127.0.0.2", "http://127.0.0.2/v1/x", nil},
		{"http://192.168.1.5:8080", "", wire.ErrNotHTTPS},
		{"ws://parley.example.org", "", wire.ErrNotHTTPS},
		{"http://localhost.example.org", "", wire.ErrNotHTTPS},
		{"parley.example.org", "", wire.ErrAddress},
		{"ftp://example.org", "", wire.ErrAddress},
		{"https://me:pw@example.org", "", wire.ErrAddress},
		{"https://", "", wire.ErrAddress},
	} {
		u, err := wire.Address(c.server, "v1/x")
		if !errors.Is(err, c.err) || c.err == nil && u.String() != c.want {
			t.Errorf("Address(%q) = %v, %v; want %q, %v", c.server, u, err, c.want, c.err)
		}
	}
}

func TestDialSaysHowAServerAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	_, err := wire.Node{Server: s.URL, Name: "pi", Key: newKey(t)}.Dial(t.Context())
	if status, ok := errors.AsType[*wire.StatusError](err); !ok || status.Code != http.StatusNotFound {
		t.Errorf("err = %v", err)
	}
	if _, err := (wire.Node{Server: "http://10.0.0.1", Key: newKey(t)}).Dial(t.Context()); !errors.Is(err, wire.ErrNotHTTPS) {
		t.Errorf("err = %v, want ErrPlain", err)
	}
}

func TestCheckOffer(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{}`)
	tool := func(change func(*nodes.Tool)) nodes.Offer {
		o := nodes.Tool{Name: "a", Schema: object}
		change(&o)
		return nodes.Offer{Tools: []nodes.Tool{o}}
	}
	for name, o := range map[string]nodes.Offer{
		"no name":          tool(func(t *nodes.Tool) { t.Name = "" }),
		"odd name":         tool(func(t *nodes.Tool) { t.Name = "a b" }),
		"long name":        tool(func(t *nodes.Tool) { t.Name = strings.Repeat("a", 65) }),
		"no schema":        tool(func(t *nodes.Tool) { t.Schema = nil }),
		"null":             tool(func(t *nodes.Tool) { t.Schema = json.RawMessage("null") }),
		"array":            tool(func(t *nodes.Tool) { t.Schema = json.RawMessage("[]") }),
		"long schema":      tool(func(t *nodes.Tool) { t.Schema = json.RawMessage("{" + strings.Repeat(" ", nodes.MaxSchema) + "}") }),
		"long description": tool(func(t *nodes.Tool) { t.Description = strings.Repeat("a", nodes.MaxDescription+1) }),
		"timeout":          tool(func(t *nodes.Tool) { t.Timeout = -1 }),
		"many tools":       {Tools: make([]nodes.Tool, nodes.MaxTools+1)},
		"odd capability":   {Capabilities: []string{"Camera"}},
		"many rules":       {Ask: make([]string, 65)},
		"long rule":        {Ask: []string{strings.Repeat("a", 501)}},
		"long release":     {Release: strings.Repeat("a", 101)},
	} {
		if wire.CheckOffer(o) == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := wire.CheckOffer(tool(func(*nodes.Tool) {})); err != nil {
		t.Error(err)
	}
}
