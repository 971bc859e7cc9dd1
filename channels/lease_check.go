package channels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// errLeaseLost says that a request was not sent because its process was paused and has lost the
// lease of the mailbox meanwhile: another process may be sending the same message by now.
var errLeaseLost = errors.New("too late to be sent")

// LeasePatience is how long after a successful check a process may assume, without asking again,
// that it still holds the lease: less than the time that the lease then has left.
const LeasePatience = 2 * time.Second

// A LeaseCheck finds out whether this process still holds the lease under which it sends:
// Asked is the time of the last check, and Ask checks again and fails if the lease is gone.
type LeaseCheck struct {
	Asked time.Time
	Ask   func(context.Context) error
}

// leaseCheckKey is the context key of a LeaseCheck.
type leaseCheckKey struct{}

// WithLeaseCheck returns a context for requests: a LeaseCheckedTransport checks the lease
// before it sends a request that was made with it.
func WithLeaseCheck(ctx context.Context, r LeaseCheck) context.Context {
	return context.WithValue(ctx, leaseCheckKey{}, r)
}

// LeaseCheckedTransport wraps a transport for adapters. Just before it sends a request's
// body it checks the lease again if the process was paused since the last check, because by
// now another process may hold the lease and send the same message. If the lease is gone,
// the request fails before anything was sent.
func LeaseCheckedTransport(next http.RoundTripper) http.RoundTripper {
	return leaseCheckedTransport{next}
}

type leaseCheckedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper: it sends the request with a body that checks the
// lease when it is read.
func (p leaseCheckedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	r, bound := ctx.Value(leaseCheckKey{}).(LeaseCheck)
	if !bound || req.Body == nil {
		return p.next.RoundTrip(req)
	}
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

// CloseIdleConnections closes the idle connections of the wrapped transport; http.Client
// looks for this method.
func (p leaseCheckedTransport) CloseIdleConnections() {
	(&http.Client{Transport: p.next}).CloseIdleConnections()
}

// A leaseCheckedBody checks the lease when net/http reads it, which is right before the
// headers and the body are written together: if that read fails, the platform has received
// nothing to act on.
type leaseCheckedBody struct {
	io.ReadCloser
	ctx   context.Context // the context of the request whose body this is
	check LeaseCheck
}

// Read implements io.Reader: it checks the lease if the last check is too old, and then
// reads the body.
func (b *leaseCheckedBody) Read(into []byte) (int, error) {
	if now := time.Now(); now.Sub(b.check.Asked) > LeasePatience {
		if err := b.check.Ask(b.ctx); err != nil {
			return 0, fmt.Errorf("%w: %w", errLeaseLost, err)
		}
		b.check.Asked = now
	}
	return b.ReadCloser.Read(into)
}

// FaultOf returns a channel's error as a SendError; any other error becomes one of the
// fault Unknown.
func FaultOf(err error) *SendError {
	if errors.Is(err, errLeaseLost) {
		return &SendError{Fault: Retry, Code: "late", Err: errLeaseLost}
	}
	if fault, ok := errors.AsType[*SendError](err); ok {
		return fault
	}
	return &SendError{Fault: Unknown, Err: err}
}
