package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"parley/tools/plainjson"
)

// A callRecord records how a service answered the request of one call. Other calls use the same connection, and so
// do requests other than calls, so the connection's last answer need not be the answer to this call.
type callRecord struct {
	begun  atomic.Bool  // part of a request was sent
	status atomic.Int32 // 0 until there is an answer
	signIn atomic.Bool  // the answer says that somebody has to sign in
	// sessionUnknown says that the answer blames the session: the service does not know it.
	sessionUnknown atomic.Bool
}

type callRecordKey struct{}

func withCallRecord(ctx context.Context) context.Context {
	s := &callRecord{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { s.begun.Store(true) }})
	return context.WithValue(ctx, callRecordKey{}, s)
}

// callRecordOf returns the record in a call's context, or a new, empty one if there is none.
func callRecordOf(ctx context.Context) *callRecord {
	if s, ok := ctx.Value(callRecordKey{}).(*callRecord); ok {
		return s
	}
	return &callRecord{}
}

// answered records the answer to a request. Only the answer to the first request of a call counts, because later
// ones are for something else, for example to say that the call was canceled.
func (s *callRecord) answered(r *http.Request, answer *http.Response, wantsSignIn bool) {
	if r.Method != http.MethodPost || !s.status.CompareAndSwap(0, int32(answer.StatusCode)) {
		return
	}
	s.signIn.Store(wantsSignIn)
	if answer.StatusCode == http.StatusBadRequest {
		said, ofProtocol := readRefusal(r, answer)
		s.sessionUnknown.Store(!ofProtocol || strings.Contains(said, "session") || strings.Contains(said, "initialize"))
	}
}

// maxRefusal limits how much of the body of a refusal is read, in bytes.
const maxRefusal = 16 << 10

// readRefusal returns the body of the answer to a refused call, in lower case, and whether it is a JSON-RPC error:
// anything else, such as a proxy's page, proves nothing. It replaces the body with a JSON-RPC error with the id of
// the call, which servers often omit: without the id the library would give up the connection, which may still be
// good.
func readRefusal(r *http.Request, answer *http.Response) (text string, ofProtocol bool) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	_ = answer.Body.Close() // nothing more is read
	said := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{Version: "2.0"}
	ofProtocol = err == nil && json.Unmarshal(body, &said) == nil && said.Error != nil
	if !ofProtocol {
		said.Error = &jsonrpc.Error{Code: codeRejected, Message: "refused"}
	}
	if said.ID = idOf(r); said.ID != nil {
		if whole, err := plainjson.Marshal(said); err == nil {
			answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(whole)), int64(len(whole))
			return strings.ToLower(string(body)), ofProtocol
		}
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return strings.ToLower(string(body)), ofProtocol
}

// idOf returns the id of the JSON-RPC request in an HTTP request; nil if it is unknown.
func idOf(r *http.Request) json.RawMessage {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = body.Close() }() // it was only read
	var sent struct {
		ID json.RawMessage `json:"id"`
	}
	if json.NewDecoder(body).Decode(&sent) != nil {
		return nil
	}
	return sent.ID
}

// codeRejected is the code of the library's own error for a request that its transport failed to send, or that was
// answered with an HTTP error. The error alone doesn't tell whether the request reached the service.
const codeRejected = -32005

// isServiceError reports whether an error comes from the service itself rather than from the library.
func (s *callRecord) isServiceError(said *jsonrpc.Error) bool {
	status := s.status.Load()
	return said.Code != codeRejected || status != 0 && status < http.StatusBadRequest
}

func (s *callRecord) wantedSignIn() bool { return s.signIn.Load() }

// wasRefused reports whether it is certain that the service has not begun the call, so that it may be made again. A
// 5xx status alone doesn't prove that, because it may come from something between here and the service. The
// exceptions are 501 and 503, which say that nobody is being served.
func (s *callRecord) wasRefused() bool {
	switch status := int(s.status.Load()); status {
	case http.StatusNotImplemented, http.StatusServiceUnavailable:
		return true
	default:
		return status >= http.StatusBadRequest && status < http.StatusInternalServerError
	}
}

// lacksSession reports whether the service may have refused the call because it does not know the connection's
// session. The protocol's status for that is 404. Some servers use 400, which is for a request without a session,
// with a text that says so or without a JSON-RPC error. If nothing was sent, another call may have found it out.
func (s *callRecord) lacksSession() bool {
	status := s.status.Load()
	return status == http.StatusNotFound || status == http.StatusBadRequest && s.sessionUnknown.Load() || status == 0 && !s.begun.Load()
}

// reason says how the service refused the call; "" if there is no answer, or the answer is not a refusal.
func (s *callRecord) reason() string {
	status := int(s.status.Load())
	if status < http.StatusBadRequest {
		return ""
	}
	return fmt.Sprintf("it answered with HTTP %d %s", status, http.StatusText(status))
}
