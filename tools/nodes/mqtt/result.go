package mqtt

import (
	"encoding/json"
	"strings"

	"parley/tools/plainjson"
)

// A commandOutput is an agent's report of a command, without its status.
type commandOutput struct {
	Result   json.RawMessage `json:"result,omitempty"`
	Stderr   json.RawMessage `json:"stderr,omitempty"`
	ExitCode json.RawMessage `json:"exit_code,omitempty"`
}

// json returns the output in the form that models read.
func (s commandOutput) json() (json.RawMessage, error) { return plainjson.Marshal(s) }

// appendTo appends the output to the text of a failure, because the output of a failed command explains it.
func (s commandOutput) appendTo(failure string) string {
	if failure == "" {
		failure = textNoReason
	}
	for _, part := range []struct {
		name  string
		value json.RawMessage
	}{{"exit code", s.ExitCode}, {"stderr", s.Stderr}, {"result", s.Result}} {
		if text := plainText(part.value); text != "" {
			failure += "\n" + part.name + ": " + text
		}
	}
	return failure
}

// plainText returns a JSON value as text: a string without its quotes, and null as nothing.
func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return strings.TrimSpace(text)
	}
	return string(value)
}
