package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/config"
)

func TestDoctorOnSpeech(t *testing.T) {
	if got := checkSpeech(t.Context(), &config.Config{}); got != nil {
		t.Errorf("without a server: %+v", got)
	}
	serve := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for _, c := range []struct{ url, state, detail, remedy string }{
		{(&agenttest.Speech{}).Start(t), fine, "tts-1 at http://", ""},
		{serve(http.StatusOK, agenttest.MP3Head), note, "as a file", ""},
		{serve(http.StatusUnauthorized, `{"error":{"message":"sk-secret"}}`), wrong, "HTTP status 401", "api_key"},
		{serve(http.StatusOK, "<html>"), wrong, "not a recording", "base_url"},
		{serve(http.StatusBadGateway, "x"), wrong, "HTTP status 502", "base_url"},
	} {
		got := checkSpeech(t.Context(), &config.Config{Speech: config.Speech{BaseURL: c.url}})
		if len(got) != 1 || got[0].State != c.state || !strings.Contains(got[0].Detail, c.detail) || !strings.Contains(got[0].Remedy, c.remedy) || strings.Contains(got[0].Detail, "secret") {
			t.Errorf("found %+v, want %+v", got, c)
		}
	}
}
