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

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/sessions"
	"parley/sessions/rates"
	"parley/tools"
)

// limitCalls has a bench count calls of a tool in its store, and allow each person n an hour.
func (b *bench) limitCalls(tool string, n int) {
	b.agent.CountCall = func(ctx context.Context, call tools.Call, payer func(context.Context) (string, error)) (*tools.Error, error) {
		if call.Name != tool {
			return nil, nil
		}
		person, err := payer(ctx)
		if err != nil {
			return nil, err
		}
		err = b.store.Rates().Count(ctx, person, call.Key, rates.Rate{Tools: tool, Limit: n, Window: time.Hour})
		if _, over := errors.AsType[*rates.OverError](err); over {
			return tools.Errorf(tools.RateLimited, "not now"), nil
		}
		return nil, err
	}
}

// Calls are counted together for all accounts of a person. A call that a rule refuses isn't counted, and no model
// judges a call that exceeds the rate.
func TestARateCountsWhatTheRulesLetThroughForAllAccounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`echo {"say":"no"}`, `echo {"say":"yes"}`), nil
		}
		return textAnswer(strings.Join(toolResults(r), " ")), nil
	}, echo("echo", tools.Once, nil))
	var watched judgementRecorder
	watched.watch(b)
	b.agent.Guard = func(_ context.Context, call tools.Call) tools.Verdict {
		if strings.Contains(string(call.Args), "no") {
			return tools.Verdict{Decision: tools.Deny, Reason: "never"}
		}
		return tools.Verdict{}
	}
	b.useJudge(func(agenttest.Request) agenttest.Response { return verdictResponse("allow", "") }, time.Minute, "echo")
	b.limitCalls("echo", 2)
	b.account = func(_ context.Context, person string) (string, error) {
		return strings.TrimSuffix(person, "-elsewhere"), nil
	}
	b.run()
	for i, user := range []string{"alex", "alex-elsewhere", "alex"} {
		want := `{"said":"yes"}`
		if i == 2 {
			want = `{"error":{"code":"rate_limited","message":"not now"}}`
		}
		b.wantReply(b.say(fmt.Sprint(i), user, "go"), `"never"}} `+want)
	}
	b.settled()
	if n := watched.counted["allow"]; n != 2 {
		t.Errorf("a model has judged %d calls, want 2: %v", n, watched.counted)
	}
	var refused []string
	for _, r := range watched.ofKind(sessions.AuditTool) {
		if r.Result == "rate_limited" {
			refused = append(refused, r.By+" "+r.Verdict+" "+r.Detail)
		}
	}
	if got := strings.Join(refused, ", "); got != "test:alex deny rate" {
		t.Errorf("the audit has %q", got)
	}
	counts := map[string]map[string]int64{}
	for _, tool := range activityOf(t, b.store.Activity()).Total.Tools {
		counts[tool.Tool] = tool.Outcomes
	}
	if counts["echo"][sessions.CallOK] != 2 || counts["echo"][sessions.CallDenied] != 4 {
		t.Errorf("counted are %v", counts)
	}
}

// If no rate names a call's tool, nobody looks up whose call it is. If counting fails, the turn continues later, as
// when the bus is away.
func TestACountThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(_ context.Context, r llm.Request) (llm.Answer, error) {
			if len(toolResults(r)) == 0 {
				return callsAnswer(`free {"say":"1"}`, `echo {"say":"2"}`), nil
			}
			return textAnswer(strings.Join(toolResults(r), " ")), nil
		}, echo("echo", tools.Once, nil), echo("free", tools.Once, nil))
		b.limitCalls("echo", 1)
		count := b.agent.CountCall
		var tried, asked atomic.Int32
		b.agent.CountCall = func(ctx context.Context, call tools.Call, payer func(context.Context) (string, error)) (*tools.Error, error) {
			refused, err := count(ctx, call, func(ctx context.Context) (string, error) { asked.Add(1); return payer(ctx) })
			if call.Name == "echo" && tried.Add(1) == 1 {
				return nil, errors.New("the store is away")
			}
			return refused, err
		}
		defer b.run()()
		b.wantReply(b.say("1", "alex", "go"), `{"said":"1"} {"said":"2"}`)
		b.settled()
		if log := b.kinds("1"); asked.Load() != 2 || !strings.Contains(log, "suspended resumed") {
			t.Errorf("asked %d times, and the log is %s", asked.Load(), log)
		}
	})
}
