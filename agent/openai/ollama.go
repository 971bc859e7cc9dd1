package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/agent/openai/wire"
)

// Ollama speaks chat completions, but then loads a model with a window of its own choice. Its own protocol lets
// each request set the size of the window. Parley uses it if the configuration sets that size. The two
// protocols differ only in form: messages are converted from those of chat completions, and events are read
// like theirs.
type (
	nativeRequest struct {
		Model    string          `json:"model"`
		Messages []nativeMessage `json:"messages"`
		Stream   bool            `json:"stream"`
		Think    any             `json:"think,omitempty"` // a word, or false
		Options  map[string]any  `json:"options"`
		// These make the server refuse a request that is longer than the window instead of silently leaving out
		// its beginning. Older servers don't know them.
		Truncate bool `json:"truncate"`
		Shift    bool `json:"shift"`
	}
	nativeMessage struct {
		Role     string       `json:"role"`
		Content  string       `json:"content"`
		Thinking string       `json:"thinking,omitempty"`
		Images   []string     `json:"images,omitempty"` // base64
		Calls    []nativeCall `json:"tool_calls,omitempty"`
		Tool     string       `json:"tool_name,omitempty"` // the tool that returned this result
		CallID   string       `json:"tool_call_id,omitempty"`
	}
	nativeCall struct {
		ID       string         `json:"id,omitempty"`
		Function nativeFunction `json:"function"`
	}
	nativeFunction struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
)

// encodeNative returns the body of a request in Ollama's own protocol. window is how many tokens the model
// should be able to read.
func encodeNative(messages []wireMessage, maxTokens int, cfg *Config, window int, d dialect, toolList []byte) ([]byte, error) {
	w := nativeRequest{Model: cfg.Name, Stream: true, Options: map[string]any{}}
	if len(cfg.Body) > 0 { // the other parameters of chat completions have the same names there
		if err := json.Unmarshal(cfg.Body, &w.Options); err != nil {
			return nil, fmt.Errorf("read the configured fields: %w", err)
		}
	}
	w.Options["num_ctx"] = window
	if maxTokens > 0 {
		w.Options["num_predict"] = maxTokens
	}
	switch {
	case cfg.Effort == "" || d.noEffort:
	case cfg.Effort == "none":
		w.Think = false
	default:
		w.Think = cfg.Effort
	}
	names := map[string]string{} // of tools, by call id
	for i := range messages {
		message := &messages[i]
		n := nativeMessage{Role: message.Role, Thinking: message.ReasoningContent, CallID: message.ToolCallID, Tool: names[message.ToolCallID]}
		n.addContent(&message.Content)
		for _, c := range message.ToolCalls {
			names[c.ID] = c.Function.Name
			n.Calls = append(n.Calls, nativeCall{ID: c.ID, Function: nativeFunction{Name: c.Function.Name, Arguments: json.RawMessage(c.Function.Arguments)}})
		}
		w.Messages = append(w.Messages, n)
	}
	body, err := appendJSON(make([]byte, 0, requestOverhead), w)
	if err != nil {
		return nil, err
	}
	return appendTools(body, toolList), nil
}

// addContent adds a content's texts to the message's Content and its pictures to Images.
func (n *nativeMessage) addContent(c *wireContent) {
	texts := []string{c.text}
	for _, p := range c.parts {
		if p.Image == nil {
			texts = append(texts, p.Text)
			continue
		}
		_, data, _ := strings.Cut(p.Image.URL, ";base64,")
		n.Images = append(n.Images, data)
	}
	n.Content = strings.TrimPrefix(strings.Join(texts, "\n\n"), "\n\n")
}

// A nativeReader reads an answer in Ollama's own protocol.
type nativeReader struct{ *assembly }

// A nativeEvent is one line of an answer in Ollama's own protocol.
type nativeEvent struct {
	Message struct {
		Content  content           `json:"content"`
		Thinking content           `json:"thinking"`
		Calls    []json.RawMessage `json:"tool_calls"`
	} `json:"message"`
	Done         bool            `json:"done"`
	Reason       wire.String     `json:"done_reason"`
	Error        json.RawMessage `json:"error"`
	PromptTokens wire.Tokens     `json:"prompt_eval_count"`
	AnswerTokens wire.Tokens     `json:"eval_count"`
}

// add implements answerReader: it adds one line of the stream, which is a JSON object.
func (r nativeReader) add(raw []byte) error {
	var e nativeEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
	}
	if !wire.IsEmpty(e.Error) {
		return refusalInStream(raw)
	}
	if err := r.addDelta(&delta{Content: e.Message.Content, ReasoningContent: e.Message.Thinking, ToolCalls: e.Message.Calls}); err != nil {
		return err
	}
	if r.keptBytes > maxAnswerSize {
		return fmt.Errorf("%w: it does not end", errGarbled)
	}
	if !e.Done {
		return nil
	}
	r.usage = &wire.Usage{Prompt: e.PromptTokens, Completion: e.AnswerTokens}
	reason := wire.ReasonWord(e.Reason)
	if reason == "" {
		reason = "stop"
	}
	return r.setFinishReason(reason)
}

// wait implements answerReader. Each line is progress, and the next must arrive within cfg.Idle.
func (r nativeReader) wait(cfg *Config) time.Duration { return cfg.Idle }

// isWhole implements answerReader. Only the server's last line, which says that it is done, completes an
// answer.
func (r nativeReader) isWhole(bool) bool { return r.finished }

// isOver implements answerReader. The last event contains the usage, so nothing follows it.
func (r nativeReader) isOver() bool { return r.finished }
