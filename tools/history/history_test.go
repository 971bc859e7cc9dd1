package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/history"
)

func TestSince(t *testing.T) {
	now := time.Date(2026, 5, 6, 15, 30, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"": "0001-01-01T00:00:00Z", "today": "2026-05-06T00:00:00Z", "Yesterday ": "2026-05-05T00:00:00Z",
		"Monday": "2026-05-04T00:00:00Z", "wednesday": "2026-05-06T00:00:00Z", "last Thursday": "2026-04-30T00:00:00Z",
		"2026-05-01": "2026-05-01T00:00:00Z", "2026-05-01T09:00:00Z": "2026-05-01T09:00:00Z", "2026-05-01T09:00:00+02:00": "2026-05-01T07:00:00Z",
		"2026-05-01 09:00": "2026-05-01T09:00:00Z", "24h": "2026-05-05T15:30:00Z", "7d": "2026-04-29T15:30:00Z",
		"someday": "", "-1h": "", "0d": "", "d": "", "2026-13-01": "",
	} {
		got, ok := history.ParseSince(text, now)
		if ok != (want != "") || ok && got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q is %s, %t, want %s", text, got, ok, want)
		}
	}
}

// run calls the tool.
func run(t *testing.T, answer history.Answer, arguments string) (tools.Result, history.Question) {
	t.Helper()
	var asked history.Question
	tool := history.New(func(_ context.Context, q history.Question) (history.Answer, error) {
		asked = q
		return answer, nil
	})
	result, err := tool.Run(t.Context(), tools.Call{Name: "chat_history", Args: json.RawMessage(arguments), Person: "slack:U1", At: "slack:C1/1.2", Session: "main:slack:C1:1.2"})
	if err != nil {
		t.Fatal(err)
	}
	return result, asked
}

func TestWhatIsReadIsUntrustedAndNotKept(t *testing.T) {
	result, asked := run(t, history.Answer{Chat: "slack:C2", Messages: []history.Message{{Text: "xyzzy"}}}, `{"chat":" #c2 ","limit":7}`)
	if !result.Untrusted || !strings.Contains(string(result.Content), "xyzzy") || strings.Contains(string(result.Kept), "xyzzy") || !strings.Contains(string(result.Kept), "slack:C2") {
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
