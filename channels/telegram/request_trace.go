package telegram

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// A requestTrace records how far a request that must not be sent twice got: whether bytes were sent, and the
// answer's status.
type requestTrace struct {
	written atomic.Bool  // whether some bytes may have left this machine
	status  atomic.Int32 // HTTP status of the answer; 0 while there is none
}

// requestTraceKey is the context key of a *requestTrace.
type requestTraceKey struct{}

// withRequestTrace returns a context for one request, and the trace in which callOnce, bufferingClient and net/http
// record how far it got.
func withRequestTrace(ctx context.Context) (context.Context, *requestTrace) {
	t := new(requestTrace)
	ctx = context.WithValue(ctx, requestTraceKey{}, t)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport switches to another connection only if nothing was sent on the first one. Once it has a
		// connection, nothing is certain: writing continues next to a canceled call, so "nothing written yet" may
		// be out of date.
		GetConn: func(string) { t.written.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { t.written.Store(true) },
	}), t
}

// noteStatus records an answer's status in the trace in the request's context.
func noteStatus(ctx context.Context, resp *http.Response) {
	if t, ok := ctx.Value(requestTraceKey{}).(*requestTrace); ok {
		t.status.Store(int32(resp.StatusCode))
	}
}

// withoutURL returns the cause inside an error from net/http, without the URL, which contains the token.
func withoutURL(err error) error {
	for {
		outer, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = outer.Err
	}
}
