package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
)

// useResponses configures the Responses API.
func useResponses(c *openai.Config) { c.API = openai.APIResponses }

// namedEvents returns events of the Responses API as its servers write them, each with its name.
func namedEvents(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		_, name, _ := strings.Cut(e, `"type":"`)
		name, _, _ = strings.Cut(name, `"`)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, e)
	}
	return b.String()
}

// Events of the Responses API.
const (
	itemAdded = "response.output_item.added"
	itemDone  = "response.output_item.done"
	textDelta = "response.output_text.delta"
	argsDelta = "response.function_call_arguments.delta"
	sumDelta  = "response.reasoning_summary_text.delta"
)

func itemAddedEvent(at int, item string) string {
	return fmt.Sprintf(`{"type":%q,"output_index":%d,"item":%s}`, itemAdded, at, item)
}

func itemDoneEvent(at int, item string) string {
	return fmt.Sprintf(`{"type":%q,"output_index":%d,"item":%s}`, itemDone, at, item)
}

func piece(kind, id string, at int, delta string) string {
	return fmt.Sprintf(`{"type":%q,"item_id":%q,"output_index":%d,"delta":%q}`, kind, id, at, delta)
}

func completedEvent(output string) string {
	return `{"type":"response.completed","response":{"object":"response","status":"completed","output":[` + output + `],` + usedTokens + `}}`
}

const (
	usedTokens  = `"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":14}`
	chatTokens  = `"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2},"total_tokens":14}`
	itemThought = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Let me see."}],"encrypted_content":"secret=="}`
	itemSaid    = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]}`
	itemRead    = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"read","arguments":"{\"p\":1}"}`
	itemList    = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"list","arguments":"{}"}`
)

// openAIEvents returns the answer of these tests as OpenAI streams it in the Responses API.
func openAIEvents() []string {
	return []string{
		`{"type":"response.created","response":{"status":"in_progress","output":[]}}`, `{"type":"response.in_progress","response":{"status":"in_progress","output":[]}}`,
		itemAddedEvent(0, `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"sec"}`),
		piece(sumDelta, "rs_1", 0, "Let me "), piece(sumDelta, "rs_1", 0, "see."), itemDoneEvent(0, itemThought),
		itemAddedEvent(1, `{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`),
		`{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":""}}`,
		piece(textDelta, "msg_1", 1, "I "), piece(textDelta, "msg_1", 1, "look."),
		`{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"I look."}`, itemDoneEvent(1, itemSaid),
		itemAddedEvent(2, `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"read","arguments":""}`),
		itemAddedEvent(3, `{"id":"fc_2","type":"function_call","call_id":"call_2","name":"list","arguments":""}`),
		piece(argsDelta, "fc_1", 2, `{"p"`), piece(argsDelta, "fc_2", 3, `{}`), piece(argsDelta, "fc_1", 2, `:1}`),
		`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"p\":1}"}`,
		itemDoneEvent(2, itemRead), itemDoneEvent(3, itemList), completedEvent(itemThought + "," + itemSaid + "," + itemRead + "," + itemList),
	}
}

// Whatever protocol and variant a server speaks, the same answer gives the same blocks, usage and end.
func TestEveryDialectGivesTheSameBlocks(t *testing.T) {
	chat := func(events ...string) string { return agenttest.Stream(append(events, "[DONE]")...).Parts[0].Bytes }
	thought := `{"choices":[{"index":0,"delta":{"reasoning_content":"Let me see."}}]}`
	use := func(index, id, name, args string) string {
		return callEvent(fmt.Sprintf(`{%s%s"type":"function","function":{"name":%q,"arguments":%q}}`, index, id, name, args))
	}
	counted := `{"choices":[],` + chatTokens + `}`
	spread := []string{
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"read","arguments":""}},{"index":1,"id":"call_2","function":{"name":"list","arguments":""}}]}}]}`,
		callEvent(`{"index":1,"function":{"arguments":"{}"}}`), callEvent(`{"index":0,"function":{"arguments":"{\"p\":"}}`), callEvent(`{"index":0,"function":{"arguments":"1}"}}`),
	}
	responses := namedEvents(openAIEvents()...)
	cases := map[string]struct {
		api    openai.API
		stream string
		noIDs  bool
	}{
		"OpenAI":                          {stream: chat(append([]string{thought, textEvent("I "), textEvent("look.")}, append(spread, finishEvent("tool_calls"), counted)...)...)},
		"Azure, empty choices first":      {stream: chat(append([]string{`{"choices":[],"prompt_filter_results":[{}]}`, thought, textEvent("I look.")}, append(spread, finishEvent("tool_calls"), counted)...)...)},
		"Anthropic, from 1":               {stream: chat(thought, textEvent("I look."), use(`"index":1,`, `"id":"call_1",`, "read", `{"p":1}`), use(`"index":2,`, `"id":"call_2",`, "list", ""), finishEvent("tool_calls"), counted)},
		"Ollama, one index":               {stream: chat(thought, textEvent("I look."), use(`"index":0,`, `"id":"call_1",`, "read", `{"p":1}`), use(`"index":0,`, `"id":"call_2",`, "list", "{}"), finishEvent("tool_calls"), counted)},
		"Mistral, no index, parts":        {stream: chat(`{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me see."}]}]}}]}`, `{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"I look."}]}}]}`, use("", `"id":"call_1",`, "read", `{"p":1}`), use("", `"id":"call_2",`, "list", "{}"), finishEvent("tool_calls"), counted)},
		"Gemini, no ids":                  {stream: chat(thought, textEvent("I look."), use(`"index":0,`, `"id":"",`, "read", `{"p":1}`), use(`"index":0,`, `"id":"",`, "list", "{}"), finishEvent("stop"), counted), noIDs: true},
		"DeepSeek, beside the end":        {stream: chat(thought, textEvent("I look."), use(`"index":0,`, `"id":"call_1",`, "read", `{"p":1}`), use(`"index":1,`, `"id":"call_2",`, "list", "{}"), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],`+chatTokens+`}`)},
		"Groq":                            {stream: chat(`{"choices":[{"index":0,"delta":{"reasoning":"Let me see."}}]}`, textEvent("I look."), use(`"index":0,`, `"id":"call_1",`, "read", `{"p":1}`), use(`"index":1,`, `"id":"call_2",`, "list", "{}"), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"x_groq":{`+chatTokens+`}}`)},
		"OpenRouter, comments":            {stream: ": OPENROUTER PROCESSING\n\n" + chat(thought, textEvent("I look."), use(`"index":0,`, `"id":"call_1",`, "read", `{"p":1}`), use(`"index":1,`, `"id":"call_2",`, "list", "{}"), finishEvent("tool_calls"), finishEvent("tool_calls"), counted)},
		"Snowflake, no reason":            {stream: chat(thought, textEvent("I look."), use(`"index":0,`, `"id":"call_1",`, "read", `{"p":1}`), use(`"index":1,`, `"id":"call_2",`, "list", "{}"), counted)},
		"a local model, tags":             {stream: chat(textEvent("<think>Let me"), textEvent(" see.</think>\n\nI look."), use(`"index":0,`, `"id":"call_1",`, "read", `{"p":1}`), use(`"index":1,`, `"id":"call_2",`, "list", "{}"), finishEvent("tool_calls"), counted)},
		"arguments as objects":            {stream: chat(thought, textEvent("I look."), callEvent(`{"index":0,"id":"call_1","function":{"name":"read","arguments":{"p":1}}},{"index":1,"id":"call_2","function":{"name":"list","arguments":null}}`), finishEvent("tool_calls"), counted)},
		"no stream":                       {stream: `{"choices":[{"message":{"reasoning_content":"Let me see.","content":"I look.","tool_calls":[{"id":"call_1","function":{"name":"read","arguments":"{\"p\":1}"}},{"id":"call_2","function":{"name":"list","arguments":"{}"}}]},"finish_reason":"tool_calls"}],` + chatTokens + `}`},
		"Responses":                       {api: openai.APIResponses, stream: responses},
		"Responses, then [DONE]":          {api: openai.APIResponses, stream: responses + "data: [DONE]\n\n"},
		"Responses, no names of events":   {api: openai.APIResponses, stream: agenttest.Stream(openAIEvents()...).Parts[0].Bytes},
		"Responses, no stream":            {api: openai.APIResponses, stream: `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[` + itemThought + "," + itemSaid + "," + itemRead + "," + itemList + `],` + usedTokens + `}`},
		"Responses, all at the end":       {api: openai.APIResponses, stream: namedEvents(openAIEvents()[0], completedEvent(itemThought+","+itemSaid+","+itemRead+","+itemList))},
		"Responses, nothing at the end":   {api: openai.APIResponses, stream: namedEvents(append(openAIEvents()[:len(openAIEvents())-1], completedEvent(""))...)},
		"Responses, whole items":          {api: openai.APIResponses, stream: namedEvents(itemDoneEvent(0, itemThought), itemDoneEvent(1, itemSaid), itemDoneEvent(2, itemRead), itemDoneEvent(3, itemList), completedEvent(""))},
		"Responses, whole, one index":     {api: openai.APIResponses, stream: namedEvents(itemDoneEvent(0, itemThought), itemDoneEvent(0, itemSaid), itemDoneEvent(0, itemRead), itemDoneEvent(0, itemList), completedEvent(""))},
		"Responses, said twice":           {api: openai.APIResponses, stream: namedEvents(append([]string{itemDoneEvent(0, itemThought), itemDoneEvent(0, itemThought), itemDoneEvent(1, itemSaid), itemDoneEvent(1, itemSaid), itemDoneEvent(2, itemRead), itemDoneEvent(2, itemRead)}, itemDoneEvent(3, itemList), completedEvent(itemThought+","+itemSaid+","+itemRead+","+itemList))...)},
		"Responses, one index":            {api: openai.APIResponses, stream: namedEvents(renumbered(`"output_index":%d`, func(int) int { return 0 })...)},
		"Responses, no indexes":           {api: openai.APIResponses, stream: strings.NewReplacer(`"output_index":0,`, "", `"output_index":1,`, "", `"output_index":2,`, "", `"output_index":3,`, "").Replace(responses)},
		"Responses, ids that change":      {api: openai.APIResponses, stream: namedEvents(changingIDs(openAIEvents())...)},
		"Responses, nothing is announced": {api: openai.APIResponses, stream: namedEvents(piece(sumDelta, "rs_1", 0, "Let me see."), piece(textDelta, "msg_1", 0, "I look."), itemDoneEvent(0, itemRead), itemDoneEvent(0, itemList), completedEvent(itemThought+","+itemSaid+","+itemRead+","+itemList))},
		"Responses, tags in the text":     {api: openai.APIResponses, stream: namedEvents(piece(textDelta, "msg_1", 0, "<think>Let me"), piece(textDelta, "msg_1", 0, " see.</think>\n\nI look."), itemDoneEvent(1, itemRead), itemDoneEvent(2, itemList), completedEvent(""))},
		"Responses, reasoning twice":      {api: openai.APIResponses, stream: namedEvents(append([]string{piece("response.reasoning_text.delta", "rs_1", 0, "Let me see."), piece(sumDelta, "rs_1", 0, "I am thinking")}, openAIEvents()[5:]...)...)},
		"Responses, other call ids":       {api: openai.APIResponses, stream: namedEvents(append(openAIEvents()[:len(openAIEvents())-1], completedEvent(strings.ReplaceAll(itemRead, "call_1", "call_8")+","+strings.ReplaceAll(itemList, "call_2", "call_9")))...)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Raw(tc.stream))), func(c *openai.Config) { c.API = tc.api })
			var said strings.Builder
			a, err := m.Generate(t.Context(), helloRequest(), func(d llm.Delta) {
				if d.Kind == llm.BlockText {
					said.WriteString(d.Text)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range a.Blocks {
				got = append(got, fmt.Sprintf("%s %s%s%s", b.Kind, b.Text, b.Name, b.Args))
			}
			if want := `thinking Let me see.|text I look.|tool_use read{"p":1}|tool_use list{}`; strings.Join(got, "|") != want {
				t.Fatalf("blocks %q, want %q", strings.Join(got, "|"), want)
			}
			if ids := a.Blocks[2].ProviderID + " " + a.Blocks[3].ProviderID; !tc.noIDs && ids != "call_1 call_2" || tc.noIDs && ids != " " {
				t.Errorf("ids of the calls %q", ids)
			}
			if want := (llm.Usage{Input: 9, Cached: 4, Output: 5, Reasoning: 2}); a.Usage != want && strings.Contains(tc.stream, "usage") {
				t.Errorf("usage %+v, want %+v", a.Usage, want)
			}
			if a.Stop != llm.StopWhole || a.Reason != "" || said.String() != "I look." {
				t.Errorf("it ended by %q (%s), and watchers saw %q", a.Stop, a.Reason, said.String())
			}
		})
	}
}

// Calls with the same id are separate calls.
func TestResponsesCallsOfOneID(t *testing.T) {
	second := strings.NewReplacer("fc_2", "fc_1", "call_2", "call_1").Replace(itemList)
	announced := func(at int, item string) string {
		return itemAddedEvent(at, strings.NewReplacer(`"arguments":"{\"p\":1}"`, `"arguments":""`, `"arguments":"{}"`, `"arguments":""`).Replace(item))
	}
	for name, events := range map[string][]string{
		"in turn":   {announced(0, itemRead), piece(argsDelta, "fc_1", 0, `{"p":1}`), itemDoneEvent(0, itemRead), announced(1, second), piece(argsDelta, "fc_1", 1, `{}`), itemDoneEvent(1, second), completedEvent("")},
		"at once":   {itemDoneEvent(0, itemRead), itemDoneEvent(1, second), completedEvent(itemRead + "," + second)},
		"in parts":  {announced(0, itemRead), piece(argsDelta, "fc_1", 0, `{"p":`), piece(argsDelta, "fc_1", 0, `1}`), announced(0, second), piece(argsDelta, "fc_1", 0, `{}`), completedEvent("")},
		"no ids":    {announced(0, strings.NewReplacer("fc_1", "", "call_1", "").Replace(itemRead)), piece(argsDelta, "", 0, `{"p":1}`), announced(0, strings.NewReplacer("fc_1", "", "call_1", "").Replace(second)), piece(argsDelta, "", 0, `{}`), completedEvent("")},
		"in a list": {completedEvent(itemRead + "," + second)},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Raw(namedEvents(events...)))), useResponses), helloRequest())
			if err != nil {
				t.Fatal(err)
			}
			id := " call_1"
			if name == "no ids" {
				id = ""
			}
			wantUses(t, a, `read {"p":1}`+id, `list {}`)
		})
	}
}

// renumbered returns the answer with other indexes of its items.
func renumbered(format string, to func(int) int) []string {
	events := openAIEvents()
	for i, e := range events {
		for at := range 4 {
			e = strings.ReplaceAll(e, fmt.Sprintf(format, at), fmt.Sprintf(format, to(at)))
		}
		events[i] = e
	}
	return events
}

// changingIDs gives an item another id in each event, as some gateways do.
func changingIDs(events []string) []string {
	for i, e := range events {
		for _, id := range []string{"rs_1", "msg_1", "fc_1", "fc_2"} {
			e = strings.ReplaceAll(e, `"`+id+`"`, fmt.Sprintf(`"%s_%d"`, id, i))
		}
		events[i] = e
	}
	return events
}
