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

// rated has a bench count calls of a tool in its store, and allow each person n an hour.
func (b *bench) rated(tool string, n int) {
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

// Calls are counted together for all accounts of a person. What a rule refuses isn't counted, and no model judges what is
// over the rate.
func TestARateCountsWhatTheRulesLetThroughForAllAccounts(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(results(r)) == 0 {
			return calls(`echo {"say":"no"}`, `echo {"say":"yes"}`), nil
		}
		return text(strings.Join(results(r), " ")), nil
	}, echo("echo", tools.Once, nil))
	var watched judgements
	watched.watch(b)
	b.agent.Guard = func(_ context.Context, call tools.Call) tools.Verdict {
		if strings.Contains(string(call.Args), "no") {
			return tools.Verdict{Decision: tools.Deny, Reason: "never"}
		}
		return tools.Verdict{}
	}
	b.judgedBy(func(agenttest.Request) agenttest.Response { return sayVerdict("allow", "") }, time.Minute, "echo")
	b.rated("echo", 2)
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
	for _, r := range watched.of(sessions.AuditTool) {
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

// Nobody asks whose call it is if no rate names its tool. A count that fails is like a bus that is away: the turn is fine, and
// goes on later.
func TestACountThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBenchIn(t, t.TempDir(), func(_ context.Context, r llm.Request) (llm.Answer, error) {
			if len(results(r)) == 0 {
				return calls(`free {"say":"1"}`, `echo {"say":"2"}`), nil
			}
			return text(strings.Join(results(r), " ")), nil
		}, echo("echo", tools.Once, nil), echo("free", tools.Once, nil))
		b.rated("echo", 1)
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
