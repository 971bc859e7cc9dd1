package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/bus"
	"parley/cmd/parley/api"
	"parley/sessions"
)

const peoplesSession = "main:slack:C1:17.5"

// answering returns the body of a request in which an operator answers in a session.
func answering(session, text string) string {
	return fmt.Sprintf(`{"session": %q, "as": "operator", "text": %q}`, session, text)
}

// withConversation returns a rig that records the audit, with a session in which a person has spoken to the agent on
// Slack.
func withConversation(t *testing.T) *rig {
	t.Helper()
	x := newRig(t, func(x *rig) {
		x.cfg.Audit = api.Audit{Record: func(_ context.Context, r sessions.AuditRecord) error {
			x.audited = append(x.audited, r)
			return nil
		}}
	})
	x.say(peoplesSession, "slack:U1", "it is broken")
	return x
}

func TestAnOperatorAnswersInASession(t *testing.T) {
	x := withConversation(t)
	same := header("Idempotency-Key", "k1")
	r := x.post(adminToken, answering(peoplesSession, "I am **looking** into it"), same)
	again := x.post(adminToken, answering(peoplesSession, "I am **looking** into it"), same)
	if r.StatusCode != http.StatusAccepted || string(again.body) != string(r.body) {
		t.Fatalf("%d %s, and again %s", r.StatusCode, r.body, again.body)
	}
	got := into[accepted](t, r)
	if got.Session != peoplesSession || len(got.Destinations) != 1 || got.Destinations[0].Address != "slack:C1/17.5" {
		t.Errorf("accepted %s", r.body)
	}
	_, mail := x.claim(bus.OutboundTopic("slack"))
	out, err := bus.DecodeOutbound(mail[0].Body)
	if err != nil || len(mail) != 1 {
		t.Fatalf("%d messages, %v", len(mail), err)
	}
	if out.Text != "**Operator (`boss`):**\n\nI am **looking** into it" || out.Session != peoplesSession || out.Turn != "" || len(out.Fallback) > 0 || out.Told == nil {
		t.Fatalf("published %+v", out)
	}
	if told := out.Told; !told.Operator || !told.Own || told.Words != "I am **looking** into it" || told.For.ID != "web:boss" || told.Post != got.ID {
		t.Errorf("it tells %+v", told)
	}
	want := sessions.AuditRecord{Kind: "operator", By: "token:boss", Session: peoplesSession, Detail: got.ID, Result: "answered"}
	if len(x.audited) == 0 || fmt.Sprint(x.audited[0]) != fmt.Sprint(want) {
		t.Errorf("the audit has %+v, want %+v", x.audited, want)
	}
	if r := x.get("/v1/messages/"+got.ID, adminToken); !strings.Contains(string(r.body), "queued") {
		t.Errorf("its state: %d %s", r.StatusCode, r.body)
	}
	x.quietAbout("looking")
	x.post(opsToken, `{"to": "ci", "text": "x"}`)
	if n := len(x.audited); n != 2 {
		t.Errorf("the audit has %d records, want those of the two requests", n)
	}
}

// An answer by the owner's token is signed "Operator", without a name.
func TestTheOwnerAnswersWithoutAName(t *testing.T) {
	x := withConversation(t)
	x.post(ownerToken, answering(peoplesSession, "hello"))
	_, mail := x.claim(bus.OutboundTopic("slack"))
	if out, err := bus.DecodeOutbound(mail[0].Body); err != nil || out.Text != "**Operator:**\n\nhello" || out.Told.For.Name != "" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestAnswersOfOperatorsThatAreRefused(t *testing.T) {
	x := withConversation(t)
	x.say("main:web:boss", "web:boss", "mine")
	x.say("main:discord:1", "discord:2", "on a channel that is gone")
	x.say("gone:slack:C1", "slack:U1", "to an agent that is gone")
	for _, c := range []struct {
		token, body string
		status      int
		code        string
	}{
		{opsToken, answering(peoplesSession, "x"), 403, "forbidden"},
		{chatToken, answering(peoplesSession, "x"), 403, "forbidden"},
		{adminToken, `{"session": "main:slack:C1:17.5", "as": "agent", "text": "x"}`, 422, "bad_as"},
		{adminToken, `{"session": "main:slack:C1:17.5", "as": "operator", "to": "ci", "text": "x"}`, 422, "not_for_operator"},
		{adminToken, `{"session": "main:slack:C1:17.5", "as": "operator", "urgent": true, "text": "x"}`, 422, "not_for_operator"},
		{adminToken, answering(peoplesSession, " \u200b"), 422, "empty"},
		{adminToken, answering("main:slack:C2", "x"), 404, "not_found"},
		{adminToken, answering("slack", "x"), 422, "bad_session"},
		{adminToken, answering("", "x"), 422, "bad_session"},
		{adminToken, answering("main:web:boss", "x"), 422, "not_for_operator"},
		{adminToken, answering("main:discord:1", "x"), 422, "unknown_channel"},
		{adminToken, answering("gone:slack:C1", "x"), 422, "unknown_agent"},
	} {
		if r := x.post(c.token, c.body); r.StatusCode != c.status || r.code() != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.body, r.StatusCode, r.body, c.status, c.code)
		}
	}
	if n := x.waiting(); n > 0 || len(x.audited) > 0 {
		t.Errorf("%d messages wait, and the audit has %+v", n, x.audited)
	}
}

// tellSession publishes the notice by which a session learns what an operator has said.
func (x *rig) tellSession(key, post, words string) {
	x.t.Helper()
	in := bus.Inbound{ID: post + "/0#told", Kind: bus.Notice, At: builds, Of: post, Text: "not you",
		Quotes: []bus.Quote{{Kind: bus.Told, From: bus.Person{ID: "web:boss", Name: "boss"}, Text: words, Own: true, Operator: true}}}
	if err := bus.PublishNotice(x.t.Context(), x.bus, key, in); err != nil {
		x.t.Fatal(err)
	}
}

// Watchers get what an operator said exactly once, whether they watched at that time, came later, or both, and at its
// place among the turns.
func TestWatchersOfAnOperator(t *testing.T) {
	x := newRig(t)
	x.work(brief{})
	const key = "main:web:boss" // a session in which this test can begin a turn
	live := x.watch(key, adminToken, "")
	if e := live.must(); e.kind != "snapshot" || strings.Contains(e.data, "messages") {
		t.Fatalf("%+v", e)
	}
	x.tellSession(key, "m_0", "before all")
	if e := live.must(); e.kind != bus.Spoken || e.data != `{"kind":"operator","delta":"before all","call":"m_0","name":"boss"}` {
		t.Errorf("%+v", e)
	}
	turn := into[accepted](t, x.post(adminToken, `{"to": "agent", "text": "are you there?"}`)).ID
	for live.must().kind != bus.TurnComplete {
	}
	x.tellSession(key, "m_1", "after it")
	for said := false; !said; {
		e := live.must()
		said = e.kind == bus.Spoken && strings.Contains(e.data, "m_1")
	}
	// A worker that takes over the session may publish the same event again.
	x.bus.Emit(bus.Event{Type: bus.Spoken, Session: key, Kind: bus.KindOperator, Call: "m_1", Delta: "after it"})
	x.bus.Emit(bus.Event{Type: bus.Spoken, Session: key, Kind: bus.KindOperator, Call: "m_2", Delta: "the end"})
	if e := live.must(); !strings.Contains(e.data, "m_2") {
		t.Errorf("it is said twice: %+v", e)
	}
	later := x.watch(key, adminToken, "")
	var snap struct {
		Messages []struct {
			Call, Kind, Name, Text, After string
		}
	}
	if err := json.Unmarshal([]byte(later.must().data), &snap); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("[{m_0 operator boss before all } {m_1 operator boss after it %s}]", turn); fmt.Sprint(snap.Messages) != want {
		t.Errorf("the snapshot has %v, want %s", snap.Messages, want)
	}
	x.bus.Emit(bus.Event{Type: bus.Spoken, Session: key, Kind: bus.KindOperator, Call: "m_0", Delta: "before all"})
	x.bus.Emit(bus.Event{Type: bus.Spoken, Session: key, Kind: bus.KindOperator, Call: "m_3", Delta: "more"})
	if e := later.must(); !strings.Contains(e.data, "m_3") {
		t.Errorf("it is said twice: %+v", e)
	}
}

// A snapshot contains the newest messages by operators, up to a maximum number and size, and none that is older than
// the oldest turn in it.
func TestASnapshotBoundsWhatOperatorsSaid(t *testing.T) {
	x := newRig(t)
	const key = "main:web:boss"
	notice := func(n int, words string) sessions.Entry {
		e, err := sessions.NewEntry(fmt.Sprint("n", n), sessions.KindNotice, sessions.Notice{Code: sessions.NoticeOperator, MessageID: fmt.Sprint("m_", n), Quotes: []sessions.Quote{{Text: words}}})
		if err != nil {
			t.Fatal(err)
		}
		e.Cause = fmt.Sprint("c", n)
		return e
	}
	said := func() (ids []string) {
		var snap struct{ Messages []struct{ Call string } }
		f := x.watch(key, adminToken, "")
		defer f.close()
		if err := json.Unmarshal([]byte(f.must().data), &snap); err != nil {
			t.Fatal(err)
		}
		for _, m := range snap.Messages {
			ids = append(ids, m.Call)
		}
		return ids
	}
	var all []sessions.Entry
	for n := range 70 {
		all = append(all, notice(n, "x"))
	}
	x.write(key, all...)
	if got := said(); len(got) != 64 || got[0] != "m_6" || got[63] != "m_69" {
		t.Errorf("of 70, it has %v", got)
	}
	x.write(key, notice(70, strings.Repeat("x", 60<<10)), notice(71, strings.Repeat("x", 100<<10)), notice(72, strings.Repeat("x", 100<<10)), notice(73, strings.Repeat("x", 100<<10)), notice(74, strings.Repeat("x", 100<<10)))
	if got := said(); !slices.Equal(got, []string{"m_71", "m_72", "m_73", "m_74"}) {
		t.Errorf("of long ones, it has %v", got)
	}
	x.writeLong(key, 40)
	if got := said(); len(got) != 0 {
		t.Errorf("of those before the oldest turn, it has %v", got)
	}
}
