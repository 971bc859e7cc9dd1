package speech_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agent/speech"
)

// Beginnings of files, as servers send them.
const (
	opus = "OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x13OpusHead\x01"
	mp3  = "ID3\x04\x00"
)

// server answers the nth request, counted from 1, with answer.
func server(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request)) (url string, asked *int) {
	t.Helper()
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		answer(*asked, w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1/", asked
}

func speaker(url string) *speech.Speaker {
	return speech.New(speech.Config{BaseURL: url, APIKey: "sk-secret", Model: "tts", Voice: "alloy"})
}

func TestATextIsReadAloud(t *testing.T) {
	url, asked := server(t, func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/audio/speech" || r.Header.Get("Authorization") != "Bearer sk-secret" {
			t.Errorf("asked %s with %v, %v", r.URL, r.Header, err)
		}
		var got map[string]string
		if err := json.Unmarshal(raw, &got); err != nil || got["model"] != "tts" || got["voice"] != "alloy" || got["input"] != "Hello." || got["response_format"] != "opus" {
			t.Errorf("asked for %s, %v", raw, err)
		}
		_, _ = io.WriteString(w, opus)
	})
	got, err := speaker(url).Record(t.Context(), "Hello.", speech.Opus)
	if err != nil || string(got) != opus || *asked != 2 {
		t.Errorf("%q after %d requests, %v", got, *asked, err)
	}
}

// What a server may have done is not asked for twice, and no error says what the server says.
func TestNothingIsPaidForTwice(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter, r *http.Request)
		want   error
		asked  int
	}{
		{"refused", func(_ int, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"error":{"message":"bad key sk-secret"}}`, http.StatusUnauthorized)
		}, speech.ErrRefused, 1},
		{"redirected", func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, speech.ErrNoAudio, 1},
		{"busy", func(_ int, w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "sk-secret", http.StatusTooManyRequests)
		}, speech.ErrBusy, 2},
		{"something else", func(_ int, w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"sk-secret":1}`) }, speech.ErrNoAudio, 1},
		{"too large", func(_ int, w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, mp3+strings.Repeat("x", 21<<20))
		}, speech.ErrNoAudio, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, asked := server(t, c.answer)
			got, err := speaker(url).Record(t.Context(), "Hello.", speech.MP3)
			if !errors.Is(err, c.want) || got != nil || *asked != c.asked || strings.Contains(err.Error(), "secret") {
				t.Errorf("%d bytes after %d requests, %v", len(got), *asked, err)
			}
		})
	}
}

func TestAServerThatTakesTooLongIsNotWaitedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url, asked := server(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, mp3)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // a panic says as much
		cancel()
		<-r.Context().Done()
	})
	if _, err := speaker(url).Record(ctx, "Hello.", speech.MP3); !errors.Is(err, context.Canceled) || *asked != 1 {
		t.Errorf("after %d requests: %v", *asked, err)
	}
}

func TestContentTellsTheFormat(t *testing.T) {
	for content, want := range map[string]string{
		opus: ".ogg", "OggS\x00\x02vorbis": ".ogg", mp3: ".mp3", "\xff\xfb\x90\x00": ".mp3", "\xff\xf1\x50\x80": "",
		"RIFF\x00\x00\x00\x00WAVEfmt ": ".wav", "fLaC\x00": ".flac", "\x00\x00\x00\x20ftypM4A ": ".m4a", `{"error":1}`: "", "": "", "\xff\xd8\xff\xe0": "",
	} {
		if got := speech.Extension([]byte(content)); got != want || speech.IsOpus([]byte(content)) != (content == opus) {
			t.Errorf("%q is %q, want %q", content, got, want)
		}
	}
}

// A server that can't be reached has certainly done nothing.
func TestAServerThatIsNotThereHasDoneNothing(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := speaker(gone.URL).Record(t.Context(), "Hello.", speech.MP3); !errors.Is(err, speech.ErrBusy) {
		t.Errorf("got %v", err)
	}
}
