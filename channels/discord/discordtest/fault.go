package discordtest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
)

// An Act handles a call in place of the server. do is the server's own handling: an act may leave
// it out, or let it write to a recorder.
type Act func(w http.ResponseWriter, r *http.Request, do http.Handler)

// A fault is an Act that is ordered for future calls.
type fault struct {
	what, channel string
	times         int // for how many further calls it applies; negative means without end
	act           Act
}

// Fail orders act for the next calls of that kind ("POST messages"; "" means every kind) to a
// channel ("" means every channel): for as many as times says, or with 0 until ClearFaults. Of
// several faults that fit a call the first one applies.
func (s *Server) Fail(what, channel string, times int, act Act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if times == 0 {
		times = -1
	}
	s.faults = append(s.faults, &fault{what, channel, times, act})
}

// ClearFaults forgets all faults. Calls that hang keep hanging.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// countCall counts a call and returns the fault that was ordered for it; nil if there is
// none.
func (s *Server) countCall(what, channel string) *fault {
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

// Answer returns an Act that answers with a status, a body and headers, given as name and
// value in turn.
func Answer(status int, body string, headers ...string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // the caller may be gone
	}
}

// Cut returns an Act that cuts the connection; if done is set, the call was carried out
// before.
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

// Hang returns an Act that never answers; if done is set, the call was carried out before.
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
