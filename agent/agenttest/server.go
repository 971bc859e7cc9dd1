// Package agenttest is a scripted server that speaks OpenAI's chat-completions protocol, for tests. A script
// can also play OpenAI's Responses API and Ollama's own protocol: the request's path says which one was asked.
//
// A Script is a function that gets a request and returns the response, byte by byte if need be. It is called
// from many goroutines at once. Each request contains the whole conversation, so a script needs no state, and
// one server can play the model of any number of chats. A Server is also an http.Handler, so it can run in a
// process of its own.
//
// server.go is the server, which times and cuts off responses; script.go reads requests and makes responses and
// scripts; strict.go has scripts that refuse what certain providers refuse.
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

// A Server plays a model according to a script.
type Server struct {
	// Models are the names of the models that the server lists.
	Models []string
	// Window is the size of each model's context window in tokens, as the server lists it; 0 lists none.
	Window int

	script Script
	keep   int // how many requests are kept

	mu         sync.Mutex
	askedCount int       // how many requests for an answer have arrived
	requests   []Request // the newest of them
}

// defaultKeep is how many requests a server keeps unless Keep sets another number.
const defaultKeep = 1000

// New makes a server. The caller has to serve it, or to call Start.
func New(script Script) *Server {
	return &Server{Models: []string{"scripted"}, script: script, keep: defaultKeep}
}

// Start serves on the loopback address until the test ends, and returns the base URL.
func (s *Server) Start(t testing.TB) string {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections() // a stalled answer would wait for ever
		h.Close()
	})
	return h.URL + "/v1"
}

// Keep sets how many of the newest requests are kept; a benchmark needs none. It must be called before the
// first request.
func (s *Server) Keep(n int) { s.keep = n }

// Asked returns the number of requests for an answer so far.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.askedCount
}

// Requests returns the kept requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ServeHTTP lists the models, or plays the script's response to a request for an answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/models") {
		s.writeModels(w)
		return
	}
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") && !strings.HasSuffix(r.URL.Path, "/responses") && !strings.HasSuffix(r.URL.Path, "/api/chat") {
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

// note keeps a request and numbers it.
func (s *Server) note(r *http.Request, body []byte) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askedCount++
	q := Request{Path: r.URL.Path, Query: r.URL.RawQuery, N: s.askedCount, Header: r.Header, Body: body}
	if s.keep > 0 {
		if len(s.requests) >= s.keep {
			s.requests = s.requests[1:]
		}
		s.requests = append(s.requests, q)
	}
	return q
}

// writeModels writes the list of models as the response.
func (s *Server) writeModels(w http.ResponseWriter) {
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
		panic(http.ErrAbortHandler) // the client is gone
	}
}

// A Response is an HTTP response together with the times at which its parts are sent.
type Response struct {
	Status int // 0: 200
	Header http.Header
	Parts  []Part

	// Delay and Wait hold back the whole response, including its status, as those of a Part do.
	Delay time.Duration
	Wait  <-chan struct{}

	ending ending
}

// A Part is bytes that are written and flushed together.
type Part struct {
	Delay time.Duration   // how long to wait before the bytes are written
	Wait  <-chan struct{} // if set, the bytes wait until it is closed
	Bytes string
}

// An ending says how a response ends after its last part.
type ending int

const (
	endWell  ending = iota // as HTTP demands
	endReset               // the connection is reset
	endStall               // the response stays open
)

// After returns the response with a delay before its first byte.
func (r Response) After(d time.Duration) Response {
	r.Delay = d
	return r
}

// WaitFor returns the response with its first byte held back until released is closed.
func (r Response) WaitFor(released <-chan struct{}) Response {
	r.Wait = released
	return r
}

// Split returns the response cut into parts of n bytes each, even within characters.
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

// CutAfter returns the response cut off after n bytes. It still ends cleanly, unless Reset or Stall is called
// on it.
func (r Response) CutAfter(n int) Response {
	r.Parts = []Part{{Bytes: r.text()[:n]}}
	return r
}

// Reset returns the response changed so that the connection is reset after its last part.
func (r Response) Reset() Response {
	r.ending = endReset
	return r
}

// Stall returns the response changed so that the connection stays open after its last part.
func (r Response) Stall() Response {
	r.ending = endStall
	return r
}

// Len returns the length of the response's body in bytes.
func (r Response) Len() int { return len(r.text()) }

// text returns the response's body.
func (r Response) text() string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.Bytes)
	}
	return b.String()
}

// play writes the response. It stops if the client has gone away.
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
	flush := len(r.Parts) > 1 || r.ending != endWell
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
	switch r.ending {
	case endStall:
		<-gone
	case endReset:
		reset(control)
	case endWell:
	}
}

// pause waits for the duration d, and then until released is closed, if that is not nil. It returns false if
// the client goes away in the meantime.
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

// reset resets the connection, so the client gets an error instead of the end of the stream.
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
