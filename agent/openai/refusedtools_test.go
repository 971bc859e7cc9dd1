package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools"
)

// requestWithTools returns a request with these tools, after a call of the first.
func requestWithTools(names ...string) *llm.Request {
	r := toolRequest()
	r.Tools = nil
	for _, name := range names {
		r.Tools = append(r.Tools, tools.Spec{Name: name, Description: "does " + name, Schema: json.RawMessage(`{"type":"object","properties":{}}`)})
	}
	return r
}

// Tools are fitted to a strict provider's known limits before they are sent, or after a refusal states the limits. No
// tool is lost.
func TestToolsAreFitted(t *testing.T) {
	for name, c := range map[string]struct {
		address, path string
		asked         int
	}{
		"OpenAI":           {"https://api.openai.com/v1", "/chat/completions", 1},
		"the Responses":    {"https://api.openai.com/v1", "/responses", 1},
		"an unknown proxy": {"http://proxy.example/v1", "/chat/completions", 2},
	} {
		s := agenttest.New(agenttest.RequireFit(func(r agenttest.Request) agenttest.Response {
			if c.path == "/responses" {
				return agenttest.Stream(`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"fine"}]}}`,
					`{"type":"response.completed","response":{"output":[],"usage":{"input_tokens":1,"output_tokens":1}}}`)
			}
			return agenttest.Reply("fine")
		}))
		m := modelAtAddress(t, strings.Replace(c.address, "https", "http", 1), s, func(cfg *openai.Config) {
			if c.path == "/responses" {
				cfg.API = openai.APIResponses
			}
		})
		r := requestWithTools("choice", "list", "x")
		r.Tools[0].Schema = json.RawMessage(`{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`)
		r.Tools[1].Schema = json.RawMessage(`{"type":"object","properties":{"all":{"type":"array"}}}`)
		r.Tools[2].Description = strings.Repeat("It does x. ", 200)
		for range 2 {
			if _, err := askOnce(t, m, r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if s.Asked() != c.asked+1 || len(m.LeftTools()) > 0 {
			t.Errorf("%s was asked %d times, want %d; left out are %v", name, s.Asked(), c.asked+1, m.LeftTools())
		}
		offered := s.Requests()[s.Asked()-1].Offered()
		if len(offered) != 3 || !strings.HasSuffix(offered[0].Description, "one of these sets of arguments: a; b.") || !strings.Contains(offered[2].Description, "more characters are left out]") {
			t.Errorf("%s is offered %+v", name, offered)
		}
		if first := s.Requests()[s.Asked()-2]; string(first.Body) != string(s.Requests()[s.Asked()-1].Body) {
			t.Errorf("%s: the same request is another the next time", name)
		}
	}
}

// A tool that a provider refuses in any words is left out, and the model is told that it is missing. All other tools
// stay.
func TestARefusedToolCostsOnlyItself(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		words  string
	}{
		"OpenAI's place":   {400, `{"error":{"message":"Invalid 'tools[{index}].function.name': string does not match pattern.","type":"invalid_request_error","param":"tools[{index}].function.name","code":"invalid_value"}}`},
		"OpenAI's name":    {400, `{"error":{"message":"Invalid schema for function '{name}': In context=('properties', 'a'), 'x' is not valid.","type":"invalid_request_error","param":null,"code":"invalid_function_parameters"}}`},
		"its Responses":    {400, `{"error":{"message":"Invalid schema.","type":"invalid_request_error","param":"tools[{index}].parameters","code":"invalid_function_parameters"}}`},
		"Anthropic":        {400, `{"type":"error","error":{"type":"invalid_request_error","message":"tools.{index}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"}}`},
		"by OpenRouter":    {400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"tools.{index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level\"}}","provider_name":"Anthropic"}}}`},
		"by LiteLLM":       {400, `{"error":{"message":"litellm.BadRequestError: AnthropicException - b'{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"tools.{index}.custom.input_schema: Field required\"}}'","type":"None","param":"None","code":"400"}}`},
		"Gemini":           {400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"exclusiveMinimum\" at 'tools[0].function_declarations[{index}].parameters.properties[0].value': Cannot find field.","status":"INVALID_ARGUMENT"}}]`},
		"Gemini's request": {400, `{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[{index}].parameters.properties[q].items: missing field.\n","status":"INVALID_ARGUMENT"}}`},
		"Pydantic":         {422, `{"detail":[{"type":"value_error","loc":["body","tools",{index},"function","parameters"],"msg":"Value error","input":{}}]}`},
		"vLLM":             {400, `{"object":"error","message":"[{'type': 'string_type', 'loc': ('body', 'tools', {index}, 'function', 'description'), 'msg': 'Input should be a valid string'}]","type":"BadRequestError","param":null,"code":400}`},
		"Bedrock":          {400, `{"message":"1 validation error detected: Value at 'toolConfig.tools.{after}.member.toolSpec.name' failed to satisfy constraint"}`},
		"Bedrock's JSON":   {400, `{"message":"The value at toolConfig.tools.{index}.toolSpec.inputSchema.json.type must be one of the following: object."}`},
		"Groq":             {400, `{"error":{"message":"invalid JSON schema for tool {name}, tools[{index}].function.parameters: ` + "`/properties/a`" + `: does not validate","type":"invalid_request_error"}}`},
		"a longer bound":   {400, `{"error":{"message":"Invalid 'tools[{index}].function.description': too long, at most 50 characters","param":"tools[{index}].function.description"}}`},
	} {
		s := agenttest.New(agenttest.RefuseTools(c.status, c.words, func(t agenttest.Tool) bool { return strings.Contains(t.Name, "bad") }, agenttest.Always(agenttest.Reply("fine"))))
		m, _, logged := modelWithLog(t, s)
		r := requestWithTools("a__bad", "a__good", "message", "z__bad")
		for range 2 {
			if _, err := askOnce(t, m, r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		third, fourth := s.Requests()[s.Asked()-2], s.Requests()[s.Asked()-1]
		if s.Asked() != 4 || fmt.Sprint(third.Tools()) != "[a__good message]" || string(third.Body) != string(fourth.Body) {
			t.Errorf("%s was asked %d times, at last with %v", name, s.Asked(), fourth.Tools())
		}
		if system := fourth.Messages()[0].Content; !strings.Contains(system, "you do not have them now: a__bad, z__bad.") {
			t.Errorf("%s: the model reads %q", name, system)
		}
		if left := m.LeftTools(); len(left) != 2 || left[0].Name != "a__bad" || !strings.Contains(left[0].Why, "refuses it") || strings.Count(logged.String(), "without some tools") != 2 || !strings.Contains(logged.String(), "tools=[z__bad]") {
			t.Errorf("%s: left out are %v; logged %q", name, left, logged)
		}
		changed := requestWithTools("a__bad", "a__good", "message")
		changed.Tools[0].Name, changed.Tools[0].Description = "a__bad", "is mended"
		asked := s.Asked()
		if _, err := askOnce(t, m, changed); err != nil || s.Asked() != asked+2 { // tried, and refused once more
			t.Errorf("%s: after it changed it was asked %d times (%v)", name, s.Asked()-asked, err)
		}
	}
}

// A refusal for another reason leaves out no tool, even one whose name the refusal has.
func TestOtherRefusalsTakeNoToolAway(t *testing.T) {
	for _, words := range []string{
		`{"error":{"message":"Invalid schema: message must be a string"}}`,
		`{"error":{"message":"messages.3.content.1.tool_use.name: the function message was not declared"}}`,
		`{"error":{"message":"Invalid value for tool_calls[0].function.arguments","param":"messages[2].tool_calls[0].function.arguments"}}`,
		`{"error":{"message":"Invalid parameters","param":"input[3].tools[0].name"}}`,
		`{"error":{"message":"The model called the tool message with arguments that do not fit its parameters","code":"tool_use_failed"}}`,
		`{"error":{"message":"Invalid schema for function 'messages': it is not there"}}`,
		`{"error":{"message":"tools[99].function.name is invalid"}}`,
	} {
		s := agenttest.New(agenttest.Always(agenttest.Fail(http.StatusBadRequest, words)))
		m, _, _ := modelWithLog(t, s)
		_, err := askOnce(t, m, requestWithTools("a__good", "message"))
		if left := m.LeftTools(); err == nil || len(left) > 0 || s.Asked() != 1 && !strings.Contains(words, "was not declared") {
			t.Errorf("%s: left out are %v after %d requests (%v)", words, left, s.Asked(), err)
		}
	}
}

// If no tool is left, the model is asked without tools, and earlier calls are described in words.
func TestWhereEveryToolIsRefused(t *testing.T) {
	words := `{"error":{"message":"Invalid schema for function '{name}': no","param":"tools[{index}].function.parameters"}}`
	s := agenttest.New(agenttest.RequireTools(agenttest.RefuseTools(400, words, func(agenttest.Tool) bool { return true }, agenttest.Always(agenttest.Reply("fine")))))
	m, _, _ := modelWithLog(t, s)
	if _, err := askOnce(t, m, requestWithTools("x", "y")); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[2].Body); s.Asked() != 3 || !strings.Contains(body, "[I called x with {}]") || strings.Contains(body, `"tools"`) {
		t.Errorf("asked %d times, at last %s", s.Asked(), body)
	}
}

// If there are more tools than a server accepts, the rest is left out. The next request remembers that, however many
// tools a server refuses.
func TestManyTools(t *testing.T) {
	var names []string
	for i := range 140 {
		names = append(names, fmt.Sprintf("s__t%03d", i))
	}
	names = append(names, "read_file")
	slices.Sort(names)
	s := agenttest.New(agenttest.RequireFit(agenttest.Always(agenttest.Reply("fine"))))
	m, _, _ := modelWithLog(t, s)
	if _, err := askOnce(t, m, requestWithTools(names...)); err != nil {
		t.Fatal(err)
	}
	offered := s.Requests()[0].Tools()
	system := s.Requests()[0].Messages()[0].Content
	if s.Asked() != 1 || len(offered) != 128 || !slices.Contains(offered, "read_file") || len(m.LeftTools()) != 13 || !strings.Contains(system, "s__t139") {
		t.Errorf("asked %d times with %d tools: %v; the model reads %q", s.Asked(), len(offered), offered, system)
	}

	few := agenttest.New(func(r agenttest.Request) agenttest.Response {
		if n := len(r.Tools()); n > 20 {
			return agenttest.Fail(http.StatusBadRequest, fmt.Sprintf(`{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 20, but got an array with length %d instead.","param":"tools","code":"array_above_max_length"}}`, n))
		}
		return agenttest.Reply("fine")
	})
	m, _, _ = modelWithLog(t, few)
	if _, err := askOnce(t, m, requestWithTools(names...)); err != nil || few.Asked() != 2 || len(few.Requests()[1].Tools()) != 20 {
		t.Errorf("asked %d times (%v)", few.Asked(), err)
	}

	words := `{"error":{"message":"bad","param":"tools[{index}].function.parameters"}}`
	all := agenttest.New(agenttest.RefuseTools(400, words, func(t agenttest.Tool) bool { return strings.Contains(t.Name, "__") }, agenttest.Always(agenttest.Reply("fine"))))
	m, _, _ = modelWithLog(t, all)
	var err error
	tries := 0
	for tries = range 10 {
		before := all.Asked()
		_, err = askOnce(t, m, requestWithTools(names...))
		if n := all.Asked() - before; n > 40 {
			t.Errorf("one request was tried %d times", n)
		}
		if err == nil {
			break
		}
	}
	if err != nil || tries != 3 || fmt.Sprint(all.Requests()[all.Asked()-1].Tools()) != "[read_file]" {
		t.Errorf("after %d more requests: %v", tries, err)
	}
}

// A message that only repeats people's words with a tool's position in them leaves out no tool: neither if the
// conversation has these words, nor if leaving tools out doesn't help.
func TestQuotedPlacesTakeNoToolAway(t *testing.T) {
	quote := `{"error":{"message":"Invalid content: please mend tools[0].function.name in my file (request 0a1b2c3d4e5f%d)"}}`
	for name, c := range map[string]struct {
		status int
		said   string
		asked  int
	}{
		"said before":     {400, "please mend tools[0].function.name in my file", 1},
		"not said":        {400, "Hello", 4}, // each tool is tried, the last one of three
		"a server's own":  {500, "Hello", 1},
		"another's words": {403, "Hello", 1},
	} {
		asked := 0
		s := agenttest.New(func(agenttest.Request) agenttest.Response {
			asked++
			return agenttest.Fail(c.status, fmt.Sprintf(quote, asked))
		})
		m, _, _ := modelWithLog(t, s)
		r := requestWithTools("a__x", "b__x", "read_file")
		r.Messages = append(r.Messages, llm.Message{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: c.said}}})
		_, err := askOnce(t, m, r)
		if left := m.LeftTools(); err == nil || s.Asked() != c.asked || len(left) > 0 {
			t.Errorf("%s: asked %d times (%v), left out are %v", name, s.Asked(), err, left)
		}
		before := s.Asked()
		if _, err = askOnce(t, m, r); err == nil || len(s.Requests()[before].Tools()) != 3 {
			t.Errorf("%s: the next request has the tools %v (%v)", name, s.Requests()[before].Tools(), err)
		}
	}
}

// Several tools that a server refuses one after another in the same words are left out for good.
func TestToolsInARowAreLeftOut(t *testing.T) {
	words := `{"type":"error","error":{"type":"invalid_request_error","message":"tools.{index}.custom.input_schema: JSON schema is invalid."}}`
	s := agenttest.New(agenttest.RefuseTools(400, words, func(t agenttest.Tool) bool { return strings.Contains(t.Name, "bad") }, agenttest.Always(agenttest.Reply("fine"))))
	m, _, _ := modelWithLog(t, s)
	for range 2 {
		if _, err := askOnce(t, m, requestWithTools("a__bad", "b__bad", "c__bad", "read_file")); err != nil {
			t.Fatal(err)
		}
	}
	if left := m.LeftTools(); s.Asked() != 5 || len(left) != 3 {
		t.Errorf("asked %d times, left out are %v", s.Asked(), left)
	}
}
