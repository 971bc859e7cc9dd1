// Package agenttest is a scripted server that speaks OpenAI's chat-completions protocol, for tests.
//
// A Script is a function that gets a request and returns the response, byte by byte if
// need be. It is called from many goroutines at once. Each request has the whole
// conversation, so a script needs no state, and one server plays the model of any
// number of chats. A Server is also an http.Handler, for a process of its own.
//
// server.go is the server and how responses are timed and cut off; script.go reads
// requests and makes responses and scripts; strict.go has scripts that refuse what
// certain providers refuse.
package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Script returns the response to a request.
type Script func(Request) Response

// A Server plays a model.
type Server struct {
	// Models are the names that the server lists.
	Models []string
	// Window is how many tokens it says that they can read; 0 says nothing.
	Window int

	script Script
	keep   int

	mu       sync.Mutex
	asked    int
	requests []Request
}

// defaultKept is how many requests a server remembers unless Keep says otherwise.
const defaultKept = 1000

// New makes a server. The caller serves it, or calls Start.
func New(script Script) *Server {
	return &Server{Models: []string{"scripted"}, script: script, keep: defaultKept}
}

// Start serves on the loopback until the test ends, and gives the base URL.
func (s *Server) Start(t testing.TB) string {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections() // a stalled answer would wait for ever
		h.Close()
	})
	return h.URL + "/v1"
}

// Keep sets how many of the newest requests are remembered; a benchmark needs none. It is
// called before the first request.
func (s *Server) Keep(n int) { s.keep = n }

// Asked is how many answers were asked for.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Requests are the requests that are remembered, the oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ServeHTTP answers as the script says.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		s.list(w)
		return
	}
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, "no such path: "+r.URL.Path, http.StatusNotFound)
		return
	}
	body := make([]byte, max(0, r.ContentLength))
	_, err := io.ReadFull(r.Body, body)
	if r.ContentLength < 0 {
		body, err = io.ReadAll(r.Body)
	}
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	s.script(s.note(r, body)).play(w, r)
}

func (s *Server) note(r *http.Request, body []byte) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	q := Request{Path: r.URL.Path, Query: r.URL.RawQuery, N: s.asked, Header: r.Header, Body: body}
	if s.keep > 0 {
		if len(s.requests) >= s.keep {
			s.requests = s.requests[1:]
		}
		s.requests = append(s.requests, q)
	}
	return q
}

func (s *Server) list(w http.ResponseWriter) {
	type model struct {
		ID     string `json:"id"`
		Window int    `json:"context_length,omitempty"`
	}
	listed := struct {
		Data []model `json:"data"`
	}{Data: []model{}}
	for _, name := range s.Models {
		listed.Data = append(listed.Data, model{name, s.Window})
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(listed); err != nil {
		panic(http.ErrAbortHandler) // whoever asked is gone
	}
}

// A Response is an HTTP response, with the times at which its parts are sent.
type Response struct {
	Status int // left out: 200
	Header http.Header
	Parts  []Part

	// Delay and Wait come before the first byte, the status included.
	Delay time.Duration
	Wait  <-chan struct{}

	end ending
}

// A Part is bytes that are written and flushed at once.
type Part struct {
	Delay time.Duration   // before them
	Wait  <-chan struct{} // until it is closed, before them
	Bytes string
}

type ending int

const (
	endWell ending = iota
	endReset
	endStall
)

// After makes a response wait for a while before its first byte.
func (r Response) After(d time.Duration) Response {
	r.Delay = d
	return r
}

// When makes a response wait until a channel is closed before its first byte.
func (r Response) When(released <-chan struct{}) Response {
	r.Wait = released
	return r
}

// Split cuts a response into parts of n bytes each, within characters too.
func (r Response) Split(n int) Response {
	all := r.text()
	r.Parts = nil
	for len(all) > n {
		r.Parts = append(r.Parts, Part{Bytes: all[:n]})
		all = all[n:]
	}
	r.Parts = append(r.Parts, Part{Bytes: all})
	return r
}

// First cuts a response off after n bytes: with a clean end, unless Reset or
// Stall follows.
func (r Response) First(n int) Response {
	r.Parts = []Part{{Bytes: r.text()[:n]}}
	return r
}

// Reset ends a response by resetting the connection.
func (r Response) Reset() Response {
	r.end = endReset
	return r
}

// Stall leaves a response open after its last part.
func (r Response) Stall() Response {
	r.end = endStall
	return r
}

// Len is the length of a response's body in bytes.
func (r Response) Len() int { return len(r.text()) }

func (r Response) text() string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.Bytes)
	}
	return b.String()
}

// play writes a response. It gives up when the client has gone.
func (r Response) play(w http.ResponseWriter, req *http.Request) {
	gone := req.Context().Done()
	if !pause(gone, r.Delay, r.Wait) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for name, values := range r.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	w.WriteHeader(max(r.Status, http.StatusOK))
	flush := len(r.Parts) > 1 || r.end != endWell
	control := http.NewResponseController(w)
	for _, p := range r.Parts {
		if !pause(gone, p.Delay, p.Wait) {
			return
		}
		if _, err := io.WriteString(w, p.Bytes); err != nil {
			return
		}
		if flush && control.Flush() != nil {
			return
		}
	}
	switch r.end {
	case endStall:
		<-gone
	case endReset:
		reset(control)
	case endWell:
	}
}

// pause waits for d and for released. It returns false if the client has gone.
func pause(gone <-chan struct{}, d time.Duration, released <-chan struct{}) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-gone:
			return false
		}
	}
	if released != nil {
		select {
		case <-released:
		case <-gone:
			return false
		}
	}
	return true
}

// reset resets the connection, so that the client gets an error and not the end of the
// stream.
func reset(control *http.ResponseController) {
	conn, _, err := control.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			panic(fmt.Sprintf("agenttest: set linger: %v", err))
		}
	}
	_ = conn.Close() // with SetLinger(0) this sends a reset
}
