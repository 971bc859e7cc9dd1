// Package plainhttp sends requests to servers that are asked without TLS, such as a model's on the
// operator's own machines. While an answer is awaited it holds a connection and the goroutine of
// its caller, and nothing else.
//
// The transport of net/http has two goroutines and two buffers for each connection. Where
// thousands of answers are awaited, these are a quarter of all memory that the process takes, and
// each request wakes one goroutine by way of another four times.
//
// plainhttp.go is the Transport, which keeps connections; conn.go sends a request over one of them
// and reads the answer.
package plainhttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// maxIdle is how many connections are kept that nobody uses.
	maxIdle = 1024
	// IdleTime is how long such a connection is kept.
	IdleTime = 60 * time.Second
	// closedWithin is how soon a request fails that meets a connection which its server has closed.
	closedWithin = time.Second
)

// A Transport is an http.RoundTripper. Its methods may be called at the same time.
type Transport struct {
	// Other makes the requests that are not for a Transport: those over TLS, those that its Proxy
	// sends through a proxy, and those to hosts whose names need a translation.
	Other *http.Transport
	// IdleTime, if it is not 0, takes the place of the constant.
	IdleTime time.Duration
	// Once says that no request is sent again: what they do is not to be done twice.
	Once bool

	mu    sync.Mutex
	idle  []*conn     // the one that was used last comes last
	sweep *time.Timer // closes those that were idle for too long; nil while there are none

	readers, writers sync.Pool // of *bufio.Reader and *bufio.Writer
}

// RoundTrip implements http.RoundTripper. A server may close a connection at any time that nobody
// uses. A request that meets such a connection is sent again, once, over a new one, unless t.Once is
// set. Whoever closes it later has worked on the request, which is then not repeated.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	direct, err := t.isDirect(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if !direct {
		return t.Other.RoundTrip(req)
	}
	c, err := t.connect(req)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	began := time.Now()
	resp, err := c.send(req)
	if err == nil || t.Once || !c.used || !errors.Is(err, errUnanswered) || time.Since(began) > closedWithin || req.Context().Err() != nil {
		return resp, causeOr(req, err)
	}
	if req, err = repeatable(req); err != nil {
		return nil, err
	}
	if c, err = t.dial(req); err != nil {
		closeBody(req)
		return nil, causeOr(req, err)
	}
	resp, err = c.send(req)
	return resp, causeOr(req, err)
}

// causeOr returns why a request was cancelled, or else err; nil if err is.
func causeOr(req *http.Request, err error) error {
	if cause := context.Cause(req.Context()); err != nil && cause != nil {
		return cause
	}
	return err
}

// isDirect reports whether a request goes to its server without TLS and without a proxy.
func (t *Transport) isDirect(req *http.Request) (bool, error) {
	if req.URL.Scheme != "http" || strings.ContainsFunc(req.URL.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return false, nil
	}
	if t.Other.Proxy == nil {
		return true, nil
	}
	proxy, err := t.Other.Proxy(req)
	return proxy == nil, err
}

// repeatable returns a request that can be sent once more.
func repeatable(req *http.Request) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	if req.GetBody == nil {
		return nil, errUnanswered
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, fmt.Errorf("send the request again: %w", err)
	}
	fresh := *req
	fresh.Body = body
	return &fresh, nil
}

// closeBody closes the body of a request that is not sent.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // nothing was read of it
	}
}

// connect returns a connection to the server of a request: one that is idle, or else a new one.
func (t *Transport) connect(req *http.Request) (*conn, error) {
	address := addressOf(req)
	for c := t.takeIdle(address); c != nil; c = t.takeIdle(address) {
		if isQuiet(c.Conn) {
			return c, nil
		}
		c.close() // by the server, or it has sent what nobody had asked for
	}
	return t.dial(req)
}

// dial makes a new connection to the server of a request.
func (t *Transport) dial(req *http.Request) (*conn, error) {
	address := addressOf(req)
	// To dial takes much more of a stack than to wait for an answer, and stacks stay as large as they were.
	var dialed net.Conn
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		dialed, err = (&net.Dialer{}).DialContext(req.Context(), "tcp", address)
	}()
	<-done
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &conn{Conn: dialed, t: t, address: address}, nil
}

// addressOf returns the host and the port that a request is for.
func addressOf(req *http.Request) string {
	if req.URL.Port() != "" {
		return req.URL.Host
	}
	return net.JoinHostPort(req.URL.Hostname(), "80")
}

// takeIdle takes the connection to an address that was used last; nil if there is none.
func (t *Transport) takeIdle(address string) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.idle) - 1; i >= 0; i-- {
		if c := t.idle[i]; c.address == address {
			copy(t.idle[i:], t.idle[i+1:])
			t.idle[len(t.idle)-1] = nil
			t.idle = t.idle[:len(t.idle)-1]
			return c
		}
	}
	return nil
}

// keep keeps a connection for another request, unless enough are kept.
func (t *Transport) keep(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) >= maxIdle {
		c.close()
		return
	}
	c.used, c.rested = true, time.Now()
	t.idle = append(t.idle, c)
	if t.sweep == nil {
		t.sweep = time.AfterFunc(t.idleTime(), t.closeOld)
	}
}

func (t *Transport) idleTime() time.Duration {
	if t.IdleTime > 0 {
		return t.IdleTime
	}
	return IdleTime
}

// closeOld closes the connections that were idle for too long, and calls itself again when the
// next one will have been.
func (t *Transport) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep = nil
	for i, c := range t.idle {
		if left := time.Until(c.rested.Add(t.idleTime())); left > 0 {
			t.idle = append(t.idle[:0:0], t.idle[i:]...)
			t.sweep = time.AfterFunc(left, t.closeOld)
			return
		}
		c.close()
	}
	t.idle = nil
}

// CloseIdleConnections closes the connections that nobody uses; http.Client calls it by that name.
func (t *Transport) CloseIdleConnections() {
	t.Other.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.idle {
		c.close()
	}
	t.idle = nil
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
}

// errUnanswered is the error of a request to which not one byte was answered.
var errUnanswered = errors.New("the server closed the connection without an answer")

// errHeader is the error of an answer whose header is too long.
var errHeader = fmt.Errorf("the header of the answer has more than %d bytes", maxHeader)
