package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/agent/openai"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// newWireBench returns a bench whose model is a scripted server.
func newWireBench(t *testing.T, s *agenttest.Server, set ...tools.Tool) *bench {
	t.Helper()
	b := newBench(t, nil, set...)
	m, err := openai.New(openai.Config{BaseURL: s.Start(t), Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	b.agent.Model = m
	return b
}

func endedResponse(text, reason string) agenttest.Response {
	var events []string
	if text != "" {
		events = append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, text))
	}
	return agenttest.Stream(append(events, fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason),
		`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10}}`, "[DONE]")...)
}

func TestAnIncompleteAnswerSaysSo(t *testing.T) {
	t.Parallel()
	cases := []struct {
		reason, text string
		want         string
		asked        int
	}{
		{"stop", "half", "half", 1},
		{"length", "half", "half\n\n_(The answer was cut off at the model's length limit.", 1},
		{"length", "", "no room for an answer", 1},
		{"content_filter", "half", "half\n\n_(The provider's content filter (“content_filter”) cut the answer off here.", 1},
		{"content_filter", "", "blocked the answer", 1},
		{"sensitive", "half", "content filter (“sensitive”)", 1},
		{"model_context_window_exceeded", "half", "half\n\n_(The answer was cut off because the model's context window is full.", 1},
		{"model_length", "half", "window is full", 1},
		{"paused_by_moon", "half", "half\n\n_(The model stopped for a reason I don't know (“paused_by_moon”)", 1},
		{"insufficient_system_resource", "half", "half\n\n_(The provider cut the answer off here (“insufficient_system_resource”)", 3},
		{"network_error", "half", "cut the answer off", 3},
		{"abort", "half", "cut the answer off", 3},
		{"tool_calls", "half", "half\n\n_(Each time I asked, the model announced a tool call that never came", 3},
	}
	for _, tc := range cases {
		t.Run(tc.reason+" "+tc.text, func(t *testing.T) {
			t.Parallel()
			s := agenttest.New(agenttest.Always(endedResponse(tc.text, tc.reason)))
			b := newWireBench(t, s)
			b.run()
			b.wantReply(b.say("1", "ann", "go"), tc.want)
			if s.Asked() != tc.asked {
				t.Errorf("asked %d times, want %d", s.Asked(), tc.asked)
			}
		})
	}
}

func TestThinkingToTheLimitIsNotCalledEmpty(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Stream(
		`{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, `{"choices":[{"delta":{},"finish_reason":"length"}]}`, "[DONE]")))
	b := newWireBench(t, s)
	b.run()
	b.wantReply(b.say("1", "ann", "go"), "while it was still thinking")
}

func TestABrokenAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := agenttest.New(agenttest.Sequence(endedResponse("hal", "network_error"), endedResponse("whole", "stop")))
	b := newWireBench(t, s)
	b.run()
	id := b.say("1", "ann", "go")
	if out := b.reply(); out.ID != id+"#reply" || out.Text != "whole" {
		t.Errorf("reply %q", out.Text)
	}
}

// If an answer is stopped, the text that watchers have read stays: they are not told that it is void.
func TestAStopKeepsTheTextThatWatchersHaveRead(t *testing.T) {
	s := agenttest.New(agenttest.Sequence(agenttest.Stream(`{"choices":[{"delta":{"content":"half of it"}}]}`).Stall()))
	b := newWireBench(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	feed, err := b.bus.Subscribe(ctx, bus.SessionFeed("main:test:1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	id := b.say("1", "ann", "go")
	var seen strings.Builder
	for e, err := range feed {
		if err != nil {
			t.Fatal(err)
		}
		if e.Turn != id || e.Kind == "user" {
			continue
		}
		if e.Type == bus.BlockDelta || e.Type == bus.BlockReset || e.Type == bus.BlockStop {
			seen.WriteString(e.Type + " " + e.Delta + ",")
		}
		if e.Type == bus.BlockDelta {
			b.say("1", "ann", "/stop")
		}
		if e.Type == bus.TurnError {
			break
		}
	}
	if seen.String() != "block_delta half of it," { // without its end: the log does not have it
		t.Errorf("watchers saw %q", seen.String())
	}
}

// An answer whose calls were cut off is asked for again: watchers are told that
// the first is void, and both are paid for.
func TestAnAnswerThatIsAskedForAgainIsResetAndPaidFor(t *testing.T) {
	s := agenttest.New(agenttest.Sequence(
		agenttest.Stream(`{"choices":[{"delta":{"content":"first "}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"{\"sa"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"length"}]}`, `{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":200}}`, "[DONE]"),
		endedResponse("second", "stop")))
	b := newWireBench(t, s, echo("echo", tools.Once, nil))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	feed, err := b.bus.Subscribe(ctx, bus.SessionFeed("main:test:1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	id := b.say("1", "ann", "go")
	var seen []string
	for e, err := range feed {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case bus.BlockDelta:
			if e.Kind != "text" {
				continue
			}
			seen = append(seen, e.Delta)
		case bus.BlockReset:
			seen = append(seen, "reset")
		}
		if e.Type == bus.TurnComplete {
			break
		}
	}
	b.wantReply(id, "second")
	if got := strings.Join(seen, ","); got != "first ,reset,second" {
		t.Errorf("watchers saw %q", got)
	}
	b.settled()
	var used int64
	for e, err := range b.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == sessions.KindUsage {
			u, err := sessions.Decode[sessions.Usage](e)
			if err != nil {
				t.Fatal(err)
			}
			used += u.Input + u.Output
		}
	}
	spent, err := b.store.Spent(t.Context(), "test:ann", time.Now())
	if err != nil || used != 1310 || spent != used {
		t.Errorf("used %d, spent %d (%v), want 1310", used, spent, err)
	}
}

// A provider that refuses a user message right after a tool result blocks no session: not at a turn's last step, and
// not at the message after a failed turn.
func TestAProviderWithAnOrderOfMessagesIsObeyed(t *testing.T) {
	s := agenttest.New(agenttest.RequireOrder(func(q agenttest.Request) agenttest.Response {
		messages := q.Messages()
		switch {
		case strings.Contains(messages[len(messages)-1].Content, "and now?"):
			return agenttest.Reply("now it is well")
		case strings.Contains(q.Said(), "fail") && q.Rounds() > 0:
			return agenttest.Fail(400, `{"error":{"message":"Invalid schema"}}`)
		case q.ForbidsCalls():
			return agenttest.Reply("the last word")
		}
		return agenttest.Calls(agenttest.ToolCall{Name: "echo", Args: `{"say":"tea"}`})
	}))
	b := newWireBench(t, s, echo("echo", tools.Once, nil))
	short := newWireBench(t, s, echo("echo", tools.Once, nil))
	short.agent.MaxIterations = 2
	short.run()
	short.wantReply(short.say("1", "ann", "go"), "the last word")
	b.run()
	b.wantReply(b.say("2", "ann", "fail"), "rejected this request")
	b.wantReply(b.say("2", "ann", "and now?"), "now it is well")
}
