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
// connection, and a connection sends more than calls, so that what it was answered last says
// nothing of this one.
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

// sendingOf returns the sending of a call's context; one of nothing if it has none.
func sendingOf(ctx context.Context) *sending {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		return s
	}
	return &sending{}
}

// answered records the answer to a request. Only that to the first counts: what is sent
// afterwards, such as that the call is not wanted any more, is another matter.
func (s *sending) answered(r *http.Request, status int, login bool) {
	if r.Method == http.MethodPost && s.status.CompareAndSwap(0, int32(status)) {
		s.login.Store(login)
	}
}

// codeRejected is the code of the library's own error for a request that its transport has failed
// to send, or that was answered with an error of HTTP. It says so also where the request has
// reached the service.
const codeRejected = -32005

// isAnswer reports whether an error is what the service itself has answered.
func (s *sending) isAnswer(said *jsonrpc.Error) bool {
	status := s.status.Load()
	return said.Code != codeRejected || status != 0 && status < http.StatusBadRequest
}

func (s *sending) wantedLogin() bool { return s.login.Load() }

// wasRefused reports whether the service has not begun the call. An error of the service, or of
// something between here and it, says nothing of that, unless it says that it serves nobody now.
func (s *sending) wasRefused() bool {
	switch status := int(s.status.Load()); status {
	case http.StatusNotImplemented, http.StatusServiceUnavailable:
		return true
	default:
		return status >= http.StatusBadRequest && status < http.StatusInternalServerError
	}
}

// reason says how the call was answered; "" if there is no answer, or none that says no.
func (s *sending) reason() string {
	status := int(s.status.Load())
	if status < http.StatusBadRequest {
		return ""
	}
	return fmt.Sprintf("it answered with HTTP %d %s", status, http.StatusText(status))
}
