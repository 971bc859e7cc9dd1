package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/llm"
	"parley/sessions"
	"parley/sessions/activity"
	"parley/tools"
)

// activityOf returns what was counted of all turns until now.
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

// The names that a model makes up do not get into the counts, and how a call ends does.
func TestToolsAreCountedByTheirNames(t *testing.T) {
	fails := echo("fails", tools.Pure, func(tools.Call, string) error { return tools.Errorf(tools.FileNotFound, "no") })
	pure := echo("pure", tools.Pure, func(tools.Call, string) error { return nil })
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(results(r)) == 0 {
			return calls(`fails {"say":"1"}`, `made_up {}`, `also_made_up {}`, `pure {"say":"2"}`), nil
		}
		return text("done"), nil
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

// A slowModel thinks for a second, and then writes for two; an answer that it has begun and dropped does not count.
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
	a := text("at last")
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

// What a model says before it calls a tool is the first that people can read, whoever ends the turn.
func TestTheFirstTextMayComeBeforeACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(_ context.Context, r llm.Request) (llm.Answer, error) {
			<-time.After(4 * time.Second)
			if len(results(r)) > 0 {
				return text("done"), nil
			}
			a := calls(`pure {"say":"1"}`)
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
