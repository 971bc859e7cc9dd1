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

	"parley/agent/blocks"
	"parley/bus"
	"parley/cmd/parley/api/ongoing"
	"parley/sessions"
	"parley/sessions/subagents"
	"parley/tools/redact"
)

// tasked records a task of a session, and that its sub-agent has begun.
func (x *rig) tasked(parent, id string) subagents.Task {
	x.t.Helper()
	key, err := subagents.Key("helper", parent, id)
	if err != nil {
		x.t.Fatal(err)
	}
	t := subagents.Task{
		ID: id, Parent: parent, Session: key, Agent: "helper", Person: "telegram:7", Turn: "t1", Call: "c" + id, Title: "look", Awaited: true,
		Route: json.RawMessage("{}"), Started: time.Now(),
	}
	if err := x.store.SubAgents().Prepare(x.t.Context(), t, 9); err != nil {
		x.t.Fatal(err)
	}
	if err := x.store.SubAgents().Start(x.t.Context(), id); err != nil {
		x.t.Fatal(err)
	}
	return t
}

// works writes the log of a sub-agent that has asked its model twice and now runs a tool.
func (x *rig) works(t subagents.Task, more ...sessions.Entry) {
	x.t.Helper()
	turn := subagents.MailID(t.ID)
	run := entry(x.t, turn, sessions.KindToolUse, sessions.ToolUse{Name: "grep", Args: []byte("{}")})
	started := entry(x.t, turn, sessions.KindToolStarted, sessions.ToolStarted{Attempt: 1})
	run.Call, started.Call = "k1", "k1"
	used := sessions.Usage{Model: "m", Input: 1000, Output: 20}
	all := append(begun(x.t, turn), entry(x.t, turn, sessions.KindUsage, used), entry(x.t, turn, sessions.KindUsage, used), run, started)
	x.write(t.Session, append(all, more...)...)
}

// countedTasks counts the calls of its methods.
type countedTasks struct {
	ongoing.KeptTasks
	used, newest atomic.Int32
	broken       atomic.Bool
}

func (k *countedTasks) UsageOf(ctx context.Context, tasks ...subagents.Task) (map[string]subagents.Usage, error) {
	k.used.Add(1)
	return k.KeptTasks.UsageOf(ctx, tasks...)
}

func (k *countedTasks) Newest(ctx context.Context, session string) (subagents.Task, error) {
	k.newest.Add(1)
	if k.broken.Load() {
		return subagents.Task{}, errors.New("the disk is full")
	}
	return k.KeptTasks.Newest(ctx, session)
}

// A task shows what its sub-agent does now, what it has used, and what it has answered, without secrets.
func TestTasksAreShownAsTheyStand(t *testing.T) {
	hidden, err := redact.New([]string{secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept countedTasks
	x := ownRig(t, func(x *rig) {
		x.cfg.Redact = func() blocks.Redactor { return hidden }
		kept.KeptTasks = x.store.SubAgents()
		x.cfg.Tasks.Kept = &kept
	})
	x.say("main:slack:C1", "slack:U1", "hello")
	for _, id := range []string{"w", "r", "p", "d"} {
		x.works(x.tasked("main:slack:C1", id))
	}
	waits, err := subagents.Key("helper", "main:slack:C1", "p")
	if err != nil {
		t.Fatal(err)
	}
	x.write(waits, entry(t, subagents.MailID("p"), sessions.KindTurnParked, sessions.TurnParked{Asks: []sessions.Ask{{ID: "a", Kind: bus.AskApproval}}}))
	done := subagents.Task{ID: "d", State: subagents.Done, Report: secret + strings.Repeat("x", 9000), Ended: time.Now()}
	if ours, err := x.store.SubAgents().End(t.Context(), done, subagents.Running); err != nil || !ours {
		t.Fatal(ours, err)
	}
	if _, err := x.store.SubAgents().Stop(t.Context(), "main:slack:C1", "w", "", "stop"); err != nil {
		t.Fatal(err)
	}
	page := into[struct {
		Tasks []ongoing.ListedTask
		More  bool
	}](t, x.get("/v1/tasks?limit=3&session=main:slack:C1", readToken))
	if len(page.Tasks) != 3 || !page.More || page.Tasks[0].ID != "d" {
		t.Errorf("a page of 3 is %+v", page)
	}
	if kept.used.Load() != 1 {
		t.Errorf("for a page of 3 is summed up %d times", kept.used.Load())
	}
	for id, want := range map[string]string{"w": "running", "r": "running", "p": subagents.Running, "d": subagents.Done} {
		if id == "p" {
			want = bus.StateWaiting
		}
		one := into[ongoing.ListedTask](t, x.get("/v1/tasks/"+id, readToken))
		if one.State != want || one.Parent != "main:slack:C1" || one.Turn != "t1" || one.Call != "c"+id || one.Agent != "helper" || one.Stopping != (id == "w") {
			t.Errorf("%s is %+v", id, one)
		}
		if one.Usage.Calls != 2 || one.Usage.Input != 2000 || one.Usage.Output != 40 {
			t.Errorf("%s has used %+v", id, one.Usage)
		}
		if runs := want == subagents.Running; runs != slices.Equal(one.Tools, []string{"grep"}) {
			t.Errorf("%s: the tools %q run", id, one.Tools)
		}
		if id == "d" && (!one.Cut || one.Ended == nil || strings.Contains(one.Report, "4711") || len(one.Report) > 9000 || !strings.HasSuffix(one.Report, "xxx")) {
			t.Errorf("%s reports %q", id, one.Report)
		}
	}
	for path, want := range map[string]int{"/v1/tasks": 400, "/v1/tasks/none": 404, "/v1/tasks?session=main:slack:C9": 200} {
		if r := x.get(path, readToken); r.StatusCode != want {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	if err := x.store.SubAgents().Drop(t.Context(), "main:slack:C1", "new"); err != nil {
		t.Fatal(err)
	}
	if r := x.get("/v1/tasks/d", readToken); r.StatusCode != http.StatusOK { // a turn waits for this task
		t.Errorf("what a turn waits for: %d", r.StatusCode)
	}
}

// Callers who may read a session see its tasks and the sessions of its sub-agents; others see neither, in lists, by
// id, or live.
func TestTasksAreSeenAsTheirSession(t *testing.T) {
	x := ownRig(t)
	seen := map[string]bool{"main:web:ann": true, "main:telegram:7": true, "main:telegram:-9": false, "main:web:chat": false}
	all := map[string]subagents.Task{}
	for parent := range seen {
		x.say(parent, "telegram:7", "hello")
		all[parent] = x.tasked(parent, subagents.ID(parent, "k"))
		x.works(all[parent])
	}
	server := x.watchServer(ownToken, "").begin()
	check := func(linked bool) {
		t.Helper()
		for parent, may := range seen {
			if parent == "main:telegram:7" {
				may = linked
			}
			for path, refused := range map[string]int{
				"/v1/tasks?session=" + url.QueryEscape(parent): 403, "/v1/tasks/" + all[parent].ID: 404, sessionPath(all[parent].Session, ""): 403,
				sessionPath(all[parent].Session, "/export"): 403, sessionPath(all[parent].Session, "/files"): 403, "/v1/jobs?session=" + url.QueryEscape(all[parent].Session): 403,
			} {
				if r := x.get(path, ownToken); may && r.StatusCode != 200 || !may && r.StatusCode != refused {
					t.Errorf("%s of %s, linked %v: %d %s", path, parent, linked, r.StatusCode, r.body)
				}
			}
		}
	}
	check(true)
	strange, err := subagents.Key("helper", "main:web:ann", "unknown")
	if err != nil {
		t.Fatal(err)
	}
	if r := x.get(sessionPath(strange, ""), ownToken); r.StatusCode != http.StatusForbidden {
		t.Errorf("a sub-agent's session that nobody knows: %d", r.StatusCode)
	}
	var told []bus.Event
	for _, parent := range []string{"main:telegram:-9", "main:web:chat", "main:telegram:7", "main:web:ann"} {
		for _, e := range []bus.Event{
			{Type: bus.TaskMoved, Session: parent, Turn: "t1", News: &bus.News{ID: all[parent].ID, State: bus.StateRunning}},
			{Type: bus.TurnStart, Session: all[parent].Session, Turn: subagents.MailID(all[parent].ID)},
		} {
			x.emitAll(e)
			if seen[parent] {
				told = append(told, e)
			}
		}
	}
	x.emitAll(bus.Event{Type: bus.TurnStart, Session: strange, Turn: "t1"}, bus.Event{Type: bus.TurnStart, Session: "main:web:ann", Turn: "last"})
	told = append(told, bus.Event{Type: bus.TurnStart, Session: "main:web:ann", Turn: "last"})
	for _, e := range told {
		got := server.must()
		if got.kind != e.Type || !strings.Contains(got.data, `"turn":"`+e.Turn+`"`) || !strings.Contains(got.data, `"session":"`+e.Session+`"`) {
			t.Fatalf("told is %+v, want %s of %s", got, e.Type, e.Session)
		}
	}
	child := x.watch(all["main:telegram:7"].Session, ownToken, "")
	child.must()
	x.unlink("telegram:7")
	x.Recheck()
	if e, err := child.next(); err == nil {
		t.Errorf("the sub-agent's session goes on after the link has ended: %+v", e)
	}
	check(false)
}

// Watchers see live what happens in a sub-agent's session between its turns if they may read the session for which it
// works, by whatever scope. Others see nothing of it.
func TestWhatSubAgentsDoIsToldLive(t *testing.T) {
	x := ownRig(t)
	parents := map[string]string{ownToken: "main:web:ann", chatToken: "main:web:chat"}
	tasks := map[string]subagents.Task{}
	for token, parent := range parents {
		x.say(parent, "web:ann", "hello")
		tasks[token] = x.tasked(parent, subagents.ID(parent, "w"))
	}
	for token, parent := range parents {
		server := x.watchServer(token, "").begin()
		var told []bus.Event
		for other, task := range tasks {
			for _, kind := range []string{bus.JobMoved, bus.JobPrinted, bus.TaskMoved, bus.Asked, bus.Received} {
				e := bus.Event{Type: kind, Session: task.Session, Turn: "t", News: &bus.News{ID: "of " + task.Parent, State: bus.StateRunning}}
				if kind == bus.Asked {
					e.Ask = &bus.Ask{ID: "of " + task.Parent, Kind: bus.AskApproval, State: bus.AskOpen}
				}
				if x.emitAll(e); other == token {
					told = append(told, e)
				}
			}
		}
		x.emitAll(bus.Event{Type: bus.TurnStart, Session: parent, Turn: "last"})
		for _, e := range append(told, bus.Event{Type: bus.TurnStart, Session: parent}) {
			if got := server.must(); got.kind != e.Type || !strings.Contains(got.data, `"session":"`+e.Session+`"`) {
				t.Fatalf("%s is told %+v, want %s of %s", token, got, e.Type, e.Session)
			}
		}
		server.close()
	}
}

// The parent of a sub-agent's session is looked up once, and only for callers who may see it. If the lookup fails, a
// stream ends, and later resumes with what it has not sent.
func TestParentsAreLookedUpOnce(t *testing.T) {
	var kept countedTasks
	x := ownRig(t, func(x *rig) {
		kept.KeptTasks = x.store.SubAgents()
		x.cfg.Tasks.Kept = &kept
	})
	x.say("main:web:ann", "web:ann", "hello")
	task := x.tasked("main:web:ann", "w")
	for i := range 3 {
		ask := bus.Ask{ID: fmt.Sprint("ask", i), Kind: bus.AskApproval, Session: task.Session, Person: "telegram:7", Turn: "t", Made: time.Now(), Expires: time.Now().Add(time.Hour), State: bus.AskOpen}
		if err := x.book.OpenAsk(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	want := func(token string, asks int, lookups int32) {
		t.Helper()
		if _, got := x.idsOf("/v1/asks", token); len(got) != asks || kept.newest.Load() != lookups {
			t.Errorf("%s sees %q, with %d lookups; want %d with %d", token, got, kept.newest.Load(), asks, lookups)
		}
	}
	kept.broken.Store(true)
	want(chatToken, 0, 0)
	f := x.watchServer(ownToken, "").begin()
	x.emitAll(bus.Event{Type: bus.TurnStart, Session: "main:web:ann", Turn: "first"})
	first := f.must()
	x.emitAll(bus.Event{Type: bus.TurnStart, Session: task.Session, Turn: "second"}, bus.Event{Type: bus.TurnStart, Session: "main:web:ann", Turn: "third"})
	if e, err := f.next(); err == nil {
		t.Fatalf("it goes on with %+v", e)
	}
	kept.broken.Store(false)
	if e := x.watchServer(ownToken, first.id).must(); e.kind != bus.TurnStart || !strings.Contains(e.data, "second") {
		t.Errorf("it goes on with %+v", e)
	}
	want(ownToken, 3, 2)
}

// Only callers who may read everything or decide see where approvers were asked. Callers who see just their own
// sessions don't find it in lists, live, or in the log.
func TestWhereApproversAreAskedIsHidden(t *testing.T) {
	x := ownRig(t)
	at := time.Now().Truncate(time.Second)
	places := json.RawMessage(`[{"channel":"slack","chat":"CSECRET"}]`)
	for key, person := range map[string]string{"main:telegram:7": "telegram:7", "main:web:chat": "web:chat"} {
		ask := bus.Ask{
			ID: strings.Repeat(person[:1], 10), Kind: bus.AskQuestion, Session: key, Person: person, Turn: "t", Question: "Which?", Made: at, Expires: at.Add(time.Hour),
			Asked: []bus.Address{{Channel: "slack", Chat: "CSECRET"}}, State: bus.AskOpen,
		}
		if err := x.book.OpenAsk(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		x.write(key, append(begun(t, "t"), entry(t, "t", sessions.KindTurnParked, sessions.TurnParked{Asks: []sessions.Ask{{ID: ask.ID, Kind: ask.Kind, Question: "Which?", Places: places}}}))...)
		for token, may := range map[string]bool{ownToken: false, chatToken: false, readToken: true, ownerToken: true} {
			if token == ownToken && key == "main:web:chat" || token == chatToken && key != "main:web:chat" {
				continue
			}
			paths := []string{sessionPath(key, ""), sessionPath(key, "/export")}
			if token != readToken { // the scope read decides nothing
				paths = append(paths, "/v1/asks?session="+url.QueryEscape(key))
			}
			for _, path := range paths {
				r := x.get(path, token)
				if has := strings.Contains(string(r.body), "CSECRET"); r.StatusCode != http.StatusOK || has != may || !strings.Contains(string(r.body), "Which?") {
					t.Errorf("%s with %s: %d %s", path, token, r.StatusCode, r.body)
				}
			}
			f := x.watch(key, token, "")
			f.must()
			x.emitAll(bus.Event{Type: bus.Asked, Session: key, Turn: "t", Ask: &ask})
			if e := f.must(); e.kind != bus.Asked || strings.Contains(e.data, "CSECRET") != may {
				t.Errorf("%s is told live: %s %s", token, e.kind, e.data)
			}
			f.close()
		}
	}
}
