package sqldbtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// A Proxy stands between a client and PostgreSQL, and can drop the server's answers.
type Proxy struct {
	pass atomic.Int64 // how many answers the proxy lets through before it loses any
	lose atomic.Int64 // how many answers the proxy then loses
	lost atomic.Int64 // how many answers were lost
}

// NewProxy starts a proxy to the server of a URL, and returns the proxy with the URL that leads through it. The
// proxy ends with the test.
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
		wg.Wait() // clients have closed before, as cleanups run in reverse order
	})
	return p, u.String()
}

// Lose makes the proxy lose the server's next answer: it cuts the connection once the
// server has answered.
func (p *Proxy) Lose() { p.lose.Add(1) }

// LoseAfter lets that many answers through, and drops the next one.
func (p *Proxy) LoseAfter(passes int) {
	p.pass.Store(int64(passes))
	p.lose.Add(1)
}

// Lost returns how many answers were lost so far.
func (p *Proxy) Lost() int64 { return p.lost.Load() }

// serve connects one client to the server.
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
		if p.lose.Load() > 0 && endsReady(answer[:n]) && p.pass.Add(-1) < 0 && p.lose.Add(-1) >= 0 {
			p.lost.Add(1)
			return
		}
		if _, err := client.Write(answer[:n]); err != nil {
			return
		}
	}
}

// endsReady reports whether an answer ends with ReadyForQuery outside of a transaction, which means that the
// server has finished everything it was asked to do.
func endsReady(answer []byte) bool {
	const message = "Z\x00\x00\x00\x05I"
	return len(answer) >= len(message) && string(answer[len(answer)-len(message):]) == message
}
