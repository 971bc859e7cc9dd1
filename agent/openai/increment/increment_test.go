package increment_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"parley/agent/openai/increment"
)

var increments = map[string]string{
	`{"id":"c-1","object":"chat.completion.chunk","created":1751378324,"model":"gpt-5-mini","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"k2"}`: " word",
	`{ "choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]} `:                                                                                                                                                           "",
	`{"choices":[{"delta":{"content":"ü 🦜"}}]}`: "ü 🦜",
	`{"choices":[{"delta":{"content":null}}]}`:  "",
	`{"choices":[{"delta":{}}]}`:                "",
}

// others are events that another reader has to read.
var others = []string{
	``, `{}`, `[]`, `[DONE]`, `{"choices":[]}`, `{"choices":null}`, `{"choices":[{}]}`, `{"choices":[{"index":1,"delta":{"content":"x"}}]}`,
	`{"choices":[{"delta":{"content":"x"}},{"delta":{"content":"y"}}]}`, `{"choices":[{"delta":{"content":"x"},"delta":{"content":"y"}}]}`,
	`{"choices":[{"delta":{"content":"x","content":"y"}}]}`, `{"choices":[{"delta":{"content":"x"}}],"choices":[{"delta":{"content":"y"}}]}`,
	`{"choices":[{"delta":{"content":"a\nb"}}]}`, `{"choices":[{"delta":{"content":["x"]}}]}`, `{"choices":[{"delta":{"content":"x","tool_calls":[]}}]}`,
	`{"choices":[{"delta":{"content":"x","reasoning":"y"}}]}`, `{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":1}}`, `{"error":{"message":"x"},"choices":[{"delta":{"content":"x"}}]}`,
	`{"object":"error","choices":[{"delta":{"content":"x"}}]}`, `{"Choices":[{"delta":{"content":"x"}}]}`, `{"choices":[{"delta":{"Content":"x"}}]}`,
	`{"choices":[{"delta":{"content":"x"}}],"choices":[{}]}`, `{"choices":[{"delta":{"content":"x"}}]`, `{"choices":[{"delta":{"content":"x"}}]}}`, `{"choices":[{"delta":{"content":"x"}}],}`, "{\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}",
	`{"created":01,"choices":[{"delta":{"content":"x"}}]}`, `{"created":,"choices":[{"delta":{"content":"x"}}]}`, `{"choices":[{"delta":{"content":nullx}}]}`,
}

func TestText(t *testing.T) {
	for event, want := range increments {
		if got, ok := increment.Text([]byte(event)); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", event, got, ok, want)
		}
	}
	for _, event := range others {
		if got, ok := increment.Text([]byte(event)); ok {
			t.Errorf("%s: %q, want it left to others", event, got)
		}
	}
}

// FuzzText checks that what is read as an increment is JSON that says this and nothing else.
func FuzzText(f *testing.F) {
	for event := range increments {
		f.Add([]byte(event))
	}
	for _, event := range others {
		f.Add([]byte(event))
	}
	f.Fuzz(func(t *testing.T, event []byte) {
		got, ok := increment.Text(event)
		if !ok {
			return
		}
		var all map[string]any
		if err := json.Unmarshal(event, &all); err != nil {
			t.Fatalf("%q is no JSON: %v", event, err)
		}
		choices, _ := all["choices"].([]any)
		if len(choices) != 1 || all["usage"] != nil || all["error"] != nil || all["object"] == "error" {
			t.Fatalf("%q says more", event)
		}
		choice, _ := choices[0].(map[string]any)
		delta, _ := choice["delta"].(map[string]any)
		text, _ := delta["content"].(string)
		if index, set := choice["index"]; text != got || choice["finish_reason"] != nil || set && !reflect.DeepEqual(index, 0.0) {
			t.Fatalf("%q says %q, not %q alone", event, text, got)
		}
	})
}
