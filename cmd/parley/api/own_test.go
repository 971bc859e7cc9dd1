package api_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/sessions/schedules"
)

const ownToken = "own-secret" // scope own, Ann's

// allowedToOwn lists everything that a token with the scope own may request. A new route is refused to such tokens
// until somebody adds it here.
var allowedToOwn = []string{
	"GET /v1/sessions", "GET /v1/sessions/{key}", "GET /v1/sessions/{key}/export", "GET /v1/sessions/{key}/files",
	"GET /v1/sessions/{key}/files/{name}", "GET /v1/sessions/{key}/canvases/{name}", "GET /v1/sessions/{key}/events", "GET /v1/events",
	"GET /v1/search", "GET /v1/asks", "GET /v1/schedules", "GET /v1/schedules/{id}", "GET /v1/jobs", "GET /v1/jobs/{id}", "GET /v1/tasks", "GET /v1/tasks/{id}",
	"POST /v1/render", "GET /v1/me",
	"POST /v1/sign-ins/codes", "GET /v1/sign-ins", "DELETE /v1/sign-ins/{id}",
}

func TestWhatOwnAllowsIsListed(t *testing.T) {
	x := newRig(t)
	left := slices.Clone(allowedToOwn)
	for _, r := range x.Routes() {
		listed := slices.Contains(left, r.Pattern)
		left = slices.DeleteFunc(left, func(p string) bool { return p == r.Pattern })
		if !r.Open && r.May(exchange.Caller{Name: "ann", Scopes: []string{"own"}}) != listed {
			t.Errorf("%s: a token with the scope own may: %v", r.Pattern, !listed)
		}
	}
	if len(left) > 0 {
		t.Errorf("there is no %q", left)
	}
}

// ownRig returns a rig in which Ann has a token. Her account on Telegram is linked; there she talks to the bot in
// private and in a group.
func ownRig(t *testing.T, change ...func(*rig)) *rig {
	x := newRig(t, append([]func(*rig){func(x *rig) {
		planning(x)
		x.cfg.Jobs.Kept = x.store
		x.cfg.Tasks.Kept, x.cfg.Tasks.Turns = x.store.SubAgents(), x.store
		x.cfg.Files = func(string) (fs.FS, error) { return fstest.MapFS{"a.txt": {Data: []byte("about")}}, nil }
		x.cfg.Asks = api.Asks{Open: x.book.OpenAsks, Lookup: x.book.LookupAsk}
		x.cfg.Access.Tokens = func() []api.Token {
			return append(tokens(), api.Token{Name: "ann", Secret: ownToken, May: []string{"own"}})
		}
	}}, change...)...)
	for _, chat := range []channels.Chat{
		{Address: bus.Address{Channel: "telegram", Chat: "7"}, Session: "main:telegram:7", Person: "telegram:7"},
		{Address: bus.Address{Channel: "telegram", Chat: "-9"}, Session: "main:telegram:-9", Group: true},
		{Address: bus.Address{Channel: "telegram", Chat: "8"}, Session: "main:telegram:8", Person: "telegram:8"},
	} {
		chat.Seen = time.Now()
		if err := x.book.RecordChat(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
	}
	x.link("telegram:7", "telegram:7", "web:ann", "web:ann")
	return x
}

// link links two people who give the command in these chats.
func (x *rig) link(first, firstChat, second, secondChat string) {
	x.t.Helper()
	code, err := x.book.OfferLink(x.t.Context(), channels.LinkRequest{Person: first, Chat: firstChat, Cause: "offer " + first + second})
	if err == nil {
		_, err = x.book.Link(x.t.Context(), channels.Linking{Code: code, Person: second, Chat: secondChat, Cause: "link " + first + second})
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

// unlink ends all links of a person.
func (x *rig) unlink(person string) {
	x.t.Helper()
	if _, err := x.book.Unlink(x.t.Context(), person); err != nil {
		x.t.Fatal(err)
	}
}

// These are the sessions of the tests, by how Ann is related to them.
var (
	annsOwn    = []string{"main:web:ann", "main:web:ann:trip", "ops:web:ann"}
	annsLinked = []string{"main:telegram:7", "main:telegram:7:5", "ops:telegram:7"}
	othersOnly = []string{"main:slack:C1", "main:telegram:-9", "main:telegram:-9::7", "main:telegram:70", "main:telegram:8", "main:web:annabel", "main:web:chat", "main:web:telegram%3A7"}
)

// A token with the scope own reads its own sessions and the private ones of the linked account, and no others by any
// route. After the link has ended, it reads only its own.
func TestOwnReadsWhatIsLinked(t *testing.T) {
	x := ownRig(t)
	for _, key := range slices.Concat(annsOwn, annsLinked, othersOnly) {
		x.say(key, "telegram:7", "about "+key)
	}
	check := func(may, mayNot []string) {
		t.Helper()
		slices.Sort(may)
		for _, limit := range []int{1, 2, 100} {
			var listed []string
			for next := ""; ; {
				page := into[sessionPage](t, x.get(fmt.Sprintf("/v1/sessions?limit=%d&after=%s", limit, url.QueryEscape(next)), ownToken))
				for _, s := range page.Sessions {
					listed = append(listed, s.Key)
				}
				if next = page.Next; next == "" {
					break
				}
				if len(page.Sessions) != limit {
					t.Errorf("a page of %d has %d sessions", limit, len(page.Sessions))
				}
			}
			if !slices.Equal(listed, may) {
				t.Errorf("%d a page: %q, want %q", limit, listed, may)
			}
			recent := x.recent(ownToken, fmt.Sprintf("order=desc&limit=%d", limit))
			if slices.Sort(recent); !slices.Equal(recent, may) {
				t.Errorf("recent, %d a page: %q, want %q", limit, recent, may)
			}
		}
		for _, rest := range []string{"", "/export", "/files", "/files/a.txt", "/events"} {
			for _, key := range may {
				if r, _ := http.NewRequestWithContext(t.Context(), http.MethodHead, x.base+sessionPath(key, rest), nil); x.headOf(r) != http.StatusOK {
					t.Errorf("%s%s is refused", key, rest)
				}
			}
			for _, key := range append(mayNot, "main:telegram:none", "no key") {
				if r := x.get(sessionPath(key, rest), ownToken); r.StatusCode != http.StatusForbidden || strings.Contains(string(r.body), "about") {
					t.Errorf("%s%s: %d %s", key, rest, r.StatusCode, r.body)
				}
			}
		}
	}
	check(slices.Concat(annsOwn, annsLinked), othersOnly)
	if r := x.get("/v1/sessions", chatToken); len(into[sessionPage](t, r).Sessions) != 1 {
		t.Errorf("who is not linked lists %s", r.body)
	}
	x.unlink("telegram:7")
	check(slices.Clone(annsOwn), slices.Concat(annsLinked, othersOnly))
}

// headOf sends a request with Ann's token and returns the status.
func (x *rig) headOf(r *http.Request) int {
	x.t.Helper()
	r.Header.Set("Authorization", "Bearer "+ownToken)
	resp, err := x.client.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// The list merges the sessions of several chats in one order, whatever the filters, and contains each session once.
func TestOwnFindsRecentSessions(t *testing.T) {
	var short shortPages
	x := ownRig(t, func(x *rig) {
		short.Reader = x.store
		x.cfg.Sessions = &short
	})
	want := []string{}
	for n := range 30 {
		key := []string{"main:web:ann:", "main:telegram:7:", "ops:telegram:7:", "main:web:chat:"}[n%4] + fmt.Sprint(n)
		x.say(key, "telegram:7", "about bread")
		if n%4 < 3 {
			want = append([]string{key}, want...)
		}
	}
	of := func(part string) (some []string) {
		for _, key := range want {
			if strings.Contains(key, part) {
				some = append(some, key)
			}
		}
		return some
	}
	for query, want := range map[string][]string{
		"order=desc": want, "q=BREAD": want, "q=cake": nil, "agent=ops": of("ops:"), "agent=main&q=bread": of("main:"),
		"channel=telegram": of(":telegram:"), "channel=web": of(":web:"), "channel=slack": nil, "person=telegram:7": want, "running=true": nil,
	} {
		for _, limit := range []int{1, 4, 7, 100} {
			short.telegram = limit == 100 // pages of one chat end early, as happens if many sessions don't match
			if got := x.recent(ownToken, fmt.Sprintf("%s&limit=%d", query, limit)); !slices.Equal(got, want) {
				t.Errorf("%s, %d a page: %q, want %q", query, limit, got, want)
			}
		}
	}
}

// shortPages is a reader that, if telegram is set, returns pages with one session of Telegram although more follow.
type shortPages struct {
	sessions.Reader
	telegram bool
}

func (s *shortPages) Recent(ctx context.Context, q sessions.SessionQuery) (sessions.SessionPage, error) {
	if s.telegram && q.Channel == "telegram" {
		q.Limit = 1
	}
	return s.Reader.Recent(ctx, q)
}

// A link gives access only to the private chat between the linked account and the bot.
func TestOwnSeesNoGroupOfALinkedAccount(t *testing.T) {
	x := ownRig(t)
	x.unlink("web:ann")
	sees := func(key string) bool {
		x.t.Helper()
		return x.get(sessionPath(key, ""), ownToken).StatusCode != http.StatusForbidden
	}
	for n, c := range []struct {
		person, chat, session string
		want                  bool
	}{
		{"telegram:7", "telegram:7", "main:telegram:7", true},
		{"telegram:7", "telegram:7/5", "main:telegram:7:5", true},
		{"telegram:7", "telegram:-9", "main:telegram:-9", false},     // a group
		{"telegram:7", "telegram:8", "main:telegram:8", false},       // the chat of another person
		{"telegram:7", "telegram:77", "main:telegram:77", false},     // an unknown chat
		{"telegram:7", "slack:7", "main:slack:7", false},             // a chat on another channel
		{"telegram:7", "", "main:telegram:7", false},                 // no chat
		{"web:annabel", "web:annabel/x", "main:web:annabel:y", true}, // a session of Ann's other token
		{"web:annabel", "web:chat", "main:web:chat", false},
	} {
		x.link(c.person, c.chat, "web:ann", "web:ann")
		if got := sees(c.session); got != c.want {
			t.Errorf("%d: %s in %s is seen: %v", n, c.person, c.chat, got)
		}
		x.unlink("web:ann")
		x.unlink(c.person)
	}
	x.link("telegram:7", "telegram:7", "web:chat", "web:chat")
	if r := x.get(sessionPath("main:telegram:7", ""), chatToken); r.StatusCode != http.StatusForbidden {
		t.Errorf("with the scope agent alone: %d", r.StatusCode)
	}
}

// Ann's streams show only what happens in sessions that she may read. When her rights change in any way, the streams
// end.
func TestOwnWatchesWhatIsLinked(t *testing.T) {
	var now atomic.Pointer[[]api.Token]
	all := append(tokens(), api.Token{Name: "ann", Secret: ownToken, May: []string{"own"}})
	now.Store(&all)
	x := ownRig(t, func(x *rig) { x.cfg.Access.Tokens = func() []api.Token { return *now.Load() } })
	server, linked, own := x.watchServer(ownToken, "").begin(), x.watch("main:telegram:7", ownToken, ""), x.watch("main:web:ann", ownToken, "")
	linked.must()
	own.must()
	others, _ := turnOf("main:telegram:-9", "t1")
	strangers, _ := turnOf("main:web:chat", "t2")
	theirs, shownTheirs := turnOf("main:telegram:7:5", "t3")
	hers, shownHers := turnOf("main:web:ann:trip", "t4")
	x.emitAll(slices.Concat(others, strangers)...)
	x.emitAll(bus.NewDeadLetterEvent(bus.InboundTopic, "main:telegram:7", "m1", bus.StateBuried), bus.Event{Type: bus.ScheduleMoved, News: &bus.News{ID: "s", State: bus.StateCancelled}})
	x.emitAll(theirs...)
	x.emitAll(hers...)
	server.wantNews(slices.Concat(shownTheirs, shownHers)...)

	x.Recheck() // nothing has changed
	x.emitAll(bus.Event{Type: bus.ToolStart, Session: "main:telegram:7", Turn: "t", Tool: "x"}, bus.Event{Type: bus.ToolStart, Session: "main:web:ann", Turn: "t", Tool: "x"})
	linked.must()
	own.must()
	x.unlink("telegram:7")
	x.Recheck()
	for name, f := range map[string]*feed{"the server": server, "the linked session": linked} {
		if e, err := f.next(); err == nil {
			t.Errorf("%s goes on after the link has ended: %+v", name, e)
		}
	}
	x.emitAll(bus.Event{Type: bus.ToolEnd, Session: "main:web:ann", Turn: "t", Tool: "x"})
	own.must()

	less := append(tokens(), api.Token{Name: "ann", Secret: ownToken, May: []string{"metrics"}})
	now.Store(&less)
	x.Recheck()
	if e, err := own.next(); err == nil {
		t.Errorf("her own session goes on without the scope: %+v", e)
	}
}

// Ann sees the asks, jobs and schedules of the sessions that she may read, and may change none of them.
func TestOwnSeesItsRequestsJobsAndSchedules(t *testing.T) {
	x := ownRig(t)
	at := time.Now().Truncate(time.Second)
	for n, key := range []string{"main:web:ann", "main:telegram:7", "main:telegram:-9", "main:web:chat"} {
		id := strings.Repeat(string(rune('a'+n)), 10)
		person := map[string]string{"main:web:ann": "web:ann", "main:web:chat": "web:chat"}[key]
		if person == "" {
			person = "telegram:7"
		}
		x.say(key, person, "hello")
		_, err := x.store.Schedules().Add(t.Context(), schedules.Schedule{
			ID: id, Session: key, Person: person, Address: strings.TrimPrefix(key, "main:"), When: "every 1h", Zone: "UTC", Text: "look", MadeAt: at, Next: at.Add(time.Duration(n+1) * time.Hour),
		}, 9)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.book.OpenAsk(t.Context(), bus.Ask{ID: id, Kind: bus.AskApproval, Session: key, Person: person, Turn: "t", Tool: "sh", Made: at, Expires: at.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if err := x.store.BeginJob(t.Context(), sessions.Job{ID: id, Session: key, Person: person, Command: "make", Started: at, Deadline: at.Add(time.Hour)}, sessions.JobLimits{Session: 9, Person: 9}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		for _, path := range []string{"/v1/asks", "/v1/schedules"} {
			if _, got := x.idsOf(path, ownToken); strings.Join(got, "") != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
		var paged []string
		for next := ""; ; {
			more, ids := x.idsOf("/v1/schedules?limit=1&after="+url.QueryEscape(next), ownToken)
			paged = append(paged, ids...)
			if next = more; next == "" || len(ids) != 1 {
				break
			}
		}
		if strings.Join(paged, "") != want {
			t.Errorf("schedules in pages: %q, want %q", paged, want)
		}
		for n, key := range []string{"main:web:ann", "main:telegram:7", "main:telegram:-9", "main:web:chat"} {
			id := strings.Repeat(string(rune('a'+n)), 10)
			seen := strings.Contains(want, id[:1])
			for path, refused := range map[string]int{"/v1/jobs?session=" + key: 403, "/v1/jobs/" + id: 404, "/v1/schedules/" + id: 404} {
				if r := x.get(path, ownToken); seen && r.StatusCode != 200 || !seen && r.StatusCode != refused {
					t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
				}
			}
		}
	}
	check("ab")
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/jobs", ""}, {"GET", "/v1/status", ""}, {"GET", "/v1/usage", ""}, {"POST", "/v1/messages", `{"to": "agent", "text": "hi"}`},
		{"POST", "/v1/asks/aaaaaaaaaa", `{"answer":"approve"}`}, {"DELETE", "/v1/jobs/aaaaaaaaaa", ""}, {"DELETE", "/v1/schedules/aaaaaaaaaa", ""},
		{"PATCH", "/v1/schedules/aaaaaaaaaa", `{"paused":true}`}, {"POST", "/v1/schedules/aaaaaaaaaa/run", "{}"}, {"POST", "/v1/schedules", "{}"},
	} {
		if r := x.do(c.method, c.path, ownToken, c.body); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, r.body)
		}
	}
	if r := x.get("/v1/schedules?after=x", ownToken); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a bad place: %d %s", r.StatusCode, r.body)
	}
	x.unlink("telegram:7")
	check("a")
}

// idsOf returns the cursor of the next page and the first letters of the ids in a list.
func (x *rig) idsOf(path, token string) (next string, ids []string) {
	x.t.Helper()
	page := into[struct {
		Asks, Schedules []struct{ ID string }
		Next            string
	}](x.t, x.get(path, token))
	for _, one := range slices.Concat(page.Asks, page.Schedules) {
		ids = append(ids, one.ID[:1])
	}
	slices.Sort(ids)
	return page.Next, ids
}

// A token with both scopes, own and read, sees all sessions and all open asks.
func TestOwnBesideRead(t *testing.T) {
	const token = "both-secret"
	x := ownRig(t, func(x *rig) {
		x.cfg.Access.Tokens = func() []api.Token { return []api.Token{{Name: "ann", Secret: token, May: []string{"own", "read"}}} }
		x.cfg.Asks.Open = func(context.Context) ([]bus.Ask, error) {
			return []bus.Ask{{ID: "a", Kind: bus.AskQuestion, State: bus.AskOpen, Session: "main:slack:C1"}, {ID: "b", Kind: bus.AskQuestion, State: bus.AskOpen, Session: "main:telegram:7"}}, nil
		}
	})
	x.say("main:slack:C1", "slack:U1", "hello")
	if r := x.get(sessionPath("main:slack:C1", ""), token); r.StatusCode != http.StatusOK {
		t.Errorf("a session of others: %d", r.StatusCode)
	}
	if _, got := x.idsOf("/v1/asks", token); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("requests: %q", got)
	}
}
