package agenttest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Beginnings of recordings, as content that programs recognize.
const (
	OpusHead = "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x13OpusHead\x01"
	MP3Head  = "ID3\x04\x00"
)

// A SpeechRequest is a request to read a text aloud.
type SpeechRequest struct {
	Model  string `json:"model"`
	Voice  string `json:"voice"`
	Input  string `json:"input"`
	Format string `json:"response_format"`
}

// A Speech is a server that reads texts aloud, with OpenAI's protocol: its recordings are the beginning of a recording
// in the requested format, followed by the words. It refuses the same requests as OpenAI's server.
type Speech struct {
	// Before, if set, is called with each request that is not refused. If it returns a status, that is the answer.
	Before func(SpeechRequest) (status int)

	mu    sync.Mutex
	asked []SpeechRequest
}

// Start serves on the loopback address until the test ends, and returns the base URL.
func (s *Speech) Start(t testing.TB) string {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h.URL + "/v1"
}

// Asked returns the requests so far.
func (s *Speech) Asked() []SpeechRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]SpeechRequest(nil), s.asked...)
}

// ServeHTTP answers one request.
func (s *Speech) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q SpeechRequest
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/audio/speech") {
		http.Error(w, "no such path: "+r.URL.Path, http.StatusNotFound)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Model == "" || q.Voice == "" || q.Input == "" || len([]rune(q.Input)) > 4096 {
		http.Error(w, `{"error":{"message":"invalid value"}}`, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.mu.Unlock()
	if s.Before != nil {
		if status := s.Before(q); status != 0 {
			http.Error(w, `{"error":{"message":"no"}}`, status)
			return
		}
	}
	head := map[string]string{"opus": OpusHead, "mp3": MP3Head, "": MP3Head}[q.Format]
	if head == "" {
		http.Error(w, `{"error":{"message":"invalid response_format"}}`, http.StatusBadRequest)
		return
	}
	_, _ = w.Write([]byte(head + q.Input)) // the caller may be gone
}
