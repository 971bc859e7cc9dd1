// Package plainhttp sends requests to servers without TLS, such as a model on the operator's own machines. While it
// waits for a response it uses only a connection and the goroutine of its caller.
//
// The transport of net/http has two goroutines and two buffers for each connection. Where thousands of responses
// are awaited, these are a quarter of all memory that the process uses, and each request switches between
// goroutines four times.
//
// plainhttp.go is the Transport, which keeps connections; conn.go sends a request over one of them and reads the
// response.
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
	// maxIdle is how many idle connections are kept.
	maxIdle = 1024
	// IdleTime is how long an idle connection is kept.
	IdleTime = 60 * time.Second
	// closedGrace is how soon a request fails if it uses a connection that its server has closed.
	closedGrace = time.Second
)

// A Transport is an http.RoundTripper. Its methods may be called at the same time.
type Transport struct {
	// Other sends the requests that a Transport does not send itself: those over TLS, those that its Proxy sends
	// through a proxy, and those to hosts whose names need to be converted.
	Other *http.Transport
	// IdleTime, if it is not 0, replaces the constant.
	IdleTime time.Duration
	// NeverRepeat says that no request is sent again, because its effect must not happen twice.
	NeverRepeat bool

	mu         sync.Mutex
	idle       []*conn     // the most recently used one is last
	sweepTimer *time.Timer // closes connections that were idle for too long; nil while there are none

	readers, writers sync.Pool // of *bufio.Reader and *bufio.Writer
}

// RoundTrip implements http.RoundTripper. A server may close an idle connection at any time. A request over such a
// connection is sent once more, over a new one, unless t.Once is set. If the server closes the connection later, it
// has worked on the request, which is then not repeated.
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
	if err == nil || t.NeverRepeat || !c.reused || !errors.Is(err, errUnanswered) || time.Since(began) > closedGrace || req.Context().Err() != nil {
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

// causeOr returns the reason why a request was canceled, or else err; nil if err is nil.
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

// repeatable returns a copy of a request to send it once more. It returns errUnanswered if the body cannot be read
// again.
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
		_ = req.Body.Close() // nothing was read from it
	}
}

// connect returns a connection to the server of a request: one that is idle, or else a new one.
func (t *Transport) connect(req *http.Request) (*conn, error) {
	address := addressOf(req)
	for c := t.takeIdle(address); c != nil; c = t.takeIdle(address) {
		if isQuiet(c.Conn) {
			return c, nil
		}
		c.close() // the server has closed it, or sent something unrequested
	}
	return t.dial(req)
}

// dial makes a new connection to the server of a request.
func (t *Transport) dial(req *http.Request) (*conn, error) {
	address := addressOf(req)
	// Dialing takes much more stack than waiting for a response, and a stack that has grown stays large, so another
	// goroutine dials.
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

// addressOf returns the host and port that a request is for.
func addressOf(req *http.Request) string {
	if req.URL.Port() != "" {
		return req.URL.Host
	}
	return net.JoinHostPort(req.URL.Hostname(), "80")
}

// takeIdle takes the most recently used connection to an address; nil if there is none.
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

// keep keeps a connection for another request, unless enough are kept already.
func (t *Transport) keep(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) >= maxIdle {
		c.close()
		return
	}
	c.reused, c.idleSince = true, time.Now()
	t.idle = append(t.idle, c)
	if t.sweepTimer == nil {
		t.sweepTimer = time.AfterFunc(t.idleTime(), t.closeOld)
	}
}

func (t *Transport) idleTime() time.Duration {
	if t.IdleTime > 0 {
		return t.IdleTime
	}
	return IdleTime
}

// closeOld closes the connections that were idle for too long, and schedules itself for when the next one will have
// been.
func (t *Transport) closeOld() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweepTimer = nil
	for i, c := range t.idle {
		if left := time.Until(c.idleSince.Add(t.idleTime())); left > 0 {
			t.idle = append(t.idle[:0:0], t.idle[i:]...)
			t.sweepTimer = time.AfterFunc(left, t.closeOld)
			return
		}
		c.close()
	}
	t.idle = nil
}

// CloseIdleConnections closes the idle connections; http.Client calls it by that name.
func (t *Transport) CloseIdleConnections() {
	t.Other.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.idle {
		c.close()
	}
	t.idle = nil
	if t.sweepTimer != nil {
		t.sweepTimer.Stop()
		t.sweepTimer = nil
	}
}

// errUnanswered is the error for a request to which not one byte was answered.
var errUnanswered = errors.New("the server closed the connection without an answer")

// errHeader is the error for a response whose header is too long.
var errHeader = fmt.Errorf("the header of the answer is larger than %d bytes", maxHeader)
