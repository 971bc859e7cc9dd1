package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/agent/openai/wire"
	"parley/tools/plainjson"
)

// errGarbled is returned for a stream that breaks the protocol or exceeds a limit.
var errGarbled = errors.New("the answer is garbled")

// A Failure is an error that a server sends instead of an answer, or instead of the rest of one.
type Failure struct {
	Raw json.RawMessage // the error as the server wrote it
}

// Error returns a text that is suitable for logs, without the server's words.
func (f *Failure) Error() string { return "the server reports an error" }

// An event is one event of a stream.
type event struct {
	Type      string          `json:"type"`
	Response  json.RawMessage `json:"response"`
	Item      json.RawMessage `json:"item"`
	ItemID    wire.String     `json:"item_id"`
	At        *wire.Int       `json:"output_index"`
	Part      *wire.Int       `json:"summary_index"`
	Delta     wire.Text       `json:"delta"` // a piece of a text
	Arguments wire.String     `json:"arguments"`
	Error     json.RawMessage `json:"error"`
	Object    wire.String     `json:"object"` // "response" if this is not a stream, but the whole answer at once
	// An error without a type, as gateways send it.
	Detail  json.RawMessage `json:"detail"`
	Errors  json.RawMessage `json:"errors"`
	Message json.RawMessage `json:"message"`
}

// isFailure reports whether an event of an unknown type says that the server failed.
func (e *event) isFailure() bool {
	if !wire.IsEmpty(e.Error) {
		return true
	}
	return e.Type == "" && e.Object != "response" && (!wire.IsEmpty(e.Detail) || !wire.IsEmpty(e.Errors) || len(e.Message) > 2 && e.Message[0] == '"')
}

// A response is the whole answer, as far as it has been produced.
type response struct {
	Status     wire.String     `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason wire.String `json:"reason"`
	} `json:"incomplete_details"`
	Output []json.RawMessage `json:"output"`
	Usage  *wire.Usage       `json:"usage"`
}

// The types of items that Parley knows. They don't include tools that run at the provider, because Parley
// doesn't ask for any.
const (
	typeMessage   = "message"
	typeReasoning = "reasoning"
	typeCall      = "function_call"
)

// A wireItem is one item of an answer's output.
type wireItem struct {
	Type      string      `json:"type"`
	ID        wire.String `json:"id"`
	CallID    wire.String `json:"call_id"`
	Name      wire.String `json:"name"`
	Arguments wire.String `json:"arguments"`
	Phase     wire.String `json:"phase"`
	Content   []wirePart  `json:"content"`
	Summary   []wirePart  `json:"summary"`
	Encrypted wire.String `json:"encrypted_content"`
}

// A wirePart is one part of an item's text.
type wirePart struct {
	Type    string      `json:"type"`
	Text    wire.String `json:"text"`
	Refusal wire.String `json:"refusal"`
}

// readItem decodes an item. It returns false if Parley doesn't know the item's type.
func readItem(raw json.RawMessage) (wireItem, bool, error) {
	var i wireItem
	if err := json.Unmarshal(raw, &i); err != nil {
		return i, false, fmt.Errorf("%w: an item of %d bytes", errGarbled, len(raw))
	}
	return i, i.Type == typeMessage || i.Type == typeReasoning || i.Type == typeCall, nil
}

// text returns the text of a message, or the thinking in an item of reasoning: its summary, or all of it if the
// server didn't summarize it.
func (i wireItem) text() string {
	parts, between := i.Content, ""
	if i.Type == typeReasoning {
		between = partBreak
		if len(i.Summary) > 0 {
			parts = i.Summary
		}
	}
	var texts []string
	for _, p := range parts {
		if text := string(p.Text + p.Refusal); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, between)
}

// partBreak separates two parts of a summary.
const partBreak = "\n\n"

// toSave returns the part of an item of reasoning that the server wants back; nil if it wants nothing.
// Encrypted reasoning is sent back without its id: the server would use that to look the item up, but has not
// stored it.
func (i wireItem) toSave(raw json.RawMessage) json.RawMessage {
	if i.Encrypted == "" && len(i.Content) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	back := map[string]json.RawMessage{"type": json.RawMessage(`"reasoning"`), "summary": json.RawMessage(`[]`)}
	for _, name := range []string{"id", "summary", "content", "encrypted_content"} {
		if value := fields[name]; !wire.IsEmpty(value) && (name != "id" || i.Encrypted == "") {
			back[name] = value
		}
	}
	item, err := plainjson.Marshal(back)
	if err != nil { // the values were read from JSON
		return nil
	}
	return item
}
