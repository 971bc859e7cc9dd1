package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A chunk is one event of an answer, in the form of any of the servers. An answer that
// is no stream has the same shape, with a "message" in place of "delta".
type chunk struct {
	Choices []json.RawMessage `json:"choices"` // each is decoded alone, to keep an event with many choices cheap
	Usage   *wireUsage        `json:"usage"`
	Groq    *groq             `json:"x_groq"`
	Error   json.RawMessage   `json:"error"`
	Object  flexible          `json:"object"`  // "error" if the other fields are an error
	Message json.RawMessage   `json:"message"` // an error's message, if there are no choices
}

// groq is the field in which Groq reports usage.
type groq struct {
	Usage *wireUsage `json:"usage"`
}

// A choice is one alternative of the answer; Parley asks for one only. Message is set by
// servers that send whole messages.
type choice struct {
	Index   int             `json:"index"`
	Delta   delta           `json:"delta"`
	Message *delta          `json:"message"`
	Finish  flexible        `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

// A delta is what one event adds to the answer.
type delta struct {
	Content          content           `json:"content"`
	Refusal          flexible          `json:"refusal"`
	ReasoningContent content           `json:"reasoning_content"`
	Reasoning        content           `json:"reasoning"`
	ReasoningDetails json.RawMessage   `json:"reasoning_details"`
	ExtraContent     json.RawMessage   `json:"extra_content"`
	ToolCalls        []json.RawMessage `json:"tool_calls"`
}

// thinkingText returns the thinking in a delta, "" if there is none. Some servers send
// the same thinking in two fields.
func (d delta) thinkingText() string {
	for _, c := range []string{d.ReasoningContent.thinkingThenText(), d.Reasoning.thinkingThenText()} {
		if c != "" {
			return c
		}
	}
	return d.Content.thinking
}

// keepThinking writes text into the field of another delta in which d has its own
// thinking.
func (d delta) keepThinking(into *delta, text string) {
	if d.ReasoningContent.thinkingThenText() != "" {
		into.ReasoningContent.text = text
	} else {
		into.Reasoning.text = text
	}
}

// A callDelta is one part of a tool call.
type callDelta struct {
	Index    *int     `json:"index"`
	ID       flexible `json:"id"`
	Function struct {
		Name      flexible  `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
	callExtra
}

// A flexible is a string that some servers write as a number, or as null.
type flexible string

// UnmarshalJSON reads a string, or keeps the JSON text of any other value; an empty
// value becomes "".
func (f *flexible) UnmarshalJSON(b []byte) error {
	*f = ""
	switch {
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(f))
	case !isEmpty(b):
		*f = flexible(b)
	}
	return nil
}

// arguments are JSON within a string. Some servers send the JSON object itself.
type arguments string

// UnmarshalJSON reads a string or an object.
func (a *arguments) UnmarshalJSON(b []byte) error { return (*flexible)(a).UnmarshalJSON(b) }

// content is the text of a message. Some servers send it as a list of parts, with
// thinking among them.
type content struct {
	text     string
	thinking string
}

// Bounds of content: how deep its parts may be nested, and how many there may be.
const (
	maxPartDepth = 4
	maxParts     = 4096
)

// UnmarshalJSON reads a string, a part, or a list of either.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = content{}
	return c.read(b, maxPartDepth)
}

// read reads content in which at most depth levels of parts are nested.
func (c *content) read(b []byte, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%w: content within content", errGarbled)
	}
	switch b[0] {
	case '"':
		return json.Unmarshal(b, &c.text)
	case '[':
		return c.readParts(b, depth)
	case '{':
		var part struct {
			Text     flexible        `json:"text"`
			Thinking json.RawMessage `json:"thinking"`
		}
		if err := json.Unmarshal(b, &part); err != nil {
			return err
		}
		var thinking content
		if !isEmpty(part.Thinking) {
			if err := thinking.read(part.Thinking, depth-1); err != nil {
				return err
			}
		}
		c.text, c.thinking = string(part.Text), thinking.thinkingThenText()
	}
	return nil
}

// readParts reads a list of parts and joins their texts.
func (c *content) readParts(b []byte, depth int) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) > maxParts {
		return fmt.Errorf("%w: content in %d parts", errGarbled, len(parts))
	}
	var text, thinking strings.Builder
	for _, raw := range parts {
		var p content
		if err := p.read(raw, depth-1); err != nil {
			return err
		}
		text.WriteString(p.text)
		thinking.WriteString(p.thinking)
	}
	c.text, c.thinking = text.String(), thinking.String()
	return nil
}

// thinkingThenText returns the thinking followed by the text.
func (c content) thinkingThenText() string { return c.thinking + c.text }

// isEmpty reports whether a field is absent or has an empty value.
func isEmpty(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", `""`, "{}", "[]":
		return true
	}
	return false
}

// objectOf returns the arguments that a model wrote as a JSON object. If the text is no
// JSON, it returns the text as a JSON string.
func objectOf(written string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(written))
	if isEmpty(raw) {
		return json.RawMessage(`{}`)
	}
	if rest, ok := bytes.CutPrefix(raw, []byte("{}")); ok && len(rest) > 0 && rest[0] == '{' {
		raw = rest // some servers send an empty object before the arguments
	}
	if raw[0] == '"' { // the arguments were encoded twice
		var inner string
		if json.Unmarshal(raw, &inner) == nil && json.Valid([]byte(inner)) && strings.HasPrefix(strings.TrimSpace(inner), "{") {
			raw = []byte(inner)
		}
	}
	if json.Valid(raw) {
		return raw
	}
	text, err := json.Marshal(written)
	if err != nil { // a string always marshals
		return json.RawMessage(`""`)
	}
	return text
}
