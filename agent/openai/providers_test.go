package openai_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/tools"
)

// modelAtAddress returns a model at an address whose connections end at a scripted server.
func modelAtAddress(t *testing.T, address string, s *agenttest.Server, change ...func(*openai.Config)) *openai.Model {
	t.Helper()
	there := strings.TrimSuffix(strings.TrimPrefix(s.Start(t), "http://"), "/v1")
	cfg := openai.Config{BaseURL: address, APIKey: testKey, Name: "m", Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, there)
		},
	}}
	for _, c := range change {
		c(&cfg)
	}
	m, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// toolRequest returns a request with a tool and an earlier call.
func toolRequest() *llm.Request {
	r := conversationWithCall("", "")
	r.System = "You are Parley."
	r.Tools = []tools.Spec{{Name: "x", Description: "does x", Schema: json.RawMessage(`{"type":"object"}`)}}
	return r
}

// Azure's older addresses name the version of its interface, and its key has a header of
// its own.
func TestAzure(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	m := modelAtAddress(t, "http://here.openai.azure.com/openai/deployments/mine?api-version=2024-10-21", s)
	if _, err := askOnce(t, m, helloRequest()); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	if r.Path != "/openai/deployments/mine/chat/completions" || r.Query != "api-version=2024-10-21" {
		t.Errorf("it was asked at %s?%s", r.Path, r.Query)
	}
	if r.Header.Get("Api-Key") != testKey || r.Header.Get("Authorization") != "" {
		t.Errorf("the key is sent as %q and %q", r.Header.Get("Api-Key"), r.Header.Get("Authorization"))
	}
	for _, address := range []string{"http://models.example.com/v1?api-version=1", "http://here.openai.azure.com/openai?key=1"} {
		if _, err := openai.New(openai.Config{BaseURL: address, Name: "m"}); err == nil {
			t.Errorf("%s was taken", address)
		}
	}
}

// The known properties of a provider don't have to be learned from a refusal.
func TestKnownProvidersAreNotAskedTwice(t *testing.T) {
	for _, c := range []struct {
		address string
		has     map[string]bool // of fields of the request
	}{
		{"http://api.openai.com/v1", map[string]bool{"max_completion_tokens": true, "max_tokens": false, "prompt_cache_key": true}},
		{"http://api.cerebras.ai/v1", map[string]bool{"max_completion_tokens": true, "max_tokens": false, "prompt_cache_key": false}},
		{"http://models.example.com/v1", map[string]bool{"max_completion_tokens": false, "max_tokens": true, "prompt_cache_key": false}},
	} {
		s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
		r := helloRequest()
		r.MaxTokens = 100
		if _, err := askOnce(t, modelAtAddress(t, c.address, s), r); err != nil {
			t.Fatal(err)
		}
		body := sentBody(t, s, 1)
		for field, want := range c.has {
			if _, there := body[field]; there != want {
				t.Errorf("%s: %s is there: %v, want %v", c.address, field, there, want)
			}
		}
	}
	s := agenttest.New(agenttest.RequireOrder(agenttest.Always(agenttest.Reply("fine"))))
	if _, err := askOnce(t, modelAtAddress(t, "http://api.mistral.ai/v1", s), conversationWithCall("", "")); err != nil || s.Asked() != 1 {
		t.Errorf("Mistral was asked %d times (%v), want once: its order is known", s.Asked(), err)
	}
}

// A model whose name only resembles OpenAI's is asked as its own server wants.
func TestAModelsNameMattersOnlyAtItsProvider(t *testing.T) {
	for _, name := range []string{"o1", "o3-mini", "gpt-5.4-at-home", "gpt-6", "my-codex-pro"} {
		s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
		r := toolRequest()
		r.MaxTokens = 100
		if _, err := askOnce(t, scriptedModel(t, s, func(c *openai.Config) { c.Name = name }), r); err != nil {
			t.Fatal(err)
		}
		if body := sentBody(t, s, 1); s.Asked() != 1 || s.Requests()[0].Path != "/v1/chat/completions" || body["max_tokens"] != 100.0 || body["model"] != name {
			t.Errorf("%s was asked %d times at %s: %v", name, s.Asked(), s.Requests()[0].Path, body)
		}
	}
}

// All requests of one conversation have the same cache key, and other conversations have others.
func TestOneCacheKeyForAConversation(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if len(q.Messages()) > 4 {
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"Unknown parameter: 'prompt_cache_key'.","param":"prompt_cache_key"}}`)
		}
		return agenttest.Reply("fine")
	})
	m := modelAtAddress(t, "http://api.openai.com/v1", s)
	other := helloRequest()
	other.Messages[0].Blocks[0].Text = "good evening"
	for _, r := range []*llm.Request{helloRequest(), conversationWithCall("", ""), other} {
		if _, err := askOnce(t, m, r); err != nil {
			t.Fatal(err)
		}
	}
	first, second, third := sentBody(t, s, 1)["prompt_cache_key"], sentBody(t, s, 2)["prompt_cache_key"], sentBody(t, s, 3)["prompt_cache_key"]
	if first == "" || first != second || first == third {
		t.Errorf("the keys are %v and %v, and of another conversation %v", first, second, third)
	}
	longer := conversationWithCall("", "")
	longer.Messages = append(longer.Messages, newMessage(llm.RoleAssistant, textBlock("well")), newMessage(llm.RoleUser, textBlock("and?")))
	asked := s.Asked()
	_, err := askOnce(t, m, longer)
	if fault := err; fault == nil {
		t.Error("a server that refuses each request was satisfied")
	}
	if _, there := sentBody(t, s, s.Asked())["prompt_cache_key"]; there || s.Asked() != asked+2 {
		t.Errorf("after %d more requests the key is still there: %v", s.Asked()-asked, there)
	}
}

// Requests to Anthropic's models at OpenRouter mark how much of them is worth caching.
func TestMarksForTheCache(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	named := func(name string) func(*openai.Config) { return func(c *openai.Config) { c.Name = name } }
	if _, err := askOnce(t, modelAtAddress(t, "http://openrouter.ai/api/v1", s, named("anthropic/claude")), toolRequest()); err != nil {
		t.Fatal(err)
	}
	messages := sentBody(t, s, 1)["messages"].([]any)
	wantJSON(t, messages[0], `{"role":"system","content":[{"type":"text","text":"You are Parley.","cache_control":{"type":"ephemeral"}}]}`)
	wantJSON(t, messages[len(messages)-1], `{"role":"user","content":[{"type":"text","text":"and now?","cache_control":{"type":"ephemeral"}}]}`)
	if raw := string(s.Requests()[0].Body); strings.Count(raw, "cache_control") != 2 {
		t.Errorf("marked elsewhere too: %s", raw)
	}
	if _, err := askOnce(t, modelAtAddress(t, "http://openrouter.ai/api/v1", s, named("openai/gpt")), toolRequest()); err != nil || strings.Contains(string(s.Requests()[1].Body), "cache_control") {
		t.Errorf("another model's request is marked (%v)", err)
	}
}

// A model that accepts no tools is asked without them. It is told so, and earlier calls are described in words.
func TestAModelWithoutTools(t *testing.T) {
	for name, refusal := range map[string]agenttest.Response{
		"Ollama":     agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"api_error"}}`),
		"OpenRouter": agenttest.Fail(http.StatusNotFound, `{"error":{"message":"No endpoints found that support tool use. Try disabling \"x\".","code":404}}`),
		"vLLM":       agenttest.Fail(http.StatusBadRequest, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`),
		"llama.cpp":  agenttest.Fail(http.StatusInternalServerError, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`),
	} {
		s := agenttest.New(func(q agenttest.Request) agenttest.Response {
			if len(q.Tools()) > 0 {
				return refusal
			}
			return agenttest.Reply("fine")
		})
		m, _, logged := modelWithLog(t, s)
		for range 2 {
			if _, err := askOnce(t, m, toolRequest()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if s.Asked() != 3 || !m.Info().Toolless || !strings.Contains(logged.String(), "about=tools") {
			t.Errorf("%s: asked %d times, want 3; it is known: %v; logged %q", name, s.Asked(), m.Info().Toolless, logged)
		}
		body := string(s.Requests()[2].Body)
		for _, want := range []string{"takes no tools", "[I called x with {}]", "[its result: {}]"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the request has no %q: %s", name, want, body)
			}
		}
		for _, not := range []string{`"tool_calls"`, `"role":"tool"`, `"tools"`} {
			if strings.Contains(body, not) {
				t.Errorf("%s: the request has %s: %s", name, not, body)
			}
		}
	}
	s := agenttest.New(agenttest.Always(agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"Invalid schema for function 'x'"}}`)))
	m, _, _ := modelWithLog(t, s)
	if _, err := askOnce(t, m, toolRequest()); err == nil || m.Info().Toolless {
		t.Errorf("a complaint about one tool took all away (%v)", err)
	}
}

// Configured fields are part of each request, and can't replace fields that this package writes.
func TestConfiguredFieldsAreSent(t *testing.T) {
	s := agenttest.New(agenttest.Always(agenttest.Reply("fine")))
	m := scriptedModel(t, s, func(c *openai.Config) {
		c.Effort, c.Header, c.Body = "low", http.Header{"X-Title": {"Parley"}}, json.RawMessage(` {"top_p": 0.9, "provider": {"order": ["a"]}} `)
	})
	if _, err := askOnce(t, m, helloRequest()); err != nil {
		t.Fatal(err)
	}
	body := sentBody(t, s, 1)
	wantJSON(t, body["provider"], `{"order":["a"]}`)
	if body["top_p"] != 0.9 || body["reasoning_effort"] != "low" || body["model"] != "m" || s.Requests()[0].Header.Get("X-Title") != "Parley" {
		t.Errorf("sent %v with %v", body, s.Requests()[0].Header)
	}
	for _, body := range []string{`{"model":"x"}`, `[]`, `{}`, `{"messages":[]}`} {
		if _, err := openai.New(openai.Config{Name: "m", BaseURL: "http://127.0.0.1/v1", Body: json.RawMessage(body)}); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
}

// A server that does not know reasoning_effort is asked without it.
func TestEffortIsUnknown(t *testing.T) {
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if strings.Contains(string(q.Body), "reasoning_effort") {
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}`)
		}
		return agenttest.Reply("fine")
	})
	m := scriptedModel(t, s, func(c *openai.Config) { c.Effort = "high" })
	for range 2 {
		if _, err := askOnce(t, m, toolRequest()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Asked() != 3 {
		t.Errorf("asked %d times, want 3", s.Asked())
	}
}
