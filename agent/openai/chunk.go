package openai

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A chunk is one event of an answer, as any of the servers writes it. A whole
// answer that is no stream has the same shape, with a message for a delta.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Groq    *groq           `json:"x_groq"`
	Error   json.RawMessage `json:"error"`
	Object  flexible        `json:"object"` // "error": the rest is one
}

type groq struct {
	Usage *usage `json:"usage"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   delta           `json:"delta"`
	Message *delta          `json:"message"`
	Finish  flexible        `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

type delta struct {
	Content          content         `json:"content"`
	Refusal          flexible        `json:"refusal"`
	ReasoningContent content         `json:"reasoning_content"`
	Reasoning        content         `json:"reasoning"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	ExtraContent     json.RawMessage `json:"extra_content"`
	ToolCalls        []callDelta     `json:"tool_calls"`
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

type usage struct {
	Prompt     float64 `json:"prompt_tokens"`
	Completion float64 `json:"completion_tokens"`
	CacheHit   float64 `json:"prompt_cache_hit_tokens"`
	Details    *struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// flexible is a string that some servers write as a number, or as null.
type flexible string

// UnmarshalJSON takes what there is.
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

// arguments are JSON in a string; of some servers an object itself.
type arguments string

// UnmarshalJSON takes either.
func (a *arguments) UnmarshalJSON(b []byte) error { return (*flexible)(a).UnmarshalJSON(b) }

// content is text; of some servers a list of parts, thinking among them.
type content struct {
	text     string
	thinking string
}

// UnmarshalJSON takes a string, a part, or a list of either.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = content{}
	switch b[0] {
	case '"':
		return json.Unmarshal(b, &c.text)
	case '[':
		var parts []content
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			c.text += p.text
			c.thinking += p.thinking
		}
	case '{':
		var part struct {
			Text     flexible `json:"text"`
			Thinking content  `json:"thinking"`
		}
		if err := json.Unmarshal(b, &part); err != nil {
			return err
		}
		c.text, c.thinking = string(part.Text), part.Thinking.all()
	}
	return nil
}

func (c content) all() string { return c.thinking + c.text }

// missing tells whether a field is not there, or says that there is nothing.
func missing(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", `""`, "{}", "[]":
		return true
	}
	return false
}

// objectOf makes a JSON object of the arguments that a model wrote, wherever
// they can be read as one, and otherwise a JSON string of them.
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
