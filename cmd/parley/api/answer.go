package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/outbox"
	"parley/sessions"
)

// A response is the answer to one request while it is being written, with what the log and the
// audit record about that request.
type response struct {
	http.ResponseWriter
	control      *http.ResponseController
	began        time.Time
	route        string
	caller       caller
	id           string // the id of what the request is about
	auditSubject string // whom or what it is about, for the audit
	code         string // the error's code, if it is an error
	status       int    // 0 until something is written
	bytes        int64
	isRoutine    bool // whether such requests come with every message of people's, so that an info line in the log would be too much
	large        bool // whether it holds one of the API's slots for large bodies, of which there are maxLargeBodies
}

// Unwrap lets an http.ResponseController reach the underlying writer.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader records the status and writes it.
func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes and writes them.
func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// json answers with a value as JSON.
func (w *response) json(status int, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // an error means that the caller has gone
	return nil
}

// A refusal is an error in the form in which the API's caller reads it.
type refusal struct {
	status  int
	code    string
	message string
	retry   time.Duration // for the header Retry-After
	allow   string        // for the header Allow
}

// Error returns the message.
func (e *refusal) Error() string { return e.message }

func forbidden(message string) *refusal {
	return &refusal{status: http.StatusForbidden, code: "forbidden", message: message}
}

func unauthorized(message string) *refusal {
	return &refusal{status: http.StatusUnauthorized, code: "unauthorized", message: message}
}

func notFound(message string) *refusal {
	return &refusal{status: http.StatusNotFound, code: "not_found", message: message}
}

func badRequest(code, format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

func unprocessable(code, format string, args ...any) *refusal {
	return &refusal{status: http.StatusUnprocessableEntity, code: code, message: fmt.Sprintf(format, args...)}
}

const (
	retryFull        = 10 * time.Second // how long callers are asked to wait when a mailbox is full, which empties at the platform's pace
	retryUnavailable = 5 * time.Second
)

// refusalOf returns what the API's caller is told about an error of the packages behind the API.
func refusalOf(err error) *refusal {
	if e, ok := errors.AsType[*refusal](err); ok {
		return e
	}
	if e, ok := errors.AsType[*outbox.UnknownError](err); ok {
		return unprocessable("unknown_"+e.What, "%s", e.Error())
	}
	if e, ok := errors.AsType[*outbox.InvalidError](err); ok {
		return unprocessable(e.Code, "%s", e.Message)
	}
	if e, ok := errors.AsType[*outbox.FullError](err); ok {
		return mailboxFull(err, e.Error()+"; where there was room it is accepted: try again with the same Idempotency-Key")
	}
	switch {
	case errors.Is(err, bus.ErrFull):
		return mailboxFull(err, "too much waits there already: try again later")
	case errors.Is(err, channels.ErrOtherBody):
		return &refusal{status: http.StatusConflict, code: "other_body", message: "this Idempotency-Key was used before with another body: use a new key for a new message"}
	case errors.Is(err, bus.ErrInvalid):
		return unprocessable("too_long", "the message is too long for any mailbox")
	case errors.Is(err, sessions.ErrNotFound):
		return notFound("there is no such session")
	case errors.Is(err, channels.ErrNoSend):
		return notFound("there is no such message")
	}
	return &refusal{
		status: http.StatusServiceUnavailable, code: "unavailable", retry: retryUnavailable,
		message: "this cannot be done now, and what was asked for may not be durable: ask again, with the same Idempotency-Key",
	}
}

// mailboxFull refuses a message because the mailbox has too many messages, or too many
// bytes.
func mailboxFull(err error, message string) *refusal {
	code := "mailbox_full"
	if errors.Is(err, bus.ErrTooMuch) {
		code = "too_much_waiting"
	}
	return &refusal{status: http.StatusTooManyRequests, code: code, message: message, retry: retryFull}
}

// refuse answers with an error, if nothing has been written yet.
func (w *response) refuse(err error) {
	if w.status != 0 {
		return
	}
	e := refusalOf(err)
	w.code = e.code
	h := w.Header()
	if e.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(e.retry/time.Second)))
	}
	if e.allow != "" {
		h.Set("Allow", e.allow)
	}
	switch e.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="parley"`)
		h.Set("Connection", "close")
	case http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusRequestTimeout,
		http.StatusMethodNotAllowed, http.StatusNotFound:
		// Else the server would first wait for a body that nobody wants.
		h.Set("Connection", "close")
	}
	_ = w.json(e.status, struct { // two texts can always be encoded
		Error bus.Failure `json:"error"`
	}{bus.Failure{Code: e.code, Message: e.message}})
}

// noRouteRefusal returns why no route serves a request: it runs the mux's own handler h
// to learn which methods the path allows.
func noRouteRefusal(h http.Handler, r *http.Request) *refusal {
	w := &headerRecorder{header: http.Header{}}
	h.ServeHTTP(w, r)
	if w.status == http.StatusMethodNotAllowed {
		allow := w.header.Get("Allow")
		return &refusal{status: w.status, code: "method_not_allowed", allow: allow, message: "this path takes " + allow}
	}
	return noSuchPath()
}

func noSuchPath() *refusal {
	return notFound("there is nothing at this path; docs/api.yaml lists what there is")
}

// A headerRecorder keeps the status and header of a response, and drops its body.
type headerRecorder struct {
	header http.Header
	status int
}

func (d *headerRecorder) Header() http.Header         { return d.header }
func (d *headerRecorder) WriteHeader(status int)      { d.status = status }
func (d *headerRecorder) Write(p []byte) (int, error) { return len(p), nil }
