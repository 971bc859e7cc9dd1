package bustest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"parley/bus"
)

var serverFeedPromises = []promise{
	{"has what begins and ends, without what was said", testServerFeedTypes},
	{"has events that no other feed has", testServersOnly},
	{"can be read again from an id", testServerFeedFromID},
	{"tells when it has lost what was to be read again", testServerFeedGone},
	{"keeps nothing of a session that is forgotten", testServerFeedForgets},
	{"tells that dead letters appear and go", testDeadLetterEvents},
}

// said is a text that events of turns have, and the server's feed must not have.
const said = "the secret of the conversation"

// turnEvents returns all that a turn may emit.
func turnEvents(session string) []bus.Event {
	ask := bus.Ask{ID: "ask1", Kind: bus.AskApproval, Session: session, Tool: "exec_shell", Arguments: json.RawMessage(`"` + said + `"`), Reason: said, Question: said, State: bus.AskOpen}
	ended := ask
	ended.State, ended.Answer = bus.AskAnswered, bus.Answer{Text: said, By: bus.Person{ID: said, Name: said}}
	fault := &bus.Failure{Code: "cancelled", Message: said}
	all := []bus.Event{
		{Type: bus.TurnStart, Causes: []string{"m1"}},
		{Type: bus.BlockStart, Kind: "text"},
		{Type: bus.BlockDelta, Kind: "text", Delta: said},
		{Type: bus.BlockStop, Kind: "text"},
		{Type: bus.BlockReset},
		{Type: bus.Retried, Retry: &bus.Retry{}},
		{Type: bus.Compacted, Compaction: &bus.Compaction{}},
		{Type: bus.Used, Usage: &bus.Usage{}},
		{Type: bus.ToolStart, Tool: "exec_shell", Call: "c1", Delta: said},
		{Type: bus.ToolProgress, Tool: "exec_shell", Call: "c1", Delta: said},
		{Type: bus.ToolEnd, Tool: "exec_shell", Call: "c1", Error: fault},
		{Type: bus.TurnParked, Causes: []string{"m1"}},
		{Type: bus.Asked, Tool: "exec_shell", Call: "c1", Ask: &ask},
		{Type: bus.AskResolved, Tool: "exec_shell", Call: "c1", Ask: &ended},
		{Type: bus.Spoken, Delta: said},
		{Type: bus.TurnError, Causes: []string{"m1"}, Error: fault},
		{Type: bus.TurnComplete, Causes: []string{"m1"}},
	}
	for i := range all {
		all[i].Session, all[i].Turn, all[i].Route = session, "t1", bus.Address{Channel: "telegram", Chat: "1"}
	}
	return all
}

// wantNews checks that the next event is this one, whatever its id.
func (v *subscription) wantNews(want bus.Event) bus.Event {
	v.r.Helper()
	got, err, ok := v.next()
	want.ID = got.ID
	if err != nil || !ok || got.ID == 0 || !reflect.DeepEqual(got, want) {
		v.r.Fatalf("next event is %+v (%+v), %v, %v; want %+v (%+v)", got, got.News, err, ok, want, want.News)
	}
	return got
}

func testServerFeedTypes(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.ServerFeed(), 0)
	for _, e := range turnEvents("s") {
		r.Emit(e)
	}
	turn := func(kind string, news bus.News) bus.Event {
		return bus.Event{Type: kind, Session: "s", Turn: "t1", Causes: []string{"m1"}, News: &news}
	}
	ask := func(kind string, news bus.News) bus.Event {
		return bus.Event{Type: kind, Session: "s", Turn: "t1", News: &news}
	}
	for _, want := range []bus.Event{
		turn(bus.TurnStart, bus.News{State: bus.StateRunning}),
		turn(bus.TurnParked, bus.News{State: bus.StateWaiting}),
		ask(bus.Asked, bus.News{ID: "ask1", Kind: bus.AskApproval, State: bus.AskOpen}),
		ask(bus.AskResolved, bus.News{ID: "ask1", Kind: bus.AskApproval, State: bus.AskAnswered}),
		turn(bus.TurnError, bus.News{State: "cancelled"}),
		turn(bus.TurnComplete, bus.News{State: bus.StateDone}),
	} {
		got := v.wantNews(want)
		if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), said) {
			r.Errorf("the server's feed has %s, %v", text, err)
		}
	}
}

func testServersOnly(r *rig) {
	r.open(Options{})
	server := r.subscribe(bus.ServerFeed(), 0)
	session := r.subscribe(bus.SessionFeed("s"), 0)
	channel := r.subscribe(bus.ChannelFeed("telegram"), 0)
	only := []bus.Event{
		{Type: bus.Received, Session: "s", News: &bus.News{ID: "m1", Kind: bus.Said}},
		{Type: bus.JobMoved, Session: "s", Turn: "t1", News: &bus.News{ID: "j1", State: bus.StateRunning}},
		{Type: bus.JobPrinted, Session: "s", Turn: "t1", News: &bus.News{ID: "j1"}},
		{Type: bus.TaskMoved, Session: "s", Turn: "t1", News: &bus.News{ID: "k1", State: bus.StateRunning}},
		{Type: bus.ScheduleMoved, Session: "s", News: &bus.News{ID: "x", State: bus.StateAdded}},
		{Type: bus.ChannelMoved, News: &bus.News{ID: "telegram", State: bus.StateDown}},
	}
	for _, e := range only {
		e.Route = bus.Address{Channel: "telegram"}
		r.Emit(e)
	}
	r.Emit(newEvent("s", 7))
	for _, e := range only {
		server.wantNews(e)
	}
	session.wantBlocks(7)
	channel.wantBlocks(7)
}

// newJobEvent returns an event that only the server's feed has, with that number as its id.
func newJobEvent(session string, n int) bus.Event {
	return bus.Event{Type: bus.JobMoved, Session: session, News: &bus.News{ID: fmt.Sprint(n), State: bus.StateRunning}}
}

// wantJobs checks that the next events are newJobEvent's with these numbers, and returns the last one.
func (v *subscription) wantJobs(session string, numbers ...int) (e bus.Event) {
	v.r.Helper()
	var last uint64
	for _, n := range numbers {
		e = v.wantNews(newJobEvent(session, n))
		if e.ID <= last {
			v.r.Fatalf("event %d after %d", e.ID, last)
		}
		last = e.ID
	}
	return e
}

func testServerFeedFromID(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.ServerFeed(), 0)
	for i := range 10 {
		r.Emit(newJobEvent("s", i))
		r.Emit(newEvent("s", i)) // events that the server's feed does not have
	}
	fourth := v.wantJobs("s", 0, 1, 2, 3)
	last := v.wantJobs("s", 4, 5, 6, 7, 8, 9)
	v.stop()
	r.subscribe(bus.ServerFeed(), fourth.ID).wantJobs("s", 4, 5, 6, 7, 8, 9)
	end := r.subscribe(bus.ServerFeed(), last.ID)
	r.Emit(newJobEvent("s", 10))
	end.wantJobs("s", 10)
}

func testServerFeedGone(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.ServerFeed(), 0)
	r.Emit(newJobEvent("s", 0))
	first := v.wantJobs("s", 0)
	v.stop()
	for i := range 1000 { // the last few thousand are held
		r.Emit(newJobEvent("s", i+1))
	}
	r.subscribe(bus.ServerFeed(), first.ID).wantJobs("s", 1, 2)
	for i := range 20000 {
		r.Emit(newJobEvent("s", i))
	}
	awaitGone(r, bus.ServerFeed(), first.ID)
}

func testServerFeedForgets(r *rig) {
	r.openForgetter()
	v := r.subscribe(bus.ServerFeed(), 0)
	r.Emit(newJobEvent("s", 0))
	first := v.wantJobs("s", 0)
	r.Emit(newJobEvent("s", 1))
	v.wantJobs("s", 1)
	r.forgetThat(func(bus.Topic, bus.Message) bool { return false }, "s")
	if _, err := r.Subscribe(r.Context(), bus.ServerFeed(), first.ID); !errors.Is(err, bus.ErrGone) {
		r.Errorf("the past can be subscribed to: %v", err)
	}
	if e, err, _ := v.next(); !errors.Is(err, bus.ErrGone) {
		r.Errorf("a watcher who has all events is told %+v, %v", e, err)
	}
	r.Emit(newJobEvent("other", 2))
	v.wantJobs("other", 2)
}

func testDeadLetterEvents(r *rig) {
	r.open(Options{})
	v := r.subscribe(bus.ServerFeed(), 0)
	want := func(session string, news bus.News) {
		r.Helper()
		news.Topic = inbound
		v.wantNews(bus.Event{Type: bus.DeadLetterMoved, Session: session, News: &news})
	}
	r.publish("k", "a", "b")
	r.finish("k", "a", "b") // no event: no message became a dead letter
	r.publish("k", "c", "d", "e")
	r.bury("k", said, "c", "d", "e")
	want("k", bus.News{State: bus.StateBuried})
	_, err := r.Replay(r.Context(), inbound, "c")
	r.noError("replay", err)
	want("k", bus.News{ID: "c", State: bus.StateReplayed})
	r.noError("drop", r.Drop(r.Context(), inbound, "d"))
	want("", bus.News{ID: "d", State: bus.StateDropped})
	r.wantError("drop again", r.Drop(r.Context(), inbound, "d"), bus.ErrNotFound)
	if _, can := r.Bus.(bus.Forgetter); !can {
		return
	}
	r.forgetThat(func(bus.Topic, bus.Message) bool { return true })
	want("", bus.News{State: bus.StateDropped})
}
