package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/openai"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// newProtocolBench returns a bench whose model uses one of OpenAI's protocols.
func newProtocolBench(t *testing.T, api openai.API, s *agenttest.Server, set ...tools.Tool) *bench {
	t.Helper()
	b := newBench(t, nil, set...)
	m, err := openai.New(openai.Config{BaseURL: s.Start(t), Name: "m", API: api})
	if err != nil {
		t.Fatal(err)
	}
	b.agent.Model = m
	return b
}

// responsesAnswer returns an answer of the Responses API with these items and this end.
func responsesAnswer(end string, items ...string) agenttest.Response {
	var events []string
	for at, item := range items {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, at, item))
	}
	why := "null"
	if end == "incomplete" {
		why = `{"reason":"max_output_tokens"}`
	}
	return agenttest.Stream(append(events, fmt.Sprintf(`{"type":"response.%s","response":{"incomplete_details":%s,"output":[],"usage":{"input_tokens":100,"output_tokens":10}}}`, end, why))...)
}

// A model's reasoning in the Responses API is kept in the log and sent back unchanged, within the turn and in the next,
// with the phase of its text.
func TestReasoningSurvivesTheLog(t *testing.T) {
	thought := `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I must look."}],"encrypted_content":"secret=="}`
	remark := `{"id":"msg_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]}`
	call := `{"id":"fc_1","type":"function_call","call_id":"call_9","name":"echo","arguments":"{\"say\":\"tea\"}"}`
	last := `{"id":"msg_2","type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"It is tea."}]}`
	s := agenttest.New(agenttest.Sequence(responsesAnswer("completed", thought, remark, call), responsesAnswer("completed", last)))
	b := newProtocolBench(t, openai.APIResponses, s, echo("echo", tools.Once, nil))
	b.run()
	b.wantReply(b.say("1", "ann", "go"), "It is tea.")
	b.wantReply(b.say("1", "ann", "and now?"), "It is tea.")
	want := []string{
		`{"encrypted_content":"secret==","summary":[{"text":"I must look.","type":"summary_text"}],"type":"reasoning"},` +
			`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},` +
			`{"type":"function_call","call_id":"call_9","name":"echo","arguments":"{\"say\":\"tea\"}"},` +
			`{"type":"function_call_output","call_id":"call_9","output":"{\"said\":\"tea\"}"}`,
		`{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"It is tea."}]}`,
	}
	requests := s.Requests()
	if len(requests) != 3 {
		t.Fatalf("asked %d times", len(requests))
	}
	has := func(body []byte, items string) bool {
		var sent struct {
			Input []any `json:"input"`
		}
		var wanted []any
		if json.Unmarshal(body, &sent) != nil || json.Unmarshal([]byte("["+items+"]"), &wanted) != nil {
			t.Fatalf("no JSON: %s in %s", items, body)
		}
		for i := range sent.Input {
			if end := i + len(wanted); end <= len(sent.Input) && reflect.DeepEqual(sent.Input[i:end], wanted) {
				return true
			}
		}
		return false
	}
	if !has(requests[1].Body, want[0]) {
		t.Errorf("within the turn it was sent %s", requests[1].Body)
	}
	if !has(requests[2].Body, want[0]) || !has(requests[2].Body, want[1]) {
		t.Errorf("in the next turn it was sent %s", requests[2].Body)
	}
}

// Calls that were cut off at the length limit never run. The model is asked once more with more room, and then the turn
// ends with a message to the person.
func TestCallsThatAreCutOffNeverRun(t *testing.T) {
	for api, c := range map[openai.API]struct {
		cut  agenttest.Response
		room string
	}{
		openai.APIChat: {agenttest.Stream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"echo","arguments":"{\"say\":\"te"}}]}}]}`,
			`{"choices":[{"delta":{},"finish_reason":"length"}]}`, "[DONE]"), `"max_tokens":16384`},
		openai.APIResponses: {responsesAnswer("incomplete", `{"id":"fc_1","type":"function_call","status":"incomplete","call_id":"call_9","name":"echo","arguments":"{\"say\":\"te"}`), `"max_output_tokens":16384`},
	} {
		t.Run(string(api), func(t *testing.T) {
			var ran atomic.Int32
			s := agenttest.New(agenttest.Always(c.cut))
			b := newProtocolBench(t, api, s, countedEcho(&ran))
			b.run()
			b.say("1", "ann", "go")
			if out := b.reply(); !out.Failed || !strings.Contains(out.Text, "too long, twice") {
				t.Errorf("told %q", out.Text)
			}
			if ran.Load() != 0 || s.Asked() != 2 || !bytes.Contains(s.Requests()[1].Body, []byte(c.room)) {
				t.Errorf("it ran %d times, and was asked for %d times, at last with %s", ran.Load(), s.Asked(), s.Requests()[s.Asked()-1].Body)
			}
			if got := b.kinds("1"); strings.Contains(got, string(sessions.KindToolUse)) {
				t.Errorf("the log has half a call: %s", got)
			}
		})
	}
}

// Thinking without its opening tag is no part of the answer. Watchers of a growing answer are shown it as thinking once
// the closing tag has arrived.
func TestThinkingWithoutItsBeginningIsNoAnswer(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.BareThinking("Let me think of the sky.", "It is blue.")))
	b := newProtocolBench(t, openai.APIChat, s)
	const whole = "thinking Let me think of the sky.\n|text It is blue."
	for i, want := range []string{"…|reset|" + whole, "…|reset|" + whole, whole} { // two such answers tell what the model does
		id := fmt.Sprint(i)
		feed, err := b.bus.Subscribe(t.Context(), bus.SessionFeed("main:test:"+id), 0)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			b.run()
		}
		b.wantReply(b.say(id, "ann", "what of the sky?"), "It is blue.")
		seen, block := "", -1
	watching:
		for e, err := range feed {
			if err != nil {
				t.Fatal(err)
			}
			switch e.Type {
			case bus.BlockReset:
				seen, block = seen+"|reset", -1
			case bus.BlockDelta:
				if e.Kind == "user" {
					continue
				}
				if e.Block != block {
					seen, block = seen+"|"+e.Kind+" ", e.Block
				}
				seen += e.Delta
			case bus.TurnComplete:
				break watching
			}
		}
		seen = strings.TrimPrefix(seen, "|")
		if begun, again, reset := strings.Cut(seen, "|reset"); reset && strings.HasPrefix("text Let me think of the sky.", begun) {
			seen = "…|reset" + again // how much of it was on its way does not matter
		}
		if seen != want {
			t.Errorf("watchers saw %q, want %q", seen, want)
		}
	}
}
