package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/failover"
	"parley/agent/llm"
	"parley/agent/worker"
	"parley/bus"
	"parley/cmd/parley/api"
	"parley/sessions"
	"parley/tools"
	"parley/tools/testrace"
)

// A frame is one server-sent event.
type frame struct {
	id, kind, data string
}

// A feed is an open stream of frames.
type feed struct {
	t    testing.TB
	resp *http.Response
	in   *bufio.Reader
	stop context.CancelFunc
	// schema is the name of the schema that the data of most events must match, or "" for no check.
	schema string
}

// watch opens the stream of a session. lastID may be empty.
func (x *rig) watch(key, token, lastID string, options ...option) *feed {
	x.t.Helper()
	return x.open(sessionPath(key, "/events"), "Event", token, lastID, options...)
}

// open opens a stream. The data of most of its events must match that schema.
func (x *rig) open(path, schema, token, lastID string, options ...option) *feed {
	x.t.Helper()
	ctx, stop := context.WithCancel(x.t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", x.base+path, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	for _, o := range options {
		o(req)
	}
	resp, err := x.client.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		x.t.Fatalf("%d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return &feed{x.t, resp, bufio.NewReader(resp.Body), stop, schema}
}

func (f *feed) close() {
	f.stop()
	f.resp.Body.Close()
}

// next returns the next event and skips everything else. After the end of the stream it returns io.EOF or another
// error.
func (f *feed) next() (frame, error) {
	var e frame
	for {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return frame{}, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e.kind != "":
			schema := f.schema
			if e.kind == "reset" {
				schema = "ServerEvent"
			}
			if e.kind == "snapshot" {
				schema = "Snapshot"
			}
			if e.kind == bus.Asked && schema == "Event" {
				schema = "Ask"
			}
			if schema != "" {
				docs(f.t).validateAs(f.t, schema, []byte(e.data))
			}
			return e, nil
		case name == "id":
			e.id = value
		case name == "event":
			e.kind = value
		case name == "data":
			e.data = value
		}
	}
}

// must returns the next event, and fails the test if the stream has ended.
func (f *feed) must() frame {
	f.t.Helper()
	e, err := f.next()
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// A gated model answers in four steps, and writes one piece for each value of next. It fails once in the second step,
// so the agent has to ask it again.
type gated struct {
	next chan struct{}
	mu   sync.Mutex
	step int
	lost bool
}

func (m *gated) Info() llm.Info { return llm.Info{Name: "gated"} }

func (m *gated) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	texts := []string{"thinking", "text"}
	a := &llm.Answer{Usage: llm.Usage{Input: 1, Output: 1}}
	for i, kind := range texts {
		b := llm.Block{Kind: llm.BlockKind(kind)}
		for piece := range 5 {
			select {
			case <-m.next:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			text := fmt.Sprintf("%s %d.%d\n", kind, m.step, piece)
			b.Text += text
			emit(llm.Delta{Block: i, Kind: b.Kind, Text: text})
			if m.step == 1 && i == 1 && piece == 2 && !m.lost {
				m.lost = true
				return nil, &llm.Error{Fault: llm.Busy, RetryAfter: time.Millisecond}
			}
		}
		a.Blocks = append(a.Blocks, b)
	}
	if m.step < 3 {
		emit(llm.Delta{Block: 2, Kind: llm.BlockToolUse, Name: "look"})
		a.Blocks = append(a.Blocks, llm.Block{Kind: llm.BlockToolUse, Name: "look", Args: json.RawMessage(fmt.Sprintf(`{"n": %d}`, m.step))})
	}
	m.step++
	return a, nil
}

// A mover is a bus for mail and events.
type mover interface {
	bus.Bus
	bus.Events
}

// work runs a worker with a model until the test ends.
func (x *rig) work(m llm.Model) { x.workOn(x.bus, m, func(*agent.Agent) {}) }

// workOn runs a worker with a model on any bus, with a changed agent.
func (x *rig) workOn(b mover, m llm.Model, change func(*agent.Agent)) {
	x.t.Helper()
	look := tools.New(tools.Spec{Name: "look", Description: "Looks.", Effect: tools.Pure},
		func(_ context.Context, c tools.Call, args struct {
			N int `json:"n"`
		}) (any, error) {
			c.Progress("looking")
			return args.N, nil
		})
	m = failover.New(failover.Config{Links: []failover.Link{{Model: m}}}) // retry as a server does
	w := worker.New(agent.Config{
		Bus: b, Events: b, Store: x.store, Budget: x.store,
		Agents: func(_ context.Context, session string) (agent.Agent, error) {
			name, _, _ := strings.Cut(session, ":")
			a := agent.Agent{
				Name: name, Model: m, Tools: tools.NewSet(look),
				Prompt:        func(context.Context, agent.Asker) (string, error) { return "be brief", nil },
				MaxIterations: 20, ErrorLimit: 3, MaxParallelTools: 5, ContextTokens: 64000,
			}
			change(&a)
			return a, nil
		},
		Limits:      func() agent.Limits { return agent.Limits{Turns: 3, TurnsHour: 100, TokensDay: 1e6, MaxWaiting: 20} },
		MaxInFlight: 4, Drain: time.Second, Log: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	x.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			x.t.Errorf("worker: %v", err)
		}
	})
}

const watched = "main:web:chat"

// A worker that takes over a session publishes the end of its last turn again. A stream shows the end once.
func TestATurnEndsOnceInAStream(t *testing.T) {
	x := newRig(t)
	s := x.watch(watched, chatToken, "")
	defer s.close()
	s.must() // the snapshot
	for _, e := range []bus.Event{
		{Type: bus.TurnComplete, Turn: "a"}, {Type: bus.TurnError, Turn: "b"},
		{Type: bus.TurnComplete, Turn: "a"}, {Type: bus.TurnError, Turn: "b"},
		{Type: bus.TurnComplete, Turn: "c"},
	} {
		e.Session = watched
		x.bus.Emit(e)
	}
	for _, want := range []string{"a", "b", "c"} {
		if e := s.must(); !strings.Contains(e.data, `"turn":"`+want+`"`) {
			t.Fatalf("the stream has %+v, want the end of turn %s", e, want)
		}
	}
}

// A stream that is cut and resumed yields the same blocks as an uncut one, wherever it is cut, and whether or not the
// client sends the last id.
func TestCutStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  int  // how many events have happened when the watcher first comes
		keeps bool // whether the client sends the last id of its previous stream
	}{
		{"with the past", 0, true},
		{"with the past, from the middle of an answer", 4, true},
		{"with the past, from the middle of a later answer", 17, true},
		{"without the past", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRig(t)
			model := &gated{next: make(chan struct{}, 1000)}
			x.work(model)
			whole := newClient()
			uncut := x.watch(watched, chatToken, "")
			defer uncut.close()
			whole.take(t, uncut.must())
			if r := x.post(chatToken, `{"to": "agent", "text": "go"}`); r.StatusCode != 202 {
				t.Fatalf("%d %s", r.StatusCode, r.body)
			}
			var happened []frame
			see := func() {
				e := uncut.must()
				happened = append(happened, e)
				whole.take(t, e)
			}
			for len(happened) < c.from {
				select {
				case model.next <- struct{}{}:
				default:
				}
				see()
			}
			cut, streams := newClient(), 0
			for ; !cut.over(); streams++ {
				f := x.watch(watched, chatToken, cut.lastID)
				if cut.lastID == "" {
					e := f.must()
					if e.kind != "snapshot" || e.id != "" {
						t.Fatalf("a watcher without a past gets %+v", e)
					}
					cut.take(t, e)
				}
				model.next <- struct{}{} // let the model write one more piece, so there is at least one more event
				if !cut.over() {
					cut.take(t, f.must())
				}
				if !c.keeps {
					cut.lastID = ""
				}
				f.close()
			}
			for !whole.over() {
				see()
			}
			if !reflect.DeepEqual(cut.blocks, whole.blocks) {
				t.Errorf("cut in %d streams:\n%v\nuncut:\n%v", streams, cut.blocks, whole.blocks)
			}
			if c.keeps && c.from == 0 {
				x.resumeEverywhere(happened, whole)
			}
			kinds := map[string]bool{}
			for _, e := range happened {
				kinds[e.kind] = true
			}
			for _, kind := range []string{bus.TurnStart, bus.BlockStart, bus.BlockDelta, bus.BlockStop, bus.BlockReset, bus.ToolStart, bus.ToolProgress, bus.ToolEnd, bus.TurnComplete} {
				if !kinds[kind] {
					t.Errorf("no %s was seen: the turn is too plain for this test", kind)
				}
			}
		})
	}
}

// resumeEverywhere resumes a finished stream after each of its events, and checks that the client then shows the
// same.
func (x *rig) resumeEverywhere(happened []frame, whole *client) {
	x.t.Helper()
	for i := range happened[:len(happened)-1] {
		cut := newClient()
		for _, e := range happened[:i+1] {
			cut.take(x.t, e)
		}
		f := x.watch(watched, chatToken, cut.lastID)
		for !cut.over() {
			cut.take(x.t, f.must())
		}
		f.close()
		if !reflect.DeepEqual(cut.blocks, whole.blocks) {
			x.t.Errorf("cut after event %d (%s): %v", i, happened[i].kind, cut.blocks)
		}
	}
	for _, unknown := range []string{"1", "18446744073709551615", "x", "-1"} { // no longer held, of another bus, or not an id
		f := x.watch(watched, chatToken, unknown)
		late := newClient()
		if e := f.must(); e.kind != "snapshot" {
			x.t.Errorf("Last-Event-ID %s begins with %s", unknown, e.kind)
		} else {
			late.take(x.t, e)
		}
		f.close()
		if !reflect.DeepEqual(late.blocks, whole.blocks) {
			x.t.Errorf("the snapshot after the turn: %v", late.blocks)
		}
	}
}

// emit publishes events in the watched session.
func (x *rig) emit(events ...bus.Event) {
	for _, e := range events {
		e.Session, e.Turn = watched, "t"
		x.bus.Emit(e)
	}
}

// A watcher who comes in the middle of an answer first gets what was already said, once, and then the rest. No event
// before that has an id from which the stream could resume.
func TestWhoComesLateSeesTheAnswerSoFar(t *testing.T) {
	x := newRig(t)
	x.write(watched, begun(t, "t")...) // block 0 is what the person said
	x.emit(bus.Event{Type: bus.BlockStart, Block: 1, Kind: "text"}, bus.Event{Type: bus.BlockDelta, Block: 1, Kind: "text", Delta: "void"}, bus.Event{Type: bus.BlockReset, Block: 1},
		bus.Event{Type: bus.BlockStart, Block: 1, Kind: "thinking"}, bus.Event{Type: bus.BlockDelta, Block: 1, Kind: "thinking", Delta: "so "}, bus.Event{Type: bus.BlockDelta, Block: 1, Kind: "thinking", Delta: "it is"},
		bus.Event{Type: bus.BlockStart, Block: 2, Kind: "text"}, bus.Event{Type: bus.BlockDelta, Block: 2, Kind: "text", Delta: "one "})
	f := x.watch(watched, chatToken, "")
	defer f.close()
	if e := f.must(); e.kind != "snapshot" {
		t.Fatalf("%+v", e)
	}
	for _, want := range []string{`"block":1,"kind":"thinking"`, `"block":1,"kind":"thinking","delta":"so it is"`, `"block":2,"kind":"text"`, `"block":2,"kind":"text","delta":"one "`} {
		if e := f.must(); e.id != "" || !strings.Contains(e.data, want+"}") {
			t.Errorf("%+v, want %s without an id", e, want)
		}
	}
	x.emit(bus.Event{Type: bus.BlockDelta, Block: 2, Kind: "text", Delta: "two"})
	if e := f.must(); e.id == "" || !strings.Contains(e.data, `"delta":"two"`) {
		t.Errorf("%+v, want the next piece with an id", e)
	}
}

// A watcher who comes in the middle of a block whose beginning is no longer held gets the rest live, and the whole
// block once the log has it. Until then, no event has an id from which the stream could resume.
func TestAHoleIsFilled(t *testing.T) {
	x := newRig(t)
	x.write(watched, begun(t, "t")...) // block 0 is what the person said
	x.emit(bus.Event{Type: bus.BlockDelta, Block: 1, Kind: "text", Delta: "one "})
	f := x.watch(watched, chatToken, "")
	defer f.close()
	if e := f.must(); e.kind != "snapshot" {
		t.Fatalf("%+v", e)
	}
	x.emit(bus.Event{Type: bus.BlockDelta, Block: 1, Kind: "text", Delta: "two"})
	if e := f.must(); e.kind != bus.BlockDelta || e.id != "" {
		t.Errorf("%+v, want a piece without an id", e)
	}
	x.write(watched, entry(t, "t", sessions.KindText, sessions.Text{Text: "one two"}), entry(t, "t", sessions.KindUsage, sessions.Usage{Model: "m"}))
	x.emit(bus.Event{Type: bus.BlockStop, Block: 1, Kind: "text"}, bus.Event{Type: bus.ToolStart, Tool: "look", Call: "c"})
	if e := f.must(); e.kind != "snapshot" || !strings.Contains(e.data, `"text":"one two"`) {
		t.Errorf("%+v", e)
	}
	if e := f.must(); e.kind != bus.ToolStart || e.id == "" {
		t.Errorf("%+v", e)
	}
	// The stream neither repeats nor voids what the snapshot already contains.
	x.emit(bus.Event{Type: bus.BlockDelta, Block: 1, Kind: "text", Delta: "late"}, bus.Event{Type: bus.BlockReset, Block: 1},
		bus.Event{Type: bus.BlockStart, Block: 1, Kind: "text"}, bus.Event{Type: bus.BlockStart, Block: 2, Kind: "text"})
	if e := f.must(); e.kind != bus.BlockReset || !strings.Contains(e.data, `"block":2`) {
		t.Errorf("%+v", e)
	}
	if e := f.must(); e.kind != bus.BlockStart || !strings.Contains(e.data, `"block":2`) {
		t.Errorf("%+v", e)
	}
}

// An older release may announce the end of a block before the log has it. The stream fills such a hole when a call
// begins.
func TestAHoleIsFilledWhereTheLogComesLater(t *testing.T) {
	x := newRig(t)
	x.write(watched, begun(t, "t")...)
	f := x.watch(watched, chatToken, "")
	defer f.close()
	f.must()
	x.emit(bus.Event{Type: bus.BlockStop, Block: 1, Kind: "text"})
	if e := f.must(); e.kind != "snapshot" {
		t.Errorf("%+v", e)
	}
	if e := f.must(); e.kind != bus.BlockStop || e.id != "" {
		t.Errorf("%+v, want an end without an id", e)
	}
	x.write(watched, entry(t, "t", sessions.KindText, sessions.Text{Text: "one two"}))
	x.emit(bus.Event{Type: bus.ToolStart, Tool: "look", Call: "c"})
	if e := f.must(); e.kind != "snapshot" || !strings.Contains(e.data, `"text":"one two"`) {
		t.Errorf("%+v", e)
	}
}

// A worker of an older release numbers only what the model says, so its first number is that of the person's block in
// the log. A watcher then gets the answer in a snapshot at the end of the turn.
func TestOlderNumbersOfBlocks(t *testing.T) {
	x := newRig(t)
	x.write(watched, begun(t, "t")...)
	f := x.watch(watched, chatToken, "")
	defer f.close()
	f.must()
	x.emit(bus.Event{Type: bus.BlockStart, Kind: "text"}, bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: "one"}, bus.Event{Type: bus.BlockStop, Kind: "text"})
	x.write(watched, entry(t, "t", sessions.KindText, sessions.Text{Text: "one"}), entry(t, "t", sessions.KindUsage, sessions.Usage{Model: "m"}),
		entry(t, "t", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted}))
	x.emit(bus.Event{Type: bus.TurnComplete})
	if e := f.must(); e.kind != "snapshot" || !strings.Contains(e.data, `"text":"one"`) {
		t.Errorf("%+v", e)
	}
	if e := f.must(); e.kind != bus.TurnComplete {
		t.Errorf("%+v", e)
	}
}

// A snapshot contains the newest turns only.
func TestSnapshotIsBounded(t *testing.T) {
	x := newRig(t)
	for n := range 40 {
		turn := fmt.Sprint("t", n)
		x.write(watched, append(begun(t, turn),
			entry(t, turn, sessions.KindText, sessions.Text{Text: "x"}),
			entry(t, turn, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted}))...)
	}
	f := x.watch(watched, chatToken, "")
	defer f.close()
	s := newClient()
	s.take(t, f.must())
	turns := slices.Sorted(maps.Keys(s.blocks))
	if len(turns) != 32 || slices.Contains(turns, "t7") || !slices.Contains(turns, "t8") || s.blocks["t39"][1].Text != "x" {
		t.Errorf("%d turns: %v", len(turns), turns)
	}
}

func TestWhoMayWatch(t *testing.T) {
	x := newRig(t)
	for _, c := range []struct {
		token, key string
		want       int
	}{{"", watched, 401}, {opsToken, watched, 403}, {chatToken, "main:web:ci", 403}, {chatToken, "x", 403}, {readToken, "x", 404}} {
		if r := x.get(sessionPath(c.key, "/events"), c.token); r.StatusCode != c.want {
			t.Errorf("%s by %q: %d", c.key, c.token, r.StatusCode)
		}
	}
	for token, key := range map[string]string{chatToken: "main:web:chat:not-yet", readToken: "main:slack:C1", ownerToken: watched} {
		f := x.watch(key, token, "")
		if e := f.must(); e.data != `{"turns":[],"blocks":[]}` {
			t.Errorf("%s: %+v", key, e)
		}
		f.close()
	}
}

// A stream ends when its token is removed, loses its scope, or gets another name. Other streams go on.
func TestATokenThatIsTakenBackWatchesNoMore(t *testing.T) {
	var now atomic.Pointer[[]api.Token]
	all := tokens()
	now.Store(&all)
	x := newRig(t, func(x *rig) { x.cfg.Access.Tokens = func() []api.Token { return *now.Load() } })
	const key = "main:web:chat"
	for name, change := range map[string]func(*api.Token){
		"gone":           nil,
		"no scope":       func(t *api.Token) { t.May = []string{"metrics"} },
		"another's":      func(t *api.Token) { t.Name = "other" },
		"another secret": func(t *api.Token) { t.Secret = "new-secret" },
	} {
		now.Store(&all)
		theirs, others, owners := x.watch(key, chatToken, ""), x.watch(key, readToken, ""), x.watch(key, ownerToken, "")
		for _, f := range []*feed{theirs, others, owners} {
			defer f.close()
			f.must()
		}
		var next []api.Token
		for _, token := range all {
			if token.Secret == chatToken {
				if change == nil {
					continue
				}
				change(&token)
			}
			next = append(next, token)
		}
		now.Store(&next)
		x.Recheck()
		x.emit(bus.Event{Type: bus.BlockStart, Session: key, Turn: "t", Kind: "text"}, bus.Event{Type: bus.BlockDelta, Session: key, Turn: "t", Delta: "secret"})
		for {
			e, err := theirs.next()
			if err != nil {
				break
			}
			t.Errorf("%s: it was shown %s %s", name, e.kind, e.data)
		}
		for _, f := range []*feed{others, owners} {
			if e := f.must(); e.kind != bus.BlockStart {
				t.Errorf("%s: another was shown %s", name, e.kind)
			}
		}
	}
}

func TestQuietStreamsSayThatTheyLive(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Timeouts.Quiet = 10 * time.Millisecond })
	f := x.watch(watched, chatToken, "")
	defer f.close()
	f.must()
	for beats := 0; beats < 3; {
		line, err := f.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ":") {
			beats++
		}
	}
	x.emit(bus.Event{Type: bus.TurnStart})
	if e := f.must(); e.kind != bus.TurnStart {
		t.Errorf("%+v", e)
	}
}

// A watcher that doesn't read is cut off, and delays nobody meanwhile.
func TestAWatcherThatDoesNotRead(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Timeouts.Write = time.Second })
	deaf, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	if err := deaf.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(deaf, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", sessionPath(watched, "/events"), chatToken)
	good := x.watch(watched, chatToken, "")
	defer good.close()
	good.must()
	for x.Streams() < 2 {
		runtime.Gosched()
	}
	big := strings.Repeat("x", 64<<10)
	x.emit(bus.Event{Type: bus.BlockStart, Kind: "text"})
	good.must()
	for x.Streams() > 1 { // until the server cuts off the watcher that doesn't read
		began := time.Now()
		x.emit(bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: big})
		if e := good.must(); e.kind != bus.BlockDelta {
			t.Fatalf("%s", e.kind)
		}
		if took := time.Since(began); took > 900*time.Millisecond {
			t.Errorf("the other watcher waited %s", took)
		}
	}
}

// A server that shuts down ends its streams and doesn't wait for the watchers.
func TestShutdownEndsStreams(t *testing.T) {
	x := newRig(t)
	a := api.New(x.cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx, l) }()
	x.base = "http://" + l.Addr().String()
	f := x.watch(watched, chatToken, "")
	defer f.close()
	f.must()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := f.next(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
	if n := a.Streams(); n != 0 {
		t.Errorf("%d streams are open", n)
	}
}

// A thousand idle watchers use little memory, the clients' side included.
func TestIdleWatchersCostLittle(t *testing.T) {
	if testrace.Elsewhere(t) { // the race detector needs more memory than the watchers
		return
	}
	t.Run("of a session each", func(t *testing.T) {
		idleWatchers(t, newRig(t), 50<<20, func(n int) string { return fmt.Sprint(watched, ":", n) })
	})
	t.Run("of one long session", func(t *testing.T) {
		x := newRig(t)
		all := begun(t, "t")
		for range 60 {
			all = append(all, entry(t, "t", sessions.KindText, sessions.Text{Text: strings.Repeat("x", 2<<10)}))
		}
		x.write(watched, append(all, entry(t, "t", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted}))...)
		idleWatchers(t, x, 44<<20, func(int) string { return watched })
	})
}

func idleWatchers(t *testing.T, x *rig, bound uint64, session func(int) string) {
	t.Helper()
	const watchers = 1000
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	buf := make([]byte, 64<<10)
	before := used()
	conns := make([]net.Conn, watchers)
	for i := range conns {
		conn, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", sessionPath(session(i), "/events"), chatToken)
		// Read the whole snapshot and keep none of it.
		for seen, last := false, ""; !seen || !strings.HasSuffix(last, "\n\n\r\n"); {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			seen = seen || bytes.Contains(buf[:n], []byte("event: snapshot"))
			last += string(buf[max(0, n-4):n])
			last = last[max(0, len(last)-4):]
		}
	}
	cost := used() - before
	t.Logf("%d watchers take %d KB", watchers, cost>>10)
	if x.Streams() != watchers || cost > bound {
		t.Errorf("%d watchers take %d KB", x.Streams(), cost>>10)
	}
	runtime.KeepAlive(conns)
}

// A snapshot doesn't contain a deleted message, even if another watcher got a snapshot with it a moment ago.
func TestADeletedMessageIsInNoSnapshot(t *testing.T) {
	x := newRig(t)
	said := entry(t, "one", sessions.KindUser, sessions.User{Text: "plugh"})
	said.Cause = "m1"
	x.write(watched, entry(t, "one", sessions.KindTurnStarted, sessions.TurnStarted{}), said)
	before := x.watch(watched, chatToken, "")
	defer before.close()
	if e := before.must(); !strings.Contains(e.data, "plugh") {
		t.Fatalf("before it is deleted: %s", e.data)
	}
	log, err := x.store.Open(t.Context(), watched, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.(sessions.MessageEraser).EraseMessage(t.Context(), "m1"); err != nil {
		t.Fatal(err)
	}
	after := x.watch(watched, chatToken, "")
	defer after.close()
	if e := after.must(); strings.Contains(e.data, "plugh") {
		t.Errorf("after it was deleted: %s", e.data)
	}
}
