package api

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/tools/plainjson"
)

// A stream is a response of server-sent events to one watcher. When nothing was sent for a while, it sends a
// heartbeat; it cuts off a watcher that reads too slowly.
type stream struct {
	w       *exchange.Answer
	quiet   time.Duration
	timeout time.Duration
	leave   func()
	whyOver func() error // why nothing more may be sent; nil as long as the watcher stays, and may watch

	mu        sync.Mutex
	closed    bool
	heartbeat *time.Timer
}

func newStream(w *exchange.Answer, t Timeouts, leave func(), whyOver func() error) *stream {
	// Random delays keep streams that begin together from sending their heartbeats together.
	quiet := t.Quiet + rand.N(t.Quiet/2+1)
	return &stream{w: w, quiet: quiet, timeout: t.Write, leave: leave, whyOver: whyOver}
}

// open sends the header of the response.
func (s *stream) open() error { return s.write([]byte(": watching\n\n")) }

// send sends an event. If id is "", the watcher keeps the last id that it has, from which it continues after it was
// cut off.
func (s *stream) send(id, kind string, data any) error {
	frame, err := frameOf(id, kind, data)
	if err != nil {
		return err
	}
	return s.write(frame)
}

// frameOf returns an event in the form in which it is sent.
func frameOf(id, kind string, data any) ([]byte, error) {
	var buf bytes.Buffer
	if id != "" {
		buf.WriteString("id: " + id + "\n")
	}
	buf.WriteString("event: " + kind + "\ndata: ")
	enc := plainjson.NewEncoder(&buf) // the encoder's output ends with a newline, and contains no other
	if err := enc.Encode(data); err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	buf.WriteByte('\n')
	return buf.Bytes(), nil
}

// write sends frames: events or comments in the form in which they are sent. If the watcher doesn't read them in time,
// the stream ends. On a stream that has ended, it returns http.ErrServerClosed.
func (s *stream) write(frames ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.whyOver() != nil {
		return http.ErrServerClosed
	}
	if s.w.Status() == 0 {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	s.w.Extend(s.timeout)
	var err error
	for _, frame := range frames {
		if _, err = s.w.Write(frame); err != nil {
			break
		}
	}
	if err == nil {
		err = s.w.Flush()
	}
	if err != nil {
		s.closed = true
		s.leave()
		return fmt.Errorf("write to a watcher: %w", err)
	}
	if s.heartbeat == nil {
		s.heartbeat = time.AfterFunc(s.quiet, s.sendHeartbeat)
	} else {
		s.heartbeat.Reset(s.quiet)
	}
	return nil
}

// sendHeartbeat sends a comment, so that proxies don't consider a quiet stream dead.
func (s *stream) sendHeartbeat() { _ = s.write([]byte(":\n\n")) }

// close ends the stream: after it has returned, nothing writes to the response.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.heartbeat != nil {
		s.heartbeat.Stop()
	}
}
