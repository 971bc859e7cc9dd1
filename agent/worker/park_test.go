package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	agentasks "parley/agent/asks"
	"parley/agent/llm"
	"parley/bus"
	"parley/bus/timers"
	"parley/channels/asks"
	"parley/channels/sqlbook"
	"parley/sessions"
	"parley/tools"
)

// An askRig decides a bench's asks.
type askRig struct {
	*asks.Service
	book      *sqlbook.Book
	cannotAsk atomic.Pointer[string] // nobody can be asked
}

// ask lets a bench's turns ask people, and lets asks expire.
func (b *bench) ask() *askRig {
	b.t.Helper()
	book, err := sqlbook.Open(b.t.Context(), filepath.Join(b.t.TempDir(), "book.db"))
	if err != nil {
		b.t.Fatal(err)
	}
	d := &askRig{book: book}
	d.Service = &asks.Service{Bus: b.bus, Book: book, Log: slog.New(b.log), MayPark: func(context.Context) (string, error) {
		if why := d.cannotAsk.Load(); why != nil {
			return *why, nil
		}
		return "", nil
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	clock := &timers.Runner{Bus: b.bus, Handlers: map[string]timers.Handler{bus.AskTimer: d.Fire}, Log: slog.New(b.log)}
	for _, run := range []func(context.Context) error{d.Run, clock.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				b.t.Error(err)
			}
		})
	}
	b.t.Cleanup(func() {
		cancel()
		running.Wait()
		book.Close()
	})
	b.asks = d
	return d
}

// guardAct is a guard that asks about the tool act, and allows all others.
func guardAct(_ context.Context, call tools.Call) tools.Verdict {
	if call.Name == "act" {
		return tools.Verdict{Decision: tools.Ask, Reason: "a rule says so"}
	}
	return tools.Verdict{}
}

// actModel returns a model that makes the given calls of act, and then repeats their results.
func actModel(uses ...string) model {
	return func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(uses...), nil
		}
		return textAnswer(strings.Join(toolResults(r), "\n") + "; " + newestUserText(r)), nil
	}
}

// newActBench returns a bench whose calls of act need an approval; ran counts those that ran.
func newActBench(t *testing.T, m model, more ...tools.Tool) (b *bench, d *askRig, ran *atomic.Int32) {
	t.Helper()
	ran = &atomic.Int32{}
	set := append(more, echo("act", tools.Once, func(tools.Call, string) error { ran.Add(1); return nil }))
	b = newBench(t, m, set...)
	b.agent.Guard = guardAct
	d = b.ask()
	return b, d, ran
}

var askIDs = regexp.MustCompile("(?:approve|answer) ([a-z2-7]{10})")

// nextAskID waits for the next request to people and returns its id.
func (b *bench) nextAskID() (id string, out bus.Outbound) {
	b.t.Helper()
	out = b.reply()
	m := askIDs.FindStringSubmatch(out.Text)
	if m == nil || !strings.Contains(out.ID, "#ask/") {
		b.t.Fatalf("said %s %q, want a request", out.ID, out.Text)
	}
	return m[1], out
}

// command has somebody give a command in a chat.
func (b *bench) command(chat string, who bus.Person, command string) string {
	b.t.Helper()
	b.mu.Lock()
	b.next++
	id := fmt.Sprintf("m%d", b.next)
	b.mu.Unlock()
	name, args, _ := strings.Cut(command, " ")
	b.publish(bus.Inbound{ID: id, Kind: bus.Command, From: who, At: bus.Address{Channel: "test", Chat: chat}, Text: name, Args: args})
	return id
}

var (
	owner    = bus.Person{ID: "test:own", Name: "Olga", Owner: true}
	approver = bus.Person{ID: "test:app", Approver: true}
	stranger = bus.Person{ID: "test:bob"}
)

// wantEnd waits until people are told how an ask has ended.
func (b *bench) wantEnd(id, words string) {
	b.t.Helper()
	out := b.reply()
	if !strings.HasPrefix(out.ID, id+"#ended/") || out.Subject != id || len(out.Buttons) > 0 || !strings.Contains(out.Text, words) {
		b.t.Fatalf("said %s %q, want how %s has ended: %q", out.ID, out.Text, id, words)
	}
}

// wantStaleApproval waits until people are told that a call that they approved did not run.
func (b *bench) wantStaleApproval(id string) {
	b.t.Helper()
	if out := b.reply(); out.ID != id+"#overtaken/0" || out.Subject != id || !strings.Contains(out.Text, "Approved by Olga (test:own), but I didn't run it:** a file") {
		b.t.Fatalf("said %s %q, want that %s was not run", out.ID, out.Text, id)
	}
}

func TestAnApprovedCallRunsOnce(t *testing.T) {
	b, d, ran := newActBench(t, actModel(`act {"say":"x"}`))
	b.run()
	first := b.say("1", "ann", "go")
	id, out := b.nextAskID()
	if len(out.Buttons) != 3 || out.Subject != id || !strings.Contains(out.Text, "say: `x`") || !strings.Contains(out.Text, "a rule says so") {
		t.Errorf("asked %+v", out)
	}
	b.settled() // nobody holds the session, and nothing waits in its mailbox
	if got, want := b.kinds("1"), "turn_started user tool_use usage turn_parked published"; got != want {
		t.Errorf("log %q, want %q", got, want)
	}
	if ask, err := d.book.LookupAsk(t.Context(), id); err != nil || ask.Session != "main:test:1" || ask.Person != "test:ann" || ask.Tool != "act" {
		t.Errorf("the book has %+v, %v", ask, err)
	}
	b.command("9", owner, "approve "+id) // in a chat of their own
	said := map[string]string{}
	for range 3 {
		out := b.reply()
		said[out.To.Chat+" "+strings.TrimLeft(out.ID[strings.Index(out.ID, "#"):], "#")] = out.Text
	}
	if len(said) != 3 || !strings.Contains(said["9 reply"], "approved by Olga") || !strings.Contains(said["1 ended/0"], "Approved by Olga (test:own)") || !strings.Contains(said["1 reply"], `{"said":"x"}`) {
		t.Errorf("after the approval of %s was said %q", first, said)
	}
	b.settled()
	if ran.Load() != 1 {
		t.Errorf("it ran %d times", ran.Load())
	}
	if got := b.kinds("1"); !strings.Contains(got, "ask_ended turn_unparked tool_started tool_result") || strings.Contains(got, "resumed") {
		t.Errorf("log %q", got)
	}
}

func TestADenialIsForTheModel(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
	b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	long := strings.Repeat("é", 300)
	b.command("1", owner, "deny "+id+" not on a Friday "+long)
	end := b.reply() // people are shown no more of it than takes the question's place
	if end.ID != id+"#ended/0" || !strings.Contains(end.Text, "Denied by Olga") || !strings.Contains(end.Text, "> not on a Friday éé") || strings.Contains(end.Text, long) {
		t.Errorf("said %s %q", end.ID, end.Text)
	}
	out := b.reply()
	if !strings.Contains(out.Text, long) {
		t.Errorf("the model is told %q", out.Text)
	}
	if out.ID != first+"#reply" || !strings.Contains(out.Text, "permission_denied") || !strings.Contains(out.Text, "not on a Friday") || ran.Load() != 0 {
		t.Errorf("said %s %q; it ran %d times", out.ID, out.Text, ran.Load())
	}
}

func TestNobodyElseDecidesAndNobodyTwice(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
	b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	for _, who := range []bus.Person{stranger, {ID: "test:ann"}, {ID: "other:app", Approver: true}, {ID: "web:ann", EveryApprover: false}} {
		b.wantReply(b.command("1", who, "approve "+id), "You can't decide this")
	}
	b.wantReply(b.command("1", owner, "approve zzzzzzzzzz"), "I don't know of any request")
	b.wantReply(b.command("1", owner, "approve"), "Which request?")
	b.wantReply(b.command("1", owner, "answer "+id+" maybe"), "This isn't a question: say")
	b.command("1", approver, "approve `"+strings.ToUpper(id)+"`")
	b.wantEnd(id, "Approved by test:app")
	b.wantReply(first, `{"said":"x"}`)
	b.wantReply(b.command("2", owner, "deny "+id), "already been decided: approved by test:app")
	b.settled()
	if ran.Load() != 1 {
		t.Errorf("it ran %d times", ran.Load())
	}
}

func TestAnUnansweredAskExpires(t *testing.T) {
	b, d, ran := newActBench(t, actModel(`act {"say":"x"}`))
	b.asking.Expires = time.Second
	b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.wantEnd(id, "Expired")
	b.wantReply(first, `"code":"timeout"`)
	b.wantReply(b.command("1", owner, "approve "+id), "already been decided: expired")
	if ask, err := d.book.LookupAsk(t.Context(), id); err != nil || ask.State != bus.AskExpired || ran.Load() != 0 {
		t.Errorf("the ask is %+v, %v; it ran %d times", ask, err, ran.Load())
	}
}

func TestStopEndsATurnThatWaits(t *testing.T) {
	b, d, ran := newActBench(t, actModel(`act {"say":"x"}`))
	b.run()
	b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.settled()
	stop := b.say("1", "ann", "/stop")
	b.wantReply(stop, "Stopped.")
	b.wantEnd(id, "Withdrawn")
	b.settled()
	if ask, err := d.book.LookupAsk(t.Context(), id); err != nil || ask.State != bus.AskWithdrawn {
		t.Errorf("the ask is %+v, %v", ask, err)
	}
	b.wantReply(b.command("1", owner, "approve "+id), "already been decided: withdrawn")
	if got := b.kinds("1"); !strings.Contains(got, "tool_result notice turn_done") || ran.Load() != 0 {
		t.Errorf("log %q; it ran %d times", got, ran.Load())
	}
	b.wantReply(b.say("1", "ann", "/stop"), "Nothing is running.")
}

// A turn from before /new waits, and one of the new conversation runs: /stop ends both, although no other mail comes.
func TestStopEndsTheTurnThatRunsAndTheOneThatWaits(t *testing.T) {
	asked := make(chan struct{}, 1)
	b, d, ran := newActBench(t, func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		if strings.HasSuffix(newestUserText(r), "think") {
			asked <- struct{}{}
			<-ctx.Done()
			return llm.Answer{}, ctx.Err()
		}
		return callsAnswer(`act {"say":"x"}`), nil
	})
	b.run()
	b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.settled()
	b.wantReply(b.say("1", "ann", "/new"), "keeps waiting")
	b.say("1", "ann", "think")
	<-asked
	b.wantReply(b.say("1", "ann", "/stop"), "Stopped.")
	b.wantEnd(id, "Withdrawn")
	b.settled()
	if ask, err := d.book.LookupAsk(t.Context(), id); err != nil || ask.State != bus.AskWithdrawn || ran.Load() != 0 {
		t.Errorf("the ask is %+v, %v; it ran %d times", ask, err, ran.Load())
	}
}

// The files that an approval covers are compared again right before the call.
func TestAnApprovedCallWhoseFilesChangedIsNotRun(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
	var version atomic.Int32
	b.agent.HashInput = func(context.Context, tools.Call, *string) (agentasks.InputsHash, error) {
		return agentasks.InputsHash{Sum: fmt.Sprint(version.Load())}, nil
	}
	b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	version.Add(1)
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	b.wantStaleApproval(id)
	out := b.reply()
	if out.ID != first+"#reply" || !strings.Contains(out.Text, "permission_denied") || !strings.Contains(out.Text, "has changed since") || ran.Load() != 0 {
		t.Errorf("said %s %q; it ran %d times", out.ID, out.Text, ran.Load())
	}
}

// An approved call doesn't run if its tool has changed since.
func TestAToolThatHasChangedSinceIsNotRun(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		err     error
		runs    bool
	}{
		"the same":                  {"1.0.0", nil, true},
		"another":                   {"2.0.0", nil, false},
		"one that cannot be looked": {"1.0.0", errors.New("the program is gone"), false},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
			var changed atomic.Bool
			act, _ := b.agent.Tools.Lookup("act")
			b.agent.Tools = tools.NewSet(versionedTool{act, func() (string, error) {
				if changed.Load() {
					return tc.version, tc.err
				}
				return "1.0.0", nil
			}})
			b.run()
			first := b.say("1", "ann", "go")
			id, _ := b.nextAskID()
			changed.Store(true)
			b.command("1", owner, "approve "+id)
			b.wantEnd(id, "Approved")
			want := `{"said":"x"}`
			if !tc.runs {
				b.wantStaleApproval(id)
				want = "has changed since: its arguments, the tool itself"
			}
			if out := b.reply(); out.ID != first+"#reply" || !strings.Contains(out.Text, want) || (ran.Load() == 1) != tc.runs {
				t.Errorf("said %s %q; it ran %d times", out.ID, out.Text, ran.Load())
			}
		})
	}
}

// versionedTool is a tool with a version.
type versionedTool struct {
	tools.Tool
	version func() (string, error)
}

func (v versionedTool) Spec() tools.Spec {
	s := v.Tool.Spec()
	s.Version = v.version
	return s
}

// Approved files are compared by the version of the check with which people were asked, even if an older release asked,
// which knew only one version.
func TestApprovedFilesAreComparedByTheAskedVersion(t *testing.T) {
	for _, mode := range []string{"", "content"} {
		t.Run(mode, func(t *testing.T) {
			b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
			var like []string
			b.agent.HashInput = func(_ context.Context, _ tools.Call, as *string) (agentasks.InputsHash, error) {
				if as == nil {
					return agentasks.InputsHash{Mode: mode, Sum: mode + " sum"}, nil
				}
				like = append(like, *as)
				return agentasks.InputsHash{Mode: *as, Sum: *as + " sum"}, nil
			}
			b.run()
			b.say("1", "ann", "go")
			id, _ := b.nextAskID()
			b.command("1", owner, "approve "+id)
			b.wantEnd(id, "Approved")
			if out := b.reply(); ran.Load() != 1 || len(like) != 2 || like[0] != mode || like[1] != mode {
				t.Errorf("said %q; it ran %d times, compared as %q", out.Text, ran.Load(), like)
			}
		})
	}
}

// Files that can't be compared anymore count as changed.
func TestAnApprovedCallThatCannotBeComparedIsNotRun(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
	b.agent.HashInput = func(_ context.Context, _ tools.Call, as *string) (agentasks.InputsHash, error) {
		if as != nil {
			return agentasks.InputsHash{}, context.DeadlineExceeded
		}
		return agentasks.InputsHash{Mode: "content", Sum: "1"}, nil
	}
	b.run()
	b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	b.wantStaleApproval(id)
	if out := b.reply(); !strings.Contains(out.Text, "has changed since") || ran.Load() != 0 {
		t.Errorf("said %q; it ran %d times", out.Text, ran.Load())
	}
}

func TestACallWhoseFilesChangeAsItBeginsIsNotRun(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
	var version atomic.Int32
	b.agent.HashInput = func(context.Context, tools.Call, *string) (agentasks.InputsHash, error) {
		return agentasks.InputsHash{Sum: fmt.Sprint(version.Load())}, nil
	}
	b.point = func(name string) {
		if name == "c4:before" {
			version.Add(1)
		}
	}
	b.run()
	b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	b.wantStaleApproval(id)
	if out := b.reply(); !strings.Contains(out.Text, "has changed since") || ran.Load() != 0 {
		t.Errorf("said %q; it ran %d times", out.Text, ran.Load())
	}
}

// An approval for the session is for exactly this call, until a new conversation.
func TestAnApprovalForTheSession(t *testing.T) {
	n := 0
	b, _, ran := newActBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		last := r.Messages[len(r.Messages)-1]
		if last.Blocks[0].Kind == llm.BlockToolResult {
			return textAnswer("done"), nil
		}
		n++
		return callsAnswer(fmt.Sprintf(`act {"say":%q}`, newestUserText(r)[strings.LastIndex(newestUserText(r), "|")+1:])), nil
	})
	r := auditRecorder{isLogged: func(string) bool { return true }}
	b.audit = r.record
	b.run()
	first := b.say("1", "ann", "x")
	id, _ := b.nextAskID()
	b.command("1", owner, "approve "+id+" session")
	b.wantEnd(id, "for this conversation")
	b.wantReply(first, "done")
	b.wantReply(b.say("1", "ann", "x"), "done") // not asked again
	b.say("1", "ann", "y")
	other, _ := b.nextAskID()
	b.command("1", owner, "deny "+other)
	b.wantEnd(other, "Denied")
	b.reply()
	b.wantReply(b.say("1", "ann", "/new"), "new conversation")
	b.say("1", "ann", "x")
	if again, _ := b.nextAskID(); again == id {
		t.Error("it is the same request")
	}
	if ran.Load() != 2 {
		t.Errorf("it ran %d times", ran.Load())
	}
	for _, a := range r.all {
		if a.Result == "ok" && a.Detail != "test:own" {
			t.Errorf("a call that was approved for the session is recorded with %q", a.Detail)
		}
	}
}

// People are asked about all calls at once that need approval. The other calls run first, and the turn continues once
// each ask has its answer.
func TestATurnWaitsForAllAnswers(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"1"}`, `echo {"say":"2"}`, `act {"say":"3"}`), echo("echo", tools.Once, nil))
	b.run()
	first := b.say("1", "ann", "go")
	one, _ := b.nextAskID()
	two, _ := b.nextAskID()
	if got := b.kinds("1"); !strings.Contains(got, "tool_started tool_result turn_parked") {
		t.Errorf("log %q", got)
	}
	b.command("1", owner, "approve "+two)
	b.wantEnd(two, "Approved")
	b.settled()
	if ran.Load() != 0 {
		t.Error("a call ran while another one waited")
	}
	b.wantReply(b.say("1", "ann", "/status"), one)
	b.command("1", owner, "deny "+one)
	b.wantEnd(one, "Denied")
	out := b.reply()
	lines := strings.Split(out.Text, "\n")
	if out.ID != first+"#reply" || len(lines) != 3 || !strings.Contains(lines[0], "permission_denied") || lines[1] != `{"said":"2"}` || !strings.HasPrefix(lines[2], `{"said":"3"}`) {
		t.Errorf("said %s %q", out.ID, out.Text)
	}
}

// Messages that arrive while a turn waits belong to it, after the results.
func TestMessagesDuringAWaitJoinTheTurn(t *testing.T) {
	b, _, _ := newActBench(t, actModel(`act {"say":"x"}`))
	b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.settled()
	for _, who := range []string{"ann", "bob"} {
		b.wantReply(b.say("1", who, "I am "+who), "approve "+id)
	}
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	b.wantReply(first, `{"said":"x"}; I am ann|I am bob`)
	b.settled()
	if got := b.kinds("1"); strings.Count(got, "turn_started") != 1 {
		t.Errorf("log %q", got)
	}
}

type question struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices,omitempty"`
}

// askPeople is a tool that only asks.
func askPeople() tools.Tool {
	return tools.New(tools.Spec{Name: "ask", Description: "asks", Effect: tools.Idempotent},
		func(context.Context, tools.Call, question) (any, error) { return nil, fmt.Errorf("it ran") },
		tools.Asks(func(q question) (tools.Question, error) {
			return tools.Question{Text: q.Question, Choices: q.Choices}, nil
		}))
}

func TestTheNextWordsAnswerAQuestion(t *testing.T) {
	b := newBench(t, actModel(`ask {"question":"Which?","choices":["red","blue"]}`), askPeople())
	d := b.ask()
	b.run()
	first := b.say("1", "ann", "go")
	id, out := b.nextAskID()
	if len(out.Buttons) != 2 || out.Buttons[1].Label != "blue" || !strings.Contains(out.Text, "2. blue") {
		t.Errorf("asked %+v", out)
	}
	b.publish(bus.Inbound{
		ID: "told", Kind: bus.Said, From: bus.Person{ID: "test:ann", Name: "ann", Owner: true}, At: bus.Address{Channel: "test", Chat: "1"},
		Text: "An agent has this told to you.", Quotes: []bus.Quote{{Kind: bus.Told, Text: "red"}},
	})
	b.wantReply("told", "I'm waiting for an answer")                   // these are not Ann's words
	b.wantReply(b.say("1", "bob", "red"), "I'm waiting for an answer") // it was not asked of Bob
	b.wantReply(b.command("1", stranger, "answer "+id+" red"), "You can't answer")
	b.say("1", "ann", "2")
	b.wantEnd(id, "Answered by ann (test:ann)")
	b.wantReply(first, `{"answer":"blue"}; An agent has this told to you.|red`)
	b.settled()
	if ask, err := d.book.LookupAsk(t.Context(), id); err != nil || ask.State != bus.AskAnswered || ask.Answer.By.ID != "test:ann" {
		t.Errorf("the book has %+v, %v", ask, err)
	}
	if got := b.kinds("1"); !strings.Contains(got, "tool_started turn_parked") || strings.Count(got, "tool_result") != 1 {
		t.Errorf("log %q", got)
	}
	if untold, err := d.book.UntoldAsks(t.Context(), time.Now().Add(time.Hour)); err != nil || len(untold) > 0 {
		t.Errorf("untold are %+v, %v", untold, err)
	}
	for e, err := range b.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != sessions.KindAskEnded {
			continue
		}
		ended, err := sessions.Decode[sessions.AskEnded](e)
		if err != nil || ended.Question != "Which? (1) red (2) blue" || ended.Answer != "2" {
			t.Errorf("the log has %+v, %v", ended, err)
		}
	}
}

func TestAButtonAnswersAQuestion(t *testing.T) {
	b := newBench(t, actModel(`ask {"question":"Which?","choices":["red","blue"]}`), askPeople())
	b.ask()
	b.run()
	first := b.say("1", "ann", "go")
	id, out := b.nextAskID()
	b.command("1", owner, strings.TrimPrefix(out.Buttons[0].Says, "/")) // an owner may, too
	b.wantEnd(id, "Answered by Olga")
	b.wantReply(first, `{"answer":"red"}`)
}

// A new conversation continues beside a turn that waits, and neither sees the other.
func TestANewConversationBesideATurnThatWaits(t *testing.T) {
	b, _, ran := newActBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 && strings.HasSuffix(newestUserText(r), "go") {
			return callsAnswer(`act {"say":"x"}`), nil
		}
		return textAnswer(fmt.Sprintf("%d messages: %s;%s", len(r.Messages), newestUserText(r), strings.Join(toolResults(r), ""))), nil
	})
	b.run()
	b.wantReply(b.say("1", "ann", "hello"), "hello;")
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.settled()
	b.wantReply(b.say("1", "ann", "/new"), "keeps waiting")
	b.wantReply(b.say("1", "ann", "something else"), "something else;")
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	out := b.reply()
	if out.ID != first+"#reply" || out.Text != `3 messages: ;{"said":"x"}` {
		t.Errorf("said %s %q", out.ID, out.Text)
	}
	out = func() bus.Outbound { b.say("1", "ann", "and now?"); return b.reply() }()
	if out.Text != "3 messages: and now?;" {
		t.Errorf("the new conversation sees %q", out.Text)
	}
	if ran.Load() != 1 {
		t.Errorf("it ran %d times", ran.Load())
	}
}

func TestNobodyIsAskedWhileAnOlderReleaseServes(t *testing.T) {
	b, d, ran := newActBench(t, actModel(`act {"say":"x"}`, `ask {"question":"Which?"}`), askPeople())
	why := "a process of an older release serves"
	d.cannotAsk.Store(&why)
	b.run()
	out := func() bus.Outbound { b.say("1", "ann", "go"); return b.reply() }()
	if strings.Count(out.Text, "permission_denied") != 2 || strings.Count(out.Text, why) != 2 || ran.Load() != 0 {
		t.Errorf("said %q", out.Text)
	}
	if got := b.kinds("1"); strings.Contains(got, "park") {
		t.Errorf("log %q", got)
	}
}

// An approval that is asked for in another chat is given there; the conversation is told.
func TestApprovalsMayBeAskedForElsewhere(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"secret plan"}`))
	b.asking.To = []bus.Address{{Channel: "test", Chat: "ops"}}
	b.run()
	b.say("1", "ann", "go")
	said := map[string]bus.Outbound{}
	for range 2 {
		out := b.reply()
		said[out.To.Chat] = out
	}
	if out := said["1"]; !strings.Contains(out.Text, "I'm waiting for somebody to approve") || strings.Contains(out.Text, "secret") || len(out.Buttons) > 0 {
		t.Errorf("the conversation was told %+v", out)
	}
	if out := said["ops"]; !strings.Contains(out.Text, "secret plan") || !strings.Contains(out.Text, "`test:ann`") || len(out.Buttons) != 3 {
		t.Errorf("the others were asked %+v", out)
	}
	b.command("ops", approver, "approve "+said["ops"].Subject)
	for range 3 {
		b.reply()
	}
	b.settled()
	if ran.Load() != 1 {
		t.Errorf("it ran %d times", ran.Load())
	}
}

// Processes that claim the session of a waiting turn neither resume the turn nor give it up, and are not killed by it.
func TestAWaitingTurnOutlivesItsWorkers(t *testing.T) {
	b, _, _ := newActBench(t, actModel(`act {"say":"x"}`))
	stop := b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	for range 5 {
		stop()
		stop = b.run()
		b.wantReply(b.say("1", "ann", "/status"), "I've been waiting")
	}
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	b.wantReply(first, `{"said":"x"}`)
	if got := b.kinds("1"); strings.Contains(got, "resumed") {
		t.Errorf("log %q", got)
	}
}

// The guard is asked again before an approved call runs: a call that a rule forbids by then doesn't run.
func TestARuleThatForbidsByNowStands(t *testing.T) {
	b, _, ran := newActBench(t, actModel(`act {"say":"x"}`))
	var forbidden atomic.Bool
	b.agent.Guard = func(context.Context, tools.Call) tools.Verdict {
		if forbidden.Load() {
			return tools.Verdict{Decision: tools.Deny, Reason: "forbidden by now"}
		}
		return tools.Verdict{Decision: tools.Ask, Args: json.RawMessage(`{"say":"y"}`)}
	}
	b.run()
	b.say("1", "ann", "go")
	id, out := b.nextAskID()
	if !strings.Contains(out.Text, "say: `y`") {
		t.Errorf("asked about %q, not about what would run", out.Text)
	}
	forbidden.Store(true)
	b.command("1", owner, "approve "+id)
	b.wantEnd(id, "Approved")
	if out := b.reply(); !strings.Contains(out.Text, "forbidden by now") || ran.Load() != 0 {
		t.Errorf("said %q; it ran %d times", out.Text, ran.Load())
	}
}

var _ agent.Asks = (*asks.Service)(nil)

// An approval for the conversation holds only for the conversation that asked. Asks from just before /new, and later
// ones of the same turn, approve nothing in the next conversation.
func TestAnApprovalForAnEarlierConversationStaysThere(t *testing.T) {
	b, _, ran := newActBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if n := len(toolResults(r)); n < 2 {
			return callsAnswer(fmt.Sprintf(`act {"say":"%d"}`, n)), nil
		}
		return textAnswer("done"), nil
	})
	b.run()
	first := b.say("1", "ann", "go")
	id, _ := b.nextAskID()
	b.wantReply(b.say("1", "ann", "/new"), "keeps waiting")
	b.command("1", owner, "approve "+id+" session")
	b.wantEnd(id, "Approved")
	later, _ := b.nextAskID()
	b.command("1", owner, "approve "+later+" session")
	b.wantEnd(later, "Approved")
	b.wantReply(first, "done")
	b.say("1", "ann", "go")
	for range 2 {
		id, _ := b.nextAskID()
		b.command("1", owner, "approve "+id)
		b.wantEnd(id, "Approved")
	}
	b.wantReply("", "done")
	if ran.Load() != 4 {
		t.Errorf("it ran %d times", ran.Load())
	}
}

// Denials, approvals and answers are audited with who decided. The people who decide see hidden characters as escapes.
func TestDecisionsAreAudited(t *testing.T) {
	b, d, _ := newActBench(t, actModel("act {\"say\":\"a\u202eb\u200b\"}", `act {"say":"y"}`, `ask {"question":"Which?"}`), askPeople())
	var r auditRecorder
	r.isLogged = func(string) bool { return strings.Contains(b.kinds("1"), "ask_ended tool_result") }
	b.audit = r.record
	b.run()
	b.say("1", "ann", "go")
	var answers []string
	for range 3 {
		id, _ := b.nextAskID()
		ask, err := d.book.LookupAsk(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		answer := "deny " + id
		switch {
		case ask.Kind == bus.AskQuestion:
			answer = "answer " + id + " red"
		case string(ask.Arguments) == `{"say":"y"}`:
			answer = "approve " + id
		case string(ask.Arguments) != `{"say":"a\u202eb\u200b"}`:
			t.Errorf("shown is %s", ask.Arguments)
		}
		answers = append(answers, answer)
	}
	for _, answer := range answers {
		b.command("1", owner, answer)
		b.reply()
	}
	b.reply()
	b.settled()
	got := map[string]bool{}
	for _, a := range r.all {
		got[fmt.Sprintf("%s %s %s %s", a.Tool, a.Verdict, a.Result, a.Detail)] = true
	}
	if len(r.all) != 3 || r.recordedEarly > 0 || !got["act ask permission_denied test:own"] || !got["act ask ok test:own"] || !got["ask allow ok test:own"] {
		t.Errorf("%d records, %d of them early: %v", len(r.all), r.recordedEarly, got)
	}
}

// A person's decision is not a failure of the tool: the turn continues after it.
func TestDenialsAreNoFailures(t *testing.T) {
	n := 0
	b, _, ran := newActBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if n++; n > 4 || r.NoCalls {
			return textAnswer(fmt.Sprint("after ", n-1, " denials")), nil
		}
		return callsAnswer(fmt.Sprintf(`act {"say":"%d"}`, n)), nil
	})
	b.run()
	first := b.say("1", "ann", "go")
	for range 4 {
		id, _ := b.nextAskID()
		b.command("1", owner, "deny "+id)
		b.wantEnd(id, "Denied")
	}
	b.wantReply(first, "after 4 denials")
	if ran.Load() != 0 {
		t.Errorf("it ran %d times", ran.Load())
	}
}
