package telegramtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An Act is a way in which a call fails.
type Act int

// The acts.
const (
	Refuse Act = iota // answers with Status, or with Raw
	Drop              // cuts the connection; the call is not carried out
	Hang              // never answers; the call is not carried out
	Cut               // carries the call out, then cuts the connection
	Stall             // carries the call out, then never answers
	Slow              // carries the call out and answers, after Delay
)

// A Fault makes future calls fail.
type Fault struct {
	Method string // the method that fails; "" means every method
	Chat   int64  // the chat to which calls fail; 0 means every chat
	Times  int    // how many calls fail; 0 means all until ClearFaults
	Act    Act
	Delay  time.Duration // how long the call is delayed before anything else happens

	// The following fields belong to Refuse.
	Status      int
	Description string
	RetryAfter  int // in seconds
	// Limit, if set, returns for each call after how many seconds it may be repeated. If it returns 0, the call
	// succeeds.
	Limit     func() int
	MigrateTo int64  // the chat's new id
	Raw       string // what is sent instead of one of the Bot API's answers
}

// Fail adds a fault. If several faults match a call, the first one applies.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = -1
	}
	s.faults = append(s.faults, &f)
}

// ClearFaults forgets all faults. Calls that hang keep hanging.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// countCall counts a call and returns the fault for it; nil if there is none.
func (s *Server) countCall(method string, chat int64) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
	for i, f := range s.faults {
		if (f.Method != "" && !strings.EqualFold(f.Method, method)) || (f.Chat != 0 && f.Chat != chat) {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = append(s.faults[:i], s.faults[i+1:]...)
		}
		return f
	}
	return nil
}

// actBefore does what a fault does before the call is carried out; it returns true if the call must not be carried
// out at all.
func (f *Fault) actBefore(w http.ResponseWriter, r *http.Request) bool {
	if f == nil {
		return false
	}
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return true
		}
	}
	switch f.Act {
	case Refuse:
		if f.Limit != nil {
			seconds := f.Limit()
			if seconds > 0 {
				writeError(w, refusal{status: http.StatusTooManyRequests, text: fmt.Sprint("Too Many Requests: retry after ", seconds), retryAfter: seconds})
			}
			return seconds > 0
		}
		if f.Raw != "" {
			w.WriteHeader(f.Status)
			_, _ = io.WriteString(w, f.Raw) // the caller may be gone
			return true
		}
		writeError(w, refusal{status: f.Status, text: f.Description, retryAfter: f.RetryAfter, migrateTo: f.MigrateTo})
		return true
	case Drop:
		cut(w)
		return true
	case Hang:
		<-r.Context().Done()
		return true
	}
	return false
}

// actAfter does what a fault does after the call was carried out; it returns true if the call must not be answered.
func (f *Fault) actAfter(w http.ResponseWriter, r *http.Request) bool {
	if f == nil {
		return false
	}
	switch f.Act {
	case Cut:
		cut(w)
		return true
	case Stall:
		<-r.Context().Done()
		return true
	}
	return false
}

// cut resets a connection.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 or a recorder: this comes closest
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Close then sends a TCP reset instead of ending the connection in order
	}
	_ = conn.Close() // it is being cut
}

// A sayRequest is the body of the control path say.
type sayRequest struct {
	Chat int64  `json:"chat"`
	User int64  `json:"user"` // if left out, the same number as the chat's
	Text string `json:"text"`
}

// control serves the paths with which a person at a terminal, or another process, can act as a user:
//
//	POST /_control/say   {"chat": 1, "user": 1, "text": "…"}  → {"message_id": 1}
//	GET  /_control/sent?chat=1                                → what the bot said there
func (s *Server) control(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Content-Type", "application/json")
	switch path {
	case "say":
		var m sayRequest
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.Chat == 0 {
			http.Error(w, `{"error": "want {\"chat\": 1, \"user\": 1, \"text\": \"…\"}"}`, http.StatusBadRequest)
			return
		}
		if m.User == 0 {
			m.User = m.Chat
		}
		_ = json.NewEncoder(w).Encode(map[string]int{"message_id": s.Say(m.Chat, m.User, m.Text)}) // the caller may be gone
	case "sent":
		chat, err := strconv.ParseInt(r.URL.Query().Get("chat"), 10, 64)
		if err != nil {
			http.Error(w, `{"error": "want ?chat=NUMBER"}`, http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(s.Sent(chat)) // the caller may be gone
	default:
		http.NotFound(w, r)
	}
}
