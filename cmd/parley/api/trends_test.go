package api_test

import (
	"net/http"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/activity"
)

// Callers who may read everything get the activity over time, as far back as the description says.
func TestActivity(t *testing.T) {
	x := newRig(t)
	for i, done := range []sessions.TurnDone{
		{State: sessions.TurnCompleted, Figures: &sessions.TurnFigures{TookMS: 4000, FirstMS: 900, Calls: []sessions.CallsCount{{Tool: "shell", Outcome: sessions.CallFailed, N: 2}}}},
		{State: sessions.TurnFailed, Code: "model"},
	} {
		turn := "turn" + string(rune('a'+i))
		x.write("main:telegram:7", entry(t, turn, sessions.KindTurnStarted, sessions.TurnStarted{}), entry(t, turn, sessions.KindTurnDone, done))
	}
	for _, query := range []string{"", "?by=hour", "?by=day", "?by=day&since=" + time.Now().AddDate(0, 0, -89).UTC().Format(time.RFC3339)} {
		got := into[activity.Summary](t, x.get("/v1/activity"+query, readToken))
		if len(got.Sums) != 1 || got.Total.Turns != (activity.Turns{Done: 1, Failed: 1}) || got.Total.Answer.Count != 1 || got.Total.First.P50 == 0 || got.Total.Failed != 2 {
			t.Errorf("%q: %+v", query, got)
		}
		if len(got.Total.Tools) != 1 || got.Sums[0].Tools[0].Outcomes[sessions.CallFailed] != 2 {
			t.Errorf("%q: tools %+v", query, got.Total.Tools)
		}
	}
	later := into[activity.Summary](t, x.get("/v1/activity?since="+time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339), adminToken))
	if len(later.Sums) != 0 || later.Sums == nil || later.Total.Tools == nil || later.Total.Turns.Done != 0 {
		t.Errorf("since later: %+v", later)
	}
	for _, query := range []string{"?by=week", "?since=yesterday", "?since=" + time.Now().AddDate(0, 0, -15).UTC().Format(time.RFC3339), "?by=day&since=2020-01-01T00:00:00Z"} {
		if r := x.get("/v1/activity"+query, readToken); r.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d %s", query, r.StatusCode, r.body)
		}
	}
	for _, token := range []string{chatToken, opsToken, ""} {
		if r := x.get("/v1/activity", token); r.StatusCode != http.StatusForbidden && r.StatusCode != http.StatusUnauthorized {
			t.Errorf("token %q: %d", token, r.StatusCode)
		}
	}
	if r := ownRig(t).get("/v1/activity", ownToken); r.StatusCode != http.StatusForbidden {
		t.Errorf("own: %d", r.StatusCode)
	}
}
