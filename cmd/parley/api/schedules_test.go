package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	planner "parley/agent/schedules"
	"parley/bus"
	"parley/bus/bustest"
	"parley/cmd/parley/api"
	"parley/sessions"
	"parley/sessions/schedules"
)

// planning makes a rig run schedules for everybody except slack:USTRANGER.
func planning(x *rig) {
	planningWhile(x, func() string { return "" }, func(person string) bool { return person != "slack:USTRANGER" })
}

// planningWhile makes a rig run schedules for the people who are admitted, while whyNot returns no reason against it.
func planningWhile(x *rig, whyNot func() string, admitted func(person string) bool) {
	scheduler := planner.New(planner.Config{
		Bus: x.bus, Table: x.store.Schedules(), Log: slog.New(slog.DiscardHandler),
		Limits: func() planner.Limits {
			return planner.Limits{MaxPerPerson: 2, MinInterval: time.Minute, Zone: "Europe/Berlin"}
		},
		Ready: func(context.Context) (string, error) { return whyNot(), nil },
		Admit: func(_ context.Context, who bus.Person, _ bus.Address) (bus.Caller, bool, error) {
			return bus.Caller{Person: who}, admitted(who.ID), nil
		},
	})
	x.cfg.Schedules = api.Schedules{Kept: x.store.Schedules(), Maker: scheduler, Runs: x.store.ScheduleRuns}
}

// Only admins may list and cancel all schedules.
func TestSchedules(t *testing.T) {
	x := newRig(t, planning)
	now := time.Now().Truncate(time.Second)
	for id, session := range map[string]string{"aaaaaaaaaa": "main:slack:C1", "bbbbbbbbbb": "main:slack:C2"} {
		_, err := x.store.Schedules().Add(t.Context(), schedules.Schedule{
			ID: id, Session: session, Person: "slack:U1", Address: "slack:C1", When: "every 1h", Zone: "UTC", Text: "look", MadeAt: now, Next: now.Add(time.Hour),
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

// A scheduled is a schedule as the API returns it.
type scheduled struct {
	ID, When, Text, Session, Person string
	Zone                            string `json:"time_zone"`
	Next, Paused                    *time.Time
	Runs                            []struct{ ID, Turn, State, Code, Due string }
}

// A request makes one schedule for each Idempotency-Key, only for people who may have one, and none in a session that
// can't exist.
func TestAScheduleIsMadeByARequest(t *testing.T) {
	x := newRig(t, planning)
	const shared = "main:slack:C1"
	x.write(shared, sessions.Entry{Turn: "t", Kind: sessions.KindUser, Data: []byte(`{"text":"hi"}`)})
	body := func(session, more string) string {
		return fmt.Sprintf(`{"session": %q, "when": "0 9 * * mon-fri", "text": "look"%s}`, session, more)
	}
	for _, token := range []string{opsToken, chatToken, readToken} {
		if r := x.do("POST", "/v1/schedules", token, body(shared, "")); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s may make one: %d", token, r.StatusCode)
		}
	}
	for _, c := range []struct {
		body, code string
		status     int
	}{
		{body("main:slack:C9", `, "person": "slack:U1"`), "unknown_session", 422},
		{body("C1", `, "person": "slack:U1"`), "bad_session", 422},
		{body("none:slack:C1", `, "person": "slack:U1"`), "unknown_agent", 422},
		{body(shared, ""), "missing_field", 422},
		{body(shared, `, "person": "slack:USTRANGER"`), "not_admitted", 409},
		{body("main:web:chat", `, "person": "slack:U1"`), "bad_person", 422},
		{body("main:web:chat", `, "time_zone": "Mars/Base"`), "bad_time_zone", 422},
		{`{"session": "main:web:chat", "when": "every 1s", "text": "look"}`, "bad_when", 422},
		{`{"session": "main:web:chat", "when": "every 1h", "text": ""}`, "bad_text", 422},
		{`{"session": "main:web:chat", "wen": "every 1h"}`, "unknown_field", 422},
	} {
		if r := x.do("POST", "/v1/schedules", adminToken, c.body); r.StatusCode != c.status || r.code() != c.code {
			t.Errorf("%s: %d %s", c.body, r.StatusCode, r.body)
		}
	}
	key := header("Idempotency-Key", "k")
	first := x.do("POST", "/v1/schedules", adminToken, body(shared, `, "person": "slack:U1"`), key)
	again := x.do("POST", "/v1/schedules", adminToken, body(shared, `, "person": "slack:U1"`), key)
	made := into[scheduled](t, first)
	if first.StatusCode != http.StatusCreated || into[scheduled](t, again).ID != made.ID || made.Person != "slack:U1" || made.Zone != "Europe/Berlin" || made.Next == nil {
		t.Errorf("made is %s, and again %d %s", first.body, again.StatusCode, again.body)
	}
	if r := x.do("POST", "/v1/schedules", adminToken, body(shared, `, "person": "slack:U2"`), key); r.StatusCode != http.StatusConflict || r.code() != "other_body" {
		t.Errorf("another body under the key: %d %s", r.StatusCode, r.body)
	}
	own := x.do("POST", "/v1/schedules", adminToken, body("main:web:chat", ""), key, header("Authorization", "Bearer "+ownerToken))
	if made := into[scheduled](t, own); own.StatusCode != http.StatusCreated || made.Person != "web:chat" {
		t.Errorf("in the session of a token: %d %s", own.StatusCode, own.body)
	}
	x.do("POST", "/v1/schedules", adminToken, body(shared, `, "person": "slack:U1"`))
	if r := x.do("POST", "/v1/schedules", adminToken, body(shared, `, "person": "slack:U1"`)); r.StatusCode != http.StatusConflict || r.code() != "too_many" {
		t.Errorf("a third of two: %d %s", r.StatusCode, r.body)
	}
	page := into[struct {
		Schedules []scheduled
		Next      string
	}](t, x.get("/v1/schedules?limit=2", adminToken))
	rest := into[struct {
		Schedules []scheduled
		Next      string
	}](t, x.get("/v1/schedules?limit=2&after="+page.Next, adminToken))
	if len(page.Schedules) != 2 || page.Next == "" || len(rest.Schedules) != 1 || rest.Next != "" {
		t.Errorf("in pages: %+v %+v", page, rest)
	}
	if r := x.get("/v1/schedules?after=yesterday", adminToken); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("after anything: %d %s", r.StatusCode, r.body)
	}
}

// A client that repeats a request because it got no answer gets the schedule of its first request, whatever has
// changed since.
func TestARepeatedRequestGetsItsSchedule(t *testing.T) {
	var older, lost, gone atomic.Bool
	x := newRig(t, func(x *rig) {
		planningWhile(x, func() string {
			if older.Load() {
				return "a process of an older release runs"
			}
			return ""
		}, func(string) bool { return !lost.Load() })
		x.cfg.Agent.Models = func() map[string]bool { return map[string]bool{"main": !gone.Load()} }
	})
	key := header("Idempotency-Key", "k")
	post := func(body string) reply { return x.do("POST", "/v1/schedules", adminToken, body, key) }
	const body = `{"session": "main:web:chat", "when": "every 1h", "text": "look"}`
	made := into[scheduled](t, post(body))
	wants := func(what, body, when string) {
		t.Helper()
		if r := post(body); r.StatusCode != http.StatusCreated || into[scheduled](t, r).ID != made.ID || into[scheduled](t, r).When != when {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.body)
		}
		if r := post(body + " "); r.StatusCode != http.StatusConflict || r.code() != "other_body" {
			t.Errorf("%s, with another body: %d %s", what, r.StatusCode, r.body)
		}
	}
	for what, changed := range map[string]*atomic.Bool{"beside an older process": &older, "without access": &lost, "without the agent": &gone} {
		changed.Store(true)
		wants(what, body, "every 1h")
		changed.Store(false)
	}
	const past = `{"session": "main:web:chat", "when": "2020-01-01T09:00:00Z", "text": "look"}`
	sum, kept := sha256.Sum256([]byte(past)), x.store.Schedules()
	if err := kept.Remove(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	_, err := kept.Add(t.Context(), schedules.Schedule{ // a schedule that has run and is over
		ID: made.ID, Session: made.Session, Person: made.Person, Address: "web:chat", When: "2020-01-01T09:00:00Z", Zone: "UTC", Text: "look",
		Request: hex.EncodeToString(sum[:]), MadeAt: time.Now(),
	}, 9)
	if err != nil {
		t.Fatal(err)
	}
	wants("after its time", past, "2020-01-01T09:00:00Z")
	other := header("Idempotency-Key", "other")
	for range 2 { // one of the two that a person may have
		x.do("POST", "/v1/schedules", adminToken, body)
	}
	wants("with the most schedules", past, "2020-01-01T09:00:00Z")
	if r := x.do("POST", "/v1/schedules", adminToken, past, other); r.StatusCode != http.StatusUnprocessableEntity || r.code() != "bad_when" {
		t.Errorf("a new one after its time: %d %s", r.StatusCode, r.body)
	}
}

// Watchers of the server learn in which session a schedule was canceled over HTTP.
func TestWatchersLearnWhichScheduleIsCancelled(t *testing.T) {
	x := newRig(t, planning)
	made := into[scheduled](t, x.do("POST", "/v1/schedules", adminToken, `{"session": "main:web:chat", "when": "every 1h", "text": "look"}`))
	news := bustest.News(t, x.bus)
	if r := x.do("DELETE", "/v1/schedules/"+made.ID, adminToken, ""); r.StatusCode != http.StatusNoContent {
		t.Fatalf("cancelled: %d %s", r.StatusCode, r.body)
	}
	want := fmt.Sprintf("schedule session=main:web:chat turn= id=%s kind= state=cancelled", made.ID)
	deadline := time.Now().Add(2 * time.Minute)
	for tick := time.Tick(10 * time.Millisecond); !slices.Contains(news(), want); <-tick {
		if time.Now().After(deadline) {
			t.Fatalf("told are %q, want %q", news(), want)
		}
	}
}

// A request changes, pauses or resumes a schedule, and runs it once for each Idempotency-Key. The API shows the
// schedule with its runs.
func TestAScheduleIsChangedAndRun(t *testing.T) {
	x := newRig(t, planning)
	made := into[scheduled](t, x.do("POST", "/v1/schedules", adminToken, `{"session": "main:web:chat", "when": "every 1h", "text": "look"}`))
	path := "/v1/schedules/" + made.ID
	for _, c := range []struct {
		body string
		want func(scheduled) bool
	}{
		{`{"paused": true}`, func(s scheduled) bool { return s.Paused != nil && s.Next == nil }},
		{`{"text": "look again", "when": "every 2h"}`, func(s scheduled) bool { return s.Paused != nil && s.Text == "look again" && s.When == "every 2h" }},
		{`{"paused": false, "time_zone": "UTC"}`, func(s scheduled) bool { return s.Paused == nil && s.Next != nil && s.Zone == "UTC" }},
	} {
		if r := x.do("PATCH", path, adminToken, c.body); r.StatusCode != http.StatusOK || !c.want(into[scheduled](t, r)) {
			t.Errorf("%s: %d %s", c.body, r.StatusCode, r.body)
		}
	}
	for _, body := range []string{`{}`, `{"when": "every 1s"}`, `{"next": "now"}`} {
		if r := x.do("PATCH", path, adminToken, body); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
	for _, method := range []string{"GET", "PATCH"} {
		if r := x.do(method, "/v1/schedules/none", adminToken, `{"paused": true}`); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s of none: %d %s", method, r.StatusCode, r.body)
		}
		if r := x.do(method, path, readToken, `{"paused": true}`); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s with read: %d %s", method, r.StatusCode, r.body)
		}
	}
	key := header("Idempotency-Key", "now")
	first, again := x.do("POST", path+"/run", adminToken, "", key), x.do("POST", path+"/run", adminToken, "", key)
	run := into[struct{ ID, Session string }](t, first)
	if first.StatusCode != http.StatusAccepted || string(first.body) != string(again.body) || run.Session != "main:web:chat" {
		t.Errorf("run: %d %s, and again %s", first.StatusCode, first.body, again.body)
	}
	l, mail := x.claim(bus.InboundTopic)
	in, err := bus.DecodeInbound(mail[0].Body)
	if err != nil || len(mail) != 1 || in.ID != run.ID || in.Kind != bus.Scheduled || in.Text != "look again" || in.Schedule != made.ID || in.From.ID != "web:chat" {
		t.Errorf("said are %d, %+v, %v", len(mail), in, err)
	}
	x.settle(l, bus.End{Done: mail[0].Seq})
	if r := x.do("POST", path+"/run", readToken, ""); r.StatusCode != http.StatusForbidden {
		t.Errorf("run with read: %d", r.StatusCode)
	}

	slot := schedules.SlotID(made.ID, time.Unix(1_800_000_000, 0))
	x.write("main:web:chat",
		sessions.Entry{Turn: "a", Kind: sessions.KindUser, Cause: slot, Data: []byte(`{"text":"look"}`)},
		sessions.Entry{Turn: "a", Kind: sessions.KindTurnDone, Data: []byte(`{"state":"failed","code":"model"}`)},
		sessions.Entry{Turn: "b", Kind: sessions.KindUser, Cause: run.ID, Data: []byte(`{"text":"look again"}`)})
	shown := into[scheduled](t, x.get(path, adminToken))
	if len(shown.Runs) != 2 || shown.Runs[0].ID != run.ID || shown.Runs[0].State != "running" || shown.Runs[0].Due != "" ||
		shown.Runs[1].Turn != "a" || shown.Runs[1].State != "failed" || shown.Runs[1].Code != "model" || shown.Runs[1].Due != "2027-01-15T08:00:00Z" {
		t.Errorf("shown is %+v", shown)
	}
	if one := into[scheduled](t, x.get(path+"?limit=1", adminToken)); len(one.Runs) != 1 || one.Runs[0].ID != run.ID {
		t.Errorf("the newest of them is %+v", one)
	}
}
