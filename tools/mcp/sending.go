package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// A sending records how a service answered the request of one call. Other calls use the same
// connection, and other requests than calls go over it, so the connection's last answer need not
// be the one to this call.
type sending struct {
	begun  atomic.Bool  // something of a request has left
	status atomic.Int32 // 0 as long as there is no answer
	login  atomic.Bool  // the answer says that somebody has to sign in
}

type sendingKey struct{}

func withSending(ctx context.Context) context.Context {
	s := &sending{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.begun.Store(true) }})
	return context.WithValue(ctx, sendingKey{}, s)
}

// sendingOf returns the sending in a call's context; if there is none, a new one that nothing has
// been recorded in.
func sendingOf(ctx context.Context) *sending {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		return s
	}
	return &sending{}
}

// answered records the answer to a request. Only the answer to the first request of a call
// counts, because later ones are about something else, such as that the call was cancelled.
func (s *sending) answered(r *http.Request, status int, login bool) {
	if r.Method == http.MethodPost && s.status.CompareAndSwap(0, int32(status)) {
		s.login.Store(login)
	}
}

// codeRejected is the code of the library's own error for a request that its transport has failed
// to send, or that was answered with an error of HTTP. The error alone does not tell whether the
// request has reached the service.
const codeRejected = -32005

// isAnswer reports whether an error comes from the service itself, and not from the library.
func (s *sending) isAnswer(said *jsonrpc.Error) bool {
	status := s.status.Load()
	return said.Code != codeRejected || status != 0 && status < http.StatusBadRequest
}

func (s *sending) wantedLogin() bool { return s.login.Load() }

// wasRefused reports whether it is certain that the service has not begun the call, so that it
// may be made again. An error status alone does not say so, since it may come from something
// between here and the service, unless it says that nobody is served now.
func (s *sending) wasRefused() bool {
	switch status := int(s.status.Load()); status {
	case http.StatusNotImplemented, http.StatusServiceUnavailable:
		return true
	default:
		return status >= http.StatusBadRequest && status < http.StatusInternalServerError
	}
}

// reason says how the service refused the call; "" if there is no answer, or the answer is no
// refusal.
func (s *sending) reason() string {
	status := int(s.status.Load())
	if status < http.StatusBadRequest {
		return ""
	}
	return fmt.Sprintf("it answered with HTTP %d %s", status, http.StatusText(status))
}
