package channels

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/tools/plainhttp"
)

// countingHTTP1 returns a transport in which each request has a connection to itself. It counts the writes to
// these connections in writes.
func countingHTTP1(writes *atomic.Int64) *http.Transport {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(true)
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return countingConn{conn, writes}, err
	}
	return t
}

type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func TestARequestIsNotSentAfterItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	for name, transport := range map[string]http.RoundTripper{
		"shared connections":             LeaseCheckedTransport(&http.Transport{}),
		"a connection each":              LeaseCheckedHTTP1(countingHTTP1(new(atomic.Int64))),
		"a connection each, without TLS": LeaseCheckedHTTP1(&plainhttp.Transport{Other: &http.Transport{}}),
		"the same, once":                 LeaseCheckedHTTP1(&plainhttp.Transport{Other: &http.Transport{}, NeverRepeat: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLateRequests(t, transport)
		})
	}
}

func testLateRequests(t *testing.T, transport http.RoundTripper) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(body))
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	held, fenced := func(context.Context) error { return nil }, func(context.Context) error { return bus.ErrFenced }
	long := time.Now().Add(-time.Hour)
	for _, c := range []struct {
		name  string
		right LeaseCheck
		late  bool
	}{
		{"lost, on a new connection", LeaseCheck{long, fenced}, true},
		{"just asked", LeaseCheck{time.Now().Add(time.Hour), fenced}, false},
		{"still held", LeaseCheck{long, held}, false},
		{"lost", LeaseCheck{long, fenced}, true},
		{"still held, afterwards", LeaseCheck{long, held}, false},
	} {
		req, err := http.NewRequestWithContext(WithLeaseCheck(t.Context(), c.right), http.MethodPost, server.URL, strings.NewReader(c.name))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body) // so that the connection is reused
			resp.Body.Close()
		}
		if late := errors.Is(err, errLeaseLost) && errors.Is(err, bus.ErrFenced); late != c.late || !c.late && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if fault := FaultOf(err); c.late && fault.Fault != Retry {
			t.Errorf("%s: %v, want it tried again", c.name, fault)
		}
	}
	server.Close() // waits for the requests in progress
	if all := strings.Join(got, "|"); all != "just asked|still held|still held, afterwards" {
		t.Errorf("the server got %q", all)
	}
}

// A request that checks its lease is sent in one write, and so in one packet.
func TestARequestWithALeaseIsOneWrite(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	var writes atomic.Int64
	client := &http.Client{Transport: LeaseCheckedHTTP1(countingHTTP1(&writes))}
	defer client.CloseIdleConnections()
	ctx := WithLeaseCheck(t.Context(), LeaseCheck{time.Now().Add(time.Hour), func(context.Context) error { return nil }})
	for range 3 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if n := writes.Load(); n != 3 {
		t.Errorf("%d writes for 3 requests", n)
	}
}
