package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/history"
)

// run calls the tool.
func run(t *testing.T, answer history.Answer, arguments string) (tools.Result, history.Question) {
	t.Helper()
	var asked history.Question
	tool := history.New(func(_ context.Context, q history.Question) (history.Answer, error) {
		asked = q
		return answer, nil
	})
	result, err := tool.Run(t.Context(), tools.Call{Name: "chat_history", Args: json.RawMessage(arguments), Person: "slack:U1", Address: "slack:C1/1.2", Session: "main:slack:C1:1.2"})
	if err != nil {
		t.Fatal(err)
	}
	return result, asked
}

func TestWhatIsReadIsUntrustedAndNotKept(t *testing.T) {
	result, asked := run(t, history.Answer{Chat: "slack:C2", Messages: []history.Message{{Text: "xyzzy"}}}, `{"chat":" #c2 ","limit":7}`)
	if !result.Untrusted || !strings.Contains(string(result.Content), "xyzzy") || strings.Contains(string(result.StoredContent), "xyzzy") || !strings.Contains(string(result.StoredContent), "slack:C2") {
		t.Errorf("the result is %+v", result)
	}
	if asked.Person != "slack:U1" || asked.From != "slack:C1/1.2" || asked.Chat != "#c2" || asked.Limit != 7 || !asked.Since.IsZero() {
		t.Errorf("asked %+v", asked)
	}
}

func TestTheOldestIsLeftOutOfWhatIsTooMuch(t *testing.T) {
	a := history.Answer{Chat: "slack:C2"}
	for i := range 100 {
		a.Messages = append(a.Messages, history.Message{Text: fmt.Sprint("<", i, ">", strings.Repeat("é", 1000))})
	}
	a.Messages[99].Text += strings.Repeat("x", 100_000)
	result, asked := run(t, a, `{}`)
	var got history.Answer
	if err := json.Unmarshal(result.Content, &got); err != nil {
		t.Fatal(err)
	}
	last := got.Messages[len(got.Messages)-1].Text
	if len(result.Content) > 64<<10 || !got.Older || !strings.HasPrefix(last, "<99>") || !strings.HasSuffix(last, "[cut off]") || asked.Limit != 100 {
		t.Errorf("%d bytes, older %t, the last is %.20q", len(result.Content), got.Older, last)
	}
	if none, _ := run(t, history.Answer{Chat: "c"}, `{}`); !strings.Contains(string(none.Content), `"messages":[]`) {
		t.Errorf("of nothing it says %s", none.Content)
	}
}
