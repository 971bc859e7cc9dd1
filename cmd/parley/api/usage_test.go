package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
)

// Only callers who may read everything get the usage and its cost.
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
	now := time.Now()
	for id, cost := range map[string]int64{"t2#1.1.0": 150_000, "t1#1.1.0": 50_000} {
		r := bill.Reservation{ID: id, Session: "main:slack:C1", Cost: cost, Caps: []bill.Cap{{Limit: 20_000_000}}, At: now}
		if err := x.store.Money().Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if id == "t1#1.1.0" {
			if err := x.store.Money().Settle(t.Context(), r, 250); err != nil {
				t.Fatal(err)
			}
		}
	}
	const caps = `"caps":[{"of":"all","span":"day","setting":"[budget] day","most_microdollars":20000000,"spent_microdollars":250,"reserved_microdollars":150000}],`
	const sum = `"calls":1,"input":100,"cached":40,"output":10,"reasoning":4,"microdollars":250,"estimated":0,"unpriced":0}`
	for query, want := range map[string]string{
		"?from=2026-05-06&to=2026-05-06":                   `{"usage":[{"key":"2026-05-06",` + sum + `],` + caps + `"prices":"2026-06-20"}`,
		"?by=person&from=2026-05-01&to=2026-05-31":         `{"usage":[{"key":"slack:U1",` + sum + `],` + caps + `"prices":"2026-06-20"}`,
		"?by=hour&from=2026-05-06&to=2026-05-06":           `{"usage":[{"key":"2026-05-06T12",` + sum + `],` + caps + `"prices":"2026-06-20"}`,
		"?by=day,model&from=2026-05-06&to=2026-05-06":      `{"usage":[{"key":"2026-05-06","then":"m1",` + sum + `],` + caps + `"prices":"2026-06-20"}`,
		"?by=session,person&from=2026-05-06&to=2026-06-01": `{"usage":[{"key":"main:slack:C1","then":"slack:U1",` + sum + `],` + caps + `"prices":"2026-06-20"}`,
		"?by=model&from=2026-05-07&to=2026-05-08":          `{"usage":[],` + caps + `"prices":"2026-06-20"}`,
	} {
		if status, body := x.askFor(readToken, http.MethodGet, "/v1/usage"+query, ""); status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	for _, query := range []string{"?by=colour", "?by=day,colour", "?by=day,", "?by=day,model,agent", "?from=yesterday", "?to=2026-02-30"} {
		if status, body := x.askFor(readToken, http.MethodGet, "/v1/usage"+query, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}
