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

const patience = 20 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until something is true.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// A world is a broker, with a man in the middle before the node, and the keys of both ends.
type world struct {
	t            *testing.T
	broker       *mqtttest.Broker
	middle       *mqtttest.Middle
	node, server ed25519.PrivateKey
}

func newWorld(t *testing.T, more ...string) *world {
	t.Helper()
	t.Parallel()
	b := mqtttest.New(t, more...)
	w := &world{t: t, broker: b, middle: mqtttest.NewMiddle(b)}
	for _, key := range []*ed25519.PrivateKey{&w.node, &w.server} {
		var err error
		_, *key, err = ed25519.GenerateKey(rand.Reader)
		must(t, err)
	}
	return w
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// listen has a server listen, which answers what it reads with the same.
func (w *world) listen() *tunnel.Listener {
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
			if peer := c.(*tunnel.Conn); peer.Node() != "pi" || !peer.Key().Equal(public(w.node)) {
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

func (w *world) asNode() tunnel.Node {
	return tunnel.Node{Place: tunnel.Place{Broker: mqtt.Server{URL: w.middle.URL()}, Prefix: "test/parley"}, Name: "pi", Key: w.node, Knows: tunnel.Is(public(w.server))}
}

// dial opens a connection.
func (w *world) dial() net.Conn {
	w.t.Helper()
	c, err := w.asNode().Dial(w.t.Context())
	must(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	return c
}

// echo says something, and returns what comes back.
func echo(c net.Conn, text []byte) ([]byte, error) { return echoIn(c, text, patience) }

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

func wantsEcho(t *testing.T, c net.Conn, text []byte) {
	t.Helper()
	if back, err := echo(c, text); err != nil || !bytes.Equal(back, text) {
		t.Errorf("%d of %d bytes came back, %v", len(back), len(text), err)
	}
}

// What is said comes through, however much it is, and nobody else can read it.
func TestNobodyListensIn(t *testing.T) {
	w := newWorld(t)
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
	wantsEcho(t, c, secret)
	wantsEcho(t, other, secret[:10])
	wantsEcho(t, c, secret[:1])
	mu.Lock()
	defer mu.Unlock()
	if len(heard) < 2*len(secret)/(17<<10) {
		t.Errorf("only %d packets were heard", len(heard))
	}
	for _, packet := range heard {
		if bytes.Contains(packet, []byte("nobody may")) || bytes.Contains(packet, public(w.node)) || len(packet) > 17<<10 {
			t.Fatalf("a packet of %d bytes says %q", len(packet), packet)
		}
	}
}

// What the man in the middle can do with the packets that the server sends after the connection is open.
func TestAHostileBrokerCanOnlyCut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n int, packet []byte, before [][]byte) [][]byte // of the n-th packet, from 0
		goesOn bool
		waits  time.Duration
	}{
		"repeats each":      {goesOn: true, change: func(_ int, p []byte, _ [][]byte) [][]byte { return [][]byte{p, p} }},
		"repeats all":       {goesOn: true, change: func(_ int, p []byte, before [][]byte) [][]byte { return append([][]byte{p}, before...) }},
		"drops the first":   {change: func(n int, p []byte, _ [][]byte) [][]byte { return only(n > 0, p) }},
		"drops the second":  {change: func(n int, p []byte, _ [][]byte) [][]byte { return only(n != 1, p) }},
		"swaps two":         {change: swaps},
		"changes a byte":    {change: func(n int, p []byte, _ [][]byte) [][]byte { return changed(n == 1, p, len(p)-1, 1) }},
		"changes a number":  {change: func(n int, p []byte, _ [][]byte) [][]byte { return changed(n == 1, p, 25, 1) }},
		"cuts one short":    {change: func(n int, p []byte, _ [][]byte) [][]byte { return [][]byte{p[:len(p)-min(n, 1)]} }},
		"renumbers another": {change: renumbers},
		"forges what was read": {change: func(n int, p []byte, _ [][]byte) [][]byte {
			return changed(n == 1, p, 26, 1)
		}},
		"adds one of its own": {change: func(n int, p []byte, _ [][]byte) [][]byte {
			own := changed(true, p, 25, 1)[0]
			return [][]byte{p, append(own[:34:34], "run this, please"...)}
		}},
		"says nothing but noise": {waits: time.Second, change: func(_ int, p []byte, _ [][]byte) [][]byte { return [][]byte{bytes.Repeat([]byte{1}, len(p))} }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.listen()
			conn := w.dial()
			wantsEcho(t, conn, []byte("before"))
			var before [][]byte
			w.middle.Change(func(topic string, p []byte) [][]byte {
				if topic != "test/parley/nodes/pi/down" || p[1] != 1 { // that is no content
					return [][]byte{p}
				}
				n := len(before)
				before = append(before, bytes.Clone(p))
				return c.change(n, p, before)
			})
			text := bytes.Repeat([]byte("0123456789"), 10_000)
			back, err := echoIn(conn, text, cmp.Or(c.waits, patience))
			if !bytes.HasPrefix(text, back) {
				t.Error("something came that was not said")
			}
			if c.goesOn {
				wantsEcho(t, conn, text)
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Errorf("%d of %d bytes came, %v", len(back), len(text), err)
			}
			w.middle.Change(nil)
			wantsEcho(t, w.dial(), text) // the next connection is as good as ever
		})
	}
}

func only(yes bool, p []byte) [][]byte {
	if yes {
		return [][]byte{p}
	}
	return nil
}

func changed(yes bool, p []byte, at int, by byte) [][]byte {
	p = bytes.Clone(p)
	if yes {
		p[at] += by
	}
	return [][]byte{p}
}

func swaps(n int, p []byte, before [][]byte) [][]byte {
	switch n {
	case 0:
		return nil
	case 1:
		return [][]byte{p, before[0]}
	}
	return [][]byte{p}
}

// renumbers passes the content of the first packet for that of the second.
func renumbers(n int, p []byte, before [][]byte) [][]byte {
	if n != 1 {
		return [][]byte{p}
	}
	return [][]byte{append(bytes.Clone(p[:34]), before[0][34:]...)}
}

// All that a connection has said is said again later, by somebody who may publish at the broker: to the server, which must
// not take it for the node, and to the node, while it has another connection.
func TestYesterdayIsRepeated(t *testing.T) {
	w := newWorld(t)
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
	wantsEcho(t, yesterday, []byte("open the door"))
	yesterday.Close()
	today := w.dial()
	wantsEcho(t, today, []byte("good morning"))
	mu.Lock()
	again := all
	mu.Unlock()
	for range 3 {
		for _, one := range again {
			w.broker.Publish(attacker, one.topic, false, one.payload)
		}
	}
	wantsEcho(t, today, []byte("still here"))
	n := 0
	accepted.Range(func(any, any) bool { n++; return true })
	if n != 2 {
		t.Errorf("%d connections were accepted", n)
	}
}

// A server without the key that the node knows is found out, and a node whose key is not the expected one can be.
func TestOnlyTheServerAnswers(t *testing.T) {
	w := newWorld(t)
	w.listen()
	n := w.asNode()
	n.Knows = tunnel.Is(public(w.node))
	if c, err := n.Dial(t.Context()); !errors.Is(err, tunnel.ErrOtherServer) {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if c, err := w.asNode().Dial(ctx); !errors.Is(err, tunnel.ErrNobody) {
		t.Errorf("got %v, %v", c, err)
	}
}

// Whoever is gone is known to be gone, although nobody reads or writes: the other end, the server's process and the broker.
func TestAnEndIsGone(t *testing.T) {
	ends := map[string]func(w *world, c net.Conn, l *tunnel.Listener){
		"the server": func(_ *world, _ net.Conn, l *tunnel.Listener) { l.Close() },
		"the broker": func(w *world, _ net.Conn, _ *tunnel.Listener) { w.broker.Kill() },
		"the line":   func(w *world, _ net.Conn, _ *tunnel.Listener) { w.middle.Cut() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			l := w.listen()
			c := w.dial()
			wantsEcho(t, c, []byte("here"))
			must(t, c.SetDeadline(time.Now().Add(patience)))
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

// The server hears that a node is gone: one that has ended the connection, and one whose line has ended.
func TestTheNodeIsGone(t *testing.T) {
	for name, end := range map[string]func(w *world, c net.Conn){
		"it says so":       func(_ *world, c net.Conn) { c.Close() },
		"its line is gone": func(w *world, _ net.Conn) { w.middle.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
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
			must(t, there.SetDeadline(time.Now().Add(patience)))
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

// The broker is killed and started again: the server and the node find each other without being started again.
func TestTheBrokerIsBack(t *testing.T) {
	w := newWorld(t)
	l := w.listen()
	c := w.dial()
	w.broker.Kill()
	<-l.Lost()
	if _, err := echo(c, []byte("x")); err == nil {
		t.Error("the connection goes on without a broker")
	}
	w.broker.Restart()
	w.listen()
	wantsEcho(t, w.dial(), []byte("here again"))
}

// What was written before Close still comes, and a reader that stands still holds the writer back, not the broker.
func TestCloseAndDeadlines(t *testing.T) {
	w := newWorld(t)
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
	until(t, "writes fail", func() bool { _, err := c.Write([]byte("x")); return err != nil })
}

// A writer whose other end reads nothing waits, and gets no further than its deadline.
func TestAReaderStandsStill(t *testing.T) {
	w := newWorld(t)
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
