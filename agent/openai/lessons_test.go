package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
)

// conversationWithCall returns a conversation with a tool call and a server's thinking, which a person's message
// follows.
func conversationWithCall(by, thought string) *llm.Request {
	r := helloRequest()
	call := llm.Block{Kind: llm.BlockToolUse, Call: "c1", Name: "x", Args: json.RawMessage(`{}`)}
	blocks := []llm.Block{call}
	if thought != "" {
		saved := fmt.Sprintf(`{"by":%q,"echo":true}`, by)
		blocks = []llm.Block{{Kind: llm.BlockThinking, Text: thought, Provider: json.RawMessage(saved)}, call}
	}
	r.Messages = append(r.Messages, newMessage(llm.RoleAssistant, blocks...),
		newMessage(llm.RoleUser, llm.Block{Kind: llm.BlockToolResult, Call: "c1", Content: json.RawMessage(`{}`)}, textBlock("and now?")))
	return r
}

func modelWithLog(t *testing.T, s *agenttest.Server) (*openai.Model, string, *bytes.Buffer) {
	t.Helper()
	base := s.Start(t)
	var logged bytes.Buffer
	m, err := openai.New(openai.Config{BaseURL: base, Name: "m", Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return m, strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/v1"), &logged
}

func TestLearnsTheOrderOfMessages(t *testing.T) {
	s := agenttest.New(agenttest.RequireOrder(agenttest.Always(agenttest.Reply("fine"))))
	m, _, logged := modelWithLog(t, s)
	for range 2 {
		if _, err := askOnce(t, m, conversationWithCall("", "")); err != nil {
			t.Fatal(err)
		}
	}
	if s.Asked() != 3 {
		t.Errorf("asked %d times, want 3: the order is learned once", s.Asked())
	}
	if !strings.Contains(logged.String(), "user after tool") {
		t.Errorf("logged %q", logged)
	}
	for status, body := range map[int]string{
		http.StatusInternalServerError: `{"error":{"code":500,"message":"Value is not callable: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results","type":"server_error"}}`,
		http.StatusBadRequest:          `{"error":{"message":"Unexpected role 'user' after role 'tool'","type":"BadRequestError","code":400}}`,
	} {
		s := agenttest.New(func(q agenttest.Request) agenttest.Response {
			if messages := q.Messages(); messages[len(messages)-2].Role == "tool" {
				return agenttest.Fail(status, body)
			}
			return agenttest.Reply("fine")
		})
		m, _, _ := modelWithLog(t, s)
		if _, err := askOnce(t, m, conversationWithCall("", "")); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A server that requires the model's thinking gets the original if the conversation has it, and a placeholder if the
// conversation has lost it.
func TestOneConversationWithoutItsThoughtsBreaksNoOther(t *testing.T) {
	s := agenttest.New(agenttest.RequireThoughts(agenttest.Always(agenttest.Reply("fine"))))
	m, host, _ := modelWithLog(t, s)
	thought := func() any {
		q := s.Requests()[s.Asked()-1]
		var body struct {
			Messages []map[string]any `json:"messages"`
		}
		if err := q.Decode(&body); err != nil {
			t.Fatal(err)
		}
		return body.Messages[1]["reasoning_content"]
	}
	for range 2 {
		if _, err := askOnce(t, m, conversationWithCall(host, "I must look.")); err != nil {
			t.Fatalf("with its thoughts: %v", err)
		}
		if thought() != "I must look." {
			t.Errorf("sent the thought %q", thought())
		}
		if _, err := askOnce(t, m, conversationWithCall("elsewhere", "")); err != nil {
			t.Fatalf("without: %v", err)
		}
		if thought() == nil || thought() == "" {
			t.Errorf("sent the thought %q", thought())
		}
	}
}

// If a server rejects the thinking of one conversation, other conversations keep theirs.
func TestOneConversationWithBadThoughtsBreaksNoOther(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if bytes.Contains(q.Body, []byte("bad")) {
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"messages.1: Invalid signature in reasoning_details"}}`)
		}
		return agenttest.Reply("fine")
	})
	m, host, _ := modelWithLog(t, s)
	for range 2 {
		if _, err := askOnce(t, m, conversationWithCall(host, "bad")); err != nil {
			t.Fatal(err)
		}
		if _, err := askOnce(t, m, conversationWithCall(host, "good")); err != nil {
			t.Fatal(err)
		}
		if last := s.Requests()[s.Asked()-1]; !bytes.Contains(last.Body, []byte("good")) {
			t.Error("the thoughts of a conversation were left out for those of another")
		}
	}
}

// A refusal in the middle of an answer teaches the dialect too. But the emitted text is void, and only the caller can
// tell its watchers, so the model isn't asked again.
func TestARefusalAfterTextIsNotAskedAgainInSecret(t *testing.T) {
	s := agenttest.New(agenttest.Sequence(
		agenttest.Stream(textEvent("half "), `{"error":{"message":"Unrecognized request argument: stream_options","code":400}}`),
		agenttest.Reply("whole")))
	m, _, _ := modelWithLog(t, s)
	var streamed string
	take := func(d llm.Delta) { streamed += d.Text }
	_, err := m.Generate(t.Context(), helloRequest(), take)
	if e := wantFault(t, err); e.Fault != llm.Busy || streamed != "half " {
		t.Fatalf("error %v after %q", err, streamed)
	}
	streamed = ""
	if _, err := m.Generate(t.Context(), helloRequest(), take); err != nil || streamed != "whole" {
		t.Errorf("asked again: %q, %v", streamed, err)
	}
	if bytes.Contains(s.Requests()[1].Body, []byte("stream_options")) {
		t.Error("nothing was learned")
	}
}

func TestMalformedOutputMayBeRetried(t *testing.T) {
	for _, body := range []string{
		`{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=x"}}`,
		`{"error":{"message":"Parsing failed.","type":"invalid_request_error","code":"output_parse_failed"}}`,
	} {
		_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Fail(http.StatusBadRequest, body)))), helloRequest())
		if e := wantFault(t, err); e.Fault != llm.Busy {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestStatusesInTheStream(t *testing.T) {
	cases := map[string]struct {
		event  string
		status int
		fault  llm.Fault
	}{
		"beside the error":  {`{"error":{"message":"no"},"status_code":400}`, 400, llm.Rejected},
		"within the error":  {`{"error":{"message":"no","status_code":401}}`, 401, llm.Refused},
		"as the code":       {`{"error":{"message":"no","code":"429"}}`, 429, llm.Busy},
		"as the status":     {`{"error":{"message":"no","status":503}}`, 503, llm.Busy},
		"the code of a bad": {`{"error":{"message":"no","code":"invalid_x","statusCode":422}}`, 422, llm.Rejected},
		"code beside":       {`{"error":"no","code":402}`, 402, llm.Refused},
	}
	for name, tc := range cases {
		_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.Stream(tc.event).Stall()))), helloRequest())
		if e := wantFault(t, err); e.Status != tc.status || e.Fault != tc.fault {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestTheFirstModelIsOneThatChats(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	s.Models = []string{"text-embedding-nomic-embed-text-v1.5", "bge-m3", "whisper-1", "qwen3-8b"}
	name, err := openai.FirstModel(t.Context(), openai.Config{BaseURL: s.Start(t)})
	if err != nil || name != "qwen3-8b" {
		t.Errorf("first model %q, %v", name, err)
	}
	s = agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	s.Models = []string{"bge-m3"}
	if name, err := openai.FirstModel(t.Context(), openai.Config{BaseURL: s.Start(t)}); err == nil {
		t.Errorf("first model %q, though it does not chat", name)
	}
}

// The client understands the quirks of servers that the fake models imitate.
func TestTheFakeServersQuirks(t *testing.T) {
	for name, tc := range map[string]struct {
		response agenttest.Response
		text     string
	}{
		"halves of characters": {agenttest.SplitSurrogates("Sky 🌌🦜, \"blue\""), "Sky 🌌🦜, \"blue\""},
		"usage as texts":       {agenttest.Reply("The sky.").WithUsageAsTexts(), "The sky."},
		"a bare end":           {agenttest.BareThinking("Hm.", "The sky."), "The sky."},
	} {
		a := answerOf(t, tc.response)
		if got := a.Blocks[len(a.Blocks)-1]; got.Kind != llm.BlockText || got.Text != tc.text || a.Usage.Input != 100 || a.Usage.Output != 10 || a.Usage.Estimated {
			t.Errorf("%s: %+v", name, a)
		}
	}
	_, err := askOnce(t, scriptedModel(t, agenttest.New(agenttest.Always(agenttest.BrokenAfterUsage("The sk")))), helloRequest())
	if e := wantFault(t, err); e.Fault != llm.Busy || e.Void == nil || e.Void.Usage.Input != 100 || e.Void.Usage.Output != 10 {
		t.Errorf("an answer that breaks off after its usage: %+v", e)
	}
}
