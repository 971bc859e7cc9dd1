package discordtest

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
	what, channel string
	times         int
	act           Act
}

// Fail orders that the next calls ("POST messages"; "" is every one) for a
// channel ("" is every one) are acted so, times 0 being until Heal. The first
// fault that fits a call happens to it.
func (s *Server) Fail(what, channel string, times int, act Act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if times == 0 {
		times = -1
	}
	s.faults = append(s.faults, &fault{what, channel, times, act})
}

// Heal forgets all faults; calls that hang go on hanging.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// begin counts a call and gives its fault, if one was ordered.
func (s *Server) begin(what, channel string) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[what]++
	for i, f := range s.faults {
		if (f.what == "" || f.what == what) && (f.channel == "" || f.channel == channel) {
			if f.times--; f.times == 0 {
				s.faults = append(s.faults[:i], s.faults[i+1:]...)
			}
			return f
		}
	}
	return nil
}

// Answer refuses with a status, a body and headers, by name and value.
func Answer(status int, body string, headers ...string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
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
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // Close then sends a TCP reset; without it, the orderly end of a connection
		}
		_ = conn.Close() // it is being cut
	}
}

// Hang never answers; if done is set, the call was done before.
func Hang(done bool) Act {
	return func(_ http.ResponseWriter, r *http.Request, do http.Handler) {
		if done {
			do.ServeHTTP(httptest.NewRecorder(), r)
		} else {
			_, _ = io.Copy(io.Discard, r.Body) // else a caller that goes away is not noticed
		}
		<-r.Context().Done()
	}
}
