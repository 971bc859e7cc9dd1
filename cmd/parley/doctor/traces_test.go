package doctor

import (
	"net/http"
	"strings"
	"testing"

	"parley/bus/trace/otlp/otlptest"
	"parley/cmd/parley/config"
)

func TestDoctorOnTraces(t *testing.T) {
	cfg := &config.Config{}
	if got := checkTraces(t.Context(), cfg); got != nil {
		t.Errorf("without traces: %+v", got)
	}
	c := otlptest.New(t)
	cfg.Trace = config.Trace{Endpoint: c.Endpoint() + "/", Headers: []string{"X-Key: one"}}
	want := func(state, detail string) {
		t.Helper()
		got := checkTraces(t.Context(), cfg)
		if len(got) != 1 || got[0].State != state || !strings.Contains(got[0].Detail, detail) || (state == wrong) != (got[0].Remedy != "") {
			t.Errorf("it finds %+v, want %s, %q", got, state, detail)
		}
	}
	want(fine, "accepts traces")
	if got := c.Requests()[0].Get("X-Key"); got != "one" {
		t.Errorf("the collector was shown the key %q", got)
	}
	cfg.Trace.Text = true
	want(fine, "with what is said")
	c.AnswerNext(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	want(wrong, "HTTP 401")
	cfg.Trace.Endpoint = "http://127.0.0.1:1"
	want(wrong, "127.0.0.1:1 doesn't accept")
}
