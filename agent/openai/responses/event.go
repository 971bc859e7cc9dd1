package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/agent/openai/lenient"
	"parley/agent/openai/usage"
)

// errGarbled is the error of a stream that breaks the protocol or a bound.
var errGarbled = errors.New("the answer is garbled")

// A Failure is an error that a server sends in the place of an answer or of its rest.
type Failure struct {
	Raw json.RawMessage // the error as the server wrote it
}

// Error returns a text that is fit for logs, without the server's words.
func (f *Failure) Error() string { return "the server reports an error" }

// An event is one event of a stream.
type event struct {
	Type      string          `json:"type"`
	Response  json.RawMessage `json:"response"`
	Item      json.RawMessage `json:"item"`
	ItemID    lenient.String  `json:"item_id"`
	At        *int            `json:"output_index"`
	Part      *int            `json:"summary_index"`
	Delta     lenient.String  `json:"delta"`
	Arguments lenient.String  `json:"arguments"`
	Error     json.RawMessage `json:"error"`
	Object    lenient.String  `json:"object"` // "response" if there is no stream, but the whole answer at once
}

// A response is an answer as a whole, as far as it has come.
type response struct {
	Status     lenient.String  `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason lenient.String `json:"reason"`
	} `json:"incomplete_details"`
	Output []json.RawMessage `json:"output"`
	Usage  *usage.Report     `json:"usage"`
}

// The types of items that Parley knows. Those of tools that run at the provider are none
// of them: Parley asks for no such tools.
const (
	typeMessage   = "message"
	typeReasoning = "reasoning"
	typeCall      = "function_call"
)

// A wireItem is one item of an answer's output.
type wireItem struct {
	Type      string         `json:"type"`
	ID        lenient.String `json:"id"`
	CallID    lenient.String `json:"call_id"`
	Name      lenient.String `json:"name"`
	Arguments lenient.String `json:"arguments"`
	Phase     lenient.String `json:"phase"`
	Content   []wirePart     `json:"content"`
	Summary   []wirePart     `json:"summary"`
	Encrypted lenient.String `json:"encrypted_content"`
}

// A wirePart is one part of an item's text.
type wirePart struct {
	Type    string         `json:"type"`
	Text    lenient.String `json:"text"`
	Refusal lenient.String `json:"refusal"`
}

// readItem decodes an item, and reports false if it is of no type that Parley knows.
func readItem(raw json.RawMessage) (wireItem, bool, error) {
	var i wireItem
	if err := json.Unmarshal(raw, &i); err != nil {
		return i, false, fmt.Errorf("%w: an item of %d bytes", errGarbled, len(raw))
	}
	return i, i.Type == typeMessage || i.Type == typeReasoning || i.Type == typeCall, nil
}

// text returns the text of a message, or the thinking of an item of reasoning: its
// summary, or all of it where the server does not sum it up.
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

// partBreak stands between two parts of a summary.
const partBreak = "\n\n"

// toSave returns what the server wants back of an item of reasoning; nil if that is
// nothing. Reasoning that came encrypted goes back without its id, by which the server
// would look it up: it has stored nothing.
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
		if value := fields[name]; !lenient.IsEmpty(value) && (name != "id" || i.Encrypted == "") {
			back[name] = value
		}
	}
	item, err := json.Marshal(back)
	if err != nil { // the values were read from JSON
		return nil
	}
	return item
}
