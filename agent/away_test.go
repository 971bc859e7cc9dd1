package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/llm"
	"parley/sessions"
	"parley/tools"
)

// away is a model that gives no answer that many times, and then one.
func away(times int32, asked *atomic.Int32) model {
	return func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if asked.Add(1) <= times {
			return llm.Answer{}, &llm.Error{Fault: llm.Busy, RetryAfter: time.Millisecond}
		}
		if len(results(r)) == 0 {
			return calls(`echo {"say":"x"}`), nil
		}
		return text("at last"), nil
	}
}

// countedEcho is the tool echo, which counts its runs.
func countedEcho(ran *atomic.Int32) tools.Tool {
	return echo("echo", tools.Once, func(tools.Call, string) error { ran.Add(1); return nil })
}

// With all models away a message waits as long as is configured: the person is told once,
// and the turn goes on where it was, however often it was put off.
func TestAMessageWaitsForTheModel(t *testing.T) {
	var asked, ran atomic.Int32
	const times = 4 * 3 // of three tries each time; four are more than a turn may be cut off
	b := newBench(t, away(times, &asked), countedEcho(&ran))
	b.limit.ModelWait = time.Hour
	b.run()
	first := b.say("1", "ann", "go")
	out := b.reply()
	if out.ID != first+"#away" || out.Failed || !strings.Contains(out.Text, "keep trying until") || !strings.Contains(out.Text, "/stop") {
		t.Fatalf("told %s %q", out.ID, out.Text)
	}
	b.wantReply(first, "at last") // and nothing more was said before
	b.settled()
	if asked.Load() != times+2 || ran.Load() != 1 {
		t.Errorf("the model was asked %d times, and the tool ran %d times", asked.Load(), ran.Load())
	}
	b.wantReply(b.say("1", "ann", "and now?"), "at last")
}

// Once the time is over the message is given up aloud.
func TestAMessageIsGivenUpAsConfigured(t *testing.T) {
	var asked atomic.Int32
	b := newBench(t, away(1000, &asked), countedEcho(&atomic.Int32{}))
	b.limit.ModelWait = 1500 * time.Millisecond
	b.run()
	first := b.say("1", "ann", "go")
	out := b.reply()
	if out.ID == first+"#away" { // a busy machine may come too late for that
		out = b.reply()
	}
	if out.ID != first+"#reply" || !out.Failed || !strings.Contains(out.Text, "I have given up after 3 tries") {
		t.Errorf("told %s %q", out.ID, out.Text)
	}
	b.settled()
}

// Who waits for a model may end that.
func TestStopEndsTheWaitForAModel(t *testing.T) {
	var asked atomic.Int32
	b := newBench(t, away(1000, &asked), countedEcho(&atomic.Int32{}))
	b.limit.ModelWait = time.Hour
	b.run()
	first := b.say("1", "ann", "go")
	if out := b.reply(); out.ID != first+"#away" {
		t.Fatalf("told %s %q", out.ID, out.Text)
	}
	b.wantReply(b.say("1", "ann", "/stop"), "topped")
	b.settled()
	if got := b.kinds("1"); !strings.Contains(got, "turn_done") {
		t.Errorf("the turn goes on: %s", got)
	}
}

// A failingBudget gives no answer to that many reservations.
type failingBudget struct {
	sessions.Budget
	left atomic.Int32
}

func (b *failingBudget) Reserve(ctx context.Context, r sessions.Reservation) error {
	if b.left.Add(-1) >= 0 {
		return errors.New("no answer")
	}
	return b.Budget.Reserve(ctx, r)
}

// However often a budget gives no answer, nothing was cut off, and the turn is not given up for it.
func TestABudgetThatIsAwayCutsNobodyOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(context.Context, llm.Request) (llm.Answer, error) { return text("at last"), nil })
		budget := &failingBudget{Budget: b.budget}
		const times = 12             // more than a turn may be cut off, and a session be claimed in vain
		budget.left.Store(6 * times) // of six tries each time
		b.budget = budget
		defer b.run()()
		first := b.say("1", "ann", "go")
		<-time.After(20 * time.Minute)
		synctest.Wait()
		if n := budget.left.Load(); n >= 0 {
			t.Fatalf("the turn was over with %d reservations still to fail", n+1)
		}
		b.wantReply(first, "at last")
		b.settled()
		if got := strings.Count(b.kinds("1"), "resumed"); got != times {
			t.Errorf("the turn was resumed %d times, want %d", got, times)
		}
	})
}
