package blocks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/bus"
	"parley/sessions"
)

// The results of an answer's calls are numbered behind it in the order of the calls, however the log has them.
func TestNumbersFollowFromTheLog(t *testing.T) {
	var n Numbering
	for i, e := range []struct {
		kind sessions.Kind
		call string
		want int // -1: it is no block
		next int
	}{
		{sessions.KindTurnStarted, "", -1, 0},
		{sessions.KindUser, "", 0, 1}, {sessions.KindUser, "", 1, 2},
		{sessions.KindThinking, "", 2, 3}, {sessions.KindToolUse, "a", 3, 4}, {sessions.KindText, "", 4, 5}, {sessions.KindToolUse, "b", 5, 6}, {sessions.KindUsage, "", -1, 8},
		{sessions.KindUser, "", 8, 9}, // while the turn waits
		{sessions.KindToolResult, "b", 7, 9}, {sessions.KindToolStarted, "a", -1, 9}, {sessions.KindToolResult, "a", 6, 9},
		{sessions.KindNotice, "", -1, 9}, {sessions.KindText, "", 9, 10}, {sessions.KindUsage, "", -1, 10},
		{sessions.KindToolResult, "of nobody", -1, 10},
	} {
		number, ok := n.Add(e.kind, e.call)
		if ok != (e.want >= 0) || ok && number != e.want || n.Next() != e.next {
			t.Errorf("entry %d, %s: %d, %v, then %d; want %d, then %d", i, e.kind, number, ok, n.Next(), e.want, e.next)
		}
	}
	if n.Newest() != 9 {
		t.Errorf("the newest answer begins with %d", n.Newest())
	}
}

// stars hides what must not be seen.
type stars struct{}

func (stars) Text(text string) string { return strings.ReplaceAll(text, "secret", "***") }
func (s stars) JSON(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(s.Text(string(raw)))
}

func TestBlocksHaveNoSecretsAndAreBounded(t *testing.T) {
	long := strings.Repeat("é", maxMessageBytes)
	for name, tc := range map[string]struct {
		data any
		want string // kind, text, input, flags
	}{
		"what was said": {sessions.User{Name: "Ann", Text: "a secret"}, `user "a ***" "" Ann false false`},
		"a thought":     {sessions.Thinking{Text: "a secret"}, `thinking "a ***" ""  false false`},
		"a text":        {sessions.Text{Text: "a secret"}, `text "a ***" ""  false false`},
		"a call":        {sessions.ToolUse{Name: "x", Args: json.RawMessage(`{"a": "secret"}`)}, `tool_use "" "{\"a\":\"***\"}"  false false`},
		"a result":      {sessions.ToolResult{Content: json.RawMessage(`"secret"`)}, `tool_result "\"***\"" ""  false false`},
		"a failure":     {sessions.ToolResult{Content: json.RawMessage(`{}`), Code: "timeout"}, `tool_result "{}" ""  true false`},
	} {
		b, ok := Show(tc.data, stars{})
		if got := fmt.Sprintf("%s %q %q %s %v %v", b.Kind, b.Text, b.Input, b.Name, b.Failed, b.Cut); !ok || got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	said, _ := Show(sessions.User{Text: "x" + long}, stars{})
	if !said.Cut || len(said.Text) > maxMessageBytes || len(said.Text) < maxMessageBytes-4 || !utf8.ValidString(said.Text) {
		t.Errorf("%d bytes were said, cut %v", len(said.Text), said.Cut)
	}
	input, _ := Show(sessions.ToolUse{Args: json.RawMessage(`{"path":"a","content":"` + long + `"}`)}, stars{})
	result, _ := Show(sessions.ToolResult{Content: json.RawMessage(`"` + long + `"`)}, stars{})
	for _, raw := range []string{string(input.Input), result.Text} {
		if len(raw) > MostOfCall || len(raw) < MostOfCall/2 || !json.Valid([]byte(raw)) {
			t.Errorf("%d bytes: %.80s", len(raw), raw)
		}
	}
	if !input.Cut || !result.Cut || !strings.Contains(string(input.Input), `"path":"a"`) {
		t.Error("it is not said that they are cut")
	}
	if text, _ := Show(sessions.Text{Text: long}, stars{}); text.Cut || text.Text != long {
		t.Error("what the model says is cut")
	}
	if _, ok := Show(sessions.Notice{}, stars{}); ok {
		t.Error("a notice is a block")
	}
}

func TestABlockIsSaidWhole(t *testing.T) {
	var said []bus.Event
	b := Block{Number: 3, Kind: "tool_result", Text: "{}", Tool: "x", Call: "c", Detail: bus.Detail{Failed: true}}
	b.Emit(func(e bus.Event) { said = append(said, e) })
	if len(said) != 3 || said[0].Type != bus.BlockStart || said[0].Call != "c" || said[1].Delta != "{}" || said[2].Type != bus.BlockStop || !said[2].Failed || said[2].Block != 3 {
		t.Errorf("%+v", said)
	}
}
