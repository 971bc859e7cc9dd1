package exchange

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/tools/plainjson"
)

// Noted is what the audit says about a request in addition to what it says about every request to that route.
type Noted struct {
	Result        string // what was done, if it differs from the route's Result
	Session, Tool string // the session and tool that it belongs to, if any
}

// An Answer is the answer to one request while it is being written, together with what the log and the audit record
// about that request. It is an http.ResponseWriter.
type Answer struct {
	http.ResponseWriter
	Route   string // the pattern of the route that serves the request
	Caller  Caller
	ID      string // the id of the thing that the request is about, for the log
	Subject string // the person or thing that it is about, for the audit
	Noted   Noted  // what else the audit says about it
	Routine bool   // whether such requests come with every message from people, so that an info line in the log would be too much

	bodies  *BodyReader
	control *http.ResponseController
	began   time.Time
	within  time.Duration // how long the caller may take to read the answer, counted from its first byte
	code    string        // the error's code, if it is an error
	status  int           // 0 until something is written
	bytes   int64
	large   bool // whether it holds one of the slots for large bodies
}

// New returns the answer to a request that has just arrived. bodies reads its body; the caller has the time within to
// read the answer. Close must be called once the request is served.
func New(w http.ResponseWriter, r *http.Request, bodies *BodyReader, within time.Duration) *Answer {
	a := &Answer{ResponseWriter: w, bodies: bodies, control: http.NewResponseController(w), began: time.Now(), within: within}
	_ = a.control.SetWriteDeadline(time.Time{}) // the connection may have the deadline of an earlier answer
	if r.ContentLength != 0 {
		a.setReadDeadline(r)
	}
	return a
}

// Close frees the slot that the answer holds for a large body, if any.
func (w *Answer) Close() {
	if w.large {
		<-w.bodies.slots
	}
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (w *Answer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader records the status and writes it.
func (w *Answer) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// begin records the status of an answer, and sets the deadline for writing it. The time counts from now rather than
// from the request: the work may have taken long, and the caller must still get the answer.
func (w *Answer) begin(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	w.Extend(w.within)
}

// Extend gives the caller that much more time, from now on, to read the answer.
func (w *Answer) Extend(within time.Duration) {
	_ = w.control.SetWriteDeadline(time.Now().Add(within)) // a writer without deadlines, as tests have, needs none
}

// Write counts the bytes and writes them.
func (w *Answer) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush sends what was written so far.
func (w *Answer) Flush() error { return w.control.Flush() }

// Status returns the status that was answered; 0 if nothing is written yet.
func (w *Answer) Status() int { return w.status }

// JSON answers with a value as JSON.
func (w *Answer) JSON(status int, v any) error {
	var buf bytes.Buffer
	enc := plainjson.NewEncoder(&buf)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(buf.Len()))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // an error means that the caller is gone
	return nil
}

// Refuse answers with a refusal, if nothing has been written yet.
func (w *Answer) Refuse(e *Refusal) {
	if w.status != 0 {
		return
	}
	w.code = e.Code
	h := w.Header()
	if e.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(e.Retry/time.Second)))
	}
	if e.Allow != "" {
		h.Set("Allow", e.Allow)
	}
	switch e.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="parley"`)
		h.Set("Connection", "close")
	case http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusRequestTimeout,
		http.StatusMethodNotAllowed, http.StatusNotFound:
		// Otherwise the server would first wait for a useless body.
		h.Set("Connection", "close")
	}
	_ = w.JSON(e.Status, struct { // two strings can always be encoded
		Error bus.Failure `json:"error"`
	}{bus.Failure{Code: e.Code, Message: e.Message}})
}

// LogTo logs a request that was served: at level debug if it only reads, or if it is Routine and wasn't refused; at
// level info otherwise.
func (w *Answer) LogTo(log *slog.Logger, r *http.Request) {
	level := slog.LevelDebug
	if r.Method != http.MethodGet && r.Method != http.MethodHead && (!w.Routine || w.status >= http.StatusBadRequest) {
		level = slog.LevelInfo
	}
	log.LogAttrs(r.Context(), level, "request", slog.String("route", w.Route), slog.String("caller", w.Caller.Name),
		slog.String("id", Shorten(w.ID)), slog.Int("status", w.status), slog.String("code", w.code), slog.Int64("bytes_in", max(r.ContentLength, 0)),
		slog.Int64("bytes_out", w.bytes), slog.Duration("took", time.Since(w.began)))
}

// Shorten returns a text from a caller, cut to the length allowed in a log.
func Shorten(id string) string {
	if len(id) <= sessions.MaxKey {
		return id
	}
	return strings.ToValidUTF8(id[:sessions.MaxKey], "") + "…"
}

// SomeTime returns a time for a JSON field that is left out if the time is zero.
func SomeTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
