// Package speak provides the tool with which an agent has its answer read aloud.
//
// A call only marks what is to be read: the recording is made once, when the turn has ended, and sent after the text of the
// answer. So a call may run again, and an answer has at most one recording.
package speak

import (
	"context"
	"encoding/json"
	"strings"

	"parley/tools"
)

// Name is the tool's name.
const Name = "speak"

type args struct {
	Text string `json:"text,omitempty" jsonschema:"what to read aloud in place of your answer; leave it out to have your answer read"`
}

// A Listener knows who can listen to recordings.
type Listener interface {
	// Deaf returns why nobody can listen to a recording in the conversation in which a call was made; "" if people can.
	Deaf(call tools.Call) string
	// Words returns what is read aloud of a Markdown text, and whether that is all of it.
	Words(text string) (words string, whole bool)
}

// New makes the tool speak.
func New(to Listener) tools.Tool {
	return tools.New(tools.Spec{
		Name: Name, Effect: tools.Pure, Touches: tools.TouchesNothing(),
		Description: "Have the answer with which you end this turn read aloud: people get it as a voice message after the text. Use it only if they asked to hear something. If you call it more than once, the last call counts. Code, tables and addresses are not read.",
	}, speaker{to}.mark)
}

// A speaker handles the calls.
type speaker struct{ to Listener }

// mark answers a call. What it marks is in the log, as every call is.
func (s speaker) mark(_ context.Context, call tools.Call, a args) (any, error) {
	if why := s.to.Deaf(call); why != "" {
		return nil, tools.Errorf(tools.PermissionDenied, "nobody can listen here: %s. Write it instead.", why)
	}
	reads := "your answer"
	if strings.TrimSpace(a.Text) != "" {
		reads = "this text"
		words, whole := s.to.Words(a.Text)
		switch {
		case words == "":
			return nil, tools.Errorf(tools.InvalidArgs, "nothing in this text can be read aloud: give words, not code, tables or addresses")
		case !whole:
			return nil, tools.Errorf(tools.InvalidArgs, "this text is too long to be read aloud: give a shorter one")
		}
	}
	return map[string]string{"will_read": reads, "when": "after your answer, which ends this turn"}, nil
}

// Marked returns the text of a call that is read aloud in place of the answer; "" for the answer itself.
func Marked(raw json.RawMessage) string {
	var a args
	if json.Unmarshal(raw, &a) != nil { // the call had no result then
		return ""
	}
	return strings.TrimSpace(a.Text)
}
