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
	"parley/agent/transcript"
	"parley/tools"
)

// In a small window, memory is shown once in each request, and in no request for a summary. It takes as much room as a
// prompt of the same length, so the agent summarizes no more often.
func TestMemoryInASmallWindow(t *testing.T) {
	const window, calls = 8192, 60
	note := "likes tea of the kind xyzzy. " + strings.Repeat("They also like cake, and to be told the truth. ", 420)
	summaries := map[bool]int{}
	for _, inPrompt := range []bool{true, false} {
		var made atomic.Int64
		script := agenttest.RequireTools(agenttest.RequireOrder(agenttest.CountTokens(countingScript(calls, &made))))
		s := agenttest.New(agenttest.Window(window, 400, `{"error":{"message":"maximum context length is {window} tokens","code":"context_length_exceeded"}}`, script))
		b := newSmallWindowBench(t, s, window, echo("echo", tools.Once, func(tools.Call, string) error { return nil }))
		b.agent.MaxIterations = 2 * calls
		if inPrompt {
			b.agent.Prompt = func(context.Context, agent.Asker) (string, error) { return note, nil }
		} else {
			b.agent.Prompt = func(context.Context, agent.Asker) (string, error) { return "be brief", nil }
			b.agent.Memory = func(context.Context, agent.Asker) ([]transcript.Memory, bool, error) {
				return []transcript.Memory{{Scope: "agent", Whose: "all your conversations", Text: strings.TrimSpace(note)}}, false, nil
			}
		}
		stop := b.run()
		b.wantReply(b.say("1", "ann", instructions), "finished")
		b.wantReply(b.say("1", "ann", "and now?"), "finished")
		stop()
		for _, q := range s.Requests() {
			want := 1
			if asksForSummary(q) {
				want = 0
				summaries[inPrompt]++
			}
			if n := bytes.Count(q.Body, []byte("xyzzy")); n != want {
				t.Errorf("request %d has what is remembered %d times, want %d: %.2000s", q.N, n, want, q.Body)
			}
		}
	}
	if prompt, memory := summaries[true], summaries[false]; prompt == 0 || memory == 0 || memory > prompt+1 {
		t.Errorf("there were %d summaries with a prompt of that length, and %d with what is remembered", prompt, memory)
	}
}

// A turn that another worker resumes is shown the same memory to the byte. Memories that were added since are for the
// next turn.
func TestAResumedTurnSeesTheSameMemory(t *testing.T) {

	var remembered atomic.Value
	remembered.Store("likes tea")
	shown := make(chan string, 10)
	began, asked := make(chan bool), 0
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		var all []string
		for _, m := range q.Messages() {
			all = append(all, m.Role+": "+m.Content+fmt.Sprint(m.Calls))
		}
		shown <- strings.Join(all, "\n")
		switch asked++; asked {
		case 1:
			return agenttest.Calls(agenttest.ToolCall{Name: "echo", Args: `{"say":"x"}`})
		case 2:
			remembered.Store("likes tea\n\nlikes cake")
			close(began)
			return agenttest.Response{}.Stall()
		}
		return agenttest.Reply("done")
	})
	b := newWireBench(t, s, echo("echo", tools.Pure, func(tools.Call, string) error { return nil }))
	b.drain = 0
	b.agent.Memory = func(context.Context, agent.Asker) ([]transcript.Memory, bool, error) {
		return []transcript.Memory{{Scope: "agent", Whose: "all", Text: remembered.Load().(string)}}, false, nil
	}
	stop := b.run()
	id := b.say("1", "ann", "hello")
	<-began
	stop()
	b.run()
	b.wantReply(id, "done")
	<-shown
	cut, resumed := <-shown, <-shown
	b.wantReply(b.say("1", "ann", "and now?"), "done")
	next := <-shown
	if resumed != cut || !strings.Contains(cut, "<remembered of=\"all\">\nlikes tea\n</remembered>\n\n<message") {
		t.Errorf("a turn was shown\n%s\nand resumed\n%s", cut, resumed)
	}
	if !strings.HasPrefix(next, cut) || !strings.Contains(next, "<remembered of=\"all\" added=\"later\">\nlikes cake\n</remembered>\n\n<message") {
		t.Errorf("the next turn was shown\n%s", next)
	}
}
