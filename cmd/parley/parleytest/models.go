package parleytest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"strings"

	"parley/agent/agenttest"
)

// EchoModel plays a model that answers "you said X" to X.
func EchoModel(r agenttest.Request) agenttest.Response {
	return agenttest.Reply("you said " + r.Said())
}

// ToolsModel plays a model that makes a round of calls with a tool of each effect, sends a message to chat 3, and answers
// with the results.
func ToolsModel(r agenttest.Request) agenttest.Response {
	switch r.Rounds() {
	case 0:
		return agenttest.Calls(
			agenttest.Call("write_file", `{"path":"a.txt","content":"one two"}`),
			agenttest.Call("memory_write", `{"content":"remembered"}`),
		)
	case 1:
		return agenttest.Calls(
			agenttest.Call("edit_file", `{"path":"a.txt","old_text":"two","new_text":"three"}`),
			agenttest.Call("message", `{"channel":"telegram","chat_id":"3","content":"hello from 2"}`),
		)
	case 2:
		return agenttest.Calls(
			agenttest.Call("read_file", `{"path":"a.txt"}`),
			agenttest.Call("memory_read", `{}`),
		)
	}
	return agenttest.Reply(strings.Join(r.Results(), " "))
}

// Costs returns an answer for which the model's provider charges this amount.
func Costs(dollars string) agenttest.Response {
	return agenttest.Stream(`{"choices":[{"delta":{"content":"fine"},"finish_reason":"stop"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"cost":`+dollars+`}}`, "[DONE]")
}

// Beholder plays a model that answers with what it was shown: the colors of pictures, and the attachments.
func Beholder(r agenttest.Request) agenttest.Response {
	messages := r.Messages()
	last := messages[len(messages)-1]
	var seen []string
	for _, p := range last.Pictures {
		_, data, _ := strings.Cut(p, ";base64,")
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return agenttest.Reply("a picture cannot be decoded")
		}
		shown, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			return agenttest.Reply("a picture cannot be read: " + err.Error())
		}
		red, _, _, _ := shown.At(0, 0).RGBA()
		seen = append(seen, fmt.Sprintf("red %d", red>>8))
	}
	for line := range strings.Lines(last.Content) {
		if _, rest, ok := strings.Cut(line, "<attachment "); ok {
			seen = append(seen, strings.TrimSpace(rest))
		}
	}
	return agenttest.Reply(r.Said() + ": " + strings.Join(seen, "; "))
}
