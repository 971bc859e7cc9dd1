package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A callRecord says how a service answered the request of one call. Other calls use the same
// connection, and other requests than calls go over it, so the connection's last answer need not
// be the one to this call.
type callRecord struct {
	begun  atomic.Bool  // something of a request has left
	status atomic.Int32 // 0 as long as there is no answer
	login  atomic.Bool  // the answer says that somebody has to sign in
}

type callRecordKey struct{}

func withCallRecord(ctx context.Context) context.Context {
	s := &callRecord{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.begun.Store(true) }})
	return context.WithValue(ctx, callRecordKey{}, s)
}

// callRecordOf returns the record in a call's context; if there is none, a new one in which nothing
// is recorded.
func callRecordOf(ctx context.Context) *callRecord {
	if s, ok := ctx.Value(callRecordKey{}).(*callRecord); ok {
		return s
	}
	return &callRecord{}
}

// answered records the answer to a request. Only the answer to the first request of a call
// counts, because later ones are about something else, such as that the call was cancelled.
func (s *callRecord) answered(r *http.Request, status int, login bool) {
	if r.Method == http.MethodPost && s.status.CompareAndSwap(0, int32(status)) {
		s.login.Store(login)
	}
}

// codeRejected is the code of the library's own error for a request that its transport has failed
// to send, or that was answered with an error of HTTP. The error alone does not tell whether the
// request has reached the service.
const codeRejected = -32005

// isAnswer reports whether an error comes from the service itself, and not from the library.
func (s *callRecord) isAnswer(said *jsonrpc.Error) bool {
	status := s.status.Load()
	return said.Code != codeRejected || status != 0 && status < http.StatusBadRequest
}

func (s *callRecord) wantedLogin() bool { return s.login.Load() }

// wasRefused reports whether it is certain that the service has not begun the call, so that it
// may be made again. An error status alone does not say so, since it may come from something
// between here and the service, unless it says that nobody is served now.
func (s *callRecord) wasRefused() bool {
	switch status := int(s.status.Load()); status {
	case http.StatusNotImplemented, http.StatusServiceUnavailable:
		return true
	default:
		return status >= http.StatusBadRequest && status < http.StatusInternalServerError
	}
}

// reason says how the service refused the call; "" if there is no answer, or the answer is no
// refusal.
func (s *callRecord) reason() string {
	status := int(s.status.Load())
	if status < http.StatusBadRequest {
		return ""
	}
	return fmt.Sprintf("it answered with HTTP %d %s", status, http.StatusText(status))
}
