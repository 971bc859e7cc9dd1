package worker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/activity"
	"parley/tools"
)

// activityOf returns the counts of all turns so far.
func activityOf(t *testing.T, table *activity.Table) activity.Summary {
	t.Helper()
	sum, err := table.Summary(t.Context(), activity.Day, time.Now().AddDate(0, 0, -1))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// checkActivity fails the test unless the one turn of crashAgent and its five calls are counted once.
func checkActivity(t *testing.T, h *crashHome) {
	t.Helper()
	sum := activityOf(t, h.store.Activity())
	if sum.Total.Turns != (activity.Turns{Done: 1}) || sum.Total.Answer.Count != 1 || sum.Total.First.Count != 1 || sum.Total.Calls != 5 {
		t.Errorf("counted %+v", sum.Total)
	}
	counts := map[string]int64{}
	for _, tool := range sum.Total.Tools {
		counts[tool.Tool] = tool.Calls
		if ok := tool.Outcomes[sessions.CallOK]; ok != tool.Calls && (tool.Tool != "once" || tool.Outcomes[sessions.CallUnknown] != 1) {
			t.Errorf("%s: %v", tool.Tool, tool.Outcomes)
		}
	}
	if len(counts) != 4 || counts["pure"] != 2 || counts["idempotent"] != 1 || counts["reconcilable"] != 1 || counts["once"] != 1 {
		t.Errorf("calls: %v", counts)
	}
}

// Tool names that a model makes up are not counted. How a call ends is.
func TestToolsAreCountedByTheirNames(t *testing.T) {
	fails := echo("fails", tools.Pure, func(tools.Call, string) error { return tools.Errorf(tools.FileNotFound, "no") })
	pure := echo("pure", tools.Pure, func(tools.Call, string) error { return nil })
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`fails {"say":"1"}`, `made_up {}`, `also_made_up {}`, `pure {"say":"2"}`), nil
		}
		return textAnswer("done"), nil
	}, fails, pure)
	b.run()
	b.wantReply(b.say("1", "ann", "go"), "done")
	b.settled()
	counts := map[string]map[string]int64{}
	for _, tool := range activityOf(t, b.store.Activity()).Total.Tools {
		counts[tool.Tool] = tool.Outcomes
	}
	if len(counts) != 3 || counts["fails"][sessions.CallFailed] != 1 || counts["pure"][sessions.CallOK] != 1 || counts[sessions.OtherTool][sessions.CallFailed] != 2 {
		t.Errorf("calls: %v", counts)
	}
}

// A slowModel thinks for a second, and then writes for two. It begins an answer and drops it; that one doesn't count.
type slowModel struct{}

func (slowModel) Info() llm.Info { return llm.Info{Name: "slow"} }

func (slowModel) Generate(_ context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	r.Release()
	emit(llm.Delta{Kind: llm.BlockText, Text: "what turns out to be thinking"})
	emit(llm.Delta{Void: true})
	emit(llm.Delta{Kind: llm.BlockThinking, Text: "hm"})
	<-time.After(time.Second)
	emit(llm.Delta{Block: 1, Kind: llm.BlockText, Text: "at"})
	<-time.After(2 * time.Second)
	emit(llm.Delta{Block: 1, Kind: llm.BlockText, Text: " last"})
	a := textAnswer("at last")
	a.Blocks = append([]llm.Block{{Kind: llm.BlockThinking, Text: "hm"}}, a.Blocks...)
	return &a, nil
}

// People can read something as soon as the model writes its answer, and have all of it when the turn ends.
func TestWaitsForAnAnswerAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), nil)
		b.agent.Model = slowModel{}
		defer b.run()()
		first := b.say("1", "ann", "go")
		b.wantReply(first, "at last")
		b.settled()
		for e, err := range b.store.Read(t.Context(), "main:test:1", 1) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind != sessions.KindTurnDone {
				continue
			}
			done, err := sessions.Decode[sessions.TurnDone](e)
			if f := done.Figures; err != nil || f == nil || f.FirstMS/100 != 10 || f.TookMS/100 != 30 {
				t.Errorf("the turn ends with %+v, %v", done.Figures, err)
			}
		}
		sum := activityOf(t, b.store.Activity()).Total
		if sum.First.Count != 1 || sum.First.P95 <= 700 || sum.First.P95 > 1500 || sum.Answer.Count != 1 || sum.Answer.P95 <= 2000 || sum.Answer.P95 > 5000 {
			t.Errorf("counted %+v", sum)
		}
	})
}

// Text before a tool call counts as the first text that people can read, whoever ends the turn.
func TestTheFirstTextMayComeBeforeACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(_ context.Context, r llm.Request) (llm.Answer, error) {
			<-time.After(4 * time.Second)
			if len(toolResults(r)) > 0 {
				return textAnswer("done"), nil
			}
			a := callsAnswer(`pure {"say":"1"}`)
			a.Blocks = append([]llm.Block{{Kind: llm.BlockText, Text: "let me look"}}, a.Blocks...)
			return a, nil
		}, echo("pure", tools.Pure, func(tools.Call, string) error { return nil }))
		defer b.run()()
		b.wantReply(b.say("1", "ann", "go"), "done")
		b.settled()
		sum := activityOf(t, b.store.Activity()).Total
		if sum.First.P95 <= 3000 || sum.First.P95 > 5000 || sum.Answer.P95 <= 7000 || sum.Answer.P95 > 10_000 {
			t.Errorf("counted %+v", sum)
		}
	})
}

// An endedTurnRecorder keeps the ended turns that are reported to metrics.
type endedTurnRecorder struct {
	lossCounter
	all chan agent.EndedTurn
}

func (e *endedTurnRecorder) Turn(t agent.EndedTurn) { e.all <- t }

// Metrics are told once about each turn, at its end: its number of requests, how long the person waited since the
// message was sent, and the failures that the model recovered from. That includes what an earlier process did.
func TestMetricsAreToldOfAWholeTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := tools.Errorf(tools.PermissionDenied, "no")
		fails := func(n int, failed *tools.Error) func(tools.Call, string) error {
			return func(_ tools.Call, say string) error {
				if len(say) <= n {
					return failed
				}
				return nil
			}
		}
		b := newBenchIn(t, t.TempDir(), func(_ context.Context, r llm.Request) (llm.Answer, error) {
			<-time.After(time.Second)
			n := len(toolResults(r))
			switch n {
			case 0:
				return callsAnswer(`mends {"say":"a"}`, `mends {"say":"b"}`, `breaks {"say":"a"}`, `denied {"say":"a"}`), nil
			case 4:
				return callsAnswer(`mends {"say":"ab"}`, `breaks {"say":"b"}`, `made_up {}`), nil
			}
			return textAnswer("done"), nil
		}, echo("mends", tools.Pure, fails(1, tools.Errorf(tools.ExecutionFailed, "no"))), echo("breaks", tools.Pure, fails(9, tools.Errorf(tools.Timeout, "no"))), echo("denied", tools.Pure, fails(9, refused)))
		told := &endedTurnRecorder{all: make(chan agent.EndedTurn, 10)}
		b.observer, b.drain = told, time.Millisecond
		in := bus.Inbound{ID: "m", Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "go", SentAt: time.Now().Add(-time.Minute)}
		b.publish(in)
		stop := b.run()
		<-time.After(1500 * time.Millisecond) // during the second request
		stop()
		defer b.run()()
		b.wantReply("m", "done")
		b.settled()
		got := <-told.all
		if got.Took < 3*time.Second || got.Took > 10*time.Second || got.Answer.Truncate(time.Second) != got.Took.Truncate(time.Second)+time.Minute {
			t.Errorf("it took %v, and the answer %v", got.Took, got.Answer)
		}
		got.Took, got.Answer = 0, 0
		if want := (agent.EndedTurn{Result: "done", Steps: 3, Recovered: 2, Unrecovered: 3}); got != want {
			t.Errorf("told were %+v, want %+v", got, want)
		}
		select {
		case again := <-told.all:
			t.Errorf("told again were %+v", again)
		default:
		}
	})
}

// Nobody waits for the answer to what a program has posted.
func TestPostsOfProgramsAreNotTimedAsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(context.Context, llm.Request) (llm.Answer, error) {
			<-time.After(time.Second)
			return textAnswer("done"), nil
		})
		told := &endedTurnRecorder{all: make(chan agent.EndedTurn, 10)}
		b.observer = told
		defer b.run()()
		for _, quotes := range [][]bus.Quote{{{Kind: bus.Posted, Text: "deployed"}}, nil} {
			id := fmt.Sprint("m", len(quotes))
			b.publish(bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "go", Quotes: quotes})
			b.wantReply(id, "done")
			b.settled()
			if got := <-told.all; (got.Answer > 0) != (quotes == nil) {
				t.Errorf("%d quotes: told were %+v", len(quotes), got)
			}
		}
	})
}
