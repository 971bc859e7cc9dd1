package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools/testrace"
)

func TestStops(t *testing.T) {
	cases := map[llm.Stop][]string{
		llm.StopWhole:    {"stop", "STOP", "end_turn", "eos", "COMPLETE"},
		llm.StopLength:   {"length", "MAX_TOKENS"},
		llm.StopWindow:   {"model_context_window_exceeded", "model_length"},
		llm.StopFiltered: {"content_filter", "sensitive", "SAFETY"},
		llm.StopBroken:   {"insufficient_system_resource", "network_error", "abort"},
		llm.StopLost:     {"tool_calls", "function_call", "tool_use"},
		llm.StopUnknown:  {"paused_by_moon"},
	}
	for want, reasons := range cases {
		for _, reason := range reasons {
			a := answerOf(t, agenttest.Stream(textEvent("half"), finishEvent(reason), finishEvent("stop"), "[DONE]"))
			if a.Stop != want || len(a.Blocks) != 1 || a.Blocks[0].Text != "half" {
				t.Errorf("%s: answer %+v, want the stop %q", reason, a, want)
			}
		}
	}
	_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Stream(finishEvent("model_context_window_exceeded"), "[DONE]")))), helloRequest())
	if e := wantFault(t, err); e.Fault != llm.Overflow {
		t.Errorf("a full window and no answer: %v", err)
	}
}

func wholeMessageEvent(said string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"message":{"role":"assistant","content":%q},"finish_reason":null}]}`, said)
}

func TestMessagesBesideDeltas(t *testing.T) {
	both := func(piece, all, end string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","content":%q},"message":{"role":"assistant","content":%q},"finish_reason":%s}]}`, piece, all, end)
	}
	const use = `"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]`
	cases := map[string]struct {
		events []string
		want   string
		uses   []string
	}{
		"Perplexity":                   {[]string{both("The", "The", "null"), both(" sky", "The sky", "null"), both("", "The sky", `"stop"`)}, "The sky", nil},
		"all of it at the end":         {[]string{textEvent("The "), textEvent("sky"), wholeMessageEvent("The sky"), finishEvent("stop")}, "The sky", nil},
		"nothing but messages":         {[]string{wholeMessageEvent("The sky"), finishEvent("stop")}, "The sky", nil},
		"messages that grow":           {[]string{wholeMessageEvent("The"), wholeMessageEvent("The sky"), wholeMessageEvent("The sky"), finishEvent("stop")}, "The sky", nil},
		"messages in pieces":           {[]string{wholeMessageEvent("The"), wholeMessageEvent(" sky"), finishEvent("stop")}, "The sky", nil},
		"calls only in the message":    {[]string{textEvent("hm"), `{"choices":[{"index":0,"delta":{},"message":{"content":"hm",` + use + `},"finish_reason":"tool_calls"}]}`}, "hm", []string{"x {} a"}},
		"calls in both":                {[]string{`{"choices":[{"index":0,"delta":{` + use + `},"message":{"content":"",` + use + `},"finish_reason":"tool_calls"}]}`}, "", []string{"x {} a"}},
		"thinking in both, and beside": {[]string{`{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"message":{"reasoning_content":"hm"}}]}`, textEvent("The sky"), finishEvent("stop")}, "hmThe sky", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := answerOf(t, agenttest.Stream(append(tc.events, "[DONE]")...))
			var got strings.Builder
			for _, b := range a.Blocks {
				got.WriteString(b.Text)
			}
			if got.String() != tc.want {
				t.Errorf("text %q, want %q", got.String(), tc.want)
			}
			wantUses(t, a, tc.uses...)
		})
	}
}

func TestThinkingInTheText(t *testing.T) {
	cases := []struct{ said, thought, text string }{
		{"<think>Let me see.</think>\n\nThe sky.", "Let me see.", "The sky."},
		{"\n<think>\nLet me <b>see</b> </thin.</think>The sky.", "Let me <b>see</b> </thin.", "The sky."},
		{"<think>\n\n</think>\n\nThe sky.", "", "The sky."},
		{"<thinking>Hm.</thinking> The sky.", "Hm.", "The sky."},
		{"<think>Never ends", "Never ends", ""},
		{"<think>Ends in </thi", "Ends in </thi", ""},
		{"<thin ice>", "", "<thin ice>"},
		{"<think", "", "<think"},
		{"  The sky. <think>is blue</think>", "", "  The sky. <think>is blue</think>"},
		{"a < b", "", "a < b"},
		{" \n", "", ""},
		{"<thought>Let me see.</thought>The sky.", "Let me see.", "The sky."},
		{"<seed:think>Let me see.</seed:think>\nThe sky.", "Let me see.", "The sky."},
		{"[THINK]Let me see.[/THINK]The sky.", "Let me see.", "The sky."},
		{"<|START_THINKING|>Let me see.<|END_THINKING|>The sky.", "Let me see.", "The sky."},
		// The model's template has written the opening tag.
		{"Let me see.\n</think>\n\nThe sky.", "Let me see.\n", "The sky."},
		{"Let me see. 1 < 2</think>The sky.", "Let me see. 1 < 2", "The sky."},
		{"\n</think>\n\nThe sky.", "\n", "The sky."},
		{"</think>The sky.", "", "The sky."},
		{"Is it `</think>` or not?</think>The sky.", "Is it `</think>` or not?", "The sky."},
		{"Only thought.</think>", "Only thought.", ""},
		{"A model ends its thoughts with `</think>`, or \"</think>\".", "", "A model ends its thoughts with `</think>`, or \"</think>\"."},
		{"So:\n```\nthought\n</think>\n```\nThat is it.", "", "So:\n```\nthought\n</think>\n```\nThat is it."},
		{"It ends in </thi", "", "It ends in </thi"},
		{"The template ends with </think>, then the reply.", "", "The template ends with </think>, then the reply."},
		{"A tag </think> may stand here.", "", "A tag </think> may stand here."},
		{"It is x</think>, y</think>) or z</think> there.", "", "It is x</think>, y</think>) or z</think> there."},
		{"Match `.*</think>` or `a </think>\n` first.", "", "Match `.*</think>` or `a </think>\n` first."},
		{"The tag is </think>", "", "The tag is </think>"},
		{"Let me see. </think>  \nThe sky.", "Let me see. ", "The sky."},
		{"Let me see.</think>**The** sky.", "Let me see.", "**The** sky."},
		{"Let me see.</think>“The” sky.", "Let me see.", "“The” sky."},
		// The channels of OpenAI's open models.
		{"<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>final<|message|>The sky.<|return|>", "Let me see.", "The sky."},
		{"<|start|>assistant<|channel|>analysis<|message|>1 <| 2<|end|><|start|>assistant<|channel|>final<|message|>The <sky>.", "1 <| 2", "The <sky>."},
		{"<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary<|message|>I look. <|end|><|start|>assistant<|channel|>final<|message|>The sky.", "Let me see.", "I look. The sky."},
		{"Let me see.<|end|><|start|>assistant<|channel|>final<|message|>The sky.<|return|>", "Let me see.", "The sky."},
		{"<|channel|>final<|message|>The sky.", "", "The sky."},
		{"<|channel|>analysis<|message|>Never ends <|e", "Never ends <|e", ""},
		{"<|channel|>analysis<|message|>Let me see.<|end|><|start|>assist", "Let me see.", ""},
	}
	for _, tc := range cases {
		for _, n := range []int{1, 3, 1000} {
			pieces := inPieces(tc.said, n)
			var events, of []string
			for _, p := range pieces {
				events = append(events, textEvent(p))
				of = append(of, piece(textDelta, "msg_1", 0, p))
			}
			wantThought(t, "chat completions", agenttest.Stream(append(events, finishEvent("stop"), "[DONE]")...), tc.said, n, tc.thought, tc.text)
			ended := completedEvent(`{"id":"msg_1","type":"message","content":[{"type":"output_text","text":` + quoted(tc.said) + `}]}`)
			wantThought(t, "responses", agenttest.Raw(namedEvents(append(of, ended)...)), tc.said, n, tc.thought, tc.text, useResponses)
		}
	}
	a := answerOf(t, agenttest.Raw(`{"choices":[{"message":{"content":"<think>Hm.</think>The sky."},"finish_reason":"stop"}]}`))
	if len(a.Blocks) != 2 || a.Blocks[0].Kind != llm.BlockThinking || a.Blocks[1].Text != "The sky." {
		t.Errorf("in an answer that is no stream: %+v", a.Blocks)
	}
}

// inPieces cuts a text into pieces of n characters.
func inPieces(text string, n int) (pieces []string) {
	for part := range slices.Chunk([]rune(text), n) {
		pieces = append(pieces, string(part))
	}
	return pieces
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// wantThought asks three times, because a model's first two answers teach its habit, and checks the thinking and the
// text.
func wantThought(t *testing.T, protocol string, r agenttest.Response, whole string, n int, thought, text string, change ...func(*openai.Config)) {
	t.Helper()
	m := scriptedModel(t, agenttest.New(agenttest.Always(r)), change...)
	for time := range 3 {
		a, err := askOnce(t, m, helloRequest())
		if err != nil {
			t.Fatal(err)
		}
		gotThought, got := "", ""
		for _, b := range a.Blocks {
			if b.Kind == llm.BlockThinking {
				gotThought += b.Text
			} else {
				got += b.Text
			}
		}
		// White space before thinking is dropped once the model is known to begin with thinking.
		if strings.TrimLeft(gotThought, "\n") != strings.TrimLeft(thought, "\n") || got != text || len(a.Blocks) > 2 || a.Stop != llm.StopWhole {
			t.Errorf("%s, %q in pieces of %d, time %d: thought %q, said %q (%s); want %q, %q", protocol, whole, n, time+1, gotThought, got, a.Stop, thought, text)
		}
	}
}

// Once a model is known to begin with thinking without an opening tag, its first words are not shown as text. If it
// answers at once, they are emitted again as text.
func TestThinkingWithoutItsBeginningIsLearned(t *testing.T) {
	bare := agenttest.Stream(textEvent("Let me "), textEvent("see.</think>The "), textEvent("sky."), finishEvent("stop"), "[DONE]")
	plain := agenttest.Stream(textEvent("The "), textEvent("sea."), finishEvent("stop"), "[DONE]")
	called := agenttest.Stream(textEvent("I shall look."), callEvent(callJSON), finishEvent("tool_calls"), "[DONE]")
	apart := agenttest.Stream(`{"choices":[{"delta":{"reasoning_content":"Hm."}}]}`, textEvent("The sun."), finishEvent("stop"), "[DONE]")
	m := scriptedModel(t, agenttest.New(agenttest.Sequence(bare, plain, bare, bare, bare, called, apart, plain, plain)))
	for i, want := range []string{
		"text Let me |text see.|void|thinking Let me see.|text The |text sky.",
		"text The |text sea.",
		"text Let me |text see.|void|thinking Let me see.|text The |text sky.",
		"text Let me |text see.|void|thinking Let me see.|text The |text sky.",
		"thinking Let me |thinking see.|text The |text sky.",
		"thinking I shall look.|tool_use x|tool_use {}",
		"thinking Hm.|text The sun.",
		"thinking The |thinking sea.|void|text The sea.",
		"text The |text sea.",
	} {
		var got []string
		a, err := m.Generate(t.Context(), helloRequest(), func(d llm.Delta) {
			if d.Void {
				got = append(got, "void")
			} else {
				got = append(got, string(d.Kind)+" "+d.Text+d.Name)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		// The first piece of the thinking after a bare end is emitted with what came before it.
		seen := strings.Join(got, "|")
		seen = strings.Replace(seen, "text Let me |void|thinking Let me |thinking see.", "text Let me |text see.|void|thinking Let me see.", 1)
		if seen != want {
			t.Errorf("answer %d was seen as %q, want %q; it is %+v", i+1, seen, want, a.Blocks)
		}
	}
}

// A tool call that its server has sent as text is lost, and the model is asked again.
func TestACallInAChannelIsLost(t *testing.T) {
	raw := `<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.x <|constrain|>json<|message|>{\"n\":1}<|call|>`
	a := answerOf(t, agenttest.Stream(`{"choices":[{"delta":{"content":"`+raw+`"}}]}`, finishEvent("stop"), "[DONE]"))
	if a.Stop != llm.StopLost || len(a.Blocks) != 1 || a.Blocks[0].Kind != llm.BlockThinking {
		t.Errorf("answer %+v", a)
	}
}

func TestReasoningThatIsCountedApart(t *testing.T) {
	usage := func(u string) []string {
		return []string{textEvent("hi"), finishEvent("stop"), `{"choices":[],"usage":` + u + `}`, "[DONE]"}
	}
	cases := map[string]struct {
		usage string
		want  int64
	}{
		"xAI":             {`{"prompt_tokens":10,"completion_tokens":25,"total_tokens":89,"completion_tokens_details":{"reasoning_tokens":54}}`, 79},
		"OpenAI":          {`{"prompt_tokens":10,"completion_tokens":79,"total_tokens":89,"completion_tokens_details":{"reasoning_tokens":54}}`, 79},
		"without a sum":   {`{"prompt_tokens":10,"completion_tokens":25,"completion_tokens_details":{"reasoning_tokens":54}}`, 79},
		"part of it":      {`{"prompt_tokens":10,"completion_tokens":79,"completion_tokens_details":{"reasoning_tokens":54}}`, 79},
		"only in the sum": {`{"prompt_tokens":10,"completion_tokens":25,"total_tokens":89}`, 79},
		"a sum too small": {`{"prompt_tokens":10,"completion_tokens":25,"total_tokens":3}`, 25},
	}
	for name, tc := range cases {
		if a := answerOf(t, agenttest.Stream(usage(tc.usage)...)); a.Usage.Output != tc.want || a.Usage.Input != 10 {
			t.Errorf("%s: usage %+v, want %d", name, a.Usage, tc.want)
		}
	}
}

func TestCallsThatAreHardToTellApart(t *testing.T) {
	cases := map[string]struct {
		events []string
		want   []string
	}{
		"no ids, no arguments, side by side": {[]string{callEvent(`{"function":{"name":"x"}},{"function":{"name":"y","arguments":""}}`)}, []string{"x {}", "y {}"}},
		"no ids, the same name side by side": {[]string{callEvent(`{"function":{"name":"x","arguments":""}},{"function":{"name":"x","arguments":""}}`)}, []string{"x {}", "x {}"}},
		"no ids, no arguments":               {[]string{callEvent(`{"function":{"name":"x"}}`), callEvent(`{"function":{"name":"y"}}`)}, []string{"x {}", "y {}"}},
		"one index, no ids":                  {[]string{callEvent(`{"index":0,"function":{"name":"x","arguments":""}}`), callEvent(`{"index":0,"function":{"name":"y","arguments":""}}`)}, []string{"x {}", "y {}"}},
		"one id, no index":                   {[]string{callEvent(`{"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`), callEvent(`{"id":"a","function":{"name":"y","arguments":"{\"n\":2}"}}`)}, []string{`x {"n":1} a`, `y {"n":2}`}},
		"one id, one name":                   {[]string{callEvent(`{"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`), callEvent(`{"id":"a","function":{"name":"x","arguments":"{\"n\":2}"}}`)}, []string{`x {"n":1} a`, `x {"n":2}`}},
		"one id, one index":                  {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`), callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":2}"}}`)}, []string{`x {"n":1} a`, `x {"n":2}`}},
		"said twice":                         {[]string{callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`), callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`)}, []string{`x {"n":1} a`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			wantUses(t, answerOf(t, agenttest.Stream(append(tc.events, finishEvent("tool_calls"), "[DONE]")...)), tc.want...)
		})
	}
}

// A block that watchers have seen end does not continue under its number.
func TestNoBlockIsBegunTwice(t *testing.T) {
	think := `{"choices":[{"delta":{"reasoning_content":"hm "}}]}`
	s := agenttest.New(agenttest.Always(agenttest.Stream(think, textEvent("one "), think, textEvent("two"), callEvent(callJSON), textEvent("\n"), textEvent("three"),
		callEvent(`{"index":1,"id":"b","function":{"name":"y","arguments":"{}"}}`), think, finishEvent("tool_calls"), "[DONE]")))
	last, left := -1, map[int]bool{}
	a, err := scriptedModel(t, s).Generate(t.Context(), helloRequest(), func(d llm.Delta) {
		if d.Block != last {
			left[last] = true
			if left[d.Block] {
				t.Errorf("block %d is begun again", d.Block)
			}
			last = d.Block
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range a.Blocks {
		got = append(got, string(b.Kind)+" "+b.Text+b.Name)
	}
	if want := "thinking hm hm hm |text one two|tool_use x|text three|tool_use y"; strings.Join(got, "|") != want {
		t.Errorf("blocks %q, want %q", strings.Join(got, "|"), want)
	}
}

// endlessStream repeats an event forever, or at least for longer than any client reads.
func endlessStream(event string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := []byte(strings.Repeat("data: "+event+"\n\n", 1+(64<<10)/len(event)))
		for range 1 << 20 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
}

func TestMain(m *testing.M) { os.Exit(testrace.Run(m.Run)) }

func TestAHostileStreamIsBounded(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	big := strings.Repeat("n", 100_000)
	cases := map[string]struct{ event, want string }{
		"reasoning details": {`{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"` + big + `"}]}}]}`, "reasoning details"},
		"many details":      {`{"choices":[{"delta":{"reasoning_details":[` + strings.Repeat(`{"type":"x"},`, 100) + `{}]}}]}`, "reasoning details"},
		"tool names":        {callEvent(`{"index":0,"id":"a","function":{"name":"` + big + `"}}`), "a tool's name"},
		"tool calls":        {callEvent(`{"function":{"name":"x","arguments":"{}"}}`), "more than 128 tool calls"},
		"calls in one go":   {callEvent(strings.Repeat(`{},`, 100_000) + `{}`), "more than 128 tool calls"},
		"ids":               {callEvent(`{"index":0,"function":{"arguments":"` + big + `"}}`), "does not end"},
		"nothing at all":    {`{"choices":[],"pad":"` + big + `"}`, "does not end"},
		"remarks":           {"\n\n: " + big, "does not end"},
		"choices":           {`{"choices":[` + strings.Repeat(`{},`, 1_000_000) + `{}]}`, "choices"},
		"parts":             {`{"choices":[{"delta":{"content":[` + strings.Repeat(`"",`, 1_000_000) + `""]}}]}`, "garbled"},
		"parts within":      {`{"choices":[{"delta":{"content":` + strings.Repeat(`[`, 5000) + `"` + big + `"` + strings.Repeat(`]`, 5000) + `}}]}`, "garbled"},
		"a line":            {big + big, "garbled"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := askOnce(t, modelAtHandler(t, endlessStream(tc.event)), helloRequest())
			runtime.ReadMemStats(&after)
			if e := wantFault(t, err); e.Fault != llm.Busy || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 256<<20 {
				t.Errorf("the heap has grown by %d MB", grown>>20)
			}
		})
	}
}

// A character of two UTF-16 halves may be cut between two events, in text, thinking and arguments, in either protocol.
// A single half becomes a replacement character.
func TestACharacterCutBetweenEvents(t *testing.T) {
	event := func(delta string) string { return `{"choices":[{"index":0,"delta":{` + delta + `}}]}` }
	a := answerOf(t, agenttest.Stream(
		event(`"reasoning_content":"hm \ud83e"`), event(`"reasoning_content":"\uDD9C"`),
		event(`"content":"a \uD83E"`), event(`"content":"\udd9c b 🦜 \\ud83e"`), event(`"content":""`), event(`"content":"\ud83e\udd9c\ud83e"`), event(`"content":"c\udd9c d\ud83e"`),
		callEvent(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"p\":\"\ud83e"}}`), callEvent(`{"index":0,"function":{"arguments":"\udd9c\"}"}}`),
		finishEvent("tool_calls"), "[DONE]"))
	// The half at the end of the text is alone: the call follows.
	if got := a.Blocks[0].Text; got != "hm 🦜" {
		t.Errorf("thought %q", got)
	}
	var said strings.Builder
	for _, b := range a.Blocks[1:] {
		said.WriteString(b.Text)
	}
	if want := "a 🦜 b 🦜 \\ud83e🦜\uFFFDc\uFFFD d\uFFFD"; said.String() != want {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	wantUses(t, a, `x {"p":"🦜"} a`)

	text := func(delta string) string {
		return `{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"delta":"` + delta + `"}`
	}
	args := func(delta string) string {
		return `{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":1,"delta":"` + delta + `"}`
	}
	r := agenttest.Raw(namedEvents(
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":2,"delta":"hm \ud83e"}`, `{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":2,"delta":"\udd9c"}`,
		text(`a \ud83e`), text(`\udd9c b`), itemDoneEvent(0, `{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"a 🦜 b"}]}`),
		itemAddedEvent(1, `{"id":"fc_1","type":"function_call","call_id":"a","name":"x","arguments":""}`), args(`{\"p\":\"\ud83e`), args(`\udd9c\"}`), completedEvent("")))
	a, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(r)), useResponses), helloRequest())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Blocks) != 3 || a.Blocks[0].Text != "hm 🦜" || a.Blocks[1].Text != "a 🦜 b" {
		t.Errorf("over the Responses API: %+v", a.Blocks)
	}
	wantUses(t, a, `x {"p":"🦜"} a`)
}

// The texts of pieces may be any form of JSON, and data after a complete answer doesn't damage it.
func TestPiecesInEveryForm(t *testing.T) {
	var said []string
	for _, text := range []string{`plain`, `with \"quotes\" and \\ and \n`, `ü 🦜`, `\u00fc \ud83e\udd9c`, ``, "cut \xff", `long ` + strings.Repeat("x", 5000)} {
		said = append(said, `{"choices":[{"index":1,"delta":{"content":"another's"}},{"index":0,"delta":{"content":"`+text+`","refusal":""},"finish_reason":null}],"usage":null}`)
	}
	said = append(said, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}`)
	want := "plainwith \"quotes\" and \\ and \nü 🦜ü 🦜cut \uFFFDlong " + strings.Repeat("x", 5000)
	for name, end := range map[string][]string{"[DONE]": {"[DONE]"}, "nothing": nil, "garbage": {`{"choices":[{`}} {
		a := answerOf(t, agenttest.Stream(append(slices.Clone(said), end...)...))
		if got := a.Blocks[0].Text; got != want || a.Stop != llm.StopWhole || a.Usage.Output != 9 {
			t.Errorf("%s: %q, %v, %+v", name, got, a.Stop, a.Usage)
		}
	}
}
