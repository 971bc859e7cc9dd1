package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/agent/failover"
	"parley/agent/llm"
	"parley/agent/sessioncache"
	"parley/agent/transcript"
	"parley/agent/worker"
	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/tools"
)

// A bench is a worker over a real bus and a real store, with a model whose answers the test defines.
type bench struct {
	audit     func(context.Context, sessions.AuditRecord) error
	note      func(sessions.AuditRecord)
	observer  agent.Observer
	t         testing.TB
	bus       *sqlitebus.Bus
	store     *sqlstore.Store
	agent     agent.Agent
	ownAgents map[string]agent.Agent // by session, in place of agent
	limit     agent.Limits
	point     func(string)

	carrier    bus.Bus     // what the worker claims from and publishes on
	sessions   agent.Store // what it opens logs in
	budget     sessions.Budget
	money      budget.Money // nil where money has no bound
	healthy    func(context.Context) error
	log        slog.Handler
	drain      time.Duration
	asks       agent.Asks // nil where nobody can be asked
	asking     agent.Approvals
	waits      agent.NodeWaits // nil where turns can't wait for nodes
	jobs       agent.Jobs      // nil where nothing runs in the background
	history    agent.History
	account    func(ctx context.Context, person string) (string, error)
	caches     []*sessioncache.Journals // of each worker
	owedCaches []*sessioncache.Journals // of each worker, and those of sessioncache_test.go
	compared   int                      // in how many sessions checkRemembered has compared the records

	mu   sync.Mutex
	next int
}

// A model answers with the function's result for the request.
type model func(context.Context, llm.Request) (llm.Answer, error)

func (m model) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	r.Restore()
	if r.Render != nil && !reflect.DeepEqual(r.Render(), r.Messages) {
		panic(fmt.Sprintf("the messages are rendered again as\n%v\nand were\n%v", r.Render(), r.Messages))
	}
	asked := *r
	r.Release()
	a, err := m(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i, b := range a.Blocks {
		emit(llm.Delta{Block: i, Kind: b.Kind, Text: b.Text, Name: b.Name})
	}
	return &a, nil
}

func (m model) Info() llm.Info { return llm.Info{Name: "scripted"} }

func textAnswer(s string) llm.Answer {
	return llm.Answer{Blocks: []llm.Block{{Kind: llm.BlockText, Text: s}}, Usage: llm.Usage{Input: 10, Output: 5}}
}

func callsAnswer(uses ...string) llm.Answer {
	a := llm.Answer{Usage: llm.Usage{Input: 10, Output: 5}}
	for _, u := range uses {
		name, args, _ := strings.Cut(u, " ")
		a.Blocks = append(a.Blocks, llm.Block{Kind: llm.BlockToolUse, Name: name, Args: json.RawMessage(args)})
	}
	return a
}

// newestUserText returns what people, and the agent itself, said in the newest run of user blocks.
func newestUserText(r llm.Request) string {
	var said []string
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			said = nil
			continue
		}
		for _, b := range m.Blocks {
			words := transcript.Words(b.Text)
			if b.Kind == llm.BlockText && !strings.HasPrefix(b.Text, "<") {
				words = []string{b.Text}
			}
			said = append(said, words...)
		}
	}
	return strings.Join(said, "|")
}

// toolResults returns the contents of all tool results, in order.
func toolResults(r llm.Request) []string {
	var all []string
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			if b.Kind == llm.BlockToolResult {
				all = append(all, string(b.Content))
			}
		}
	}
	return all
}

// newBench returns a bench whose bus and store share a file, as on one machine.
func newBench(t testing.TB, m model, set ...tools.Tool) *bench {
	t.Helper()
	dir := t.TempDir()
	shareOneFile(t, dir)
	return newBenchIn(t, dir, m, set...)
}

// newBenchIn returns a bench with its bus and its store in dir, each in a file of its own unless they share one.
func newBenchIn(t testing.TB, dir string, m model, set ...tools.Tool) *bench {
	t.Helper()
	fillEmpty(t, dir)
	h, err := openIn(t.Context(), dir, bus.Caps{Inbound: 20, Outbound: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	b, store := h.bus, h.store
	x := &bench{t: t, bus: b, store: store, carrier: b, sessions: store, budget: store, log: slog.DiscardHandler, drain: 5 * time.Second,
		limit: agent.Limits{Turns: 3, TurnsHour: 120, TokensDay: 1_000_000, MaxWaiting: 20},
		agent: agent.Agent{
			Name: "main", Model: m, Tools: tools.NewSet(set...),
			Prompt:        func(context.Context, agent.Asker) (string, error) { return "be brief", nil },
			MaxIterations: 20, ErrorLimit: 3, MaxParallelTools: 5, ContextTokens: 64000, Steer: true,
		},
	}
	t.Cleanup(x.checkRemembered)
	return x
}

// run starts a worker, which works until stop is called; stop waits for it.
func (b *bench) run() (stop func()) {
	b.t.Helper()
	remembered := sessioncache.New(sessioncache.Bounds{})
	b.caches = append(b.caches, remembered)
	return b.runWith(remembered)
}

// runWith does what run does, for a worker that has these journals in memory.
func (b *bench) runWith(remembered *sessioncache.Journals) (stop func()) {
	b.t.Helper()
	b.owedCaches = append(b.owedCaches, remembered)
	w := worker.New(agent.Config{
		SessionCache: remembered,
		Bus:          b.carrier, Events: b.bus, Store: b.sessions, Budget: b.budget, Money: b.money, Healthy: b.healthy, Asks: b.asks, NodeWaits: b.waits, Jobs: b.jobs,
		Approvals:   func() agent.Approvals { return b.asking },
		Agents:      b.agentOf,
		Limits:      func() agent.Limits { return b.limit },
		MaxInFlight: 64, Drain: b.drain, Log: slog.New(b.log), Point: b.point, Observer: b.observer, Audit: b.audit, QueueAudit: b.note, Account: b.account, History: b.history,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("worker: %v", err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

// agentOf returns the agent that answers in a session: the bench's, or the test's agent for that session. Its model is
// asked as a server asks it.
func (b *bench) agentOf(_ context.Context, session string) (a agent.Agent, err error) {
	defer func() {
		if a.Model != nil {
			a.Model = failover.New(failover.Config{Links: []failover.Link{{Model: a.Model}}})
		}
	}()
	if own, ok := b.ownAgents[session]; ok {
		return own, nil
	}
	if name, _, _ := strings.Cut(session, ":"); name != b.agent.Name {
		return agent.Agent{}, fmt.Errorf("nobody answers in %s", session)
	}
	return b.agent, nil
}

// say publishes what user says in chat, and returns the message's id.
func (b *bench) say(chat, user, said string) string {
	b.t.Helper()
	b.mu.Lock()
	b.next++
	id := fmt.Sprintf("m%d", b.next)
	b.mu.Unlock()
	in := bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:" + user, Name: user}, At: bus.Address{Channel: "test", Chat: chat}, Text: said}
	if name, ok := strings.CutPrefix(said, "/"); ok {
		in.Kind, in.Text = bus.Command, name
	}
	b.publish(in)
	return id
}

func (b *bench) publish(in bus.Inbound) {
	b.t.Helper()
	body, err := in.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	m := bus.Message{ID: in.ID, Key: "main:test:" + in.At.Chat, Body: body, Urgent: in.Kind == bus.Command}
	if err := b.bus.Publish(b.t.Context(), bus.InboundTopic, m); err != nil {
		b.t.Fatal(err)
	}
}

// reply waits for the next message to the outside and takes it.
func (b *bench) reply() bus.Outbound {
	b.t.Helper()
	return b.replyWithin(2 * time.Minute) // two waits between three requests to a model may take 10.5 s
}

// replyWithin does what reply does, with another time limit.
func (b *bench) replyWithin(limit time.Duration) bus.Outbound {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	lease, err := b.bus.Claim(ctx, bus.OutboundTopic("test"))
	if err != nil {
		b.t.Fatalf("no reply: %v", err)
	}
	mail, err := lease.Mail(ctx, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := bus.DecodeOutbound(mail[0].Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := lease.Settle(ctx, bus.End{Done: mail[0].Seq}); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) wantReply(id, text string) {
	b.t.Helper()
	out := b.reply()
	if id != "" && out.ID != id+"#reply" || !strings.Contains(out.Text, text) {
		b.t.Errorf("reply %s %q, want %s#reply with %q", out.ID, out.Text, id, text)
	}
}

// settled waits until nothing is waiting or worked on in the inbound topic.
func (b *bench) settled() {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		d, err := b.bus.Depth(b.t.Context(), bus.InboundTopic)
		if err != nil {
			b.t.Fatal(err)
		}
		if d.Waiting == 0 && d.Leased == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("not settled: %+v", d)
		}
		<-time.After(time.Millisecond)
	}
}

// kinds returns the kinds of the entries in the session's log, including the entries that workers still have to write.
func (b *bench) kinds(chat string) string {
	b.t.Helper()
	for _, w := range b.owedCaches {
		w.WriteOwed(b.t.Context())
	}
	var kinds []string
	for e, err := range b.store.Read(b.t.Context(), "main:test:"+chat, 1) {
		if err != nil {
			b.t.Fatal(err)
		}
		kinds = append(kinds, string(e.Kind))
	}
	return strings.Join(kinds, " ")
}

type echoArgs struct {
	Say string `json:"say"`
}

// echo returns a tool with the given effect; ran is called at each run with the text to say.
func echo(name string, effect tools.Effect, ran func(tools.Call, string) error) tools.Tool {
	return tools.New(tools.Spec{Name: name, Description: "echoes", Effect: effect},
		func(_ context.Context, call tools.Call, a echoArgs) (any, error) {
			if ran != nil {
				if err := ran(call, a.Say); err != nil {
					return nil, err
				}
			}
			return map[string]string{"said": a.Say}, nil
		})
}

// Each session is answered by the agent that is looked up for it.
func TestSessionsHaveAgentsOfTheirOwn(t *testing.T) {
	says := func(words string) model {
		return func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer(words), nil }
	}
	b := newBench(t, says("I am the one for all"))
	other := b.agent
	other.Model = says("I am the one for chat 2")
	b.ownAgents = map[string]agent.Agent{"main:test:2": other}
	b.run()
	b.wantReply(b.say("1", "u", "who are you?"), "the one for all")
	b.wantReply(b.say("2", "u", "who are you?"), "the one for chat 2")
	b.wantReply(b.say("1", "u", "and you?"), "the one for all")
}

func TestAnswer(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return textAnswer("you said " + newestUserText(r)), nil
	})
	b.run()
	id := b.say("1", "ann", "hello")
	b.wantReply(id, "you said hello")
	b.settled()
	if got, want := b.kinds("1"), "turn_started user text usage turn_done published"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	// The platform delivers it again, after the bus has forgotten it.
	in := bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "hello"}
	body, _ := in.Encode()
	if err := b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "another-id", Key: "main:test:1", Body: body}); err != nil {
		t.Fatal(err)
	}
	next := b.say("1", "ann", "again")
	b.wantReply(next, "you said again")
}

func TestToolRounds(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if n := len(toolResults(r)); n < 3 {
			return callsAnswer(fmt.Sprintf(`echo {"say":"%d"}`, n)), nil
		}
		return textAnswer(strings.Join(toolResults(r), "")), nil
	}, echo("echo", tools.Once, nil))
	b.run()
	b.wantReply(b.say("1", "ann", "go"), `{"said":"0"}{"said":"1"}{"said":"2"}`)
}

// The account of a turn's person is looked up once, for counting the turn and for all of its steps; the next turn looks
// it up again. It is not looked up if the gate has done so.
func TestThePayerIsAskedForOncePerTurn(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if n := len(toolResults(r)); n < 3 {
			return callsAnswer(fmt.Sprintf(`echo {"say":"%d"}`, n)), nil
		}
		return textAnswer("done"), nil
	}, echo("echo", tools.Pure, nil))
	var asked atomic.Int64
	b.account = func(_ context.Context, person string) (string, error) {
		asked.Add(1)
		return person + "-elsewhere", nil
	}
	b.run()
	b.say("1", "alex", "go")
	b.wantReply("", "done")
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times for one turn of four steps", n)
	}
	spent, err := b.store.Spent(t.Context(), "test:alex-elsewhere", time.Now())
	if err != nil || spent == 0 {
		t.Errorf("spent were %d, %v", spent, err)
	}
	b.say("1", "alex", "/new")
	b.say("1", "alex", "again")
	b.settled()
	n := asked.Load()
	if n < 2 {
		t.Errorf("the second turn has not asked: %d times in all", n)
	}
	b.publish(bus.Inbound{
		ID: "judged", Kind: bus.Said, From: bus.Person{ID: "test:alex", Account: "test:judged"},
		At: bus.Address{Channel: "test", Chat: "1"}, Text: "go",
	})
	b.settled()
	if again := asked.Load(); again != n {
		t.Errorf("it was asked %d times more though the gate had looked", again-n)
	}
	if spent, err := b.store.Spent(t.Context(), "test:judged", time.Now()); err != nil || spent == 0 {
		t.Errorf("spent were %d, %v", spent, err)
	}
}

func TestPureCallsRunSideBySideAndKeepTheirOrder(t *testing.T) {
	arrived := make(chan struct{}, 3)
	open := make(chan struct{})
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`look {"say":"a"}`, `look {"say":"b"}`, `look {"say":"c"}`), nil
		}
		return textAnswer(strings.Join(toolResults(r), "")), nil
	}, echo("look", tools.Pure, func(tools.Call, string) error {
		arrived <- struct{}{}
		<-open
		return nil
	}))
	b.run()
	id := b.say("1", "ann", "go")
	for range 3 {
		<-arrived // all three run before any has ended
	}
	close(open)
	b.wantReply(id, `{"said":"a"}{"said":"b"}{"said":"c"}`)
}

func TestFailuresAreDataForTheModel(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`nosuch {}`, `echo {"say":5,"x":1}`, `bad {"say":"x"}`, `boom {"say":"x"}`, `echo {"say":"ok"}`), nil
		}
		return textAnswer(strings.Join(toolResults(r), "\n")), nil
	},
		echo("echo", tools.Once, nil),
		echo("bad", tools.Once, func(tools.Call, string) error { return fmt.Errorf("it broke") }),
		echo("boom", tools.Once, func(tools.Call, string) error { panic("boom") }))
	b.run()
	b.say("1", "ann", "go")
	got := strings.Split(b.reply().Text, "\n")
	for i, want := range []string{"not_found", "invalid_args", "it broke", "execution_failed", `{"said":"ok"}`} {
		if !strings.Contains(got[i], want) {
			t.Errorf("result %d is %s, want it to have %q", i, got[i], want)
		}
	}
}

func TestToolsThatAreNotGrantedAreRefused(t *testing.T) {
	secret := tools.New(tools.Spec{Name: "sh", Description: "x", Permission: tools.Shell},
		func(context.Context, tools.Call, struct{}) (any, error) { t.Error("it ran"); return "x", nil })
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(r.Tools) != 0 {
			t.Error("a tool that is not granted was shown")
		}
		if len(toolResults(r)) == 0 {
			return callsAnswer(`sh {}`), nil
		}
		return textAnswer(toolResults(r)[0]), nil
	})
	b.agent.KnownTools = tools.NewSet(secret)
	b.run()
	b.wantReply(b.say("1", "ann", "go"), "permission_denied")
}

func TestMailOfTheSameSenderSteers(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 && newestUserText(r) == "first" {
			return callsAnswer(`slow {"say":"1"}`, `slow {"say":"2"}`), nil
		}
		return textAnswer(newestUserText(r) + ";" + strings.Join(toolResults(r), "")), nil
	}, echo("slow", tools.Once, func(_ tools.Call, say string) error {
		started <- struct{}{}
		<-goOn
		return nil
	}))
	b.run()
	first := b.say("1", "ann", "first")
	<-started
	b.wantReply(b.say("1", "ann", "/status"), ", in slow.")
	b.say("1", "ann", "and this")
	other := b.say("1", "bob", "mine")
	// The turn sees Ann's mail before the second call, which is then skipped.
	waitWaiting(t, b, 3)
	close(goOn)
	b.wantReply(first, `and this;{"said":"1"}{"error":{"code":"cancelled"`)
	b.wantReply(other, "mine;")
	b.settled()
}

// waitWaiting waits until a session's holder has been told of n messages.
func waitWaiting(t *testing.T, b *bench, n int) {
	t.Helper()
	status := b.say("1", "ann", "/status")
	for range 200 {
		out := b.reply()
		if out.ID != status+"#reply" {
			t.Fatalf("reply %s %q, want that of /status", out.ID, out.Text)
		}
		if strings.Contains(out.Text, fmt.Sprintf("waiting: %d ", n)) {
			return
		}
		status = b.say("1", "ann", "/status")
	}
	t.Fatalf("never were %d messages waiting", n)
}

func TestFollowupWaits(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "first" {
			close(started)
			<-goOn
		}
		return textAnswer("answer to " + newestUserText(r)), nil
	})
	b.agent.Steer = false
	b.run()
	first := b.say("1", "ann", "first")
	<-started
	second := b.say("1", "ann", "second")
	close(goOn)
	b.wantReply(first, "answer to first")
	b.wantReply(second, "answer to second")
}

func TestStop(t *testing.T) {
	started := make(chan struct{})
	b := newBench(t, func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "long" {
			close(started)
			<-ctx.Done()
			return llm.Answer{}, ctx.Err()
		}
		return textAnswer("answer to " + newestUserText(r)), nil
	})
	b.run()
	b.say("1", "ann", "long")
	<-started
	b.say("1", "bob", "waiting")
	stop := b.say("1", "ann", "/stop")
	b.wantReply(stop, "Stopped.")
	after := b.say("1", "ann", "after")
	b.wantReply(after, "answer to")
	b.settled()
	idle := b.say("1", "ann", "/stop")
	b.wantReply(idle, "Nothing is running.")
}

// The model's text about a call that a /stop has interrupted depends on the call's effect.
func TestStopInTheMiddleOfACall(t *testing.T) {
	for effect, want := range map[tools.Effect]string{tools.Pure: `"code":"cancelled"`, tools.Once: `"code":"outcome_unknown"`} {
		t.Run(string(effect), func(t *testing.T) {
			started := make(chan struct{})
			b := newBench(t, actModel(`long {"say":"x"}`), tools.New(tools.Spec{Name: "long", Description: "takes long", Effect: effect},
				func(ctx context.Context, _ tools.Call, _ echoArgs) (any, error) {
					close(started)
					<-ctx.Done()
					return nil, ctx.Err()
				}))
			b.run()
			b.say("1", "ann", "go")
			<-started
			b.wantReply(b.say("1", "ann", "/stop"), "Stopped.")
			b.settled()
			if got := b.logText("1"); !strings.Contains(got, want) {
				t.Errorf("the log has no %s: %s", want, got)
			}
		})
	}
}

// A turn that takes too long is ended, and its sender is told. Messages behind it are answered.
func TestATurnThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(ctx context.Context, r llm.Request) (llm.Answer, error) {
			if newestUserText(r) == "long" {
				<-ctx.Done()
				return llm.Answer{}, ctx.Err()
			}
			return textAnswer("answer to " + newestUserText(r)), nil
		})
		defer b.run()()
		long := b.say("1", "ann", "long")
		behind := b.say("1", "bob", "behind")
		<-time.After(30*time.Minute - time.Second)
		synctest.Wait()
		if got := b.kinds("1"); strings.Contains(got, "turn_done") {
			t.Fatalf("it is over before its time: %s", got)
		}
		b.wantReply(long, "I worked on this for 30m0s")
		b.wantReply(behind, "behind")
		b.settled()
	})
}

func TestNewForgetsWhatWasSaid(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return textAnswer(fmt.Sprintf("%d messages, %s", len(r.Messages), newestUserText(r))), nil
	})
	stop := b.run()
	b.wantReply(b.say("1", "ann", "one"), "1 messages")
	b.wantReply(b.say("1", "ann", "two"), "3 messages")
	b.wantReply(b.say("1", "ann", "/new"), "new conversation")
	b.wantReply(b.say("1", "ann", "three"), "1 messages, three")
	stop()
	b.run()
	b.wantReply(b.say("1", "ann", "four"), "3 messages, four")
}

func TestLimitsAreSaidAloud(t *testing.T) {
	t.Parallel()
	again := func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if r.NoCalls {
			return textAnswer("so far so good"), nil
		}
		return callsAnswer(fmt.Sprintf(`echo {"say":"%d"}`, len(toolResults(r)))), nil
	}
	t.Run("model calls", func(t *testing.T) {
		runs := 0
		b := newBench(t, again, echo("echo", tools.Once, func(tools.Call, string) error { runs++; return nil }))
		b.agent.MaxIterations = 4
		b.run()
		b.wantReply(b.say("1", "ann", "go"), "Stopped after 4 model calls")
		if runs != 3 {
			t.Errorf("%d calls ran, want 3", runs)
		}
	})
	t.Run("failing steps", func(t *testing.T) {
		runs := 0
		b := newBench(t, again, echo("echo", tools.Once, func(tools.Call, string) error { runs++; return fmt.Errorf("no") }))
		b.run()
		b.wantReply(b.say("1", "ann", "go"), "3 steps in a row")
		if runs != 3 {
			t.Errorf("%d calls ran, want 3", runs)
		}
	})
	t.Run("the same call", func(t *testing.T) {
		runs := 0
		b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
			if r.NoCalls {
				return textAnswer("enough"), nil
			}
			return callsAnswer(`echo {"say":"same"}`), nil
		}, echo("echo", tools.Once, func(tools.Call, string) error { runs++; return nil }))
		b.run()
		b.wantReply(b.say("1", "ann", "go"), "kept giving the same result")
		if runs != 4 {
			t.Errorf("%d calls ran, want 4: the fifth is refused", runs)
		}
	})
	t.Run("tokens of a day", func(t *testing.T) {
		b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("fine"), nil })
		b.limit.TokensDay = 4200
		b.run()
		b.wantReply(b.say("1", "ann", "one"), "fine")
		b.limit.TokensDay = 10
		b.wantReply(b.say("1", "ann", "two"), "10 tokens")
	})
	t.Run("turns of an hour", func(t *testing.T) {
		b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("fine"), nil })
		b.limit.TurnsHour = 1
		b.run()
		b.wantReply(b.say("1", "ann", "one"), "fine")
		b.wantReply(b.say("1", "ann", "two"), "Ask again after")
		b.wantReply(b.say("1", "bob", "one"), "fine")
	})
	t.Run("turns of an hour with one agent", func(t *testing.T) {
		b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("fine"), nil })
		strict := b.agent
		strict.Name, strict.TurnsHour = "ops", 1
		b.ownAgents = map[string]agent.Agent{"main:test:ops": strict}
		b.limit.TurnsHour = 2
		b.run()
		b.wantReply(b.say("ops", "ann", "one"), "fine")
		b.wantReply(b.say("ops", "ann", "two"), "asked me 1 times") // by the agent's own number
		b.wantReply(b.say("1", "ann", "three"), "fine")
		b.wantReply(b.say("2", "ann", "four"), "fine") // the agent's turns are none of these
		b.wantReply(b.say("1", "ann", "five"), "asked me 2 times")
		b.wantReply(b.say("ops", "bob", "one"), "fine")
	})
}

func TestModelFaults(t *testing.T) {
	tries := 0
	var fault error
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) {
		if tries++; fault != nil {
			return llm.Answer{}, fault
		}
		if tries == 1 {
			return llm.Answer{}, &llm.Error{Fault: llm.Busy, RetryAfter: time.Millisecond}
		}
		return textAnswer("at last"), nil
	})
	b.run()
	b.wantReply(b.say("1", "ann", "one"), "at last")
	fault = &llm.Error{Fault: llm.Refused, Status: 401}
	b.say("1", "ann", "two")
	if out := b.reply(); !out.Failed || !strings.Contains(out.Text, "is refusing my requests") {
		t.Errorf("the reply of a turn that failed: %+v", out)
	}
	fault = &llm.Error{Fault: llm.Busy, RetryAfter: time.Hour}
	b.wantReply(b.say("1", "ann", "three"), "too busy")
	fault = nil
	b.say("1", "ann", "four")
	if out := b.reply(); out.Failed || out.Text != "at last" {
		t.Errorf("the reply of a turn that is done: %+v", out)
	}
}

func TestOwnersAreToldWhatTheProviderSaid(t *testing.T) {
	faults := map[string]struct {
		fault llm.Error
		want  string
	}{
		"key":     {llm.Error{Fault: llm.Refused, Cause: llm.CauseKey, Status: 401, Said: "Incorrect API key"}, "doesn't accept the key (status 401: “Incorrect API key”). Check model.api_key."},
		"model":   {llm.Error{Fault: llm.Refused, Cause: llm.CauseModel, Status: 404, Said: "model 'x' not found"}, "no model by that name (status 404: “model 'x' not found”). Check model.name."},
		"quota":   {llm.Error{Fault: llm.Refused, Cause: llm.CauseQuota, Status: 402, Said: "Insufficient Balance"}, "no credit left (status 402: “Insufficient Balance”)"},
		"network": {llm.Error{Fault: llm.Busy, Cause: llm.CauseNetwork, RetryAfter: time.Hour, Err: errors.New("dial tcp: connection refused")}, "can't be reached (dial tcp: connection refused). Check model.base_url"},
		"request": {llm.Error{Fault: llm.Rejected, Status: 400, Said: "Invalid schema"}, "rejected this request (status 400: “Invalid schema”). /new starts over"},
	}
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		said := strings.Split(newestUserText(r), "|")
		fault := faults[said[len(said)-1]].fault
		return llm.Answer{}, &fault
	})
	b.run()
	for name, tc := range faults {
		ask := func(in bus.Inbound) string {
			in.ID, in.Kind, in.Text = "m-"+name+in.At.Chat, bus.Said, name
			b.publish(in)
			return b.reply().Text
		}
		at := func(chat string) bus.Address { return bus.Address{Channel: "test", Chat: chat} }
		owner := bus.Person{ID: "test:ann", Owner: true}
		if got := ask(bus.Inbound{From: owner, At: at("1"), Private: true}); !strings.Contains(got, tc.want) || strings.Contains(got, "log") {
			t.Errorf("%s: the owner is told %q, want %q", name, got, tc.want)
		}
		for _, in := range []bus.Inbound{{From: bus.Person{ID: "test:bob"}, At: at("2"), Private: true}, {From: owner, At: at("3"), Group: true}, {From: owner, At: at("4")}} {
			if got := ask(in); strings.Contains(got, "“") || strings.Contains(got, "dial tcp") {
				t.Errorf("%s: what the provider said is told before others: %q", name, got)
			}
		}
	}
}

func TestLongResultsAreCutAndKept(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`echo {"say":"` + strings.Repeat("x", 200_000) + `"}`), nil
		}
		return textAnswer(fmt.Sprintf("%d %t", len(toolResults(r)[0]), json.Valid([]byte(toolResults(r)[0])))), nil
	}, echo("echo", tools.Once, nil))
	var kept int
	b.agent.StoreLongResult = func(_ context.Context, _ tools.Call, content json.RawMessage) (string, error) {
		kept = len(content)
		return "out.json", nil
	}
	b.run()
	b.say("1", "ann", "go")
	var n int
	var valid bool
	if _, err := fmt.Sscanf(b.reply().Text, "%d %t", &n, &valid); err != nil {
		t.Fatal(err)
	}
	if n > 65536 || n < 10_000 || !valid || kept < 200_000 {
		t.Errorf("the model saw %d bytes, valid %t; %d were kept", n, valid, kept)
	}
}

func TestOldResultsAreClearedAndThePastSummarized(t *testing.T) {
	summaries := 0
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if strings.HasPrefix(newestUserText(r), "Summarize") || strings.Contains(newestUserText(r), "|Summarize") {
			summaries++
			return textAnswer("SUMMARY"), nil
		}
		n := 0
		for _, m := range r.Messages {
			for _, block := range m.Blocks {
				n += len(block.Text) + len(block.Content)
			}
		}
		return textAnswer(fmt.Sprintf("%d bytes", n)), nil
	})
	b.agent.ContextTokens = 2000
	b.run()
	for range 6 {
		b.say("1", "ann", strings.Repeat("word ", 400)) // 500 tokens each
		var n int
		if _, err := fmt.Sscanf(b.reply().Text, "%d bytes", &n); err != nil {
			t.Fatal(err)
		}
		if n > 3*2000*4/2 {
			t.Errorf("the model was given %d bytes in a window of 2,000 tokens", n)
		}
	}
	if summaries == 0 {
		t.Error("nothing was summarised")
	}
}

func TestManySessionsDoNotWaitForOneAnother(t *testing.T) {
	slow := make(chan struct{})
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "slow" {
			<-slow
		}
		return textAnswer("ok"), nil
	})
	b.run()
	b.say("slow", "sam", "slow")
	for i := range 50 {
		b.say(fmt.Sprint(i), fmt.Sprint("user", i), "quick")
	}
	for range 50 {
		if out := b.reply(); out.To.Chat == "slow" {
			t.Fatal("the slow one was first")
		}
	}
	close(slow)
	if out := b.reply(); out.To.Chat != "slow" {
		t.Errorf("reply to %s", out.To)
	}
}

func TestEventsTellOfTheTurn(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`echo {"say":"x"}`), nil
		}
		return textAnswer("done"), nil
	}, echo("echo", tools.Once, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	feed, err := b.bus.Subscribe(ctx, bus.SessionFeed("main:test:1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	b.say("1", "ann", "go")
	var types []string
	for e, err := range feed {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, fmt.Sprintf("%s/%d%s", e.Type, e.Block, e.Kind))
		if e.Type == bus.TurnComplete {
			break
		}
	}
	want := "turn_start/0 block_start/0user block_delta/0user block_stop/0user " +
		"block_start/1tool_use usage/0 block_stop/1tool_use tool_start/0 block_start/2tool_result block_delta/2tool_result block_stop/2tool_result tool_end/0 " +
		"block_start/3text block_delta/3text usage/0 block_stop/3text turn_complete/0"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("events\n%s\nwant\n%s", got, want)
	}
}

// A gatedStore opens nothing before its gate is open.
type gatedStore struct {
	agent.Store
	open  chan struct{}
	tried chan struct{}
}

func (g *gatedStore) Open(ctx context.Context, key string, fence int64) (sessions.Log, error) {
	select {
	case <-g.open:
		return g.Store.Open(ctx, key, fence)
	default:
		g.tried <- struct{}{}
		return nil, errors.New("the store is away")
	}
}

// While the store is unavailable, a message waits, however often its session is claimed meanwhile.
func TestAnOutageOfTheStoreBuriesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("at last"), nil })
	away := make(chan struct{})
	gate := &gatedStore{Store: b.store, open: away, tried: make(chan struct{}, 64)}
	b.sessions = gate
	b.healthy = func(context.Context) error {
		select {
		case <-away:
			return nil
		default:
			return errors.New("away")
		}
	}
	b.run()
	id := b.say("1", "ann", "hello")
	<-gate.tried
	close(away)
	b.wantReply(id, "at last")
	b.wantNoneDead()
}

// useUpClaims claims a session's mailbox so often that the next failure would bury the message.
func (b *bench) useUpClaims() {
	b.t.Helper()
	for range 10 {
		lease, err := b.bus.Claim(b.t.Context(), bus.InboundTopic)
		if err == nil {
			err = lease.Settle(b.t.Context(), bus.End{})
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// wantNoneDead fails the test if there is a dead letter.
func (b *bench) wantNoneDead() {
	b.t.Helper()
	if dead, err := b.bus.DeadLetters(b.t.Context(), bus.InboundTopic, "", 1); err != nil || len(dead) > 0 {
		b.t.Errorf("dead letters %v, %v", dead, err)
	}
}

// A busFailingOnce fails to publish the first reply.
type busFailingOnce struct {
	bus.Bus
	once sync.Once
}

func (d *busFailingOnce) Publish(ctx context.Context, topic bus.Topic, m bus.Message) (err error) {
	if topic != bus.InboundTopic {
		d.once.Do(func() { err = errors.New("away") })
	}
	if err != nil {
		return err
	}
	return d.Bus.Publish(ctx, topic, m)
}

// An answer that is in the log is not given up because the bus can't accept it yet, however often its session was
// claimed.
func TestAnOutageOfTheBusBuriesNothing(t *testing.T) {
	t.Parallel()
	b := newBenchIn(t, t.TempDir(), answerAtLast) // with one file for both, what can be written can be published
	b.carrier = &busFailingOnce{Bus: b.bus}
	b.wantAnswerAfter(b.useUpClaims)
}

func answerAtLast(context.Context, llm.Request) (llm.Answer, error) {
	return textAnswer("at last"), nil
}

// wantAnswerAfter fails the test unless a message is answered, and not buried, after done was called on its mailbox.
func (b *bench) wantAnswerAfter(done func()) {
	b.t.Helper()
	id := b.say("1", "ann", "hello")
	done()
	b.run()
	b.wantReply(id, "at last")
	b.settled()
	b.wantNoneDead()
}

// A storeFailingOnce fails to open the first log.
type storeFailingOnce struct {
	agent.Store
	once sync.Once
}

func (s *storeFailingOnce) Open(ctx context.Context, key string, fence int64) (l sessions.Log, err error) {
	s.once.Do(func() { err = errors.New("the connection was cut") })
	if err != nil {
		return nil, err
	}
	return s.Store.Open(ctx, key, fence)
}

func TestALogThatOpensTheSecondTimeIsNotGivenUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, answerAtLast)
	b.sessions = &storeFailingOnce{Store: b.store}
	b.wantAnswerAfter(b.useUpClaims)
}

// A brokenStore can't open any log.
type brokenStore struct{ agent.Store }

func (brokenStore) Open(context.Context, string, int64) (sessions.Log, error) {
	return nil, errors.New("the log is damaged")
}

// The sender of a message that is given up is told about the log only if the log was what failed.
func TestASenderIsToldWhatKeptFailing(t *testing.T) {
	for want, breaks := range map[string]func(b *bench){
		"can't open this conversation's history": func(b *bench) { b.sessions = brokenStore{b.store} },
		"something went wrong each time I tried": func(b *bench) {
			b.point = func(name string) {
				if name == "c1:before" {
					panic("broken")
				}
			}
		},
	} {
		t.Run(want, func(t *testing.T) {
			b := newBench(t, answerAtLast)
			breaks(b)
			id := b.say("1", "ann", "hello")
			b.useUpClaims()
			b.run()
			if out := b.reply(); out.ID != id+"#failed" || !strings.Contains(out.Text, want) {
				t.Errorf("the sender was told %+v", out)
			}
			b.settled()
		})
	}
}

// A reply for which the bus has no room does not keep the turn's end out of the log. It is published
// once there is room, and the model is not asked again.
func TestAReplyThatFindsNoRoomIsPublishedLater(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprint("apart ", apart), func(t *testing.T) {
			t.Parallel()
			testAReplyThatFindsNoRoom(t, apart)
		})
	}
}

func testAReplyThatFindsNoRoom(t *testing.T, apart bool) {
	dir := t.TempDir()
	if !apart {
		shareOneFile(t, dir)
	}
	var asked atomic.Int64
	b := newBenchIn(t, dir, func(context.Context, llm.Request) (llm.Answer, error) {
		asked.Add(1)
		return textAnswer("at last"), nil
	})
	for n := range 100 {
		out := bus.Outbound{ID: fmt.Sprint("o", n), To: bus.Address{Channel: "test", Chat: "1"}, Text: "earlier"}
		if err := bus.PublishOutbound(t.Context(), b.bus, out); err != nil {
			t.Fatal(err)
		}
	}
	b.run()
	id := b.say("1", "ann", "hello")
	for deadline := time.Now().Add(2 * time.Minute); ; {
		d, err := b.bus.Depth(t.Context(), bus.InboundTopic)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the session is not put off: %+v, %v", d, err)
		}
		if d.Delayed == 1 {
			break
		}
		<-time.After(time.Millisecond)
	}
	if got, want := b.kinds("1"), "turn_started user text usage turn_done"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	for n := range 100 {
		if out := b.reply(); out.ID != fmt.Sprint("o", n) {
			t.Fatalf("message %d is %s", n, out.ID)
		}
	}
	b.say("1", "ann", "/help") // urgent, so the session need not wait anymore
	said := map[string]string{}
	for range 2 {
		out := b.reply()
		said[out.ID] = out.Text
	}
	b.settled()
	if said[bus.ReplyID(id)] != "at last" {
		t.Errorf("the person was told %q", said)
	}
	if asked.Load() != 1 {
		t.Errorf("the model was asked %d times", asked.Load())
	}
	if got := b.kinds("1"); strings.Count(got, "published") != 1 {
		t.Errorf("log %q", got)
	}
}

// A failingCarrier publishes as part of other writes, the first of which fail after the message is
// written.
type failingCarrier struct {
	*sqlitebus.Bus
	left atomic.Int64
}

func (c *failingCarrier) Share(topic, key, id string, body []byte) (sqldb.Share, error) {
	s, err := c.Bus.Share(topic, key, id, body)
	return failingShare{s, &c.left}, err
}

type failingShare struct {
	sqldb.Share
	left *atomic.Int64
}

func (s failingShare) Write(tx *sqldb.Tx) (refused, err error) {
	refused, err = s.Share.Write(tx)
	if s.left.Add(-1) >= 0 {
		return nil, errors.New("disk I/O error")
	}
	return refused, err
}

// If the disk fails at a turn's end, the end is written once the disk works again, with one reply. Nobody sees the
// reply before.
func TestATurnsEndAwaitsTheDisk(t *testing.T) {
	var asked atomic.Int64
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) {
		asked.Add(1)
		return textAnswer("at last"), nil
	})
	carrier := &failingCarrier{Bus: b.bus}
	carrier.left.Store(2)
	b.store.PublishBy(carrier)
	b.run()
	b.wantReply(b.say("1", "ann", "hello"), "at last")
	if carrier.left.Load() >= 0 {
		t.Error("the reply is there though the disk has not taken it")
	}
	b.settled()
	b.wantSilence()
	if got, want := b.kinds("1"), "turn_started user text usage turn_done published"; got != want || asked.Load() != 1 {
		t.Errorf("the model was asked %d times, and the log is %q, want %q", asked.Load(), got, want)
	}
}

// A changeHistory counts the ends of turns whose changes were recorded.
type changeHistory struct {
	agent.History
	ends atomic.Int64
}

func (*changeHistory) Begin(context.Context, tools.Call) error { return nil }

func (h *changeHistory) End(context.Context, string, string) error {
	h.ends.Add(1)
	return nil
}

// A turn's changes in files are recorded before its reply is on the bus: a person who has read the reply may change
// more.
func TestWhatATurnHasChangedIsRecordedBeforeItsReply(t *testing.T) {
	runSharedAndSeparate(t, "", func(t *testing.T, dir string) {
		b := newBenchIn(t, dir, func(_ context.Context, r llm.Request) (llm.Answer, error) {
			if len(toolResults(r)) == 0 {
				return callsAnswer(`echo {"say":"x"}`), nil
			}
			return textAnswer("done"), nil
		}, echo("echo", tools.Once, nil))
		var h changeHistory
		b.history = &h
		b.run()
		b.wantReply(b.say("1", "ann", "go"), "done")
		if h.ends.Load() == 0 {
			t.Error("the reply was there before what the turn has changed was recorded")
		}
		b.settled()
		if n := h.ends.Load(); n != 1 {
			t.Errorf("it was recorded %d times", n)
		}
	})
}
