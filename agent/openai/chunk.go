package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A chunk is one event of an answer, as any of the servers writes it. A whole
// answer that is no stream has the same shape, with a message for a delta.
type chunk struct {
	Choices []json.RawMessage `json:"choices"` // each is decoded alone, so that many cost little
	Usage   *wireUsage        `json:"usage"`
	Groq    *groq             `json:"x_groq"`
	Error   json.RawMessage   `json:"error"`
	Object  flexible          `json:"object"`  // "error" if the rest is an error
	Message json.RawMessage   `json:"message"` // if there are no choices, an error's message
}

type groq struct {
	Usage *wireUsage `json:"usage"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   delta           `json:"delta"`
	Message *delta          `json:"message"`
	Finish  flexible        `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

type delta struct {
	Content          content           `json:"content"`
	Refusal          flexible          `json:"refusal"`
	ReasoningContent content           `json:"reasoning_content"`
	Reasoning        content           `json:"reasoning"`
	ReasoningDetails json.RawMessage   `json:"reasoning_details"`
	ExtraContent     json.RawMessage   `json:"extra_content"`
	ToolCalls        []json.RawMessage `json:"tool_calls"`
}

// thinking is the text that a model thought. Some servers send it in two fields.
func (d delta) thinking() string {
	for _, c := range []string{d.ReasoningContent.all(), d.Reasoning.all()} {
		if c != "" {
			return c
		}
	}
	return d.Content.thinking
}

// keepThinking puts text into the field of another delta in which d has its thinking.
func (d delta) keepThinking(into *delta, text string) {
	if d.ReasoningContent.all() != "" {
		into.ReasoningContent.text = text
	} else {
		into.Reasoning.text = text
	}
}

type callDelta struct {
	Index    *int     `json:"index"`
	ID       flexible `json:"id"`
	Function struct {
		Name      flexible  `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
	callExtra
}

// flexible is a string that some servers write as a number, or as null.
type flexible string

// UnmarshalJSON takes any JSON value.
func (f *flexible) UnmarshalJSON(b []byte) error {
	*f = ""
	switch {
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(f))
	case !missing(b):
		*f = flexible(b)
	}
	return nil
}

// arguments are JSON in a string. Some servers send the object itself.
type arguments string

// UnmarshalJSON takes a string or an object.
func (a *arguments) UnmarshalJSON(b []byte) error { return (*flexible)(a).UnmarshalJSON(b) }

// content is text. Some servers send a list of parts, thinking among them.
type content struct {
	text     string
	thinking string
}

// Bounds of how deep parts are nested in content, and how many there are.
const (
	maxPartDepth = 4
	maxParts     = 4096
)

// UnmarshalJSON takes a string, a part, or a list of either.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = content{}
	return c.read(b, maxPartDepth)
}

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
		if !missing(part.Thinking) {
			if err := thinking.read(part.Thinking, depth-1); err != nil {
				return err
			}
		}
		c.text, c.thinking = string(part.Text), thinking.all()
	}
	return nil
}

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

func (c content) all() string { return c.thinking + c.text }

// missing tells whether a field is absent or empty.
func missing(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", `""`, "{}", "[]":
		return true
	}
	return false
}

// objectOf is the arguments that a model wrote as a JSON object, or, if they cannot be
// read as one, as a JSON string.
func objectOf(written string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(written))
	if missing(raw) {
		return json.RawMessage(`{}`)
	}
	if rest, ok := bytes.CutPrefix(raw, []byte("{}")); ok && len(rest) > 0 && rest[0] == '{' {
		raw = rest // an empty start, and then the arguments
	}
	if raw[0] == '"' { // encoded twice
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
