package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/cmd/parley/api"
)

// watchServer opens the stream of the whole server. lastID may be empty.
func (x *rig) watchServer(token, lastID string) *feed {
	x.t.Helper()
	f := x.open("/v1/events", "ServerEvent", token, lastID)
	x.t.Cleanup(f.close)
	return f
}

// begin checks that the next event is a reset: the first event of a stream that doesn't resume.
func (f *feed) begin() *feed {
	f.t.Helper()
	if e := f.must(); e.kind != "reset" || e.data != "{}" {
		f.t.Fatalf("it begins with %+v", e)
	}
	return f
}

// wantNews checks the kinds and data of the next events, and returns their ids.
func (f *feed) wantNews(want ...string) (ids []string) {
	f.t.Helper()
	for _, w := range want {
		e := f.must()
		if got := e.kind + " " + e.data; got != w {
			f.t.Fatalf("got %s, want %s", got, w)
		}
		if e.id == "" {
			f.t.Errorf("%s has no id", w)
		}
		ids = append(ids, e.id)
	}
	return ids
}

// said is a text that no event of the server's stream may contain.
const said = "the secret"

// turnOf returns the events of a turn that asks for an approval, and how the server's stream shows them.
func turnOf(session, turn string) (events []bus.Event, shown []string) {
	ask := bus.Ask{ID: "ask-" + turn, Kind: bus.AskApproval, Session: session, Turn: turn, Tool: "exec_shell", Arguments: json.RawMessage(`"` + said + `"`), Reason: said, Question: said, State: bus.AskOpen}
	ended := ask
	ended.State, ended.Answer = bus.AskExpired, bus.Answer{Text: said, Reason: said}
	events = []bus.Event{
		{Type: bus.TurnStart, Causes: []string{"m1"}},
		{Type: bus.BlockDelta, Kind: "text", Delta: said},
		{Type: bus.ToolStart, Tool: "exec_shell", Call: "c1", Delta: said},
		{Type: bus.TurnParked, Causes: []string{"m1"}},
		{Type: bus.Asked, Ask: &ask},
		{Type: bus.AskResolved, Ask: &ended},
		{Type: bus.TurnError, Causes: []string{"m1"}, Error: &bus.Failure{Code: "cancelled", Message: said}},
	}
	for i := range events {
		events[i].Session, events[i].Turn = session, turn
	}
	about := fmt.Sprintf(`"session":%q,"agent":"main","turn":%q`, session, turn)
	asked := about + fmt.Sprintf(`,"id":"ask-%s","kind":"approval"`, turn)
	about += `,"causes":["m1"]`
	return events, []string{
		"turn_start {" + about + `,"state":"running"}`,
		"parked {" + about + `,"state":"waiting"}`,
		"ask {" + asked + `,"state":"open"}`,
		"ask_resolved {" + asked + `,"state":"expired"}`,
		"turn_error {" + about + `,"state":"cancelled"}`,
	}
}

func (x *rig) emitAll(events ...bus.Event) {
	for _, e := range events {
		x.bus.Emit(e)
	}
}

func TestTheServerIsWatched(t *testing.T) {
	x := newRig(t)
	f := x.watchServer(readToken, "").begin()
	events, shown := turnOf("main:telegram:42", "t1")
	x.emitAll(events...)
	ids := f.wantNews(shown...)
	x.emitAll(bus.NewDeadLetterEvent(bus.InboundTopic, "main:telegram:42", "m1", bus.StateReplayed), bus.NewDeadLetterEvent("outbound/slack", "slack:C1", "", bus.StateBuried))
	letters := []string{`dead_letter {"session":"main:telegram:42","agent":"main","id":"m1","state":"replayed","topic":"inbound"}`, `dead_letter {"state":"buried","topic":"outbound/slack"}`}
	f.wantNews(letters...)
	f.close()

	// A stream resumes after the last event that was seen, whether or not other callers watch meanwhile.
	all := slices.Concat(shown, letters)
	for _, meanwhile := range []bool{false, true} {
		if meanwhile {
			x.watchServer(ownerToken, "").begin()
		}
		for i, id := range ids {
			again := x.watchServer(readToken, id)
			again.wantNews(all[i+1:]...)
			again.close()
		}
	}
	for _, id := range []string{"1", "99999999999999999", "no id"} { // ids of an earlier process, or no ids
		x.watchServer(readToken, id).begin()
	}
}

func TestWhoMaySeeWhatOfTheServer(t *testing.T) {
	const approveToken = "approve-secret"
	x := newRig(t, func(x *rig) {
		x.cfg.Access.Tokens = func() []api.Token {
			return append(tokens(), api.Token{Name: "checks", Secret: approveToken, May: []string{"approve"}})
		}
	})
	for token, status := range map[string]int{opsToken: 403, ciToken: 403, scrapeTok: 403, "": 401, "unknown": 401} {
		if r := x.get("/v1/events", token); r.StatusCode != status {
			t.Errorf("%s: %d, want %d", token, r.StatusCode, status)
		}
	}
	others, shownOthers := turnOf("main:telegram:42", "t1")
	theirs, shownTheirs := turnOf("main:web:chat:ci-7", "t2")
	last, shownLast := turnOf("main:web:chat", "t3")
	all := slices.Concat(shownOthers, shownTheirs, shownLast)
	asks := slices.Concat(shownOthers[2:4], shownTheirs[2:4], shownLast[2:4])
	want := map[string][]string{readToken: all, adminToken: all, ownerToken: all, chatToken: slices.Concat(shownTheirs, shownLast), approveToken: asks}
	feeds := map[string]*feed{}
	for token := range want {
		feeds[token] = x.watchServer(token, "").begin()
	}
	x.emitAll(others...)
	x.emitAll(bus.NewDeadLetterEvent(bus.OutboundTopic("web"), "web:chat", "", bus.StateBuried)) // only callers with the scope read see it
	x.emitAll(theirs...)
	x.emitAll(last...)
	for token, shown := range want {
		for _, w := range shown {
			e := feeds[token].must()
			if e.kind == bus.DeadLetterMoved && len(shown) == len(all) {
				e = feeds[token].must()
			}
			if got := e.kind + " " + e.data; got != w {
				t.Fatalf("%s got %s, want %s", token, got, w)
			}
		}
	}
}

func TestATokenThatIsTakenBackWatchesTheServerNoMore(t *testing.T) {
	var now atomic.Pointer[[]api.Token]
	x := newRig(t, func(x *rig) { x.cfg.Access.Tokens = func() []api.Token { return *now.Load() } })
	for name, change := range map[string]func(*api.Token){
		"gone":         func(t *api.Token) { t.Secret = "" },
		"fewer scopes": func(t *api.Token) { t.May = []string{"agent"} },
		"more scopes":  func(t *api.Token) { t.May = []string{"read", "approve"} },
		"another's":    func(t *api.Token) { t.Name = "other" },
	} {
		all := tokens()
		now.Store(&all)
		theirs, owners := x.watchServer(readToken, "").begin(), x.watchServer(ownerToken, "").begin()
		next := tokens()
		change(&next[slices.IndexFunc(next, func(t api.Token) bool { return t.Secret == readToken })])
		now.Store(&next)
		x.Recheck()
		events, shown := turnOf("main:telegram:42", "t1")
		x.emitAll(events...)
		if e, err := theirs.next(); err == nil {
			t.Errorf("%s: it was shown %+v", name, e)
		}
		owners.wantNews(shown...)
		owners.close()
	}
}

// A watcher that doesn't read delays no other watcher, and gets a reset because it has missed events.
func TestASlowWatcherOfTheServerIsReset(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Timeouts.Write = time.Minute })
	c, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", readToken)
	fast := x.watchServer(readToken, "").begin()
	fast.schema = ""  // checking each event against the schema takes too long
	const many = 9000 // more events than buffers hold
	long := []string{strings.Repeat("m", 5000)}
	for n := range many {
		x.bus.Emit(bus.Event{Type: bus.TurnStart, Session: "main:telegram:42", Turn: fmt.Sprint("t", n), Causes: long})
		if n%100 == 99 {
			for last := fmt.Sprintf(`"turn":"t%d"`, n); ; {
				e := fast.must()
				if e.kind == "reset" {
					t.Fatalf("the fast watcher is told of a loss before %s", last)
				}
				if strings.Contains(e.data, last) {
					break
				}
			}
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer c.Close() // before the body: otherwise its Close would read the rest
	slow := &feed{t: t, in: bufio.NewReader(resp.Body)}
	slow.begin()
	for e := slow.must(); e.kind != "reset"; e = slow.must() {
		if strings.Contains(e.data, fmt.Sprintf(`"turn":"t%d"`, many-1)) {
			t.Fatal("the slow watcher missed nothing")
		}
	}
}
