package discordtest

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
	call, channel string
	times         int // the number of further calls to which it applies; negative means no limit
	act           Act
}

// Fail makes act handle the next calls of that kind ("POST messages"; "" means every kind) to a channel ("" means
// every channel). It does so for `times` calls or, if times is 0, until ClearFaults. If several faults match a
// call, the first one applies.
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

// countCall counts a call and returns the fault for it; nil if there is none.
func (s *Server) countCall(what, channel string) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[what]++
	for i, f := range s.faults {
		if (f.call == "" || f.call == what) && (f.channel == "" || f.channel == channel) {
			if f.times--; f.times == 0 {
				s.faults = append(s.faults[:i], s.faults[i+1:]...)
			}
			return f
		}
	}
	return nil
}

// Answer returns an Act that answers with a status, a body and headers, which are given as alternating names and
// values.
func Answer(status int, body string, headers ...string) Act {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
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
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // Close then sends a TCP reset instead of ending the connection in order
		}
		_ = conn.Close() // it is being cut
	}
}

// Hang returns an Act that never answers; if done is true, the call is carried out first.
func Hang(done bool) Act {
	return func(_ http.ResponseWriter, r *http.Request, do http.Handler) {
		if done {
			do.ServeHTTP(httptest.NewRecorder(), r)
		} else {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise nobody notices when the client goes away
		}
		<-r.Context().Done()
	}
}
