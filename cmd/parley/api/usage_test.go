package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/sessions"
)

// Who may read everything reads what it has cost; nobody else.
func TestUsage(t *testing.T) {
	x := newRig(t)
	used := entry(t, "t1", sessions.KindUsage, sessions.Usage{Model: "m1", Agent: "main", Input: 100, Cached: 40, Output: 10, Reasoning: 4, Cost: new(int64(250))})
	used.At, used.Person = time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC), "slack:U1"
	x.write("main:slack:C1", used)
	for _, token := range []string{ciToken, chatToken, scrapeTok} {
		if status, _ := x.askFor(token, http.MethodGet, "/v1/usage", ""); status != http.StatusForbidden {
			t.Errorf("%s may read it: %d", token, status)
		}
	}
	const sum = `"calls":1,"input":100,"cached":40,"output":10,"reasoning":4,"microdollars":250,"estimated":0,"unpriced":0}`
	for query, want := range map[string]string{
		"?from=2026-05-06&to=2026-05-06":           `{"usage":[{"key":"2026-05-06",` + sum + `],"prices":"2026-06-20"}`,
		"?by=person&from=2026-05-01&to=2026-05-31": `{"usage":[{"key":"slack:U1",` + sum + `],"prices":"2026-06-20"}`,
		"?by=model&from=2026-05-07&to=2026-05-08":  `{"usage":[],"prices":"2026-06-20"}`,
	} {
		if status, body := x.askFor(readToken, http.MethodGet, "/v1/usage"+query, ""); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	for _, query := range []string{"?by=colour", "?from=yesterday", "?to=2026-02-30"} {
		if status, body := x.askFor(readToken, http.MethodGet, "/v1/usage"+query, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}
