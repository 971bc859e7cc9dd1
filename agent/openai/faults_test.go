package openai_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools"
)

func modelAtHandler(t testing.TB, h http.Handler, suffix ...string) *openai.Model {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	m, err := openai.New(openai.Config{BaseURL: s.URL + strings.Join(suffix, ""), Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantFault returns the *llm.Error that err must be, and checks that it doesn't show the key.
func wantFault(t testing.TB, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("error %v is no *llm.Error", err)
	}
	for _, said := range []string{err.Error(), e.Explain(), e.Said} {
		if strings.Contains(said, testKey) || strings.Contains(said, testKey[:9]) || len(said) > 1000 || strings.ContainsFunc(said, isUnprintable) {
			t.Errorf("the error shows the key, is too long or steers a terminal: %q", said)
		}
	}
	ours := strings.Contains("model: busy overflow refused rejected", e.Said) // a server's text of a single letter may be in these words
	if e.Said != "" && e.Said != e.Code && !ours && strings.Contains(err.Error(), e.Said) {
		t.Errorf("the error is for logs and repeats what the server wrote: %v", err)
	}
	return e
}

func isUnprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

func TestRefusals(t *testing.T) {
	const busy, overflow, refused, rejected = llm.Busy, llm.Overflow, llm.Refused, llm.Rejected
	cases := []struct {
		name   string
		status int
		body   string
		fault  llm.Fault
		text   string
	}{
		{"unauthorized", 401, `{"error":{"message":"Incorrect API key provided: ` + testKey + `. See the page.","code":"invalid_api_key"}}`, refused, "Incorrect API key"},
		{"masked key", 401, `{"error":{"message":"Incorrect API key: sk-sentin****6789"}}`, refused, "Incorrect"},
		{"forbidden", 403, `{"error":"no access"}`, refused, "no access"},
		{"no model", 404, `{"error":{"message":"model 'x' not found"}}`, refused, "not found"},
		{"unpaid", 402, `{"error":{"message":"Insufficient credits"}}`, refused, "credits"},
		{"no quota", 429, `{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}`, refused, "quota"},
		{"no tools", 400, `{"error":{"message":"registry/x does not support tools"}}`, refused, "does not support tools"},
		{"wrong place", 405, `<html>no</html>`, refused, "Method Not Allowed"},
		{"timeout", 408, ``, busy, ""},
		{"conflict", 409, ``, busy, ""},
		{"early", 425, ``, busy, ""},
		{"limit", 429, `{"error":{"message":"Rate limit: too many tokens per minute, context window"}}`, busy, "Rate limit"},
		{"server", 500, `{"error":{"message":"oops"}}`, busy, "oops"},
		{"unavailable", 503, `<html><body>nginx</body></html>`, busy, "Service Unavailable"},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, busy, "Overloaded"},
		{"too long, by code", 400, `{"error":{"message":"no","code":"context_length_exceeded"}}`, overflow, "no"},
		{"too long, in words", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens"}}`, overflow, "8192"},
		{"too long, llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, overflow, "available"},
		{"too long, Gemini", 400, `[{"error":{"code":400,"message":"The input token count (2) exceeds the maximum number of tokens allowed (1)","status":"INVALID_ARGUMENT"}}]`, overflow, "token count"},
		{"too long, Anthropic", 413, `{"error":{"type":"request_too_large","message":"big"}}`, overflow, "big"},
		{"too long, as a failure", 500, `{"error":"prompt is too long: 9 > 8"}`, overflow, "too long"},
		{"too long for a minute", 413, `{"error":{"message":"Request too large: Limit 6000 tokens","code":"rate_limit_exceeded"}}`, overflow, "Limit"},
		{"bad request", 400, `{"error":{"message":"Invalid schema","param":"tools[0]"}}`, rejected, "Invalid schema"},
		{"list of details", 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, rejected, "field required"},
		{"old vLLM", 400, `{"object":"error","message":"bad roles","type":"BadRequestError","code":400}`, rejected, "bad roles"},
		{"too big", 413, ``, rejected, ""},
		{"in plain text", 400, "no\x1b[31m \u009b\u202egood", rejected, "no [31m good"},
		{"at length", 400, strings.Repeat("x", 60000), rejected, "…"},
		{"empty", 400, `{}`, rejected, "Bad Request"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Fail(tc.status, tc.body)))), helloRequest())
			e := wantFault(t, err)
			if e.Fault != tc.fault || e.Status != tc.status {
				t.Errorf("fault %s, status %d; want %s, %d", e.Fault, e.Status, tc.fault, tc.status)
			}
			if !strings.Contains(wantFault(t, err).Explain(), tc.text) {
				t.Errorf("told %q, which does not say %q", wantFault(t, err).Explain(), tc.text)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	cases := []struct {
		name, header, value string
		least, most         time.Duration
	}{
		{"seconds", "Retry-After", "7", 7 * time.Second, 7 * time.Second},
		{"part of a second", "Retry-After", "0.5", 500 * time.Millisecond, 500 * time.Millisecond},
		{"milliseconds", "retry-after-ms", "250", 250 * time.Millisecond, 250 * time.Millisecond},
		{"date", "Retry-After", time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat), 20 * time.Second, 30 * time.Second},
		{"past date", "Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		{"nonsense", "Retry-After", "soon", 0, 0},
		{"for ever", "Retry-After", "1e300", 24 * time.Hour, 24 * time.Hour},
	}
	for _, tc := range cases {
		r := agenttest.Fail(http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`, tc.header, tc.value)
		_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(r))), helloRequest())
		if got := wantFault(t, err).RetryAfter; got < tc.least || got > tc.most {
			t.Errorf("%s: wait %v, want %v to %v", tc.name, got, tc.least, tc.most)
		}
	}
	body := `[{"error":{"code":429,"message":"x","details":[{"@type":"a"},{"retryDelay":"34s"}]}}]`
	_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Fail(http.StatusTooManyRequests, body)))), helloRequest())
	if got := wantFault(t, err).RetryAfter; got != 34*time.Second {
		t.Errorf("in the body: wait %v, want 34s", got)
	}
}

const halfDelta = `{"choices":[{"index":0,"delta":{"content":"half"}}]}`

func TestErrorsInTheStream(t *testing.T) {
	const busy, overflow, refused, rejected = llm.Busy, llm.Overflow, llm.Refused, llm.Rejected
	event := "data: " + halfDelta + "\n\n"
	cases := []struct {
		name, stream string
		fault        llm.Fault
		text         string
	}{
		{"object", event + "data: {\"error\":{\"message\":\"upstream\",\"code\":502}}\n\n", busy, "upstream"},
		{"text", event + "data: {\"error\":\"it broke\"}\n\n", busy, "it broke"},
		{"list", event + "data: {\"error\":[{\"message\":\"listed\"}]}\n\n", busy, "listed"},
		{"after a comment", ": comment\n\n" + event + ": more\nevent: error\ndata: {\"error\":{\"message\":\"behind\"}}\n\n", busy, "behind"},
		{"event without a field", event + "event: error\ndata: {\"message\":\"bare\",\"type\":\"overloaded_error\"}\n\n", busy, "bare"},
		{"event in words", event + "event: error\ndata: upstream \"died\"\n\n", busy, `upstream "died"`},
		{"in a choice", event + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\",\"error\":{\"message\":\"chosen\",\"code\":503}}]}\n\n", busy, "chosen"},
		{"beside a finished choice", event + "data: {\"error\":{\"message\":\"beside\"},\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", busy, "beside"},
		{"finish reason alone", event + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n", busy, "cut off"},
		{"not framed", "{\"error\":{\"message\":\"unframed\"}}\n", busy, "unframed"},
		{"over several lines", "{\n  \"error\": {\n    \"message\": \"printed\"\n  }\n}\n", busy, "printed"},
		{"old vLLM", "data: {\"object\":\"error\",\"message\":\"was vLLM\",\"code\":400}\n\n", rejected, "was vLLM"},
		{"unpaid", "data: {\"error\":{\"message\":\"no money\",\"code\":402}}\n\n", refused, "no money"},
		{"too long", "data: {\"error\":{\"message\":\"no\",\"code\":\"context_length_exceeded\"}}\n\n", overflow, "no"},
		{"request", "data: {\"error\":{\"message\":\"no\",\"type\":\"invalid_request_error\"}}\n\n", rejected, "no"},
		{"with the key", "data: {\"error\":{\"message\":\"bad key " + testKey + "\"}}\n\n", busy, "bad key"},
		{"a detail", event + "data: {\"detail\":\"the worker died\"}\n\n", busy, "the worker died"},
		{"a detail beside empty choices", event + "data: {\"choices\":[],\"detail\":{\"message\":\"the worker died\"}}\n\n", busy, "the worker died"},
		{"a list of errors", event + "data: {\"errors\":[{\"code\":\"internal\",\"message\":\"it broke\"}],\"trace\":\"x\"}\n\n", busy, "it broke"},
		{"errors that are listed", event + "data: [{\"error\":{\"code\":503,\"message\":\"it is listed\",\"status\":\"UNAVAILABLE\"}}]\n\n", busy, "it is listed"},
		{"MiniMax", event + "data: {\"choices\":null,\"base_resp\":{\"status_code\":1000,\"status_msg\":\"unknown error\"}}\n\n", busy, "unknown error"},
		{"MiniMax, beside a choice", event + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"base_resp\":{\"status_code\":1013,\"status_msg\":\"internal\"}}\n\n", busy, "internal"},
		{"MiniMax, too fast", "{\"base_resp\":{\"status_code\":1002,\"status_msg\":\"rate limit\"}}\n", busy, "rate limit"},
		{"MiniMax, unpaid", "{\"base_resp\":{\"status_code\":1008,\"status_msg\":\"insufficient balance\"}}\n", refused, "insufficient balance"},
		{"MiniMax, no key", "{\"base_resp\":{\"status_code\":1004,\"status_msg\":\"login fail\"}}\n", refused, "login fail"},
		{"msg", event + "data: {\"code\":500,\"msg\":\"in short\"}\n\n", busy, "in short"},
		{"garbled", event + "data: {\"choices\":[{\"index\"\n\n", busy, "garbled"},
		{"garbled event", event + "data: {\"choices\":7}\n\n", busy, "garbled"},
		{"nameless call", "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"x\",\"function\":{\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n", busy, "without a name"},
		{"nothing", "", busy, "cut off"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			// The stream stays open: the client must not wait for its end.
			m := scriptedModel(t, agenttest.New(agenttest.Always(streamWithoutEnd(tc.stream))))
			_, err := askOnce(t, m, helloRequest())
			if e := wantFault(t, err); e.Fault != tc.fault {
				t.Errorf("fault %s, want %s: %v", e.Fault, tc.fault, err)
			}
			if !strings.Contains(wantFault(t, err).Explain(), tc.text) {
				t.Errorf("told %q, which does not say %q", wantFault(t, err).Explain(), tc.text)
			}
		})
	}
}

// streamWithoutEnd returns a stream that stays open after an error, to check that the client doesn't wait for its end.
func streamWithoutEnd(stream string) agenttest.Response {
	r := agenttest.Raw(stream)
	if strings.Contains(stream, `"error":`) && !strings.Contains(stream, "[DONE]") {
		return r.Stall()
	}
	return r
}

func TestCutAnywhereIsAnError(t *testing.T) {
	whole := agenttest.Calls(agenttest.ToolCall{Name: "read_file", Args: `{"path":"é"}`})
	end := strings.Index(whole.Parts[0].Bytes, `"finish_reason":"tool_calls"}]}`) + len(`"finish_reason":"tool_calls"}]}`)
	cut := 0
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		r := whole.CutAfter(cut)
		if q.N%2 == 0 {
			return r.Reset()
		}
		return r
	})
	m := scriptedModel(t, s)
	for cut = range whole.Len() {
		a, err := askOnce(t, m, helloRequest())
		switch {
		case cut < end && err == nil:
			t.Fatalf("cut after %d of %d bytes, answered %+v", cut, whole.Len(), a)
		case cut < end:
			if e := wantFault(t, err); e.Fault != llm.Busy {
				t.Fatalf("cut after %d bytes: %v", cut, err)
			}
		case err != nil:
			t.Fatalf("cut after %d bytes, when the model had ended at %d: %v", cut, end, err)
		}
	}
}

func TestEndlessAnswer(t *testing.T) {
	r := agenttest.Stream(textEvent(strings.Repeat("na", 1<<20)))
	for range 10 {
		r.Parts = append(r.Parts, r.Parts[0])
	}
	_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(r.Stall()))), helloRequest())
	if e := wantFault(t, err); e.Fault != llm.Busy || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("error %v", err)
	}
}

func TestNobodyThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	s.Close()
	m, err := openai.New(openai.Config{BaseURL: url, Name: "m", APIKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	_, err = askOnce(t, m, helloRequest())
	if e := wantFault(t, err); e.Fault != llm.Busy || e.Status != 0 || e.Cause != llm.CauseNetwork || !strings.Contains(e.Explain(), "refused") {
		t.Errorf("fault %+v, told %q", e, e.Explain())
	}
}

func TestCauses(t *testing.T) {
	const apiKey, name, quota, address = llm.CauseKey, llm.CauseModel, llm.CauseQuota, llm.CauseAddress
	cases := []struct {
		name   string
		status int
		body   string
		cause  llm.Cause
		fault  llm.Fault
	}{
		{"OpenAI, key", 401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`, apiKey, llm.Refused},
		{"Gemini, key", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]`, apiKey, llm.Refused},
		{"OpenRouter, key", 401, `{"error":{"message":"No auth credentials found","code":401}}`, apiKey, llm.Refused},
		{"a page", 403, `<html></html>`, apiKey, llm.Refused},
		{"OpenAI, model", 404, `{"error":{"message":"The model 'x' does not exist or you do not have access to it.","code":"model_not_found"}}`, name, llm.Refused},
		{"OpenRouter, model", 400, `{"error":{"message":"x/y is not a valid model ID","code":400}}`, name, llm.Refused},
		{"Ollama, model", 404, `{"error":{"message":"model 'x' not found","type":"api_error"}}`, name, llm.Refused},
		{"DeepSeek, model", 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}`, name, llm.Refused},
		{"OpenAI, quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, quota, llm.Refused},
		{"DeepSeek, quota", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error"}}`, quota, llm.Refused},
		{"Anthropic, quota", 400, `{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, quota, llm.Refused},
		{"Gemini, a limit in time", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan","status":"RESOURCE_EXHAUSTED"}}]`, "", llm.Busy},
		{"another server", 404, `<html>nginx</html>`, address, llm.Refused},
		{"OpenAI, country", 403, `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`, llm.CausePlace, llm.Refused},
		{"OpenAI by a gateway, country", 403, `{"error":{"message":"Country, region, or territory not supported (request id: 2)"}}`, llm.CausePlace, llm.Refused},
		{"Gemini, country", 400, `[{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}]`, llm.CausePlace, llm.Refused},
		{"Groq, network", 403, `{"error":{"message":"Access denied. Please check your network settings."}}`, llm.CausePlace, llm.Refused},
		{"OpenRouter, moderation", 403, `{"error":{"code":403,"message":"openai/x requires moderation on OpenAI. Your input was flagged for \"violence\"."}}`, "", llm.Rejected},
		{"Groq, no capacity", 498, `{"error":{"message":"capacity exceeded"}}`, "", llm.Busy},
		{"bad request", 400, `{"error":{"message":"Invalid schema"}}`, "", llm.Rejected},
	}
	for _, tc := range cases {
		_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Fail(tc.status, tc.body)))), helloRequest())
		if e := wantFault(t, err); e.Cause != tc.cause || e.Fault != tc.fault {
			t.Errorf("%s: cause %q, fault %s; want %q, %s", tc.name, e.Cause, e.Fault, tc.cause, tc.fault)
		}
	}
}

// A web page instead of an answer says that the address is wrong, and not that the answer was cut off. A stream that is
// only labeled as a page is an answer.
func TestAPageIsNoAnswer(t *testing.T) {
	const stream = "\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"fine\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	for body, page := range map[string]bool{"\n <!doctype html>\n<title>Open your mail</title>": true, "<html>": true, stream: false} {
		var asked atomic.Int32
		answer, err := askOnce(t, modelAtHandler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(body))
		})), helloRequest())
		if !page {
			if err != nil || len(answer.Blocks) != 1 || answer.Blocks[0].Text != "fine" {
				t.Errorf("%q gives %+v, %v", body, answer, err)
			}
			continue
		}
		if e := wantFault(t, err); e.Cause != llm.CauseAddress || e.Fault != llm.Refused || asked.Load() != 1 || !strings.Contains(e.Explain(), "a web page") {
			t.Errorf("%q gives after %d requests: %s", body, asked.Load(), e.Explain())
		}
	}
}

// refuseParameters returns the script of a server that refuses requests with certain parameters.
func refuseParameters(bodies map[string]string) agenttest.Script {
	return func(q agenttest.Request) agenttest.Response {
		for parameter, body := range bodies {
			if bytes.Contains(q.Body, []byte(`"`+parameter+`"`)) {
				return agenttest.Fail(http.StatusBadRequest, body)
			}
		}
		return agenttest.Reply("fine")
	}
}

func TestLearnsRefusedParameters(t *testing.T) {
	s := agenttest.New(refuseParameters(map[string]string{
		"stream_options": `{"error":{"message":"Unrecognized request argument","param":"stream_options"}}`,
		"max_tokens":     `{"error":{"message":"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}}`,
		"tool_choice":    `{"detail":"Extra inputs are not permitted: tool_choice"}`,
	}))
	var logged bytes.Buffer
	m := scriptedModel(t, s, func(c *openai.Config) { c.Log = slog.New(slog.NewTextHandler(&logged, nil)) })
	r := helloRequest()
	r.MaxTokens, r.NoCalls, r.Tools = 9, true, []tools.Spec{{Name: "a"}}
	for range 3 {
		if _, err := askOnce(t, m, r); err != nil {
			t.Fatal(err)
		}
	}
	if s.Asked() != 6 {
		t.Errorf("%d requests, want 3 refused and 3 answered", s.Asked())
	}
	body := sentBody(t, s, 6)
	delete(body, "messages")
	delete(body, "tools")
	wantJSON(t, body, `{"model":"m","stream":true,"max_completion_tokens":9}`)
	if n := strings.Count(logged.String(), "\n"); n != 3 || strings.Contains(logged.String(), testKey) {
		t.Errorf("logged %d lines, want 3:\n%s", n, &logged)
	}
}

func TestLearnsToThinkLess(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		switch {
		case bytes.Contains(q.Body, []byte(`"reasoning_content"`)):
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"property 'reasoning_content' is unsupported"}}`)
		case !bytes.Contains(q.Body, []byte(`"reasoning_effort":"none"`)) && len(q.Messages()) > 1:
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"Tools need /v1/responses","param":"reasoning_effort"}}`)
		}
		return agenttest.Stream(`{"choices":[{"delta":{"reasoning_content":"hm","content":"hi"},"finish_reason":"stop"}]}`, "[DONE]")
	})
	m := scriptedModel(t, s, func(c *openai.Config) { c.API = openai.APIChat })
	a, err := askOnce(t, m, helloRequest())
	if err != nil {
		t.Fatal(err)
	}
	r := helloRequest()
	r.Tools = []tools.Spec{{Name: "a"}}
	r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, a.Blocks...), helloRequest().Messages[0])
	if _, err := askOnce(t, m, r); err != nil {
		t.Fatal(err)
	}
	if s.Asked() != 4 {
		t.Errorf("asked %d times, want 4", s.Asked())
	}
}

func TestGivesUpOnARequiredParameter(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Fail(http.StatusBadRequest,
		`{"error":{"message":"stream_options max_tokens max_completion_tokens tool_choice reasoning_effort reasoning_content"}}`)))
	_, err := askOnce(t, scriptedModel(t, s), helloRequest())
	if e := wantFault(t, err); e.Fault != llm.Rejected {
		t.Errorf("fault %v", err)
	}
	if s.Asked() > 10 {
		t.Errorf("asked %d times", s.Asked())
	}
}

func TestShortIDs(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		for _, m := range q.Messages() {
			if m.Role == "tool" && len(m.CallID) != 9 {
				return agenttest.Fail(http.StatusBadRequest, `{"message":"Tool call id was `+m.CallID+` but must be a-z, A-Z, 0-9, with a length of 9."}`)
			}
		}
		return agenttest.Reply("fine")
	})
	r := helloRequest()
	for i := range 2 {
		call := fmt.Sprintf("call-%d", i)
		r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, llm.Block{Kind: llm.BlockToolUse, Call: call, Name: "a"}),
			newMessage(llm.RoleUser, llm.Block{Kind: llm.BlockToolResult, Call: call}))
	}
	if _, err := askOnce(t, scriptedModel(t, s), r); err != nil {
		t.Fatal(err)
	}
	messages := s.Requests()[1].Messages()
	if a, b := messages[1].Calls[0].ID, messages[2].CallID; a != b || a == messages[3].Calls[0].ID {
		t.Errorf("calls have the ids %s and %s, the first's result %s", a, messages[3].Calls[0].ID, b)
	}
}
