package slacktest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
)

// An Act takes the place of a call. Do does the call: an act may leave it out,
// or let it write to nobody.
type Act func(w http.ResponseWriter, r *http.Request, do http.Handler)

// A fault is ordered for calls to come.
type fault struct {
	method, channel string
	times           int
	act             Act
}

// orders are the faults to come, and how often each method was called.
type orders struct {
	faults []*fault
	calls  map[string]int
}

// Fail orders that the next calls of a method ("" is every one) for a channel
// ("" is every one; of users.info it is the user) are acted so, times 0 being
// until Heal. The first fault that fits a call happens to it.
func (s *Server) Fail(method, channel string, times int, act Act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders.faults = append(s.orders.faults, &fault{method, channel, times, act})
}

// Heal forgets all faults; calls that hang go on hanging.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders.faults = nil
}

// begin counts a call and gives its fault, if one was ordered.
func (s *Server) begin(method, channel string) *fault {
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

// Refuse answers with an error of the Web API's.
func Refuse(code string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { refuse(w, code) }
}

// Limit answers that the call may be made again after some seconds.
func Limit(seconds string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", seconds)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// Status answers with a status and a text that is no answer of the Web API.
func Status(status int, body string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the caller may be gone
	}
}

// Cut cuts the connection; if done is set, the call was done before.
func Cut(done bool) Act {
	return func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		if done {
			do.ServeHTTP(httptest.NewRecorder(), r)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler) // a recorder: the nearest there is
		}
		reset(conn)
	}
}

// reset ends a connection with a TCP reset, as a process that crashes does.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Close then sends a TCP reset; without it, the orderly end of a connection
	}
	_ = conn.Close() // it is being cut
}

// Hang never answers; if done is set, the call was done before.
func Hang(done bool) Act {
	return func(_ http.ResponseWriter, r *http.Request, do http.Handler) {
		if done {
			do.ServeHTTP(httptest.NewRecorder(), r)
		}
		<-r.Context().Done()
	}
}
