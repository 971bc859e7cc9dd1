package sqldbtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// A Proxy stands between a client and PostgreSQL, and can lose answers.
type Proxy struct {
	pass atomic.Int64 // answers to let through before
	lose atomic.Int64
	lost atomic.Int64
}

// NewProxy starts a proxy before the server of that URL, until the test ends, and
// returns its own URL with it.
func NewProxy(t testing.TB, place string) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = listener.Addr().String()
	p := &Proxy{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(client, server) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait() // whoever is connected has left before: cleanups run last in, first out
	})
	return p, u.String()
}

// Lose makes the server's next answer get lost: the connection is cut once the
// server has answered. Until then it goes on as if nothing were wrong.
func (p *Proxy) Lose() { p.lose.Add(1) }

// LoseAfter does so with the one that comes after as many as passes.
func (p *Proxy) LoseAfter(passes int) {
	p.pass.Store(int64(passes))
	p.lose.Add(1)
}

// Lost is how many answers were lost so far.
func (p *Proxy) Lost() int64 { return p.lost.Load() }

func (p *Proxy) serve(client net.Conn, server string) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer upstream.Close()
		_, _ = io.Copy(upstream, client) // ends with either of them
	})
	defer wg.Wait()
	defer client.Close()
	answer := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(answer)
		if err != nil {
			return
		}
		if p.lose.Load() > 0 && ready(answer[:n]) && p.pass.Add(-1) < 0 && p.lose.Add(-1) >= 0 {
			p.lost.Add(1)
			return
		}
		if _, err := client.Write(answer[:n]); err != nil {
			return
		}
	}
}

// ready tells whether an answer ends with the server's being idle: whatever it was
// asked, it has done, and it is in no transaction.
func ready(answer []byte) bool {
	const message = "Z\x00\x00\x00\x05I"
	return len(answer) >= len(message) && string(answer[len(answer)-len(message):]) == message
}
