package transcribe_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agent/transcribe"
)

func TestARecordingIsWrittenDown(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if asked == 1 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		file, head, err := r.FormFile("file")
		if err != nil || r.URL.Path != "/v1/audio/transcriptions" || r.Header.Get("Authorization") != "Bearer key" || r.FormValue("model") != "whisper" {
			t.Errorf("asked %s with %v, %v", r.URL, r.Header, err)
			return
		}
		raw, err := io.ReadAll(file)
		if err != nil || head.Filename != "voice.ogg" || string(raw) != "OggS" {
			t.Errorf("sent %q as %s, %v", raw, head.Filename, err)
		}
		_, _ = io.WriteString(w, `{"text":" call me back "}`)
	}))
	t.Cleanup(server.Close)
	words, err := transcribe.New(transcribe.Config{BaseURL: server.URL + "/v1/", APIKey: "key", Model: "whisper"}).Words(t.Context(), "voice.ogg", []byte("OggS"))
	if err != nil || words != "call me back" || asked != 2 {
		t.Errorf("%q after %d requests, %v", words, asked, err)
	}
}

func TestARefusedRecordingIsAskedOnce(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, `{"error":{"message":"bad key sk-secret"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	_, err := transcribe.New(transcribe.Config{BaseURL: server.URL, APIKey: "sk-secret", Model: "m"}).Words(t.Context(), "v.ogg", []byte("x"))
	if !errors.Is(err, transcribe.ErrRefused) || asked != 1 || strings.Contains(err.Error(), "secret") {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
