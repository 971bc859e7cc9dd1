package channels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// errLeaseLost says that a request was not sent because its process was paused and has lost the lease of the
// mailbox: another process may be sending the same message by now.
var errLeaseLost = errors.New("too late to be sent")

// LeasePatience is how long after a successful check a process may assume, without checking
// again, that it still holds the lease. It is shorter than the lease's remaining time.
const LeasePatience = 2 * time.Second

// A LeaseCheck finds out whether this process still holds the lease under which it sends. CheckedAt is the time of
// the last check; Check checks again, and fails if the lease is lost.
type LeaseCheck struct {
	CheckedAt time.Time
	Check     func(context.Context) error
}

// leaseCheckKey is the context key of a LeaseCheck.
type leaseCheckKey struct{}

// WithLeaseCheck returns a context for requests. A LeaseCheckedTransport uses r to check the lease before it sends
// such a request.
func WithLeaseCheck(ctx context.Context, r LeaseCheck) context.Context {
	return context.WithValue(ctx, leaseCheckKey{}, r)
}

// LeaseCheckedTransport wraps a transport for adapters. If the process was paused since the last check of the
// lease, another process may hold the lease by now and send the same message. So just before it sends a request, it
// checks the lease again if the last check is too old. If the lease is lost, the request fails before anything is
// sent. Requests without a body are not checked.
func LeaseCheckedTransport(next http.RoundTripper) http.RoundTripper {
	return leaseCheckedTransport{next: next}
}

// LeaseCheckedHTTP1 is LeaseCheckedTransport for a transport that uses only HTTP/1, where each request has a
// connection to itself. Headers and body are then written together, which takes half as many writes.
func LeaseCheckedHTTP1(next http.RoundTripper) http.RoundTripper {
	return leaseCheckedTransport{next: next, ownConnections: true}
}

type leaseCheckedTransport struct {
	next           http.RoundTripper
	ownConnections bool // whether each request has a connection to itself
}

// RoundTrip implements http.RoundTripper: it checks the lease and sends the request.
func (p leaseCheckedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	check, bound := req.Context().Value(leaseCheckKey{}).(LeaseCheck)
	switch {
	case !bound || req.Body == nil:
		return p.next.RoundTrip(req)
	case p.ownConnections:
		return p.checkConnection(req, check)
	}
	return p.checkBody(req, check)
}

// checkConnection sends a request, and checks the lease when net/http composes the first header field, before
// anything is written. If the lease is lost, it closes the connection, so that nothing can be written. Unlike with
// checkBody, net/http knows the body's type, so it writes headers and body together, in half as many writes.
func (p leaseCheckedTransport) checkConnection(req *http.Request, check LeaseCheck) (*http.Response, error) {
	ctx := req.Context()
	var mu sync.Mutex
	var unchecked net.Conn // the connection in use, until the lease has been checked for it
	var lost error
	resp, err := p.next.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			unchecked = got.Conn
		},
		WroteHeaderField: func(string, []string) {
			mu.Lock()
			defer mu.Unlock()
			if unchecked == nil {
				return
			}
			if err := check.askIfLate(ctx); err != nil {
				lost = err
				_ = unchecked.Close() // nobody else uses it
			}
			unchecked = nil
		},
	})))
	if err == nil {
		return resp, nil
	}
	mu.Lock()
	defer mu.Unlock()
	return nil, cmp.Or(lost, err)
}

// checkBody sends a request whose body checks the lease when it is read.
func (p leaseCheckedTransport) checkBody(req *http.Request, r LeaseCheck) (*http.Response, error) {
	ctx := req.Context()
	late := req.Clone(ctx)
	late.Body = &leaseCheckedBody{req.Body, ctx, r}
	if again := req.GetBody; again != nil {
		late.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return &leaseCheckedBody{body, ctx, r}, nil
		}
	}
	return p.next.RoundTrip(late)
}

// askIfLate checks the lease if the last check is too old. It returns an error if the lease is lost.
func (c *LeaseCheck) askIfLate(ctx context.Context) error {
	now := time.Now()
	if now.Sub(c.CheckedAt) <= LeasePatience {
		return nil
	}
	if err := c.Check(ctx); err != nil {
		return fmt.Errorf("%w: %w", errLeaseLost, err)
	}
	c.CheckedAt = now
	return nil
}

// CloseIdleConnections closes the idle connections of the wrapped transport; http.Client
// looks for this method.
func (p leaseCheckedTransport) CloseIdleConnections() {
	(&http.Client{Transport: p.next}).CloseIdleConnections()
}

// A leaseCheckedBody checks the lease when net/http reads it. If that read fails, the platform has received at most
// the headers, and so nothing to act on.
type leaseCheckedBody struct {
	io.ReadCloser
	ctx   context.Context // the context of the request whose body this is
	check LeaseCheck
}

// Read implements io.Reader: it checks the lease if the last check is too old, then reads the body.
func (b *leaseCheckedBody) Read(into []byte) (int, error) {
	if err := b.check.askIfLate(b.ctx); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(into)
}

// FaultOf returns a channel's error as a SendError. A request that was not sent because the lease was lost has the
// fault Retry; any other error becomes Unknown.
func FaultOf(err error) *SendError {
	if errors.Is(err, errLeaseLost) {
		return &SendError{Fault: Retry, Code: "late", Err: errLeaseLost}
	}
	if fault, ok := errors.AsType[*SendError](err); ok {
		return fault
	}
	return &SendError{Fault: Unknown, Err: err}
}
