package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent"
	"parley/agent/agenttest"
	"parley/tools"
)

// pageTool returns a tool that returns a page of that many bytes.
func pageTool(bytes int) tools.Tool {
	type args struct {
		N int `json:"n"`
	}
	return tools.New(tools.Spec{Name: "page", Description: "reads a page", Effect: tools.Pure}, func(_ context.Context, _ tools.Call, a args) (any, error) {
		return map[string]string{"page": strings.Repeat(fmt.Sprintf("page %d says this. ", a.N), bytes/18)}, nil
	})
}

// In a small window, a step may return more than fits. Its results share the free room, so a summary is needed every
// few steps, and not several times in each.
func TestParallelResultsShareASmallWindow(t *testing.T) {
	for _, tc := range []struct{ window, prompt, calls, size, steps, summaries int }{
		{9000, 1000, 4, 9000, 30, 4},
		{9000, 4000, 4, 9000, 30, 5},
		{9000, 5200, 4, 9000, 30, 10},
		{9000, 1000, 1, 9000, 30, 0},
		{8192, 1000, 8, 20_000, 20, 8},
		{16_000, 1000, 4, 9000, 30, 5},
		{32_000, 1000, 4, 30_000, 30, 0},
	} {
		t.Run(fmt.Sprintf("%d results of %d bytes in %d tokens, prompt %d", tc.calls, tc.size, tc.window, tc.prompt), func(t *testing.T) {
			var summaries, asked, step, refused atomic.Int64
			script := func(q agenttest.Request) agenttest.Response {
				if asksForSummary(q) {
					summaries.Add(1)
					return agenttest.Reply("I have read pages, and README.md is untouched.")
				}
				asked.Add(1)
				n := step.Add(1)
				if n > int64(tc.steps) {
					return agenttest.Reply("finished")
				}
				var all []agenttest.ToolCall
				for i := range tc.calls {
					all = append(all, agenttest.ToolCall{ID: fmt.Sprintf("call%d_%d", n, i), Name: "page", Args: fmt.Sprintf(`{"n":%d}`, int(n)*100+i)})
				}
				return agenttest.Calls(all...)
			}
			s := agenttest.New(func(q agenttest.Request) agenttest.Response {
				if agenttest.Tokens(q) > tc.window {
					refused.Add(1)
				}
				return agenttest.Window(tc.window, 400, `{"error":{"message":"maximum context length is {window} tokens","code":"context_length_exceeded"}}`,
					agenttest.RequireTools(agenttest.RequireOrder(agenttest.CountTokens(script))))(q)
			})
			b := newSmallWindowBench(t, s, tc.window, pageTool(tc.size))
			b.agent.MaxIterations = 400
			b.agent.Prompt = func(context.Context, agent.Asker) (string, error) {
				return strings.Repeat("You are a careful clerk who keeps to what people say. ", tc.prompt*4/54), nil
			}
			var counted compactionCounter
			b.observer = &counted
			b.run()
			b.wantReply(b.say("1", "ann", instructions), "finished")
			for _, q := range s.Requests() {
				if !bytes.Contains(q.Body, []byte(instructions)) {
					t.Errorf("request %d lacks what the person said", q.N)
				}
				if wrong := orphanCalls(q); wrong != "" {
					t.Errorf("request %d: %s", q.N, wrong)
				}
			}
			t.Logf("%d summaries, %d answers, %d refused; cleared %d, summarised %d, too little %d, failed %d", summaries.Load(), asked.Load(), refused.Load(),
				counted.count("cleared"), counted.count("summarised"), counted.count("too_little"), counted.count("failed"))
			if summaries.Load() > int64(tc.summaries) || refused.Load() > 0 {
				t.Errorf("%d summaries were asked for in %d steps; %d requests were too long", summaries.Load(), tc.steps, refused.Load())
			}
		})
	}
}
