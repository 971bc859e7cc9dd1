package mcp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// A service with an HTTPS URL is sent neither its headers nor a token over plain HTTP, even if it redirects there
// itself.
func TestAServiceIsNotSentSecretsInTheClear(t *testing.T) {
	var plain atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { plain.Add(1) }))
	defer web.Close()
	s := New(Config{})
	secure := s.newHTTPTransport(&server{Server: Server{Name: "notes", URL: "https" + web.URL[len("http"):], Headers: map[string]string{"X-Key": "secret"}}})
	defer secure.stop()
	answer, err := secure.HTTPClient.Get(web.URL)
	if err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil || plain.Load() != 0 {
		t.Errorf("it was sent %d requests in the clear: %v", plain.Load(), err)
	}
}
