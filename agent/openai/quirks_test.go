package openai_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/tools"
)

// callEvent returns an event with a tool call. It and the functions below write events as real servers do.
func callEvent(call string) string {
	return `{"choices":[{"index":0,"delta":{"tool_calls":[` + call + `]}}]}`
}

func textEvent(s string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, s)
}

func finishEvent(reason string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
}

// wantUses fails the test unless an answer has these tool uses, each written as "name args id".
func wantUses(t *testing.T, a *llm.Answer, want ...string) {
	t.Helper()
	var got []string
	for _, b := range a.Blocks {
		if b.Kind == llm.BlockToolUse {
			got = append(got, strings.TrimSpace(b.Name+" "+string(b.Args)+" "+b.ProviderID))
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("tool uses\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestToolCalls(t *testing.T) {
	const done = "[DONE]"
	ended := finishEvent("tool_calls")
	cases := map[string]struct {
		events []string
		want   []string
	}{
		"OpenAI, in parts": {[]string{
			callEvent(`{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}}`),
			callEvent(`{"index":0,"function":{"arguments":"{\"p\":"}}`), callEvent(`{"index":0,"function":{"arguments":"1}"}}`),
			callEvent(`{"index":1,"id":"call_b","type":"function","function":{"name":"list","arguments":"{}"}}`), ended, done},
			[]string{`read {"p":1} call_a`, `list {} call_b`}},
		"interleaved": {[]string{
			callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}},{"index":1,"id":"b","function":{"name":"y","arguments":"{\"n\""}}`),
			callEvent(`{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}`), ended, done},
			[]string{`x {"n":1} a`, `y {"n":2} b`}},
		"Ollama, one index for all": {[]string{
			callEvent(`{"index":0,"id":"call_1","type":"function","function":{"name":"x","arguments":"{\"n\":1}"}}`),
			callEvent(`{"index":0,"id":"call_2","type":"function","function":{"name":"y","arguments":"{\"n\":2}"}}`), ended, done},
			[]string{`x {"n":1} call_1`, `y {"n":2} call_2`}},
		"Gemini, one index and no ids": {[]string{
			callEvent(`{"index":0,"id":"","function":{"name":"x","arguments":"{\"n\":1}"}}`),
			callEvent(`{"index":0,"id":"","function":{"name":"x","arguments":"{\"n\":2}"}}`), finishEvent("stop"), done},
			[]string{`x {"n":1}`, `x {"n":2}`}},
		"Mistral, no index": {[]string{
			callEvent(`{"id":"AbCdEfGh1","function":{"name":"x","arguments":"{\"n\": 1}"}},{"id":"AbCdEfGh2","function":{"name":"y","arguments":"{}"}}`), ended, done},
			[]string{`x {"n": 1} AbCdEfGh1`, `y {} AbCdEfGh2`}},
		"no index, in parts": {[]string{
			callEvent(`{"id":"a","function":{"name":"x","arguments":"{\"n\""}}`), callEvent(`{"function":{"arguments":":1}"}}`),
			callEvent(`{"id":"b","function":{"name":"y"}}`), callEvent(`{"id":"b","function":{"arguments":"{\"n\":2}"}}`), ended, done},
			[]string{`x {"n":1} a`, `y {"n":2} b`}},
		"Anthropic, from 1": {[]string{
			callEvent(`{"index":1,"id":"toolu_1","function":{"name":"x","arguments":""}}`), callEvent(`{"index":1,"function":{"arguments":"{}"}}`), ended, done},
			[]string{`x {} toolu_1`}},
		"neither index nor id": {[]string{
			callEvent(`{"function":{"name":"x","arguments":"{\"n\":1}"}}`), callEvent(`{"function":{"name":"y","arguments":"{\"n\":2}"}}`), ended, done},
			[]string{`x {"n":1}`, `y {"n":2}`}},
		"name and id repeated": {[]string{
			callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":"}}`), callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"1}"}}`), ended, done},
			[]string{`x {"n":1} a`}},
		"an id twice": {[]string{
			callEvent(`{"index":0,"id":"same","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"same","function":{"name":"y","arguments":"{}"}}`), ended, done},
			[]string{`x {} same`, `y {}`}},
		"ids that are numbers":        {[]string{callEvent(`{"index":0,"id":7,"function":{"name":"x","arguments":"{}"}}`), ended, done}, []string{`x {} 7`}},
		"no arguments":                {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x"}}`), ended, done}, []string{`x {} a`}},
		"empty arguments":             {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":""}}`), ended, done}, []string{`x {} a`}},
		"null arguments":              {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":null}}`), ended, done}, []string{`x {} a`}},
		"object arguments":            {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":{"n":{"m":1}}}}`), ended, done}, []string{`x {"n":{"m":1}} a`}},
		"encoded twice":               {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"\"{\\\"n\\\":1}\""}}`), ended, done}, []string{`x {"n":1} a`}},
		"empty object first":          {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`), callEvent(`{"index":0,"function":{"arguments":"{\"n\":1}"}}`), ended, done}, []string{`x {"n":1} a`}},
		"not JSON":                    {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{n:"}}`), ended, done}, []string{`x "{n:" a`}},
		"parts of nothing":            {[]string{callEvent(`{"index":0}`), textEvent("hi"), callEvent(`{"index":3,"function":{"arguments":""}}`), finishEvent("stop"), done}, nil},
		"stop though there are calls": {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`), finishEvent("stop"), done}, []string{`x {} a`}},
		"an index that is a text": {[]string{
			callEvent(`{"index":"0","id":"a","function":{"name":"x","arguments":"{\"n\""}},{"index":"1","id":"b","function":{"name":"y","arguments":"{\"n\""}}`),
			callEvent(`{"index":"1","function":{"arguments":":2}"}},{"index":0.0,"function":{"arguments":":1}"}}`), ended, done}, []string{`x {"n":1} a`, `y {"n":2} b`}},
		"a new id for each part": {[]string{
			callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":""}}`), callEvent(`{"index":0,"id":"b","function":{"arguments":"{\"n\""}}`),
			callEvent(`{"index":0,"id":"c","function":{"name":null,"arguments":":1}"}}`), callEvent(`{"index":1,"id":"d","function":{"name":"y","arguments":"{}"}}`), ended, done},
			[]string{`x {"n":1} a`, `y {} d`}},
		"a new id for each part, and no index": {[]string{
			callEvent(`{"id":"a","function":{"name":"x","arguments":"{\"n\""}}`), callEvent(`{"id":"b","function":{"arguments":":1}"}}`),
			callEvent(`{"id":"c","function":{"name":"y","arguments":"{\"n\""}}`), callEvent(`{"id":"d","function":{"arguments":":2}"}}`), ended, done},
			[]string{`x {"n":1} a`, `y {"n":2} c`}},
		"a name in parts": {[]string{
			callEvent(`{"index":0,"id":"a","function":{"name":"read_"}}`), callEvent(`{"index":0,"function":{"name":"fi"}}`), callEvent(`{"index":0,"function":{"name":"le"}}`),
			callEvent(`{"index":0,"function":{"arguments":"{}"}}`), callEvent(`{"index":1,"id":"b","function":{"name":"read"}}`), callEvent(`{"index":1,"id":"b","function":{"name":"_file","arguments":"{}"}}`), ended, done},
			[]string{`read_file {} a`, `read_file {} b`}},
		"a name that grows": {[]string{
			callEvent(`{"index":0,"id":"a","function":{"name":"read_"}}`), callEvent(`{"index":0,"id":"a","function":{"name":"read_file","arguments":"{}"}}`), ended, done},
			[]string{`read_file {} a`}},
		"calls of tools whose names begin alike": {[]string{
			callEvent(`{"index":0,"function":{"name":"read_file","arguments":""}}`), callEvent(`{"index":0,"function":{"name":"read_file_list","arguments":""}}`), ended, done},
			[]string{`read_file {}`, `read_file_list {}`}},
		"whole, and no stream": {[]string{`{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`}, []string{`x {} a`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := helloRequest()
			r.Tools = []tools.Spec{{Name: "read_file"}, {Name: "read_file_list"}, {Name: "x"}, {Name: "y"}}
			a, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Stream(tc.events...)))), r)
			if err != nil {
				t.Fatal(err)
			}
			wantUses(t, a, tc.want...)
		})
	}
}

func TestTextsAndEnds(t *testing.T) {
	sse := func(data ...string) string { return agenttest.Stream(data...).Parts[0].Bytes }
	hi := textEvent("hi")
	cases := map[string]struct {
		stream, want string
	}{
		"no end but a reason":      {sse(hi, finishEvent("stop")), "hi"},
		"no reason but an end":     {sse(hi, "[DONE]"), "hi"},
		"Azure, empty choices":     {sse(`{"choices":[],"prompt_filter_results":[{}]}`, `{"choices":null}`, hi, finishEvent("stop"), "[DONE]"), "hi"},
		"reason repeated":          {sse(hi, finishEvent("stop"), finishEvent("stop"), `{"choices":[{"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, "[DONE]"), "hi"},
		"content in parts":         {sse(`{"choices":[{"delta":{"content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}}]}`, "[DONE]"), "hi"},
		"content as one part":      {sse(`{"choices":[{"delta":{"content":{"type":"text","text":"hi"}}}]}`, "[DONE]"), "hi"},
		"null content":             {sse(`{"choices":[{"delta":{"role":"assistant","content":null}}]}`, hi, "[DONE]"), "hi"},
		"refusal":                  {sse(`{"choices":[{"delta":{"refusal":"I will not."}}]}`, finishEvent("stop"), "[DONE]"), "I will not."},
		"OpenRouter, comments":     {": OPENROUTER PROCESSING\n\n" + sse(hi) + ": OPENROUTER PROCESSING\n\n" + sse(finishEvent("stop"), "[DONE]"), "hi"},
		"1,000 comments":           {strings.Repeat(": ping\n\n", 1000) + sse(hi, "[DONE]"), "hi"},
		"events with names":        {"event: ping\ndata: {\"type\":\"ping\"}\n\nevent: noise\ndata: not JSON\n\nid: 4\nretry: 10\nevent: message\n" + sse(hi, "[DONE]"), "hi"},
		"carriage returns":         {strings.ReplaceAll(sse(hi, finishEvent("stop"), "[DONE]"), "\n", "\r\n"), "hi"},
		"only carriage returns":    {strings.ReplaceAll(sse(hi, finishEvent("stop"), "[DONE]"), "\n", "\r"), "hi"},
		"no space, no empty line":  {"data:" + hi + "\ndata:[DONE]\n", "hi"},
		"no last newline":          {"data: " + hi + "\n\ndata: [DONE]", "hi"},
		"byte order mark":          {"\uFEFF" + sse(hi, "[DONE]"), "hi"},
		"JSON over several lines":  {"data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"hi\"}}]}\n\n" + sse("[DONE]"), "hi"},
		"MiniMax, all well":        {sse(hi, `{"choices":[{"delta":{},"finish_reason":"stop"}],"base_resp":{"status_code":0,"status_msg":""}}`), "hi"},
		"no errors, no detail":     {sse(hi, `{"choices":[],"errors":[],"detail":null,"msg":""}`, finishEvent("stop"), "[DONE]"), "hi"},
		"error that is null":       {sse(`{"error":null,"choices":[{"delta":{"content":"hi"},"error":null}]}`, "[DONE]"), "hi"},
		"another choice":           {sse(`{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"hi"}}]}`, "[DONE]"), "hi"},
		"no stream":                {`{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "hi"},
		"no stream, several lines": {"{\n  \"choices\": [\n    {\n      \"message\": {\n        \"content\": \"hi\"\n      },\n      \"finish_reason\": \"stop\"\n    }\n  ]\n}\n", "hi"},
		"said nothing":             {sse(finishEvent("stop"), "[DONE]"), ""},
		"after the end":            {sse(hi, finishEvent("stop"), "[DONE]", textEvent("more")), "hi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := answerOf(t, agenttest.Raw(tc.stream))
			var got strings.Builder
			for _, b := range a.Blocks {
				got.WriteString(b.Text)
			}
			if got.String() != tc.want || a.Stop != llm.StopWhole || len(a.Blocks) > 1 {
				t.Errorf("answer %+v, want the text %q", a, tc.want)
			}
		})
	}
}

func TestCutOff(t *testing.T) {
	for _, reason := range []string{"length", "MAX_TOKENS"} {
		a := answerOf(t, agenttest.Stream(textEvent("half a"), callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"pa"}}`), finishEvent(reason), "[DONE]"))
		if a.Stop != llm.StopLength || a.Blocks[0].Text != "half a" {
			t.Errorf("%s: answer %+v, want it cut off", reason, a)
		}
	}
}

func TestUsage(t *testing.T) {
	const zero = `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`
	cases := map[string]struct {
		events []string
		want   llm.Usage
	}{
		"last wins": {[]string{`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, `{"choices":[],"usage":null}`},
			llm.Usage{Input: 9, Output: 2}},
		"cached": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`},
			llm.Usage{Input: 9, Cached: 4, Output: 2}},
		"DeepSeek": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":5,"prompt_cache_miss_tokens":4}}`},
			llm.Usage{Input: 9, Cached: 5, Output: 2}},
		"Groq": {[]string{`{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"1","usage":{"prompt_tokens":7,"completion_tokens":3}}}`},
			llm.Usage{Input: 7, Output: 3}},
		"Moonshot": {[]string{`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"cached_tokens":4}}]}`},
			llm.Usage{Input: 9, Cached: 4, Output: 2}},
		"texts": {[]string{`{"choices":[],"usage":{"prompt_tokens":"9","completion_tokens":"2","total_tokens":"11","prompt_tokens_details":{"cached_tokens":"4"},"completion_tokens_details":{"reasoning_tokens":"1"}}}`},
			llm.Usage{Input: 9, Cached: 4, Output: 2, Reasoning: 1}},
		"before the answer": {nil, llm.Usage{Input: 6, Output: 1}},
		"nonsense": {[]string{`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":-2,"prompt_tokens_details":{"cached_tokens":50}}}`},
			llm.Usage{Input: 5, Cached: 5}},
		"reasoning": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":3}}}`},
			llm.Usage{Input: 9, Output: 5, Reasoning: 3}},
		"OpenRouter": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":0.0012345,"is_byok":false,"cost_details":{"upstream_inference_cost":0.5}}}`},
			llm.Usage{Input: 9, Output: 2, Cost: 1235, Priced: true}},
		"OpenRouter, with a key of the provider's": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":0.000005,"is_byok":true,"cost_details":{"upstream_inference_cost":0.0001}}}`},
			llm.Usage{Input: 9, Output: 2, Cost: 105, Priced: true}},
		"xAI": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost_in_usd_ticks":37756000}}`},
			llm.Usage{Input: 9, Output: 2, Cost: 3776, Priced: true}},
		"Perplexity": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":{"request_cost":0.005,"total_cost":0.006}}}`},
			llm.Usage{Input: 9, Output: 2, Cost: 6000, Priced: true}},
		"free":             {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":0}}`}, llm.Usage{Input: 9, Output: 2, Priced: true}},
		"no cost":          {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":"much"}}`}, llm.Usage{Input: 9, Output: 2}},
		"a negative cost":  {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":-1}}`}, llm.Usage{Input: 9, Output: 2}},
		"a cost of no use": {[]string{`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"cost":1e300}}`}, llm.Usage{Input: 9, Output: 2}},
	}
	for name, tc := range cases {
		events := append([]string{`{"choices":[{"delta":{"content":"hi"}}],"usage":{"prompt_tokens":6,"completion_tokens":1}}`}, tc.events...)
		if a := answerOf(t, agenttest.Stream(append(events, "[DONE]")...)); a.Usage != tc.want {
			t.Errorf("%s: usage %+v, want %+v", name, a.Usage, tc.want)
		}
	}
	a := answerOf(t, agenttest.Stream(textEvent("12345678"), zero, "[DONE]"))
	if a.Usage.Output != 2 || a.Usage.Input < 10 || !a.Usage.Estimated {
		t.Errorf("usage %+v, want an estimate", a.Usage)
	}
}

// askTwice asks, and then continues the conversation with the answer. It returns the first answer, and its message as
// it is sent back.
func askTwice(t *testing.T, first agenttest.Response) (*llm.Answer, map[string]any) {
	t.Helper()
	s := agenttest.New(agenttest.Sequence(first, agenttest.Reply("fine")))
	m := scriptedModel(t, s)
	a, err := askOnce(t, m, helloRequest())
	if err != nil {
		t.Fatal(err)
	}
	r := helloRequest()
	blocks := append([]llm.Block(nil), a.Blocks...)
	results := newMessage(llm.RoleUser)
	for i := range blocks {
		if blocks[i].Kind == llm.BlockToolUse {
			blocks[i].Call = fmt.Sprintf("c%d", i)
			results.Blocks = append(results.Blocks, llm.Block{Kind: llm.BlockToolResult, Call: blocks[i].Call, Content: json.RawMessage(`{}`)})
		}
	}
	r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, blocks...), results)
	if _, err := askOnce(t, m, r); err != nil {
		t.Fatal(err)
	}
	back := sentBody(t, s, 2)["messages"].([]any)[1].(map[string]any)
	if _, err := askOnce(t, scriptedModel(t, s), r); err != nil { // another server
		t.Fatal(err)
	}
	other := sentBody(t, s, 3)["messages"].([]any)[1].(map[string]any)
	for _, field := range []string{"reasoning_content", "reasoning_details", "extra_content"} {
		if _, ok := other[field]; ok {
			t.Errorf("%s was sent to a server that did not say it", field)
		}
	}
	for _, c := range other["tool_calls"].([]any) {
		if call := c.(map[string]any); len(call) != 3 {
			t.Errorf("call %v was sent to a server that did not say it", call)
		}
	}
	return a, back
}

const callJSON = `{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`

func TestThinkingIsGivenBack(t *testing.T) {
	think := func(field, value string) string {
		return fmt.Sprintf(`{"choices":[{"delta":{"content":null,%q:%s}}]}`, field, value)
	}
	cases := map[string]struct {
		events  []string
		thought string
		back    map[string]string
	}{
		"DeepSeek": {[]string{think("reasoning_content", `"I must "`), think("reasoning_content", `"look."`)}, "I must look.",
			map[string]string{"reasoning_content": `"I must look."`}},
		"OpenRouter": {[]string{
			`{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":null}]}}]}`,
			`{"choices":[{"delta":{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","index":0,"text":"b","signature":"s"}]}}]}`,
			`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"e"}]}}]}`}, "ab",
			map[string]string{"reasoning_details": `[{"type":"reasoning.text","index":0,"text":"ab","signature":"s"},{"type":"reasoning.encrypted","index":1,"data":"e"}]`}},
		"the same twice":             {[]string{`{"choices":[{"delta":{"reasoning":"a","reasoning_content":"a"}}]}`}, "a", map[string]string{"reasoning_content": `"a"`}},
		"only shown":                 {[]string{think("reasoning", `"hm"`)}, "hm", nil},
		"Mistral":                    {[]string{`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`}, "hm", nil},
		"Gemini, beside no thinking": {[]string{think("extra_content", `{"google":{"thought_signature":"s"}}`)}, "", map[string]string{"extra_content": `{"google":{"thought_signature":"s"}}`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, back := askTwice(t, agenttest.Stream(append(tc.events, callEvent(callJSON), finishEvent("tool_calls"), "[DONE]")...))
			if b := a.Blocks[0]; b.Kind != llm.BlockThinking || b.Text != tc.thought {
				t.Errorf("first block %+v, want the thought %q", b, tc.thought)
			}
			for _, field := range []string{"reasoning_content", "reasoning_details", "extra_content"} {
				if want, ok := tc.back[field]; ok {
					wantJSON(t, back[field], want)
				} else if back[field] != nil {
					t.Errorf("sent back %s = %v", field, back[field])
				}
			}
		})
	}
}

func TestSignaturesOfCallsAreGivenBack(t *testing.T) {
	_, back := askTwice(t, agenttest.Stream(
		callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s=="}}}`),
		callEvent(`{"index":1,"id":"b","function":{"name":"y","arguments":"not an object"},"thought_signature":"t"}`), finishEvent("tool_calls"), "[DONE]"))
	wantJSON(t, back["tool_calls"], `[
		{"id":"a","type":"function","function":{"name":"x","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s=="}}},
		{"id":"b","type":"function","function":{"name":"y","arguments":"{\"not_an_object\":\"not an object\"}"},"thought_signature":"t"}]`)
}

// fullStream returns a stream with events of all kinds. The answer must not depend on where the network cuts the
// stream.
func fullStream() agenttest.Response {
	return agenttest.Raw(": comment\n\n" + agenttest.Stream(
		`{"choices":[{"delta":{"role":"assistant","content":"","reasoning_content":"Dé"}}]}`,
		`{"choices":[{"delta":{"reasoning_content":"jà vu 🙂"}}]}`, textEvent("Grüße, "), textEvent("世界"),
		callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"p\":\"ü"}}`), callEvent(`{"index":0,"function":{"arguments":"\"}"}}`),
		callEvent(`{"index":0,"id":"b","function":{"name":"y","arguments":{"q":1}}}`), finishEvent("tool_calls"),
		`{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}`, "[DONE]").Parts[0].Bytes)
}

func TestSplitAnywhereIsTheSame(t *testing.T) {
	whole := fullStream()
	stream := whole.Parts[0].Bytes
	at := 0
	m := scriptedModel(t, agenttest.New(func(agenttest.Request) agenttest.Response {
		switch at {
		case 0:
			return whole
		case len(stream):
			return whole.Split(1)
		}
		return agenttest.Raw(stream[:at], stream[at:])
	}))
	var want *llm.Answer
	for at = range len(stream) + 1 {
		a, err := askOnce(t, m, helloRequest())
		if err != nil {
			t.Fatalf("split at %d: %v", at, err)
		}
		if at == 0 {
			want = a
		} else if !reflect.DeepEqual(a, want) {
			t.Fatalf("split at %d: answer %+v, want %+v", at, a, want)
		}
	}
	if len(want.Blocks) != 4 || want.Blocks[0].Text != "Déjà vu 🙂" || want.Blocks[1].Text != "Grüße, 世界" {
		t.Errorf("answer %+v", want)
	}
}
