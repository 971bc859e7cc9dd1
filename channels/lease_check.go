package channels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// errLate says that a request was not sent because its process was paused and has
// lost the lease meanwhile: another process may send the same by now.
var errLate = errors.New("too late to be sent")

// LeasePatience is how long after a check a lease may be taken as held: less than
// what is left of one that is.
const LeasePatience = 2 * time.Second

// A LeaseCheck is how to find out whether this process still holds the lease under
// which it sends: when it asked the last time, and how to ask again.
type LeaseCheck struct {
	Asked time.Time
	Ask   func(context.Context) error
}

type leaseCheckKey struct{}

// WithLeaseCheck has a LeaseCheckedTransport check the lease before it sends the
// requests that are made with ctx.
func WithLeaseCheck(ctx context.Context, r LeaseCheck) context.Context {
	return context.WithValue(ctx, leaseCheckKey{}, r)
}

// LeaseCheckedTransport is a transport for adapters. Just before it sends a request's
// body it checks the lease again if the process was paused since the last check: by
// now another process may hold the lease and send the same. If the lease is gone,
// the request fails and nothing has left.
func LeaseCheckedTransport(next http.RoundTripper) http.RoundTripper {
	return leaseCheckedTransport{next}
}

type leaseCheckedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
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

// CloseIdleConnections is what http.Client looks for.
func (p leaseCheckedTransport) CloseIdleConnections() {
	(&http.Client{Transport: p.next}).CloseIdleConnections()
}

// A leaseCheckedBody checks the lease when net/http reads it, which is right before
// the headers and the body are written together: so a body whose read fails leaves
// the platform nothing to act on.
type leaseCheckedBody struct {
	io.ReadCloser
	ctx   context.Context // of the request whose body this is
	check LeaseCheck
}

// Read implements io.Reader.
func (b *leaseCheckedBody) Read(into []byte) (int, error) {
	if now := time.Now(); now.Sub(b.check.Asked) > LeasePatience {
		if err := b.check.Ask(b.ctx); err != nil {
			return 0, fmt.Errorf("%w: %w", errLate, err)
		}
		b.check.Asked = now
	}
	return b.ReadCloser.Read(into)
}

// FaultOf reads a channel's error; what is not a SendError is of unknown outcome.
func FaultOf(err error) *SendError {
	if errors.Is(err, errLate) {
		return &SendError{Fault: Retry, Code: "late", Err: errLate}
	}
	if fault, ok := errors.AsType[*SendError](err); ok {
		return fault
	}
	return &SendError{Fault: Unknown, Err: err}
}
