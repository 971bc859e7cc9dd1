package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
)

// A playedTransport answers every request with the same bytes, and fails the test if a request is not JSON.
type playedTransport struct {
	t    *testing.T
	text string
}

// RoundTrip answers.
func (p playedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if body, err := io.ReadAll(r.Body); err != nil || !json.Valid(body) {
		p.t.Errorf("sent what is no JSON: %q (%v)", body, err)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(p.text))}, nil
}

// FuzzAnswer checks any answer of a server: it must be an answer that can be sent back, or a fault.
func FuzzAnswer(f *testing.F) {
	f.Add(fullStream().Parts[0].Bytes)
	f.Add(agenttest.Calls(agenttest.ToolCall{Name: "x"}).Parts[0].Bytes)
	f.Add("event: error\ndata: {\"message\":[]}\n\n{\n\"error\":\n}")
	f.Add(`{"choices":[{"message":{"content":[{"thinking":[]}],"tool_calls":[{"id":{},"function":{"arguments":[]}}]}}]}`)
	f.Add("data: {\"choices\":[{\"delta\":{\"reasoning_details\":[null,{\"type\":[]},{\"type\":[]}]}}]}\n\ndata: [DONE]\n\n")
	f.Add(namedEvents(openAIEvents()...))
	f.Add(`{"object":"response","output":[{"type":"function_call","name":{},"arguments":[]},{"type":"message","content":[{"text":[]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		api := openai.APIChat
		if strings.Contains(text, "response") {
			api = openai.APIResponses
		}
		m, err := openai.New(openai.Config{BaseURL: "http://model", Name: "m", API: api, Transport: playedTransport{t, text}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := m.Generate(t.Context(), helloRequest(), func(llm.Delta) {})
		if err != nil {
			if e := wantFault(t, err); e.Fault == "" {
				t.Errorf("error %v has no fault", err)
			}
			return
		}
		for _, b := range a.Blocks {
			if b.Kind == llm.BlockToolUse && (b.Name == "" || !json.Valid(b.Args)) {
				t.Errorf("tool use %+v", b)
			}
		}
		r := helloRequest()
		r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, a.Blocks...))
		if _, err := m.Generate(t.Context(), r, func(llm.Delta) {}); err != nil {
			t.Errorf("the answer cannot be sent back: %v", err)
		}
	})
}
