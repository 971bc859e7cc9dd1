package recall_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/recall"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write the golden files")

// A finder answers each question with the same.
type finder struct {
	answer recall.Answer
	asked  recall.Question
}

func (f *finder) Find(_ context.Context, q recall.Question) (recall.Answer, error) {
	f.asked = q
	return f.answer, nil
}

func TestGolden(t *testing.T) {
	toolstest.New(recall.New(&finder{}, tools.Paths{"MEMORY.md"})).Golden(t, "testdata/specs.json")
}

// run calls the tool, and returns the result with what the model reads of it.
func run(t *testing.T, f *finder, arguments string) (result tools.Result, shown struct {
	Found []recall.Passage
	Note  string
	More  bool
}) {
	t.Helper()
	result, err := recall.New(f, nil).Run(t.Context(), tools.Call{Name: "recall", Args: json.RawMessage(arguments), Person: "slack:U1", Session: "main:slack:DU1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(result.Content, &shown); err != nil {
		t.Fatal(err)
	}
	return result, shown
}

func TestWhatIsFoundIsShownAndNotKept(t *testing.T) {
	f := &finder{answer: recall.Answer{Found: []recall.Passage{{Text: "xyzzy", Who: "Ann", When: "2026-05-06T07:08:09Z", Where: "#ops on slack", Origin: recall.Message}}, Note: "not all"}}
	result, shown := run(t, f, `{"query":" the word ","since":"2026-05-01","until":"2026-05-07T00:00:00Z","limit":7}`)
	if result.Untrusted || len(shown.Found) != 1 || shown.Found[0] != f.answer.Found[0] || shown.Note != "not all" || shown.More {
		t.Errorf("the model reads %s, marked %v", result.Content, result.Untrusted)
	}
	if kept := string(result.StoredContent); strings.Contains(kept, "xyzzy") || strings.Contains(kept, "Ann") || !strings.Contains(kept, "not kept") {
		t.Errorf("the log keeps %s", kept)
	}
	want := recall.Question{Words: "the word", Limit: 7, Since: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 5, 7, 0, 0, 0, 0, time.UTC)}
	got := f.asked
	if got.Call.Person != "slack:U1" || got.Words != want.Words || got.Limit != want.Limit || !got.Since.Equal(want.Since) || !got.Until.Equal(want.Until) {
		t.Errorf("asked %+v", got)
	}
}

func TestOneMarkMarksAll(t *testing.T) {
	f := &finder{answer: recall.Answer{Found: []recall.Passage{{Text: "a", Origin: recall.Message}, {Text: "b", Origin: recall.ToolResult, Untrusted: true}}}}
	if result, _ := run(t, f, `{"query":"x"}`); !result.Untrusted || result.StoredContent == nil {
		t.Errorf("the result is %+v", result)
	}
}

func TestWhatIsTooMuchIsLeftOut(t *testing.T) {
	f := &finder{}
	for i := range 50 {
		// What is marked is left out, so nothing of the result is.
		f.answer.Found = append(f.answer.Found, recall.Passage{Text: fmt.Sprint(i, strings.Repeat(" é", 300)), Origin: recall.Reply, Untrusted: i == 49})
	}
	result, shown := run(t, f, `{"query":"x"}`)
	if len(result.Content) > 20<<10 || !shown.More || len(shown.Found) < 10 || !strings.HasPrefix(shown.Found[0].Text, "0 ") || result.Untrusted {
		t.Errorf("%d passages in %d bytes, more %v, marked %v", len(shown.Found), len(result.Content), shown.More, result.Untrusted)
	}
	if _, shown := run(t, &finder{}, `{"query":"x"}`); shown.Found == nil || !strings.Contains(shown.Note, "other words") {
		t.Errorf("of nothing the model reads %+v", shown)
	}
}

func TestWrongArguments(t *testing.T) {
	c := toolstest.New(recall.New(&finder{}, nil))
	for arguments, word := range map[string]string{
		`{"query":" "}`: "few words", `{"query":"x","since":"someday"}`: "since", `{"query":"x","until":"soon"}`: "until",
		`{"query":"x","limit":51}`: "from 1 to 50", `{"query":"x","limit":-1}`: "from 1 to 50",
	} {
		c.WantError(t, "recall", arguments, tools.InvalidArgs, word)
	}
}
