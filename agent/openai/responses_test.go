package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools"
	"parley/tools/testrace"
)

// responsesReply returns a stream of the Responses API with a short text.
func responsesReply(text string) agenttest.Response {
	return agenttest.Raw(namedEvents(piece(textDelta, "msg_1", 0, text), completedEvent(`{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"`+text+`"}]}`)))
}

// eitherProtocol returns a script that can be asked in either protocol: it answers, or refuses.
func eitherProtocol(refuse func(agenttest.Request) string) agenttest.Script {
	return func(q agenttest.Request) agenttest.Response {
		if body := refuse(q); body != "" {
			return agenttest.Fail(http.StatusBadRequest, body)
		}
		if strings.HasSuffix(q.Path, "/responses") {
			return responsesReply("fine")
		}
		return agenttest.Reply("fine")
	}
}

// The Responses API is sent the whole conversation and asked to store none of it: the model's reasoning is sent back
// unchanged.
func TestResponsesRequest(t *testing.T) {
	s := agenttest.New(agenttest.Sequence(agenttest.Raw(namedEvents(openAIEvents()...)), responsesReply("done")))
	m := scriptedModel(t, s, useResponses, func(c *openai.Config) { c.Effort, c.Body = "low", json.RawMessage(`{"top_p":0.9}`) })
	r := &llm.Request{System: "You are <b>Parley</b>.", MaxTokens: 5, NoCalls: true, Tools: []tools.Spec{{Name: "list"}, {Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","required":["p"]}`)}}}
	r.Messages = []llm.Message{newMessage(llm.RoleUser, textBlock("hello"), llm.Block{Kind: llm.BlockPicture, Picture: &llm.Picture{Path: "a.png", Type: "image/png", Data: []byte("png")}})}
	a, err := askOnce(t, m, r)
	if err != nil {
		t.Fatal(err)
	}
	blocks := a.Blocks
	blocks[2].Call, blocks[3].Call = "c1", "c2"
	blocks = append(blocks, llm.Block{Kind: llm.BlockThinking, Text: "so", Provider: blocks[0].Provider}) // nothing follows it
	r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, blocks...), newMessage(llm.RoleUser,
		llm.Block{Kind: llm.BlockToolResult, Call: "c1", Content: json.RawMessage(`{"text":"x"}`)}, llm.Block{Kind: llm.BlockToolResult, Call: "c2"}, textBlock("and?")))
	r.MaxTokens, r.NoCalls = 900, false
	if _, err := askOnce(t, m, r); err != nil {
		t.Fatal(err)
	}
	first, second := sentBody(t, s, 1), sentBody(t, s, 2)
	if q := s.Requests()[0]; q.Path != "/v1/responses" || q.Header.Get("Authorization") != "Bearer "+testKey || q.Header.Get("Accept") != "text/event-stream" {
		t.Errorf("asked at %s with %v", q.Path, q.Header)
	}
	if first["tool_choice"] != "none" || first["max_output_tokens"] != 16.0 {
		t.Errorf("calls are %v, at most %v tokens", first["tool_choice"], first["max_output_tokens"])
	}
	wantJSON(t, second, `{"model":"m","instructions":"You are <b>Parley</b>.","stream":true,"store":false,"include":["reasoning.encrypted_content"],
		"max_output_tokens":900,"reasoning":{"effort":"low","summary":"auto"},"top_p":0.9,
		"tools":[{"type":"function","name":"list","parameters":{"type":"object","properties":{}},"strict":false},
			{"type":"function","name":"read","description":"Reads.","parameters":{"type":"object","required":["p"]},"strict":false}],
		"input":[
			{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"},{"type":"input_text","text":"[picture a.png:]"},{"type":"input_image","image_url":"data:image/png;base64,cG5n"}]},
			{"type":"reasoning","summary":[{"type":"summary_text","text":"Let me see."}],"encrypted_content":"secret=="},
			{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},
			{"type":"function_call","call_id":"call_1","name":"read","arguments":"{\"p\":1}"},
			{"type":"function_call","call_id":"call_2","name":"list","arguments":"{}"},
			{"type":"function_call_output","call_id":"call_1","output":"{\"text\":\"x\"}"},
			{"type":"function_call_output","call_id":"call_2","output":"null"},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"and?"}]}]}`)
	if !bytes.HasPrefix(s.Requests()[1].Body, s.Requests()[0].Body[:bytes.Index(s.Requests()[0].Body, []byte(`]}],"tool_choice"`))]) {
		t.Error("the second request does not begin as the first did")
	}
	other := agenttest.New(agenttest.Always(responsesReply("x")))
	if _, err := askOnce(t, scriptedModel(t, other, useResponses, func(c *openai.Config) { c.Blind = true }), r); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"secret==", "commentary", "input_image"} {
		if bytes.Contains(other.Requests()[0].Body, []byte(word)) {
			t.Errorf("%s was sent to a server that has not said it, or sees nothing", word)
		}
	}
}

// Reasoning of a server that doesn't encrypt it is sent back too, under its id.
func TestReasoningInTheClear(t *testing.T) {
	item := `{"id":"rs_9","type":"reasoning","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null}`
	s := agenttest.New(agenttest.Sequence(agenttest.Raw(namedEvents(piece("response.reasoning_text.delta", "rs_9", 0, "hm"), itemDoneEvent(0, item), itemDoneEvent(1, itemRead), completedEvent(""))), responsesReply("x")))
	m := scriptedModel(t, s, useResponses)
	a, err := askOnce(t, m, helloRequest())
	if err != nil || a.Blocks[0].Text != "hm" {
		t.Fatalf("answer %+v, %v", a, err)
	}
	r := helloRequest()
	r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, a.Blocks...))
	if _, err := askOnce(t, m, r); err != nil {
		t.Fatal(err)
	}
	wantJSON(t, sentBody(t, s, 2)["input"].([]any)[1], `{"id":"rs_9","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`)
}

func TestResponsesEnds(t *testing.T) {
	short := func(kind, end string) string {
		return namedEvents(piece(textDelta, "msg_1", 0, "half"), `{"type":"`+kind+`","response":{`+end+`,"output":[],`+usedTokens+`}}`)
	}
	cases := map[string]struct {
		stream string
		stop   llm.Stop
		reason string
	}{
		"too long":          {short("response.incomplete", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`), llm.StopLength, "max_output_tokens"},
		"filtered":          {short("response.incomplete", `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`), llm.StopFiltered, "content_filter"},
		"for a new reason":  {short("response.incomplete", `"status":"incomplete","incomplete_details":{"reason":"tired"}`), llm.StopUnknown, "tired"},
		"for no reason":     {short("response.incomplete", `"status":"incomplete","incomplete_details":null`), llm.StopUnknown, ""},
		"only by status":    {short("response.completed", `"status":"incomplete"`), llm.StopUnknown, ""},
		"cancelled":         {short("response.cancelled", `"status":"cancelled"`), llm.StopBroken, "cancelled"},
		"completed":         {short("response.completed", `"status":"completed","incomplete_details":null,"error":null`), llm.StopWhole, ""},
		"by an old gateway": {short("response.done", `"status":"completed"`), llm.StopWhole, ""},
	}
	for name, tc := range cases {
		a, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Raw(tc.stream))), useResponses), helloRequest())
		if err != nil || a.Stop != tc.stop || a.Reason != tc.reason || len(a.Blocks) != 1 || a.Blocks[0].Text != "half" || a.Usage.Output != 5 {
			t.Errorf("%s: answer %+v, %v; want %q for %q", name, a, err, tc.stop, tc.reason)
		}
	}
	refused := namedEvents(piece("response.refusal.delta", "msg_1", 0, "I will"), itemDoneEvent(0, `{"id":"msg_1","type":"message","content":[{"type":"refusal","refusal":"I will not."}]}`), completedEvent(""))
	if a, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Raw(refused))), useResponses), helloRequest()); err != nil || len(a.Blocks) != 1 || a.Blocks[0].Text != "I will not." {
		t.Errorf("a refusal of the model's: %+v, %v", a, err)
	}
	full := `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"context_window_exceeded"},"output":[]}}`
	_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Raw(namedEvents(full)))), useResponses), helloRequest())
	if e := wantFault(t, err); e.Fault != llm.Overflow {
		t.Errorf("a full window and no answer: %v", err)
	}
}

func TestResponsesErrorsInTheStream(t *testing.T) {
	const busy, overflow, refused, rejected = llm.Busy, llm.Overflow, llm.Refused, llm.Rejected
	half := piece(textDelta, "msg_1", 0, "half")
	failed := func(code, message string) string {
		return namedEvents(half, fmt.Sprintf(`{"type":"response.failed","response":{"status":"failed","error":{"code":%q,"message":%q},"output":[]}}`, code, message))
	}
	cases := map[string]struct {
		stream string
		fault  llm.Fault
		text   string
		wait   time.Duration
	}{
		"failed":            {failed("server_error", "it broke"), busy, "it broke", 0},
		"limited":           {failed("rate_limit_exceeded", "Rate limit reached. Please try again in 1.5s."), busy, "Rate limit", 1500 * time.Millisecond},
		"too long":          {failed("context_length_exceeded", "Your input exceeds the context window of this model."), overflow, "context window", 0},
		"bad prompt":        {failed("invalid_prompt", "flagged"), rejected, "flagged", 0},
		"unpaid":            {failed("insufficient_quota", "no money"), refused, "no money", 0},
		"failed, no reason": {namedEvents(half, `{"type":"response.failed","response":{"status":"failed","error":null,"output":[]}}`), busy, "server_error", 0},
		"an error":          {namedEvents(half, `{"type":"error","code":"server_error","message":"went away","param":null,"sequence_number":3}`), busy, "went away", 0},
		"an error within":   {namedEvents(`{"type":"error","error":{"type":"invalid_request_error","message":"no such thing"}}`), rejected, "no such thing", 0},
		"an error of chat":  {"data: {\"error\":{\"message\":\"upstream\",\"code\":502}}\n\n", busy, "upstream", 0},
		"a detail":          {namedEvents(half) + "data: {\"detail\":\"the worker died\"}\n\ndata: [DONE]\n\n", busy, "the worker died", 0},
		"a list of errors":  {namedEvents(half) + "data: {\"errors\":[{\"message\":\"it broke\"}]}\n\ndata: [DONE]\n\n", busy, "it broke", 0},
		"an error, listed":  {namedEvents(half) + "data: [{\"error\":{\"message\":\"it broke\",\"code\":503}}]\n\n", busy, "it broke", 0},
		"an old error":      {namedEvents(half) + "data: {\"message\":\"it broke\",\"code\":500}\n\ndata: [DONE]\n\n", busy, "it broke", 0},
		"no stream":         {`{"object":"response","status":"failed","error":{"code":"server_error","message":"whole"},"output":[]}`, busy, "whole", 0},
		"garbled":           {"event: x\ndata: {\"type\":\"response.output_item.done\",\"item\":7}\n\n", busy, "garbled", 0},
		"nameless call":     {namedEvents(piece(argsDelta, "fc_1", 0, "{}"), completedEvent("")), busy, "without a name", 0},
		"a chat's answer":   {agenttest.Reply("hi").Parts[0].Bytes, busy, "cut off", 0},
		"nothing":           {"", busy, "cut off", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Raw(tc.stream))), useResponses), helloRequest())
			e := wantFault(t, err)
			if e.Fault != tc.fault || e.RetryAfter != tc.wait || !strings.Contains(e.Explain(), tc.text) {
				t.Errorf("fault %s after %v, told %q; want %s, %v and %q", e.Fault, e.RetryAfter, e.Explain(), tc.fault, tc.wait, tc.text)
			}
		})
	}
	r := agenttest.Fail(http.StatusTooManyRequests, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, "Retry-After", "7")
	_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(r)), useResponses), helloRequest())
	if e := wantFault(t, err); e.Fault != llm.Busy || e.RetryAfter != 7*time.Second {
		t.Errorf("a limit as a status: %+v", e)
	}
}

func TestResponsesCutAnywhereIsAnError(t *testing.T) {
	whole := agenttest.Raw(namedEvents(openAIEvents()[9:]...))
	end := whole.Len() - len("\n\n")
	cut := 0
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if q.N%2 == 0 {
			return whole.CutAfter(cut).Reset()
		}
		return whole.CutAfter(cut)
	})
	m := scriptedModel(t, s, useResponses)
	for cut = range whole.Len() {
		a, err := askOnce(t, m, helloRequest())
		switch {
		case cut < end && err == nil:
			t.Fatalf("cut after %d of %d bytes, answered %+v", cut, whole.Len(), a)
		case cut < end && wantFault(t, err).Fault != llm.Busy:
			t.Fatalf("cut after %d bytes: %v", cut, err)
		case cut >= end && err != nil:
			t.Fatalf("cut after %d bytes, when the answer had ended at %d: %v", cut, end, err)
		}
	}
	half := agenttest.Raw(namedEvents(piece(argsDelta, "fc_1", 0, `{"p`)) + "data: [DONE]\n\n")
	if a, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(half)), useResponses), helloRequest()); err == nil {
		t.Errorf("a stream that ends within a call is the answer %+v", a)
	}
}

// While a model reasons, its server may send nothing for long. Events before that are not the beginning of the answer.
func TestResponsesWaits(t *testing.T) {
	part := func(after time.Duration, events ...string) agenttest.Part {
		return agenttest.Part{Delay: after, Bytes: namedEvents(events...)}
	}
	created := openAIEvents()[0]
	answered := part(time.Second, piece(textDelta, "msg_1", 1, "half"))
	cases := map[string]struct {
		parts []agenttest.Part
		after time.Duration
		text  string
	}{
		"created, then silence": {[]agenttest.Part{part(0, created)}, 120 * time.Second, ""},
		"it thinks for long":    {[]agenttest.Part{part(0, created), part(0, openAIEvents()[2]), part(119*time.Second, itemDoneAt(0)), part(119*time.Second, piece(textDelta, "msg_1", 1, "half")), part(time.Second, completedEvent(""))}, 239*time.Second + 50*time.Millisecond, "half"},
		"it says half":          {[]agenttest.Part{part(0, created), answered}, 61 * time.Second, ""},
		"it thinks in between":  {[]agenttest.Part{answered, part(0, itemDoneEvent(1, itemSaidHalf)), part(0, itemAddedEvent(2, `{"id":"rs_2","type":"reasoning","summary":[]}`)), part(50*time.Second, completedEvent(""))}, 51*time.Second + 50*time.Millisecond, "half"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := openai.New(openai.Config{BaseURL: "http://models.example.com", Name: "m", API: openai.APIResponses, Transport: wireTransport(agenttest.Response{Parts: tc.parts})})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				a, err := askOnce(t, m, helloRequest())
				if took := time.Since(began); took != tc.after {
					t.Errorf("took %v, want %v", took, tc.after)
				}
				if tc.text == "" && wantFault(t, err).Fault != llm.Busy || tc.text != "" && (err != nil || a.Blocks[len(a.Blocks)-1].Text != tc.text) {
					t.Errorf("answer %+v, %v", a, err)
				}
			})
		})
	}
}

const itemSaidHalf = `{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"half"}]}`

func itemDoneAt(at int) string { return itemDoneEvent(at, itemThought) }

// A model's protocol is known, learned, or configured.
func TestWhichProtocolIsAsked(t *testing.T) {
	const chat, responses = "/chat/completions", "/responses"
	wantsResponses := `{"error":{"message":"Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.","type":"invalid_request_error","param":"reasoning_effort"}}`
	only := `{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions.","type":"invalid_request_error","param":"model","code":null}}`
	azure := `{"error":{"code":"OperationNotSupported","message":"The chatCompletion operation does not work with the specified model, mine. Please choose different model and try again."}}`
	tooNew := `{"error":{"message":"The model 'm' is not supported with the Responses API.","type":"invalid_request_error"}}`
	at404 := func(path, body string) agenttest.Script {
		return func(q agenttest.Request) agenttest.Response {
			switch {
			case strings.HasSuffix(q.Path, path):
				return agenttest.Fail(http.StatusNotFound, body)
			case strings.HasSuffix(q.Path, responses):
				return responsesReply("fine")
			case bytes.Contains(q.Body, []byte(`"tools"`)) && !bytes.Contains(q.Body, []byte(`"reasoning_effort":"none"`)):
				return agenttest.Fail(http.StatusBadRequest, wantsResponses)
			}
			return agenttest.Reply("fine")
		}
	}
	at400 := func(path, body string) agenttest.Script {
		return eitherProtocol(func(q agenttest.Request) string {
			if strings.HasSuffix(q.Path, path) {
				return body
			}
			return ""
		})
	}
	cases := map[string]struct {
		script  agenttest.Script
		address string
		name    string
		api     openai.API
		want    []string // the paths of the requests of two answers
	}{
		"as always":                 {at400("none", ""), "http://models.example.com/v1", "gpt-5.6", "", []string{chat, chat}},
		"known, with tools":         {at400("none", ""), "http://api.openai.com/v1", "gpt-5.6-luna", "", []string{responses, responses}},
		"known, by its kind":        {at400("none", ""), "http://api.openai.com/v1", "o3-pro-2025-06-10", "", []string{responses, responses}},
		"known, of Codex":           {at400("none", ""), "http://api.openai.com/v1", "gpt-5.1-codex-mini", "", []string{responses, responses}},
		"known, and chats":          {at400("none", ""), "http://api.openai.com/v1", "gpt-5-mini", "", []string{chat, chat}},
		"learned":                   {at400(chat, wantsResponses), "http://models.example.com/v1", "m", "", []string{chat, responses, responses}},
		"learned from a status":     {at404(chat, only), "http://models.example.com/v1", "m", "", []string{chat, responses, responses}},
		"learned of Azure":          {at400(chat, azure), "http://here.openai.azure.com/openai/deployments/mine?api-version=2025-04-01-preview", "mine", "", []string{chat, responses, responses}},
		"there is none":             {at404(responses, `{"detail":"Not Found"}`), "http://models.example.com/v1", "m", "", []string{chat, responses, chat, chat, chat}},
		"it is not for the model":   {at400(responses, tooNew), "http://api.openai.com/v1", "gpt-6-search", "", []string{responses, chat, chat}},
		"configured":                {at400("none", ""), "http://models.example.com/v1", "m", openai.APIResponses, []string{responses, responses}},
		"configured, though it may": {at404("none", ""), "http://api.openai.com/v1", "gpt-5.6", openai.APIChat, []string{chat, chat, chat}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := agenttest.New(tc.script)
			m := modelAtAddress(t, tc.address, s, func(c *openai.Config) { c.Name, c.API = tc.name, tc.api })
			for range 2 {
				if a, err := askOnce(t, m, toolRequest()); err != nil || a.Blocks[0].Text != "fine" {
					t.Fatalf("answer %+v, %v", a, err)
				}
			}
			var got []string
			for _, q := range s.Requests() {
				got = append(got, protocolPath(q.Path))
			}
			if strings.Join(got, " ") != strings.Join(tc.want, " ") {
				t.Errorf("asked %v, want %v", got, tc.want)
			}
			if strings.Contains(tc.address, "azure") {
				if q := s.Requests()[1]; q.Path != "/openai/responses" || q.Query != "api-version=2025-04-01-preview" || sentBody(t, s, 2)["model"] != "mine" {
					t.Errorf("Azure was asked at %s?%s", q.Path, q.Query)
				}
			}
		})
	}
	forced := scriptedModel(t, agenttest.New(at404(responses, `{"detail":"Not Found"}`)), useResponses)
	if _, err := askOnce(t, forced, helloRequest()); wantFault(t, err).Cause != llm.CauseAddress {
		t.Errorf("a server without the configured protocol: %v", err)
	}
}

// protocolPath returns the protocol's part of a path.
func protocolPath(path string) string {
	if strings.HasSuffix(path, "/responses") {
		return "/responses"
	}
	return "/chat/completions"
}

// A parameter that the Responses API refuses for a model or an account is left out from then on; content that it
// refuses in one conversation, in that one only.
func TestResponsesLearns(t *testing.T) {
	unverified := `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}`
	plain := `{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include","code":null}}`
	effort := `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","type":"invalid_request_error","param":"reasoning.effort","code":"unsupported_parameter"}}`
	s := agenttest.New(eitherProtocol(func(q agenttest.Request) string {
		for word, body := range map[string]string{`"summary":"auto"`: unverified, `"include"`: plain, `"effort"`: effort} {
			if bytes.Contains(q.Body, []byte(word)) {
				return body
			}
		}
		return ""
	}))
	m := scriptedModel(t, s, useResponses, func(c *openai.Config) { c.Effort = "low" })
	for range 2 {
		if _, err := askOnce(t, m, helloRequest()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Asked() != 5 {
		t.Errorf("asked %d times, want 3 refusals and 2 answers", s.Asked())
	}
	body := sentBody(t, s, 5)
	delete(body, "input")
	wantJSON(t, body, `{"model":"m","stream":true,"store":false}`)

	lost := `{"error":{"message":"The encrypted content gAAA could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`
	bad := false
	s = agenttest.New(func(q agenttest.Request) agenttest.Response {
		if bad && bytes.Contains(q.Body, []byte(`"encrypted_content"`)) {
			return agenttest.Fail(http.StatusBadRequest, lost)
		}
		return agenttest.Raw(namedEvents(openAIEvents()...))
	})
	m = scriptedModel(t, s, useResponses)
	a, err := askOnce(t, m, helloRequest())
	if err != nil {
		t.Fatal(err)
	}
	r := helloRequest()
	r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, a.Blocks...))
	for _, bad = range []bool{true, false} {
		if _, err := askOnce(t, m, r); err != nil {
			t.Fatal(err)
		}
	}
	last := s.Requests()[s.Asked()-1]
	if s.Asked() != 4 || !bytes.Contains(last.Body, []byte(`"encrypted_content"`)) {
		t.Errorf("asked %d times; one bad conversation took the reasoning from another: %s", s.Asked(), last.Body)
	}
}

// Configured fields replace those that Parley would write.
func TestConfiguredFieldsOfResponses(t *testing.T) {
	s := agenttest.New(agenttest.Always(responsesReply("x")))
	m := scriptedModel(t, s, useResponses, func(c *openai.Config) {
		c.Effort, c.Body = "low", json.RawMessage(`{"reasoning":{"effort":"high"},"store":true,"include":[],"max_output_tokens":7}`)
	})
	r := helloRequest()
	r.MaxTokens = 100
	if _, err := askOnce(t, m, r); err != nil {
		t.Fatal(err)
	}
	body := sentBody(t, s, 1)
	delete(body, "input")
	wantJSON(t, body, `{"model":"m","stream":true,"reasoning":{"effort":"high"},"store":true,"include":[],"max_output_tokens":7}`)
	if n := bytes.Count(s.Requests()[0].Body, []byte(`"store"`)); n != 1 {
		t.Errorf("store is sent %d times", n)
	}
}

func TestAHostileResponsesStreamIsBounded(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	big := strings.Repeat("n", 100_000)
	cases := map[string]struct{ event, want string }{
		"items":      {itemAddedEvent(0, `{"type":"reasoning"}`), "more than 512 items"},
		"calls":      {itemAddedEvent(0, `{"type":"function_call","name":"x"}`), "more than 128 tool calls"},
		"names":      {itemAddedEvent(0, `{"type":"function_call","name":"`+big+`"}`), "a tool's name"},
		"arguments":  {piece(argsDelta, "fc_1", 0, big), "does not end"},
		"reasonings": {itemDoneEvent(0, `{"type":"reasoning","encrypted_content":"`+big+`"}`), "does not end"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(endlessStream(tc.event))
			defer s.Close()
			m, err := openai.New(openai.Config{BaseURL: s.URL, Name: "m", API: openai.APIResponses})
			if err != nil {
				t.Fatal(err)
			}
			_, err = askOnce(t, m, helloRequest())
			if e := wantFault(t, err); e.Fault != llm.Busy || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
