package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// deafTool returns a pure tool that ignores the end of its context: its call ends when the test does.
func deafTool(t *testing.T, timeout time.Duration, began func()) tools.Tool {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return tools.New(tools.Spec{Name: "deaf", Description: "x", Effect: tools.Pure, Timeout: timeout},
		func(_ context.Context, call tools.Call, _ echoArgs) (any, error) {
			began()
			<-over
			call.Progress("late")
			return "late", nil
		})
}

func singleCallModel(uses ...string) model {
	return func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "after" {
			return textAnswer("still here"), nil
		}
		if len(toolResults(r)) == 0 {
			return callsAnswer(uses...), nil
		}
		return textAnswer(strings.Join(toolResults(r), "|")), nil
	}
}

// A pure call that doesn't return is given up at its deadline, and delays neither /stop nor the end of the process.
func TestAPureCallIsLeftAtItsDeadline(t *testing.T) {
	t.Run("deadline", func(t *testing.T) {
		b := newBench(t, singleCallModel(`deaf {"say":"1"}`, `deaf {"say":"2"}`), deafTool(t, 10*time.Millisecond, func() {}))
		b.run()
		b.say("1", "ann", "go")
		if out := b.reply(); strings.Count(out.Text, `"code":"timeout"`) != 2 {
			t.Errorf("the model was told %s", out.Text)
		}
	})
	for _, how := range []string{"stop", "shutdown"} {
		t.Run(how, func(t *testing.T) {
			began := make(chan struct{}, 2)
			b := newBench(t, singleCallModel(`deaf {"say":"1"}`, `deaf {"say":"2"}`), deafTool(t, time.Hour, func() { began <- struct{}{} }))
			b.drain = 10 * time.Millisecond
			stop := b.run()
			b.say("1", "ann", "go")
			<-began
			<-began
			if how == "stop" {
				b.wantReply(b.say("1", "ann", "/stop"), "Stopped.")
				b.settled()
				b.wantReply(b.say("1", "ann", "after"), "still here")
			}
			stop() // would hang
		})
	}
}

func TestTheModelIsToldOfRepairedArguments(t *testing.T) {
	b := newBench(t, singleCallModel("echo ```json\n{\"say\":\"x\",}\n```"), echo("echo", tools.Once, nil))
	b.run()
	b.say("1", "ann", "go")
	if out := b.reply().Text; !strings.HasPrefix(out, `{"said":"x","_repaired_args":"`) || !strings.Contains(out, "fence") || !strings.Contains(out, "commas") {
		t.Errorf("the model was told %s", out)
	}
}

// A call that had started when its process died is judged by its effect, whatever tools and permissions the agent has
// by then.
func TestAStartedCallIsJudgedByItsEffect(t *testing.T) {
	t.Parallel()
	happened := tools.New(tools.Spec{Name: "do", Description: "x", Effect: tools.Reconcilable},
		func(context.Context, tools.Call, echoArgs) (any, error) { return "again", nil },
		tools.Reconcile(func(context.Context, tools.Call, echoArgs) (any, bool, error) { return "it happened", true, nil }))
	notYet := tools.New(tools.Spec{Name: "do", Description: "x", Effect: tools.Reconcilable},
		func(context.Context, tools.Call, echoArgs) (any, error) { return "again", nil },
		tools.Reconcile(func(context.Context, tools.Call, echoArgs) (any, bool, error) { return nil, false, nil }))
	for name, tc := range map[string]struct {
		tool                   tools.Tool
		granted, known, denied bool
		want                   string
	}{
		"once, and there is no such tool anymore": {nil, false, false, false, "outcome_unknown"},
		"once, not granted anymore":               {echo("do", tools.Once, nil), false, true, false, "outcome_unknown"},
		"once, refused by the guard":              {echo("do", tools.Once, nil), true, true, true, "outcome_unknown"},
		"reconcilable, and it has happened":       {happened, false, true, false, `"it happened"`},
		"reconcilable, refused, and it has":       {happened, true, true, true, `"it happened"`},
		"reconcilable, refused, and it has not":   {notYet, true, true, true, "permission_denied"},
		"idempotent, not granted anymore":         {echo("do", tools.Idempotent, nil), false, true, false, "outcome_unknown"},
		"idempotent":                              {echo("do", tools.Idempotent, nil), true, true, false, `{"said":"x"}`},
		"pure, refused by the guard":              {echo("do", tools.Pure, nil), true, true, true, "permission_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, singleCallModel())
			if tc.granted {
				b.agent.Tools = tools.NewSet(tc.tool)
			}
			if tc.known {
				b.agent.KnownTools = tools.NewSet(tc.tool)
			}
			var asked atomic.Int32
			if tc.denied {
				b.agent.Guard = func(context.Context, tools.Call) tools.Verdict {
					asked.Add(1)
					return tools.Verdict{Decision: tools.Deny, Reason: "no"}
				}
			}
			b.writeBegunTurn(t, "m1", sessions.ToolUse{Name: "do", Args: []byte(`{"say":"x"}`)})
			b.run()
			b.say("1", "ann", "do it")
			if out := b.reply(); out.ID != "m1#reply" || !strings.Contains(out.Text, tc.want) {
				t.Errorf("the model was told %s, want %s", out.Text, tc.want)
			}
		})
	}
}

// writeBegunTurn writes the entries of a turn that was cut off in the middle of a call.
func (b *bench) writeBegunTurn(t *testing.T, id string, use sessions.ToolUse) {
	t.Helper()
	b.writeBegunTurnWith(t, id, use, sessions.ToolStarted{Attempt: 1})
}

func (b *bench) writeBegunTurnWith(t *testing.T, id string, use sessions.ToolUse, with sessions.ToolStarted) {
	t.Helper()
	log, err := b.store.Open(t.Context(), "main:test:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(kind sessions.Kind, data any) sessions.Entry {
		e, err := sessions.NewEntry(id, kind, data)
		if err != nil {
			t.Fatal(err)
		}
		e.Person = "test:ann"
		return e
	}
	said, asked, started := entry(sessions.KindUser, sessions.User{Text: "do it"}), entry(sessions.KindToolUse, use), entry(sessions.KindToolStarted, with)
	said.Cause, asked.Call, started.Call = id, "c1", "c1"
	err = log.Append(t.Context(), 1, entry(sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte(`{"at":{"channel":"test","chat":"1"}}`)}),
		said, asked, entry(sessions.KindUsage, sessions.Usage{}), started)
	if err != nil {
		t.Fatal(err)
	}
}

// If a turn can't be counted because the quota is unavailable, it is not resumed: otherwise it would soon be given up
// as cut off too often.
func TestATurnThatCannotBeCountedIsNotResumed(t *testing.T) {
	b := newBench(t, singleCallModel(), echo("do", tools.Pure, nil))
	b.writeBegunTurn(t, "m1", sessions.ToolUse{Name: "do", Args: []byte(`{"say":"x"}`)})
	asked := make(chan struct{}, 100)
	b.account = func(context.Context, string) (string, error) {
		asked <- struct{}{}
		return "", errors.New("the book is away")
	}
	stop := b.run()
	b.say("1", "ann", "do it")
	<-asked
	stop()
	if got := b.kinds("1"); strings.Contains(got, string(sessions.KindResumed)) {
		t.Errorf("the log has %s", got)
	}
}

// A failed look-up of the owner's account doesn't count as a crash, neither at a turn's beginning nor at a resume.
// Otherwise the turn would be given up although nothing is wrong with it.
func TestALookUpThatFailsCutsNoTurnOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("done"), nil })
	var asked atomic.Int64
	b.account = func(_ context.Context, person string) (string, error) {
		if asked.Add(1) <= 2 {
			return "", errors.New("the book is away")
		}
		return person, nil
	}
	b.run()
	b.publish(bus.Inbound{
		ID: "m1", Kind: bus.Said, From: bus.Person{ID: "test:ann", Owner: true},
		At: bus.Address{Channel: "test", Chat: "1"}, Text: "go",
	})
	b.wantReply("m1", "done")
	b.settled()
	if got, want := b.kinds("1"), "turn_started user suspended resumed text usage turn_done published"; got != want {
		t.Errorf("the log has %s, want %s", got, want)
	}
}

// A resumed turn looks the account up before it is resumed, and not again.
func TestAResumedTurnLooksItsAccountUpOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, singleCallModel(), echo("do", tools.Pure, nil))
	b.writeBegunTurn(t, "m1", sessions.ToolUse{Name: "do", Args: []byte(`{"say":"x"}`)})
	var asked atomic.Int64
	b.account = func(_ context.Context, person string) (string, error) {
		if asked.Add(1) > 1 {
			return "", errors.New("the book is away")
		}
		return person, nil
	}
	b.run()
	b.say("1", "ann", "do it")
	b.reply()
	b.settled()
	if n := asked.Load(); n != 1 {
		t.Errorf("the account was looked up %d times", n)
	}
}

// When a turn is resumed, watchers are told so, for example to show that the bot is typing.
func TestAResumedTurnSaysThatItRuns(t *testing.T) {
	b := newBench(t, singleCallModel(), echo("do", tools.Pure, nil))
	b.writeBegunTurn(t, "m1", sessions.ToolUse{Name: "do", Args: []byte(`{"say":"x"}`)})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	feed, err := b.bus.Subscribe(ctx, bus.ChannelFeed("test"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	b.say("1", "ann", "do it")
	for e, err := range feed {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != bus.TurnStart || e.Turn != "m1" || len(e.Causes) != 1 || e.Route.Chat != "1" {
			t.Errorf("the first that is told is %+v", e)
		}
		return
	}
	t.Error("nothing was told")
}

// A call that runs can check the session's lease, as often as it wants.
func TestACallChecksTheLease(t *testing.T) {
	checks := tools.New(tools.Spec{Name: "checks", Description: "x", Effect: tools.Idempotent},
		func(ctx context.Context, call tools.Call, _ echoArgs) (any, error) {
			return "held", errors.Join(call.CheckLease(ctx), call.CheckLease(ctx))
		})
	b := newBench(t, singleCallModel(`checks {"say":"1"}`), checks)
	b.run()
	b.say("1", "ann", "go")
	if out := b.reply(); out.Text != `"held"` {
		t.Errorf("the model was told %s", out.Text)
	}
}
