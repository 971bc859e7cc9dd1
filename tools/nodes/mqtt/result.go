package mqtt

import (
	"encoding/json"
	"strings"

	"parley/tools/plainjson"
)

// said is what an agent says of how a command has ended, beside its status.
type said struct {
	Result   json.RawMessage `json:"result,omitempty"`
	Stderr   json.RawMessage `json:"stderr,omitempty"`
	ExitCode json.RawMessage `json:"exit_code,omitempty"`
}

// json returns it as models read it.
func (s said) json() (json.RawMessage, error) { return plainjson.Marshal(s) }

// after appends it to the text of a failure: the output of a command that has failed tells why.
func (s said) after(failure string) string {
	if failure == "" {
		failure = textNoReason
	}
	for _, part := range []struct {
		name  string
		value json.RawMessage
	}{{"exit code", s.ExitCode}, {"stderr", s.Stderr}, {"result", s.Result}} {
		if text := plain(part.value); text != "" {
			failure += "\n" + part.name + ": " + text
		}
	}
	return failure
}

// plain returns a JSON value as text: a string without its quotes, and null as nothing.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return strings.TrimSpace(text)
	}
	return string(value)
}
