package wire_test

import (
	"encoding/json"
	"testing"

	"parley/agent/openai/wire"
)

// Servers write numbers of tokens as integers, as fractions, or not at all.
func TestNumbersOfTokensAreReadInAllForms(t *testing.T) {
	for written, want := range map[string]int64{"12": 12, "12.0": 12, "1.2e1": 12, "null": 0, "9007199254740993": 1 << 53, "-3": 0, `"12"`: 12, `" 12.0 "`: 12, `""`: 0} {
		var r wire.Usage
		if err := json.Unmarshal([]byte(`{"completion_tokens": 5, "prompt_tokens": `+written+`}`), &r); err != nil {
			t.Errorf("%s: %v", written, err)
			continue
		}
		if got := wire.UsageOf(&r, 1, 1); got.Input != want || got.Output != 5 || got.Estimated {
			t.Errorf("%s is read as %+v, want %d tokens", written, got, want)
		}
	}
	var r wire.Usage
	if err := json.Unmarshal([]byte(`{"prompt_tokens": "many"}`), &r); err == nil {
		t.Errorf("a text is read as %v tokens", r.Prompt)
	}
}
