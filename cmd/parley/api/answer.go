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

// An answer is a response on its way, and what the log is told about it.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	began   time.Time
	route   string
	caller  caller
	id      string // of what it is about
	audited string // what of it is recorded in the audit
	code    string // of the error, if it is one
	status  int    // 0 while nothing is written
	bytes   int64
	usual   bool // it comes with each word that people say
	large   bool // it holds one of the API's places for large bodies
}

// Unwrap is for http.ResponseController.
func (w *answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader notes the status.
func (w *answer) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts what is written.
func (w *answer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// json answers with a value.
func (w *answer) json(status int, v any) error {
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
	_, _ = w.Write(buf.Bytes()) // whoever asked has gone: nobody is left to tell
	return nil
}

// A refusal is an error as the caller reads it.
type refusal struct {
	status  int
	code    string
	message string
	retry   time.Duration // Retry-After
	allow   string        // Allow
}

// Error is the message.
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
	retryFull = 10 * time.Second // a mailbox empties at the platform's pace
	retryLost = 5 * time.Second
)

// refusalOf reads an error of the packages behind the API.
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
		return full(err, e.Error()+"; where there was room it is accepted: try again with the same Idempotency-Key")
	}
	switch {
	case errors.Is(err, bus.ErrFull):
		return full(err, "too much waits there already: try again later")
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
		status: http.StatusServiceUnavailable, code: "unavailable", retry: retryLost,
		message: "this cannot be done now, and what was asked for may not be durable: ask again, with the same Idempotency-Key",
	}
}

// full refuses for a mailbox with too many messages, or with too many bytes.
func full(err error, message string) *refusal {
	code := "mailbox_full"
	if errors.Is(err, bus.ErrTooMuch) {
		code = "too_much_waiting"
	}
	return &refusal{status: http.StatusTooManyRequests, code: code, message: message, retry: retryFull}
}

// refuse answers with an error, if nothing was answered yet.
func (w *answer) refuse(err error) {
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
	_ = w.json(e.status, struct { // two texts can be encoded
		Error bus.Failure `json:"error"`
	}{bus.Failure{Code: e.code, Message: e.message}})
}

// unrouted is why no route serves a request, asked of what the mux would answer.
func unrouted(h http.Handler, r *http.Request) *refusal {
	w := &discarded{header: http.Header{}}
	h.ServeHTTP(w, r)
	if w.status == http.StatusMethodNotAllowed {
		allow := w.header.Get("Allow")
		return &refusal{status: w.status, code: "method_not_allowed", allow: allow, message: "this path takes " + allow}
	}
	return nothingHere()
}

func nothingHere() *refusal {
	return notFound("there is nothing at this path; docs/api.yaml lists what there is")
}

// discarded keeps a response's status and header alone.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(status int)      { d.status = status }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
