package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/llm"
	"parley/agent/prices"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
)

// awayModel returns a model that fails as many times as given, and then answers.
func awayModel(times int32, asked *atomic.Int32) model {
	return func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if asked.Add(1) <= times {
			return llm.Answer{}, &llm.Error{Fault: llm.Busy, RetryAfter: time.Millisecond}
		}
		if len(toolResults(r)) == 0 {
			return callsAnswer(`echo {"say":"x"}`), nil
		}
		return textAnswer("at last"), nil
	}
}

// countedEcho is the tool echo, which counts its runs.
func countedEcho(ran *atomic.Int32) tools.Tool {
	return echo("echo", tools.Once, func(tools.Call, string) error { ran.Add(1); return nil })
}

// If all models are away, a message waits as long as is configured. The person is told once, and the turn continues
// where it was, however often it was postponed.
func TestAMessageWaitsForTheModel(t *testing.T) {
	t.Parallel()
	var asked, ran atomic.Int32
	const times = 4 * 3 // of three tries each time; four are more than a turn may be cut off
	b := newBench(t, awayModel(times, &asked), countedEcho(&ran))
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

// If a provider wants to be left alone for long, the person is told when it is asked again, or that the turn doesn't
// wait that long.
func TestALongWaitIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		wait time.Duration
		want func(now time.Time) string
	}{
		"it is waited for": {3 * time.Hour, func(now time.Time) string {
			return "won't take requests until " + timeText(now, time.Hour) + ". I'll ask again then, keep trying until " + timeText(now, 3*time.Hour) + ", and answer as soon as I can; /stop"
		}},
		"longer than it is waited for": {30 * time.Minute, func(now time.Time) string {
			return "won't take requests until " + timeText(now, time.Hour) + ". I'll wait until " + timeText(now, 30*time.Minute) + ", try one last time,"
		}},
		"it is not waited for": {0, func(now time.Time) string {
			return "won't take requests until " + timeText(now, time.Hour) + ": please ask again then."
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []time.Duration
				begun := time.Now()
				b := newBenchIn(t, t.TempDir(), func(context.Context, llm.Request) (llm.Answer, error) {
					asked = append(asked, time.Since(begun).Truncate(time.Minute))
					if len(asked) > 1 {
						return textAnswer("at last"), nil
					}
					return llm.Answer{}, &llm.Error{Fault: llm.Busy, Status: 429, RetryAfter: time.Hour}
				})
				b.limit.ModelWait = tc.wait
				defer b.run()()
				first := b.say("1", "ann", "go")
				if out := b.reply(); !strings.Contains(out.Text, tc.want(begun)) {
					t.Errorf("told %q, want %q", out.Text, tc.want(begun))
				}
				if tc.wait > 0 {
					<-time.After(2 * time.Hour)
					b.wantReply(first, "at last")
					if again := min(tc.wait, time.Hour); len(asked) != 2 || asked[1] != again {
						t.Errorf("asked at %v", asked)
					}
				}
				b.settled()
			})
		})
	}
}

// timeText returns a time as people are told it.
func timeText(now time.Time, later time.Duration) string {
	return now.Add(later).UTC().Format("2006-01-02 15:04") + " UTC"
}

// After the configured time, the message is given up and the person is told.
func TestAMessageIsGivenUpAsConfigured(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	b := newBench(t, awayModel(1000, &asked), countedEcho(&atomic.Int32{}))
	b.limit.ModelWait = 1500 * time.Millisecond
	b.run()
	first := b.say("1", "ann", "go")
	out := b.reply()
	if out.ID == first+"#away" { // a busy machine may come too late for that
		out = b.reply()
	}
	if out.ID != first+"#reply" || !out.Failed || !strings.Contains(out.Text, "I gave up after 3 tries") {
		t.Errorf("told %s %q", out.ID, out.Text)
	}
	b.settled()
}

// A person who waits for a model may end the wait.
func TestStopEndsTheWaitForAModel(t *testing.T) {
	var asked atomic.Int32
	b := newBench(t, awayModel(1000, &asked), countedEcho(&atomic.Int32{}))
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

// A failingBudget fails for the given number of reservations.
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

// However often a budget fails, this doesn't count as a crash, and the turn is not given up.
func TestABudgetThatIsAwayCutsNobodyOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("at last"), nil })
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

// useCostlyModel gives a bench a model whose answers are expected to cost about ten cents each, and a daily limit for
// each person.
func (b *bench) useCostlyModel(userDay int64) {
	b.money = b.store.Money()
	b.agent.Model = prices.Model{Model: b.agent.Model, Price: crashPrice()}
	b.limit.UserDay, b.limit.Turns = userDay, 20
}

// If a limit is reached only because of reservations, messages wait: of twenty messages at once all are answered,
// though the limit has room for two at a time.
func TestAMessageWaitsForReservedBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 20
		var asked, most atomic.Int32
		b := newBenchIn(t, t.TempDir(), func(context.Context, llm.Request) (llm.Answer, error) {
			now := asked.Add(1)
			defer asked.Add(-1)
			for {
				if m := most.Load(); now <= m || most.CompareAndSwap(m, now) {
					break
				}
			}
			<-time.After(3 * time.Second)
			return textAnswer("at last"), nil
		})
		b.useCostlyModel(250_000)
		defer b.run()()
		for n := range messages {
			b.say(fmt.Sprint(n), "ann", "go")
		}
		answered, told := 0, 0
		for answered < messages {
			out := b.replyWithin(15 * time.Minute)
			switch {
			case out.Text == "at last":
				answered++
			case strings.HasSuffix(out.ID, "#budget") && strings.Contains(out.Text, "set aside for answers in progress") && strings.Contains(out.Text, "[budget] user_day"):
				told++
			default:
				t.Fatalf("told %s %q", out.ID, out.Text)
			}
		}
		b.settled()
		if most.Load() != 2 {
			t.Errorf("%d calls were under way at once", most.Load())
		}
		if told == 0 {
			t.Error("nobody was told that they wait")
		}
		if spent, aside, err := b.store.Money().State(t.Context(), bill.Cap{Subject: bill.Person("test:ann")}, time.Now()); spent != 20*(10*5+5*25) || aside != 0 || err != nil {
			t.Errorf("%d are spent and %d set aside, %v", spent, aside, err)
		}
	})
}

// A wait for a reservation that never ends has a limit, and the person can end it.
func TestAWaitForABudgetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("fine"), nil })
		b.useCostlyModel(150_000)
		held := bill.Reservation{ID: "x#1.1.0", Session: "main:test:x", Cost: 100_000, Caps: []bill.Cap{{Subject: bill.Person("test:ann"), Limit: 150_000}}, At: time.Now()}
		if err := b.store.Money().Reserve(t.Context(), held); err != nil {
			t.Fatal(err)
		}
		defer b.run()()
		began := time.Now()
		first := b.say("1", "ann", "go")
		if out := b.reply(); out.ID != first+"#budget" {
			t.Errorf("told %s %q", out.ID, out.Text)
		}
		second := b.say("2", "ann", "go")
		if out := b.reply(); out.ID != second+"#budget" {
			t.Errorf("told %s %q", out.ID, out.Text)
		}
		b.wantReply(b.say("2", "ann", "/stop"), "topped")
		out := b.replyWithin(time.Hour)
		if waited := time.Since(began); out.ID != first+"#reply" || !out.Failed || !strings.Contains(out.Text, "haven't finished the answers in progress") || waited < 15*time.Minute || waited > 16*time.Minute {
			t.Errorf("after %s told %s %q", waited, out.ID, out.Text)
		}
		if err := b.store.Money().Settle(t.Context(), held, 0); err != nil {
			t.Fatal(err)
		}
		b.wantReply(b.say("1", "ann", "and now?"), "fine")
		b.limit.UserDay = 90_000
		b.say("1", "ann", "again")
		if out := b.reply(); !strings.Contains(out.Text, "which is more than the $0.09 that a person can spend in a day") || strings.Contains(out.Text, "I can go on") {
			t.Errorf("told %q", out.Text)
		}
	})
}

// If an answer is stopped while it arrives, the received part is counted.
func TestAnAnswerThatIsStoppedIsCounted(t *testing.T) {
	came := make(chan struct{})
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("x"), nil })
	b.agent.Model = stallingModel{came}
	b.useCostlyModel(2_000_000)
	b.run()
	b.say("1", "ann", "go")
	<-came
	b.wantReply(b.say("1", "ann", "/stop"), "topped")
	b.settled()
	used, err := b.store.Bill().Usage(t.Context(), bill.ByModel, time.Now(), time.Now())
	if err != nil || len(used) != 1 || used[0].Estimated != 1 || used[0].Output != 10 || used[0].Input == 0 || used[0].Microdollars == 0 {
		t.Fatalf("used is %+v, %v", used, err)
	}
	if spent, aside, err := b.store.Money().State(t.Context(), bill.Cap{Subject: bill.Person("test:ann")}, time.Now()); spent != used[0].Microdollars || aside != 0 || err != nil {
		t.Errorf("%d are spent and %d set aside, %v, and the log has %d", spent, aside, err, used[0].Microdollars)
	}
}

// stallingModel is a model that streams forty bytes, and then stands still.
type stallingModel struct{ started chan struct{} }

func (s stallingModel) Info() llm.Info { return llm.Info{Name: "scripted"} }

func (s stallingModel) Generate(ctx context.Context, _ *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	emit(llm.Delta{Kind: llm.BlockText, Text: strings.Repeat("word", 10)})
	close(s.started)
	<-ctx.Done()
	return nil, ctx.Err()
}
