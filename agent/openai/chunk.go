package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent/openai/wire"
)

// A chunk is one event of an answer, with the fields that any of the servers send. An answer that is not a
// stream has the same form, with "message" instead of "delta".
type chunk struct {
	Choices []json.RawMessage `json:"choices"` // decoded one at a time, so that an event with many choices costs little
	chunkFields
}

// A smallChunk is a chunk of at most maxSmallChunk bytes. It can't have so many choices that decoding all of
// them at once would cost much. An answer consists of hundreds of these.
type smallChunk struct {
	Choices []choice `json:"choices"`
	chunkFields
}

const maxSmallChunk = 4 << 10

// chunkFields are the fields of a chunk other than its choices.
type chunkFields struct {
	Usage   *wire.Usage     `json:"usage"`
	Groq    *groq           `json:"x_groq"`
	Error   json.RawMessage `json:"error"`
	Object  wire.String     `json:"object"`  // "error" if the other fields are an error
	Message json.RawMessage `json:"message"` // an error's message, if there are no choices
	// An error in the forms of FastAPI, watsonx and others, if there are no choices.
	Detail json.RawMessage `json:"detail"`
	Errors json.RawMessage `json:"errors"`
	Msg    wire.String     `json:"msg"`
	// Status is the status that MiniMax sends with each answer.
	Status *minimaxStatus `json:"base_resp"`
}

// isFailure reports whether the event says that the server failed. choices is how many choices the event has.
func (c *chunkFields) isFailure(choices int) bool {
	switch {
	case !wire.IsEmpty(c.Error), c.Object == "error", c.Status != nil && c.Status.isFailure():
		return true
	case choices > 0:
		return false
	}
	return len(c.Message) > 2 && c.Message[0] == '"' || !wire.IsEmpty(c.Detail) || !wire.IsEmpty(c.Errors) || c.Msg != ""
}

// usage returns the usage that a chunk reports, or nil if it reports none.
func (c *chunkFields) usage() *wire.Usage {
	if c.Usage == nil && c.Groq != nil {
		return c.Groq.Usage
	}
	return c.Usage
}

// groq is the field in which Groq reports usage.
type groq struct {
	Usage *wire.Usage `json:"usage"`
}

// A choice is one alternative of the answer; Parley asks for only one. Servers that send whole messages set
// Message.
type choice struct {
	Index   wire.Int        `json:"index"`
	Delta   delta           `json:"delta"`
	Message *delta          `json:"message"`
	Finish  wire.String     `json:"finish_reason"`
	Usage   *wire.Usage     `json:"usage"` // where Moonshot sends it
	Error   json.RawMessage `json:"error"`
}

// A delta is what one event adds to the answer.
type delta struct {
	Content          content           `json:"content"`
	Refusal          wire.Text         `json:"refusal"`
	ReasoningContent content           `json:"reasoning_content"`
	Reasoning        content           `json:"reasoning"`
	ReasoningDetails json.RawMessage   `json:"reasoning_details"`
	ExtraContent     json.RawMessage   `json:"extra_content"`
	ToolCalls        []json.RawMessage `json:"tool_calls"`
}

// thinkingText returns the thinking in a delta, or "" if there is none. Some servers send the same thinking in
// two fields; only the first counts.
func (d *delta) thinkingText() string {
	for _, c := range []string{d.ReasoningContent.thinkingThenText(), d.Reasoning.thinkingThenText()} {
		if c != "" {
			return c
		}
	}
	return d.Content.thinking
}

// keepThinking writes text, a piece of d's thinking, into a field of another delta: ReasoningContent if that is where
// d has its thinking, or else Reasoning. The field matters: only thinking in ReasoningContent sets Echo (see
// addThinkingOf).
func (d *delta) keepThinking(into *delta, text string) {
	if d.ReasoningContent.thinkingThenText() != "" {
		into.ReasoningContent.text = text
	} else {
		into.Reasoning.text = text
	}
}

// A callDelta is one part of a tool call.
type callDelta struct {
	Index    *wire.Int   `json:"index"`
	ID       wire.String `json:"id"`
	Function struct {
		Name      wire.String `json:"name"`
		Arguments wire.Text   `json:"arguments"` // JSON in a string; some servers send the JSON object itself
	} `json:"function"`
	callExtra
}

// content is the text of a message. Some servers send it as a list of parts that may include thinking. The
// texts are pieces for a wire.Joiner.
type content struct {
	text     string
	thinking string
}

// Limits on content: how deeply its parts may be nested, and how many there may be.
const (
	maxPartDepth = 4
	maxParts     = 4096
)

// UnmarshalJSON reads a string, a part, or a list of either.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = content{}
	return c.read(b, maxPartDepth)
}

// read reads content whose parts are nested at most depth levels deep.
func (c *content) read(b []byte, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%w: content within content", errGarbled)
	}
	switch b[0] {
	case '"':
		return (*wire.Text)(&c.text).UnmarshalJSON(b)
	case '[':
		return c.readParts(b, depth)
	case '{':
		var part struct {
			Text     wire.Text       `json:"text"`
			Thinking json.RawMessage `json:"thinking"`
		}
		if err := json.Unmarshal(b, &part); err != nil {
			return err
		}
		var thinking content
		if !wire.IsEmpty(part.Thinking) {
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

// thinkingThenText returns the thinking, followed by the text.
func (c content) thinkingThenText() string { return c.thinking + c.text }
