package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/asks"
	"parley/cmd/parley/api"
	"parley/sessions"
)

const approveToken = "approve-secret"

// askRig returns a rig that answers asks, and that holds asks of two people.
func askRig(t *testing.T) *rig {
	x := newRig(t, func(x *rig) {
		service := &asks.Service{Bus: x.bus, Book: x.book, Log: slog.New(slog.DiscardHandler)}
		x.cfg.Asks = api.Asks{Open: x.book.OpenAsks, Lookup: x.book.LookupAsk, Answer: service.Answer}
		x.cfg.Audit.Record = func(_ context.Context, r sessions.AuditRecord) error {
			x.audited = append(x.audited, r)
			return nil
		}
		x.cfg.Access.Tokens = func() []api.Token {
			return append(tokens(), api.Token{Name: "gate", Secret: approveToken, May: []string{"approve"}})
		}
	})
	now := time.Now()
	for id, a := range map[string]bus.Ask{
		"aaaaaaaaaa": {Kind: bus.AskApproval, Person: "slack:U1", Tool: "sh", Arguments: []byte(`{"command":"x"}`)},
		"bbbbbbbbbb": {Kind: bus.AskApproval, Person: "web:gate", Tool: "sh"},
		"cccccccccc": {Kind: bus.AskQuestion, Person: "web:chat", Question: "Which?"},
	} {
		a.ID, a.Session, a.Turn, a.Made, a.Expires = id, "main:slack:C1", "t", now, now.Add(time.Hour)
		a.At = bus.Address{Channel: "slack", Chat: "C1"}
		if err := x.book.OpenAsk(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func (x *rig) askFor(token, method, path, body string) (int, string) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), method, x.base+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := x.client.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

// The list of asks shows callers the asks that they may answer. Callers who may read everything see all asks, and see
// them live, too.
func TestAsksAreListedForThoseWhoMaySeeThem(t *testing.T) {
	x := askRig(t)
	for token, want := range map[string]string{
		ownerToken: "aaaaaaaaaa bbbbbbbbbb cccccccccc", approveToken: "aaaaaaaaaa bbbbbbbbbb cccccccccc", chatToken: "cccccccccc",
		readToken: "aaaaaaaaaa bbbbbbbbbb cccccccccc", opsToken: "403",
	} {
		status, body := x.askFor(token, http.MethodGet, "/v1/asks?session=main:slack:C1", "")
		for id := range strings.FieldsSeq(want) {
			if id != "403" && !strings.Contains(body, id) || id == "403" && status != 403 {
				t.Errorf("%s got %d %s, want %s", token, status, body, want)
			}
		}
		if want == "cccccccccc" && strings.Contains(body, "aaaaaaaaaa") {
			t.Errorf("%s sees another's: %s", token, body)
		}
	}
}

// An ask shows what its call would do, as people see it: invisible characters as escapes, and arguments with
// duplicate names in full.
func TestAnAskSaysWhatWouldRun(t *testing.T) {
	x := askRig(t)
	for id, a := range map[string]bus.Ask{
		"dddddddddd": {Shown: "ls -l\nrm x", ShownOf: []string{"command"}, Arguments: []byte(`{"command":"ls -l\nrm x","dir":"a\u202eb","n":2}`)},
		"eeeeeeeeee": {Shown: "ls", ShownOf: []string{"command"}, Arguments: []byte(`{"command":"ls","command":"rm"}`)},
	} {
		a.ID, a.Kind, a.Tool, a.Person, a.Session, a.Turn, a.Made, a.Expires = id, bus.AskApproval, "sh", "slack:U1", "main:slack:C9", "t", time.Now(), time.Now().Add(time.Hour)
		if err := x.book.OpenAsk(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	_, body := x.askFor(ownerToken, http.MethodGet, "/v1/asks?session=main:slack:C9", "")
	for _, want := range []string{
		`"shown":[{"text":"ls -l\nrm x"},{"name":"dir","text":"a\\u202eb"},{"name":"n","text":"2"}]`,
		`"shown":[{"text":"{\"command\":\"ls\",\"command\":\"rm\"}"}]`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
}

func TestAnAskIsAnsweredOnce(t *testing.T) {
	x := askRig(t)
	for _, c := range []struct {
		token, id, body string
		want            int
		says            string
	}{
		{approveToken, "zzzzzzzzzz", `{"answer":"approve"}`, 404, "no such request"},
		{chatToken, "aaaaaaaaaa", `{"answer":"approve"}`, 404, "no such request"},
		{approveToken, "aaaaaaaaaa", `{"answer":"perhaps"}`, 422, "bad_answer"},
		{approveToken, "bbbbbbbbbb", `{"answer":"approve"}`, 403, "same token"},
		{approveToken, "cccccccccc", `{"answer":"red"}`, 403, "who started the turn"},
		{approveToken, "aaaaaaaaaa", `{"answer":"deny","reason":"no"}`, 200, `"by":"web:gate"`},
		{ownerToken, "aaaaaaaaaa", `{"answer":"approve"}`, 409, "denied by gate (web:gate)"},
		{chatToken, "cccccccccc", `{"answer":"red"}`, 200, `"answer":"red"`},
		{ownerToken, "bbbbbbbbbb", `{"answer":"session"}`, 200, `"state":"answered"`},
	} {
		status, body := x.askFor(c.token, http.MethodPost, "/v1/asks/"+c.id, c.body)
		if status != c.want || !strings.Contains(body, c.says) {
			t.Errorf("%s answers %s with %s: %d %s, want %d and %q", c.token, c.id, c.body, status, body, c.want, c.says)
		}
	}
	want := []sessions.AuditRecord{
		{By: "token:gate", Detail: "aaaaaaaaaa", Tool: "sh", Result: "denied"},
		{By: "token:chat", Detail: "cccccccccc", Result: "answered"},
		{By: "token:owner", Detail: "bbbbbbbbbb", Tool: "sh", Result: "approved for the session"},
	}
	for i := range want {
		want[i].Kind, want[i].Session = sessions.AuditApproval, "main:slack:C1"
	}
	if !reflect.DeepEqual(x.audited, want) {
		t.Errorf("the audit has %+v, want %+v", x.audited, want)
	}
	if d, err := x.bus.Depth(t.Context(), bus.InboundTopic); err != nil || d.Waiting != 3 {
		t.Errorf("the session was told %+v, %v", d, err)
	}
}
