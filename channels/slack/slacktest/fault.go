package slacktest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
)

// An Act handles a call in place of the server. do is the server's own handling: an act may skip it, or let it
// write to a recorder.
type Act func(w http.ResponseWriter, r *http.Request, do http.Handler)

// A fault is an Act that future calls get.
type fault struct {
	method, channel string
	times           int
	act             Act
}

// An orders holds the faults for future calls, and how many times each method was called.
type orders struct {
	faults []*fault
	calls  map[string]int
}

// Fail makes act handle the next calls of a method ("" means every method) to a channel ("" means every channel;
// for users.info it is the user). It does so for `times` calls or, if times is 0, until ClearFaults. If several
// faults match a call, the first one applies.
func (s *Server) Fail(method, channel string, times int, act Act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders.faults = append(s.orders.faults, &fault{method, channel, times, act})
}

// ClearFaults forgets all faults. Calls that hang keep hanging.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders.faults = nil
}

// countCall counts a call and returns the fault for it; nil if there is none.
func (s *Server) countCall(method, channel string) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders.calls[method]++
	for i, f := range s.orders.faults {
		if f.method != "" && f.method != method || f.channel != "" && f.channel != channel {
			continue
		}
		if f.times == 1 {
			s.orders.faults = append(s.orders.faults[:i], s.orders.faults[i+1:]...)
		} else if f.times > 1 {
			f.times--
		}
		return f
	}
	return nil
}

// Refuse returns an Act that answers with an error code of the Web API.
func Refuse(code string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { writeError(w, code) }
}

// Limit returns an Act that answers that the call was refused by the rate limit and may be repeated after a number
// of seconds.
func Limit(seconds string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", seconds)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// Status returns an Act that answers with a status and a text that is not one of the Web API's answers.
func Status(status int, body string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the caller may be gone
	}
}

// Cut returns an Act that cuts the connection; if done is true, the call is carried out first.
func Cut(done bool) Act {
	return func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		if done {
			do.ServeHTTP(httptest.NewRecorder(), r)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler) // it is a recorder: this comes closest
		}
		reset(conn)
	}
}

// reset ends a connection with a TCP reset, as a process that crashes would.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Close then sends a TCP reset instead of ending the connection in order
	}
	_ = conn.Close() // it is being cut
}

// Hang returns an Act that never answers; if done is true, the call is carried out first.
func Hang(done bool) Act {
	return func(_ http.ResponseWriter, r *http.Request, do http.Handler) {
		if done {
			do.ServeHTTP(httptest.NewRecorder(), r)
		}
		<-r.Context().Done()
	}
}
