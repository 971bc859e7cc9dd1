package audio_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sashabaranov/go-openai"

	"parley/agent/audio"
)

// The status is known whatever else a server answers, and a redirect leads nowhere.
func TestTheStatusOfAFailure(t *testing.T) {
	for path, want := range map[string]int{"json": http.StatusUnauthorized, "text": http.StatusBadGateway, "away": 0 /* the library takes a redirect for an answer */} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != "/"+path+"/audio/speech" || r.Header.Get("Authorization") != "Bearer key":
				t.Errorf("asked %s with %v", r.URL, r.Header)
			case path == "json":
				http.Error(w, `{"error":{"message":"no"}}`, want)
			case path == "text":
				http.Error(w, "no", want)
			default:
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
			}
		}))
		answer, err := audio.NewClient(s.URL+"/"+path+"/", "key").CreateSpeech(t.Context(), openai.CreateSpeechRequest{})
		if err == nil {
			_ = answer.Close()
		}
		if got := audio.Status(err); got != want || (err == nil) != (want == 0) {
			t.Errorf("%s: the status is %d, %v", path, got, err)
		}
		s.Close()
		if _, err := audio.NewClient(s.URL, "key").CreateSpeech(t.Context(), openai.CreateSpeechRequest{}); err == nil || audio.Status(err) != 0 {
			t.Errorf("a server that is gone has the status %d, %v", audio.Status(err), err)
		}
	}
}
