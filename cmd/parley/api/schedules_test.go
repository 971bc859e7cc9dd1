package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/sessions/schedules"
)

// Who may do everything sees what is scheduled, and cancels it; nobody else.
func TestSchedules(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Schedules = x.store.Schedules() })
	now := time.Now().Truncate(time.Second)
	for id, session := range map[string]string{"aaaaaaaaaa": "main:slack:C1", "bbbbbbbbbb": "main:slack:C2"} {
		_, err := x.store.Schedules().Add(t.Context(), schedules.Schedule{
			ID: id, Session: session, Person: "slack:U1", Address: "slack:C1", When: "every 1h", Zone: "UTC", Text: "look", Made: now, Next: now.Add(time.Hour),
		}, 9)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, token := range []string{ciToken, chatToken, readToken} {
		if status, _ := x.askFor(token, http.MethodGet, "/v1/schedules", ""); status != http.StatusForbidden {
			t.Errorf("%s may list them: %d", token, status)
		}
		if status, _ := x.askFor(token, http.MethodDelete, "/v1/schedules/aaaaaaaaaa", ""); status != http.StatusForbidden {
			t.Errorf("%s may cancel one: %d", token, status)
		}
	}
	status, body := x.askFor(adminToken, http.MethodGet, "/v1/schedules?session=main:slack:C1", "")
	if status != http.StatusOK || !strings.Contains(body, `"id":"aaaaaaaaaa","when":"every 1h","text":"look"`) || strings.Contains(body, "bbbbbbbbbb") {
		t.Errorf("listed: %d %s", status, body)
	}
	if status, body := x.askFor(adminToken, http.MethodDelete, "/v1/schedules/aaaaaaaaaa", ""); status != http.StatusNoContent {
		t.Errorf("cancelled: %d %s", status, body)
	}
	if status, body := x.askFor(adminToken, http.MethodDelete, "/v1/schedules/aaaaaaaaaa", ""); status != http.StatusNotFound {
		t.Errorf("cancelled again: %d %s", status, body)
	}
	if _, body := x.askFor(adminToken, http.MethodGet, "/v1/schedules", ""); strings.Contains(body, "aaaaaaaaaa") || !strings.Contains(body, "bbbbbbbbbb") {
		t.Errorf("left: %s", body)
	}
}
