package tunnel_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/mqtt/mqtttest"
	"parley/tools/nodes/tunnel"
)

const waitLimit = 20 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitUntil waits until a condition is true.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(waitLimit); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// A testBroker is a broker, with a man in the middle before the node, and the keys of both ends.
type testBroker struct {
	t            *testing.T
	broker       *mqtttest.Broker
	middle       *mqtttest.Middle
	node, server ed25519.PrivateKey
}

func newTestBroker(t *testing.T, more ...string) *testBroker {
	t.Helper()
	t.Parallel()
	b := mqtttest.New(t, more...)
	w := &testBroker{t: t, broker: b, middle: mqtttest.NewMiddle(b)}
	for _, key := range []*ed25519.PrivateKey{&w.node, &w.server} {
		var err error
		_, *key, err = ed25519.GenerateKey(rand.Reader)
		must(t, err)
	}
	return w
}

func publicKey(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// listen starts a server that answers with the data that it reads.
func (w *testBroker) listen() *tunnel.Listener {
	t := w.t
	t.Helper()
	l, err := tunnel.Place{Broker: mqtt.Server{URL: w.broker.URL()}, Prefix: "test/parley"}.Listen(t.Context(), w.server)
	must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if peer := c.(*tunnel.Conn); peer.Node() != "pi" || !peer.Key().Equal(publicKey(w.node)) {
				t.Errorf("a node called %s has another key", peer.Node())
			}
			serving.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c) // it ends with the connection
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return l
}

func (w *testBroker) asNode() tunnel.Node {
	return tunnel.Node{Place: tunnel.Place{Broker: mqtt.Server{URL: w.middle.URL()}, Prefix: "test/parley"}, Name: "pi", Key: w.node, Knows: tunnel.MatchesKey(publicKey(w.server))}
}

// dial opens a connection.
func (w *testBroker) dial() net.Conn {
	w.t.Helper()
	c, err := w.asNode().Dial(w.t.Context())
	must(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	return c
}

// echo writes a text, and returns the server's answer.
func echo(c net.Conn, text []byte) ([]byte, error) { return echoIn(c, text, waitLimit) }

func echoIn(c net.Conn, text []byte, limit time.Duration) ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := c.Write(text)
		wrote <- err
	}()
	back := make([]byte, len(text))
	n, err := io.ReadFull(c, back)
	return back[:n], errors.Join(err, <-wrote)
}

func wantEcho(t *testing.T, c net.Conn, text []byte) {
	t.Helper()
	if back, err := echo(c, text); err != nil || !bytes.Equal(back, text) {
		t.Errorf("%d of %d bytes came back, %v", len(back), len(text), err)
	}
}

// Data of any size arrives, and nobody else can read it.
func TestConnectionsArePrivate(t *testing.T) {
	w := newTestBroker(t)
	var mu sync.Mutex
	var heard [][]byte
	w.broker.Client(func(_ string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, payload)
	}, "#")
	w.listen()
	c, other := w.dial(), w.dial()
	secret := bytes.Repeat([]byte("nobody may read this. "), 100_000)
	wantEcho(t, c, secret)
	wantEcho(t, other, secret[:10])
	wantEcho(t, c, secret[:1])
	mu.Lock()
	defer mu.Unlock()
	if len(heard) < 2*len(secret)/(17<<10) {
		t.Errorf("only %d packets were heard", len(heard))
	}
	for _, packet := range heard {
		if bytes.Contains(packet, []byte("nobody may")) || bytes.Contains(packet, publicKey(w.node)) || len(packet) > 17<<10 {
			t.Fatalf("a packet of %d bytes says %q", len(packet), packet)
		}
	}
}

// The man in the middle changes packets that the server sends after the connection is open: he can only end the
// connection.
func TestAHostileBrokerCanOnlyCut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n int, packet []byte, before [][]byte) [][]byte // changes the n-th packet, from 0
		goesOn bool
		waits  time.Duration
	}{
		"repeats each":      {goesOn: true, change: func(_ int, p []byte, _ [][]byte) [][]byte { return [][]byte{p, p} }},
		"repeats all":       {goesOn: true, change: func(_ int, p []byte, before [][]byte) [][]byte { return append([][]byte{p}, before...) }},
		"drops the first":   {change: func(n int, p []byte, _ [][]byte) [][]byte { return keepIf(n > 0, p) }},
		"drops the second":  {change: func(n int, p []byte, _ [][]byte) [][]byte { return keepIf(n != 1, p) }},
		"swaps two":         {change: swapPackets},
		"changes a byte":    {change: func(n int, p []byte, _ [][]byte) [][]byte { return changeIf(n == 1, p, len(p)-1, 1) }},
		"changes a number":  {change: func(n int, p []byte, _ [][]byte) [][]byte { return changeIf(n == 1, p, 25, 1) }},
		"cuts one short":    {change: func(n int, p []byte, _ [][]byte) [][]byte { return [][]byte{p[:len(p)-min(n, 1)]} }},
		"renumbers another": {change: renumberPackets},
		"forges what was read": {change: func(n int, p []byte, _ [][]byte) [][]byte {
			return changeIf(n == 1, p, 26, 1)
		}},
		"adds one of its own": {change: func(n int, p []byte, _ [][]byte) [][]byte {
			own := changeIf(true, p, 25, 1)[0]
			return [][]byte{p, append(own[:34:34], "run this, please"...)}
		}},
		"says nothing but noise": {waits: time.Second, change: func(_ int, p []byte, _ [][]byte) [][]byte { return [][]byte{bytes.Repeat([]byte{1}, len(p))} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestBroker(t)
			w.listen()
			conn := w.dial()
			wantEcho(t, conn, []byte("before"))
			var before [][]byte
			w.middle.Change(func(topic string, p []byte) [][]byte {
				if topic != "test/parley/nodes/pi/down" || p[1] != 1 { // not a packet with content
					return [][]byte{p}
				}
				n := len(before)
				before = append(before, bytes.Clone(p))
				return c.change(n, p, before)
			})
			text := bytes.Repeat([]byte("0123456789"), 10_000)
			back, err := echoIn(conn, text, cmp.Or(c.waits, waitLimit))
			if !bytes.HasPrefix(text, back) {
				t.Error("something came that was not said")
			}
			if c.goesOn {
				wantEcho(t, conn, text)
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Errorf("%d of %d bytes came, %v", len(back), len(text), err)
			}
			w.middle.Change(nil)
			wantEcho(t, w.dial(), text) // the next connection works
		})
	}
}

func keepIf(yes bool, p []byte) [][]byte {
	if yes {
		return [][]byte{p}
	}
	return nil
}

func changeIf(yes bool, p []byte, at int, by byte) [][]byte {
	p = bytes.Clone(p)
	if yes {
		p[at] += by
	}
	return [][]byte{p}
}

func swapPackets(n int, p []byte, before [][]byte) [][]byte {
	switch n {
	case 0:
		return nil
	case 1:
		return [][]byte{p, before[0]}
	}
	return [][]byte{p}
}

// renumberPackets passes the content of the first packet off as that of the second.
func renumberPackets(n int, p []byte, before [][]byte) [][]byte {
	if n != 1 {
		return [][]byte{p}
	}
	return [][]byte{append(bytes.Clone(p[:34]), before[0][34:]...)}
}

// All packets of a connection are published again later, by an attacker who may publish at the broker: to the server,
// which must not take them for the node's, and to the node, while it has another connection.
func TestReplayedPacketsAreRejected(t *testing.T) {
	w := newTestBroker(t)
	type said struct {
		topic   string
		payload []byte
	}
	var mu sync.Mutex
	var all []said
	attacker := w.broker.Client(func(topic string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, said{topic, payload})
	}, "test/parley/nodes/#")
	var accepted sync.Map
	l, err := tunnel.Place{Broker: mqtt.Server{URL: w.broker.URL()}, Prefix: "test/parley"}.Listen(t.Context(), w.server)
	must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Store(c, true)
			serving.Go(func() { defer c.Close(); _, _ = io.Copy(c, c) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	yesterday := w.dial()
	wantEcho(t, yesterday, []byte("open the door"))
	yesterday.Close()
	today := w.dial()
	wantEcho(t, today, []byte("good morning"))
	mu.Lock()
	again := all
	mu.Unlock()
	for range 3 {
		for _, one := range again {
			w.broker.Publish(attacker, one.topic, false, one.payload)
		}
	}
	wantEcho(t, today, []byte("still here"))
	n := 0
	accepted.Range(func(any, any) bool { n++; return true })
	if n != 2 {
		t.Errorf("%d connections were accepted", n)
	}
}

// A node detects a server without the right key, and a server can see that a node's key is not the expected one.
func TestOnlyTheServerAnswers(t *testing.T) {
	w := newTestBroker(t)
	w.listen()
	n := w.asNode()
	n.Knows = tunnel.MatchesKey(publicKey(w.node))
	if c, err := n.Dial(t.Context()); !errors.Is(err, tunnel.ErrOtherServer) {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	w := newTestBroker(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if c, err := w.asNode().Dial(ctx); !errors.Is(err, tunnel.ErrNoAnswer) {
		t.Errorf("got %v, %v", c, err)
	}
}

// An end that is gone is noticed, although nobody reads or writes: the other end, the server's process and the broker.
func TestAnEndIsGone(t *testing.T) {
	ends := map[string]func(w *testBroker, c net.Conn, l *tunnel.Listener){
		"the server": func(_ *testBroker, _ net.Conn, l *tunnel.Listener) { l.Close() },
		"the broker": func(w *testBroker, _ net.Conn, _ *tunnel.Listener) { w.broker.Kill() },
		"the line":   func(w *testBroker, _ net.Conn, _ *tunnel.Listener) { w.middle.Cut() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			w := newTestBroker(t)
			l := w.listen()
			c := w.dial()
			wantEcho(t, c, []byte("here"))
			must(t, c.SetDeadline(time.Now().Add(waitLimit)))
			end(w, c, l)
			if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Errorf("it reads, %v", err)
			}
		})
	}
}

func isTimeout(err error) bool {
	failed, ok := errors.AsType[net.Error](err)
	return ok && failed.Timeout()
}

// The server notices that a node is gone: one that has ended the connection, and one that has lost its line.
func TestTheNodeIsGone(t *testing.T) {
	for name, end := range map[string]func(w *testBroker, c net.Conn){
		"it says so":       func(_ *testBroker, c net.Conn) { c.Close() },
		"its line is gone": func(w *testBroker, _ net.Conn) { w.middle.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestBroker(t)
			l, err := tunnel.Place{Broker: mqtt.Server{URL: w.broker.URL()}, Prefix: "test/parley"}.Listen(t.Context(), w.server)
			must(t, err)
			defer l.Close()
			came := make(chan net.Conn, 1)
			go func() {
				if c, err := l.Accept(); err == nil {
					came <- c
				}
			}()
			c := w.dial()
			there := <-came
			defer there.Close()
			_, err = c.Write([]byte("last words"))
			must(t, err)
			must(t, there.SetDeadline(time.Now().Add(waitLimit)))
			got := make([]byte, 10)
			_, err = io.ReadFull(there, got)
			must(t, err)
			end(w, c)
			if _, err := there.Read(got); err == nil || isTimeout(err) {
				t.Errorf("it reads, %v", err)
			}
		})
	}
}

// The broker is killed and started again: the server and the node find each other without being restarted.
func TestTheBrokerIsBack(t *testing.T) {
	w := newTestBroker(t)
	l := w.listen()
	c := w.dial()
	w.broker.Kill()
	<-l.Lost()
	if _, err := echo(c, []byte("x")); err == nil {
		t.Error("the connection goes on without a broker")
	}
	w.broker.Restart()
	w.listen()
	wantEcho(t, w.dial(), []byte("here again"))
}

// Data that was written before Close still arrives. A reader that stops holds back the writer, but not the broker.
func TestCloseAndDeadlines(t *testing.T) {
	w := newTestBroker(t)
	l, err := tunnel.Place{Broker: mqtt.Server{URL: w.broker.URL()}, Prefix: "test/parley"}.Listen(t.Context(), w.server)
	must(t, err)
	defer l.Close()
	came := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			came <- c
		}
	}()
	c := w.dial()
	there := <-came
	must(t, c.SetReadDeadline(time.Now().Add(20*time.Millisecond)))
	if _, err := c.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("the read ended with %v", err)
	}
	must(t, c.SetReadDeadline(time.Time{}))
	text := bytes.Repeat([]byte("x"), 200_000)
	_, err = there.Write(text)
	must(t, err)
	must(t, there.Close())
	got, err := io.ReadAll(c)
	if !bytes.Equal(got, text) || err != nil {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	waitUntil(t, "writes fail", func() bool { _, err := c.Write([]byte("x")); return err != nil })
}

// A writer whose other end reads nothing waits until its deadline.
func TestAReaderStandsStill(t *testing.T) {
	w := newTestBroker(t)
	l, err := tunnel.Place{Broker: mqtt.Server{URL: w.broker.URL()}, Prefix: "test/parley"}.Listen(t.Context(), w.server)
	must(t, err)
	defer l.Close()
	came := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			came <- c
		}
	}()
	c := w.dial()
	there := <-came
	defer there.Close()
	must(t, c.SetWriteDeadline(time.Now().Add(300*time.Millisecond)))
	n, err := c.Write(make([]byte, 4<<20))
	if !isTimeout(err) || n > 1<<20 {
		t.Errorf("%d bytes were written, %v", n, err)
	}
}
