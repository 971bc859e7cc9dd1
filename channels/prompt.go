package channels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// errLate says of a request that it was not sent: its process had stood still,
// and what it was about to say may be another's to say by now.
var errLate = errors.New("too late to be sent")

// A right is the right to say something: when it was asked for, and how to ask
// again.
type right struct {
	asked time.Time
	ask   func(context.Context) error
}

type rightKey struct{}

// under has the requests that are made with ctx leave under a right only.
func under(ctx context.Context, r right) context.Context {
	return context.WithValue(ctx, rightKey{}, r)
}

// Prompt is a transport for adapters. Of a message that a Dispatcher has it sent
// nothing leaves once this process has stood still for so long that another may
// send it: that is asked again right before the bytes go out.
func Prompt(next http.RoundTripper) http.RoundTripper { return prompt{next} }

type prompt struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p prompt) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	r, bound := ctx.Value(rightKey{}).(right)
	if !bound || req.Body == nil {
		return p.next.RoundTrip(req)
	}
	late := req.Clone(ctx)
	late.Body = &promptBody{req.Body, ctx, r}
	if again := req.GetBody; again != nil {
		late.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			if err != nil {
				return nil, err
			}
			return &promptBody{body, ctx, r}, nil
		}
	}
	return p.next.RoundTrip(late)
}

// CloseIdleConnections is what http.Client looks for.
func (p prompt) CloseIdleConnections() {
	(&http.Client{Transport: p.next}).CloseIdleConnections()
}

// A promptBody is read right before it is sent, headers included. One that cannot
// be read leaves nobody anything to act on.
type promptBody struct {
	io.ReadCloser
	ctx   context.Context // of the request whose body this is
	right right
}

// Read implements io.Reader.
func (b *promptBody) Read(into []byte) (int, error) {
	if now := time.Now(); now.Sub(b.right.asked) > heldPatience {
		if err := b.right.ask(b.ctx); err != nil {
			return 0, fmt.Errorf("%w: %w", errLate, err)
		}
		b.right.asked = now
	}
	return b.ReadCloser.Read(into)
}
