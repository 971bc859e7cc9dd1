package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/api"
	"parley/sessions"
)

func entry(t testing.TB, turn string, kind sessions.Kind, data any) sessions.Entry {
	t.Helper()
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// write appends entries to the log of a session.
func (x *rig) write(key string, entries ...sessions.Entry) {
	x.t.Helper()
	log, err := x.store.Open(x.t.Context(), key, 1)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := log.Append(x.t.Context(), log.Next(), entries...); err != nil {
		x.t.Fatal(err)
	}
}

// begun returns the first entries of a turn.
func begun(t testing.TB, turn string) []sessions.Entry {
	t.Helper()
	said := entry(t, turn, sessions.KindUser, sessions.User{Text: "go"})
	said.Cause, said.Person = turn, "web:chat"
	return []sessions.Entry{entry(t, turn, sessions.KindTurnStarted, sessions.TurnStarted{Route: json.RawMessage("{}")}), said}
}

type sessionPage struct {
	Sessions []sessions.Info
	Next     string
}

func TestListSessions(t *testing.T) {
	x := newRig(t)
	for _, key := range []string{"main:slack:C1", "main:web:chat", "main:web:chat:b", "main:web:chatter", "main:web:ci"} {
		x.write(key, begun(t, "t")...)
	}
	list := func(token, query string) (keys []string, next string) {
		t.Helper()
		r := x.get("/v1/sessions"+query, token)
		if r.StatusCode != 200 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		page := into[sessionPage](t, r)
		for _, s := range page.Sessions {
			keys = append(keys, s.Key)
		}
		return keys, page.Next
	}
	if keys, next := list(readToken, ""); len(keys) != 5 || next != "" {
		t.Errorf("%v, next %q", keys, next)
	}
	if keys, _ := list(chatToken, ""); !slices.Equal(keys, []string{"main:web:chat", "main:web:chat:b"}) {
		t.Errorf("a token sees %v", keys)
	}
	var all []string
	for next := ""; ; {
		keys, more := list(readToken, "?limit=2&after="+url.QueryEscape(next))
		all = append(all, keys...)
		if next = more; next == "" {
			break
		}
	}
	if len(all) != 5 {
		t.Errorf("in pages: %v", all)
	}
	for _, q := range []string{"?limit=x", "?limit=0", "?limit=-1"} {
		if r := x.get("/v1/sessions"+q, readToken); r.StatusCode != 400 {
			t.Errorf("%s: %d", q, r.StatusCode)
		}
	}
}

type entryPage struct {
	Key     string
	Entries []sessions.Entry
	Last    int64
	Next    int64
}

func TestReadSession(t *testing.T) {
	x := newRig(t)
	const key = "main:web:chat:b%C3%BCro"
	x.write(key, begun(t, "t")...)
	for n := range 10 {
		x.write(key, entry(t, "t", sessions.KindText, sessions.Text{Text: fmt.Sprint(n)}))
	}
	var all []sessions.Entry
	for after := int64(0); ; {
		r := x.get(sessionPath(key, fmt.Sprintf("?limit=5&after=%d", after)), chatToken)
		page := into[entryPage](t, r)
		if r.StatusCode != 200 || page.Key != key || len(page.Entries) > 5 || page.Last != 12 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		all = append(all, page.Entries...)
		if after = page.Next; after == 0 {
			break
		}
	}
	if len(all) != 12 || all[11].N != 12 || string(all[11].Data) != `{"text":"9"}` {
		t.Errorf("%d entries, the last %+v", len(all), all[len(all)-1])
	}
	r := x.get(sessionPath(key, "/export"), chatToken)
	lines := strings.Split(strings.TrimSuffix(string(r.body), "\n"), "\n")
	var last sessions.Entry
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 12 || last.N != 12 {
		t.Errorf("%d lines, the last %+v, %v", len(lines), last, err)
	}
}

// The ratings of a session's answers come after its last entries.
func TestReadRatings(t *testing.T) {
	x := newRig(t)
	const key = "main:web:chat"
	x.write(key, begun(t, "t")...)
	at := bus.Address{Channel: "web", Chat: "chat"}
	if _, _, err := x.book.Begin(t.Context(), channels.Send{ID: bus.ReplyID("t"), To: at, Session: key, Parts: []channels.SentPart{{Text: "x"}}}); err != nil {
		t.Fatal(err)
	}
	if err := x.book.Mark(t.Context(), bus.ReplyID("t"), 0, channels.SentPart{State: channels.Sent, PlatformID: "1"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := x.book.Rate(t.Context(), channels.Rating{Person: "web:7", At: at, Message: "1", Good: true, Rated: time.Unix(1700000000, 0)}); err != nil {
		t.Fatal(err)
	}
	const rating = `"turn":"t","person":"web:7","good":true,"at":"2023-11-14T22:13:20Z"`
	if r := x.get(sessionPath(key, ""), chatToken); !strings.Contains(string(r.body), `"ratings":[{`+rating+`}]`) {
		t.Errorf("it reads %s", r.body)
	}
	if r := x.get(sessionPath(key, "?limit=1"), chatToken); strings.Contains(string(r.body), "ratings") {
		t.Errorf("the first page reads %s", r.body)
	}
	if r := x.get(sessionPath(key, "/export"), chatToken); !strings.HasSuffix(string(r.body), "\n"+`{"kind":"rating",`+rating+"}\n") {
		t.Errorf("exported is %s", r.body)
	}
}

// A page of a log has a limited size, and the next page has the rest.
func TestReadLongSession(t *testing.T) {
	x := newRig(t)
	const key = "main:web:chat"
	x.write(key, begun(t, "t")...)
	long := strings.Repeat("x", 1<<20)
	for range 6 {
		x.write(key, entry(t, "t", sessions.KindText, sessions.Text{Text: long}))
	}
	r := x.get(sessionPath(key, ""), chatToken)
	page := into[entryPage](t, r)
	if len(page.Entries) != 5 || page.Next != 5 || len(r.body) > 5<<20 {
		t.Errorf("%d entries in %d bytes, next %d", len(page.Entries), len(r.body), page.Next)
	}
	if r := x.get(sessionPath(key, "/export"), chatToken); len(r.body) < 6<<20 {
		t.Errorf("%d bytes exported", len(r.body))
	}
}

// The owner of a session decides who may read it, whether or not it exists.
func TestSessionsAreTheirTokens(t *testing.T) {
	x := newRig(t)
	for _, key := range []string{"main:web:chat", "main:slack:C1"} {
		x.write(key, begun(t, "t")...)
	}
	for _, rest := range []string{"", "/export"} {
		for _, c := range []struct {
			token, key string
			want       int
		}{
			{chatToken, "main:web:chat", 200},
			{chatToken, "main:web:chat:none", 404},
			{chatToken, "main:slack:C1", 403},
			{chatToken, "main:slack:none", 403},
			{chatToken, "no key", 403},
			{readToken, "main:slack:C1", 200},
			{readToken, "main:slack:none", 404},
			{readToken, "no key", 404},
			{ownerToken, "main:slack:C1", 200},
			{opsToken, "main:web:chat", 403},
			{"", "main:web:chat", 401},
		} {
			if r := x.get(sessionPath(c.key, rest), c.token); r.StatusCode != c.want {
				t.Errorf("%s%s by %q: %d, want %d", c.key, rest, c.token, r.StatusCode, c.want)
			}
		}
	}
}

// A tool result that this release can't decode is shown raw, and hides no other entry.
func TestAnUnreadableResultIsShownAsItIs(t *testing.T) {
	x := newRig(t)
	const key = "main:web:chat"
	x.write(key, begun(t, "t")...)
	x.write(key, entry(t, "t", sessions.KindToolResult, []int{1}), entry(t, "t", sessions.KindText, sessions.Text{Text: "after it"}))
	for _, rest := range []string{"", "/export"} {
		r := x.get(sessionPath(key, rest), chatToken)
		if body := string(r.body); r.StatusCode != 200 || !strings.Contains(body, "[1]") || !strings.Contains(body, "after it") || strings.Contains(body, `"result"`) {
			t.Errorf("%s: %d %s", rest, r.StatusCode, body)
		}
	}
}

// A message to the agent has the state "sent" once the log of its session contains it.
func TestStateOfWhatTheAgentIsTold(t *testing.T) {
	x := newRig(t)
	got := into[accepted](t, x.post(chatToken, `{"to": "agent", "text": "hello"}`))
	state := func() accepted { return into[accepted](t, x.get("/v1/messages/"+got.ID, chatToken)) }
	if s := state(); s.Destinations[0].State != channels.Queued || s.Session != got.Session {
		t.Errorf("before: %+v", s)
	}
	x.write(got.Session, begun(t, got.ID)...)
	if s := state(); s.Destinations[0].State != channels.Sent || s.Destinations[0].Address != "web:chat" {
		t.Errorf("after: %+v", s)
	}
	if r := x.get("/v1/messages/"+got.ID, opsToken); r.StatusCode != 404 {
		t.Errorf("another's: %d", r.StatusCode)
	}
}

func TestHealth(t *testing.T) {
	broken := map[string]error{"bus": nil}
	x := newRig(t, func(x *rig) {
		x.cfg.Health.Ready = func(_ context.Context) map[string]error { return broken }
	})
	foreign := header("Host", "evil.example")
	if r := x.do("GET", "/healthz", "", "", foreign); r.StatusCode != 200 {
		t.Errorf("health: %d", r.StatusCode)
	}
	if r := x.do("GET", "/readyz", "", "", foreign); r.StatusCode != 200 || !strings.Contains(string(r.body), `"bus":"ok"`) {
		t.Errorf("ready: %d %s", r.StatusCode, r.body)
	}
	broken["store"] = errors.New("out of reach")
	if r := x.get("/readyz", ""); r.StatusCode != 503 || !strings.Contains(string(r.body), `"store":"out of reach"`) {
		t.Errorf("not ready: %d %s", r.StatusCode, r.body)
	}
}

func TestMetricsAndWebhooks(t *testing.T) {
	x := newRig(t, func(x *rig) {
		x.cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprintln(w, "parley_up 1")
		})
		x.cfg.Webhooks = func() map[string]http.Handler {
			return map[string]http.Handler{"github": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprint(w, `{"id": "m_1", "destinations": []}`)
			})}
		}
	})
	for token, want := range map[string]int{scrapeTok: 200, adminToken: 200, ownerToken: 200, readToken: 403, ciToken: 403, "": 401} {
		if r := x.get("/metrics", token); r.StatusCode != want {
			t.Errorf("metrics by %q: %d", token, r.StatusCode)
		}
	}
	if r := x.do("POST", "/webhooks/github", "", `{}`); r.StatusCode != 202 {
		t.Errorf("webhook: %d %s", r.StatusCode, r.body)
	}
	if r := x.do("POST", "/webhooks/other", "", `{}`); r.StatusCode != 404 {
		t.Errorf("unknown webhook: %d", r.StatusCode)
	}
	if r := x.do("POST", "/webhooks/github", "", `{}`, header("Host", "evil.example")); r.StatusCode != 403 {
		t.Errorf("webhook by another name: %d", r.StatusCode)
	}
}

func TestStatus(t *testing.T) {
	x := newRig(t)
	x.post(ciToken, `{"to": "ci", "text": "x"}`)
	r := x.get("/v1/status", readToken)
	got := into[struct {
		Version, Role string
		Channels      []struct {
			Name string
			Up   bool
		}
		Topics []struct {
			Topic   string
			Waiting int
		}
	}](t, r)
	if got.Version != "test" || len(got.Channels) != 2 || got.Channels[0].Name != "slack" || got.Channels[0].Up ||
		len(got.Topics) != 1 || got.Topics[0].Topic != "outbound/slack" || got.Topics[0].Waiting != 1 {
		t.Errorf("%s", r.body)
	}
}

// The status of current work comes from durable data and is limited in size. A request can leave it out.
func TestStatusOfWork(t *testing.T) {
	x := newRigOf(t, bus.Caps{}, func(x *rig) {
		x.cfg.Health.Work = api.Work{Turns: x.store, Jobs: x.store, Asks: x.book.OldestAsks, Schedules: x.store.Schedules().NextDue}
	})
	for n := range 50 {
		key := fmt.Sprintf("main:telegram:%d", n)
		if err := x.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: fmt.Sprint("m", n), Key: key, Body: []byte("xyzzyplugh")}); err != nil {
			t.Fatal(err)
		}
		ask := bus.Ask{
			ID: fmt.Sprintf("ask%07d", n), Kind: bus.AskQuestion, Session: key, Person: "telegram:7", Question: "xyzzyplugh",
			At: bus.Address{Channel: "telegram", Chat: "7"}, Made: time.Now(), Expires: time.Now().Add(time.Hour),
		}
		if err := x.book.OpenAsk(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	held, _ := x.claim(bus.InboundTopic)
	r := x.get("/v1/status", readToken)
	now := into[api.CurrentWork](t, r)
	if now.Waiting.Count != 49 || len(now.Waiting.List) != 20 || now.Asks.Count != 50 || len(now.Asks.List) != 20 || strings.Join(now.Asks.List[0].Decides, "+") != "telegram:7+owners" {
		t.Errorf("%s", r.body)
	}
	if now.Turns.Count != 1 || now.Turns.List[0].Session != held.Claim().Key || now.Turns.List[0].Turn != "" || now.Turns.List[0].Messages != 1 {
		t.Errorf("a turn that begins is %+v", now.Turns)
	}
	if strings.Contains(string(r.body), "xyzzyplugh") {
		t.Errorf("it says what was said: %s", r.body)
	}
	if r := x.get("/v1/status?brief=true", readToken); r.StatusCode != 200 || strings.Contains(string(r.body), `"turns"`) {
		t.Errorf("in brief: %s", r.body)
	}
}

// The status lists all processes of a fleet, without values that are unknown. A request can leave them out.
func TestStatusOfAFleet(t *testing.T) {
	began := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	var asked atomic.Int64
	x := newRigOf(t, bus.Caps{}, func(x *rig) {
		x.cfg.Health.Fleet = func(context.Context) (*api.Fleet, error) {
			asked.Add(1)
			return &api.Fleet{Shards: 2, Processes: []api.FleetProcess{
				{Name: "A", Role: "gateway", Release: "1.2.0", Host: "one", Started: &began, Holds: []string{"receive/slack"}}, {Name: "B"},
			}}, nil
		}
	})
	const want = `"fleet":{"shards":2,"processes":[{"name":"A","role":"gateway","release":"1.2.0","host":"one","started":"2026-03-04T05:06:07Z","sessions":0,"holds":["receive/slack"]},{"name":"B","sessions":0}]}`
	if r := x.get("/v1/status", readToken); r.StatusCode != 200 || !strings.Contains(string(r.body), want) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.get("/v1/status?brief=true", readToken); r.StatusCode != 200 || strings.Contains(string(r.body), `"fleet"`) || asked.Load() != 1 {
		t.Errorf("in brief: %s", r.body)
	}
}

// Only admins may use the routes of operation.
func TestScopesOfOperation(t *testing.T) {
	x := newRig(t)
	for _, path := range []string{"/v1/dead-letters", "/v1/dead-letters/inbound/x", "/v1/chats", "/v1/pairings"} {
		for _, token := range []string{ciToken, opsToken, chatToken, readToken, scrapeTok} {
			if r := x.get(path, token); r.StatusCode != 403 {
				t.Errorf("%s by %s: %d", path, token, r.StatusCode)
			}
		}
	}
}

type letters struct {
	Letters []struct{ Topic, ID, Key, Reason, Message string }
	More    bool
	Next    string
}

func TestDeadLetters(t *testing.T) {
	x := newRig(t)
	var ids []string
	for range 3 {
		ids = append(ids, into[accepted](t, x.post(ciToken, `{"to": "ci", "text": "hello"}`)).ID+"/0")
	}
	x.post(ownerToken, `{"to": "telegram:1", "text": "hello"}`)
	for _, topic := range []bus.Topic{"outbound/slack", "outbound/telegram"} {
		l, mail := x.claim(topic)
		x.settle(l, bus.End{Dead: mail[len(mail)-1].Seq, Reason: "gone"})
	}
	list := func(query string) letters {
		t.Helper()
		r := x.get("/v1/dead-letters"+query, adminToken)
		if r.StatusCode != 200 || strings.Contains(string(r.body), "hello") {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
		return into[letters](t, r)
	}
	if all := list(""); len(all.Letters) != 4 || all.More || all.Letters[0].ID != ids[0] || all.Letters[0].Reason != "gone" || all.Letters[0].Key != "slack:C0BUILDS" {
		t.Errorf("%+v", all)
	}
	if some := list("?limit=2"); len(some.Letters) != 2 || !some.More || some.Next != "" {
		t.Errorf("%+v", some)
	}
	first := list("?topic=outbound/slack&limit=2")
	rest := list("?topic=outbound/slack&limit=2&after=" + url.QueryEscape(first.Next))
	if len(first.Letters) != 2 || !first.More || len(rest.Letters) != 1 || rest.More || rest.Letters[0].ID != ids[2] {
		t.Errorf("%+v %+v", first, rest)
	}
	newest := list("?topic=outbound/slack&limit=2&order=desc")
	oldest := list("?topic=outbound/slack&limit=2&order=desc&after=" + url.QueryEscape(newest.Next))
	if len(newest.Letters) != 2 || newest.Letters[0].ID != ids[2] || !newest.More || len(oldest.Letters) != 1 || oldest.More || oldest.Letters[0].ID != ids[0] {
		t.Errorf("the newest first: %+v %+v", newest, oldest)
	}
	if all := list("?order=desc&limit=3"); len(all.Letters) != 3 || !all.More || all.Letters[0].Key != "telegram:1" || all.Letters[1].ID != ids[2] {
		t.Errorf("the newest of all first: %+v", all)
	}
	if some := list("?mailbox=telegram:1"); len(some.Letters) != 1 || some.More || some.Letters[0].Key != "telegram:1" {
		t.Errorf("of one mailbox: %+v", some)
	}
	if some := list("?mailbox=slack:C0BUILDS&topic=outbound/slack&limit=1&after=" + url.QueryEscape(ids[0])); len(some.Letters) != 1 || some.Letters[0].ID != ids[1] || some.Next != ids[1] {
		t.Errorf("of one mailbox, in pages: %+v", some)
	}
	if r := x.get("/v1/dead-letters?order=up", adminToken); r.StatusCode != 400 {
		t.Errorf("in no order: %d", r.StatusCode)
	}
	if r := x.get("/v1/dead-letters?after=x", adminToken); r.StatusCode != 400 {
		t.Errorf("after without a topic: %d", r.StatusCode)
	}
	path := func(id string) string { return "/v1/dead-letters/outbound%2Fslack/" + url.PathEscape(id) }
	if r := x.get(path(ids[1]), adminToken); r.StatusCode != 200 || !strings.Contains(string(r.body), `"text":"hello"`) {
		t.Errorf("show: %d %s", r.StatusCode, r.body)
	}
	if r := x.do("POST", path(ids[0])+"/replay", adminToken, ""); r.StatusCode != 202 || !strings.Contains(string(r.body), ids[0]+"~1") {
		t.Errorf("replay: %d %s", r.StatusCode, r.body)
	}
	if r := x.do("DELETE", path(ids[1]), adminToken, ""); r.StatusCode != 204 {
		t.Errorf("drop: %d", r.StatusCode)
	}
	for _, r := range []reply{
		x.get(path(ids[1]), adminToken),
		x.do("DELETE", path(ids[1]), adminToken, ""),
		x.do("POST", path(ids[1])+"/replay", adminToken, ""),
	} {
		if r.StatusCode != 404 {
			t.Errorf("what is not there: %d %s", r.StatusCode, r.body)
		}
	}
	if d, err := x.bus.Depth(t.Context(), "outbound/slack"); err != nil || d.Dead != 1 || d.Waiting != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// wantChatPages fails the test unless the API lists the chats telegram:-10033 and telegram:7 page by page.
func wantChatPages(t *testing.T, x *rig) {
	t.Helper()
	for _, c := range []struct{ query, first, next string }{
		{"?limit=1", "telegram:-10033", "telegram:-10033"},
		{"?limit=1&after=telegram:-10033", "telegram:7", ""},
		{"?limit=2&channel=telegram", "telegram:-10033", ""},
	} {
		page := into[struct {
			Chats []struct{ Address string }
			Next  string
		}](t, x.get("/v1/chats"+c.query, adminToken))
		if len(page.Chats) == 0 || page.Chats[0].Address != c.first || page.Next != c.next {
			t.Errorf("%s: %+v", c.query, page)
		}
	}
	if r := x.get("/v1/chats?channel=slack", adminToken); string(r.body) != `{"chats":[]}`+"\n" {
		t.Errorf("the chats of another channel are %s", r.body)
	}
	for _, query := range []string{"?after=nowhere", "?limit=x"} {
		if r := x.get("/v1/chats"+query, adminToken); r.StatusCode != 400 {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.body)
		}
	}
}

func TestPeople(t *testing.T) {
	x := newRig(t)
	if err := x.book.RecordChat(t.Context(), channels.Chat{Address: alerts, Session: "main:telegram:-10033", Group: true}); err != nil {
		t.Fatal(err)
	}
	if r := x.get("/v1/chats", adminToken); r.StatusCode != 200 || !strings.Contains(string(r.body), `"telegram:-10033"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	alone := channels.Chat{Address: bus.Address{Channel: "telegram", Chat: "7"}, Session: "main:telegram:7", Person: "telegram:7", Name: "Ada"}
	if err := x.book.RecordChat(t.Context(), alone); err != nil {
		t.Fatal(err)
	}
	if r := x.get("/v1/chats", adminToken); !strings.Contains(string(r.body), `"name":"Ada"`) || strings.Count(string(r.body), `"name"`) != 1 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	wantChatPages(t, x)
	asked := ask(t, x.book, "telegram:7")
	if err := x.book.SetName(t.Context(), "telegram:7", "Ada"); err != nil {
		t.Fatal(err)
	}
	code, err := x.book.OfferLink(t.Context(), channels.LinkRequest{Person: "telegram:7", Chat: "telegram:7", Cause: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.book.Link(t.Context(), channels.Linking{Code: code, Person: "web:ada", Chat: "web:ada", Cause: "c2"}); err != nil {
		t.Fatal(err)
	}
	if r := x.get("/v1/pairings", adminToken); !strings.Contains(string(r.body), `"linked":["web:ada"]`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.get("/v1/pairings", adminToken); !strings.Contains(string(r.body), `"person":"telegram:7","name":"Ada"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.get("/v1/pairings", adminToken); r.StatusCode != 200 || !strings.Contains(string(r.body), `"state":"asks","code":"`+asked.Code) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	approve := func(body string) reply { return x.do("POST", "/v1/pairings", adminToken, body) }
	if r := approve(`{"code": "` + asked.Code + `"}`); r.StatusCode != 200 || !strings.Contains(string(r.body), "admitted") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	for body, want := range map[string]int{
		`{"code": "` + asked.Code + `"}`: 422, `{"code": ""}`: 422, `{}`: 422, `{"coed": "x"}`: 422, `{"code": 1}`: 400, `x`: 400,
	} {
		if r := approve(body); r.StatusCode != want {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
	for _, want := range []int{204, 404} {
		if r := x.do("DELETE", "/v1/pairings/telegram:7", adminToken, ""); r.StatusCode != want {
			t.Errorf("revoke: %d, want %d", r.StatusCode, want)
		}
	}
	if r := x.do("POST", "/v1/pairings/owner", adminToken, `{"channel": "telegram"}`); r.StatusCode != 200 || len(into[struct{ Code string }](t, r).Code) < 20 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.do("POST", "/v1/pairings/owner", adminToken, `{"channel": "discord"}`); r.StatusCode != 200 {
		t.Errorf("for a channel that another process connects: %d %s", r.StatusCode, r.body)
	}
	if r := x.do("POST", "/v1/pairings/owner", adminToken, `{"channel": "telegraph"}`); r.StatusCode != 422 || !strings.Contains(string(r.body), "telegram") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func ask(t *testing.T, book *sqlbook.Book, person string) channels.Pairing {
	t.Helper()
	p, err := book.RequestPairing(t.Context(), person, person)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
