package api

import (
	"errors"
	"net/http"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/outbox"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// retryFull is how long callers are asked to wait when a mailbox is full, which empties only as
// fast as the platform allows.
const retryFull = 10 * time.Second

// refusalOf returns the refusal for an error from the packages behind the API. For an unknown error it says only that
// the request can't be served now.
func refusalOf(err error) *exchange.Refusal {
	if e, ok := errors.AsType[*exchange.Refusal](err); ok {
		return e
	}
	if e, ok := errors.AsType[*outbox.UnknownError](err); ok {
		return exchange.Unprocessable("unknown_"+e.Kind, "%s", e.Error())
	}
	if e, ok := errors.AsType[*outbox.InvalidError](err); ok {
		return exchange.Unprocessable(e.Code, "%s", e.Message)
	}
	if e, ok := errors.AsType[*outbox.FullError](err); ok {
		return mailboxFull(err, e.Error()+"; it was accepted where there was room: try again with the same Idempotency-Key")
	}
	switch {
	case errors.Is(err, bus.ErrFull):
		return mailboxFull(err, "too many messages are already waiting there: try again later")
	case errors.Is(err, channels.ErrKeyReused):
		return exchange.Conflict("other_body", "an earlier request used this Idempotency-Key with another body: use a new key for a new message")
	case errors.Is(err, bus.ErrInvalid):
		return exchange.Unprocessable("too_long", "the message is too long for any mailbox: shorten it")
	case errors.Is(err, sessions.ErrNotFound):
		return exchange.NotFound("there's no such session")
	case errors.Is(err, channels.ErrNoSend):
		return exchange.NotFound("there's no such message")
	}
	return exchange.Unavailable("unavailable", "the server can't do this right now, and your request may not have been stored: send it again, with the same Idempotency-Key")
}

// mailboxFull refuses a message because the mailbox contains too many messages, or too many bytes.
func mailboxFull(err error, message string) *exchange.Refusal {
	code := "mailbox_full"
	if errors.Is(err, bus.ErrTooMuch) {
		code = "too_much_waiting"
	}
	return &exchange.Refusal{Status: http.StatusTooManyRequests, Code: code, Message: message, Retry: retryFull}
}

// noRouteRefusal returns why no route serves a request: it runs the mux's own handler h to find out
// which methods the path allows.
func noRouteRefusal(h http.Handler, r *http.Request) *exchange.Refusal {
	w := &headerRecorder{header: http.Header{}}
	h.ServeHTTP(w, r)
	if w.status == http.StatusMethodNotAllowed {
		allow := w.header.Get("Allow")
		return &exchange.Refusal{Status: w.status, Code: "method_not_allowed", Allow: allow, Message: "this path only takes " + allow}
	}
	return noSuchPath()
}

func noSuchPath() *exchange.Refusal {
	return exchange.NotFound("there's nothing at this path; docs/api.yaml lists all paths")
}

// A headerRecorder keeps the status and header of a response, and drops its body.
type headerRecorder struct {
	header http.Header
	status int
}

func (d *headerRecorder) Header() http.Header         { return d.header }
func (d *headerRecorder) WriteHeader(status int)      { d.status = status }
func (d *headerRecorder) Write(p []byte) (int, error) { return len(p), nil }
