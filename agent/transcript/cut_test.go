package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

// A testLog is a log that is written in order.
type testLog struct{ records []journal.Record }

func (l *testLog) add(turn string, kind sessions.Kind, data any) *journal.Record {
	e := journal.NewEntry(turn, kind, data)
	e.N = int64(len(l.records) + 1)
	l.records = append(l.records, journal.NewRecord(e, data))
	return &l.records[len(l.records)-1]
}

func (l *testLog) begin(turn, said string) {
	l.add(turn, sessions.KindTurnStarted, sessions.TurnStarted{})
	r := l.add(turn, sessions.KindUser, sessions.User{Text: said})
	r.Cause, r.Person = turn, "test:ann"
}

func (l *testLog) step(turn, call, result string) {
	l.add(turn, sessions.KindToolUse, sessions.ToolUse{Name: "x", Args: json.RawMessage(`{}`)}).Call = call
	l.add(turn, sessions.KindUsage, sessions.Usage{})
	l.add(turn, sessions.KindToolResult, sessions.ToolResult{Content: json.RawMessage(`"` + result + `"`)}).Call = call
}

func (l *testLog) end(turn, said string) {
	l.add(turn, sessions.KindText, sessions.Text{Text: said})
	l.add(turn, sessions.KindUsage, sessions.Usage{})
	l.add(turn, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
}

func (l *testLog) summarize(t *testing.T, own string, b Budgets) sessions.Summary {
	t.Helper()
	s, ok := Cut(l.records, own, true, b)
	if !ok {
		t.Fatal("nothing can be summed up")
	}
	s.Text = "SUM"
	l.add(own, sessions.KindSummary, s)
	return s
}

// shownText returns a short form of what a model is shown.
func shownText(messages []llm.Message) string {
	var all []string
	for _, m := range messages {
		for _, b := range m.Blocks {
			text := b.Text
			switch {
			case b.Kind == llm.BlockToolUse:
				text = "call " + b.Call
			case b.Kind == llm.BlockToolResult:
				text = "result " + b.Call + "=" + strings.Trim(string(b.Content), `"`)
			case strings.Contains(text, "SUM"):
				text = "SUM"
			case strings.HasPrefix(text, "<message"):
				text = strings.Join(Words(text), " ")
			}
			all = append(all, text)
		}
	}
	return strings.Join(all, "|")
}

// A turn that is summarized in part shows its person's words, the summary, and its newest steps; the turns after it
// show the same.
func TestATurnIsSummedUpInPart(t *testing.T) {
	var l testLog
	l.begin("t0", "before")
	l.end("t0", "yes")
	l.begin("t1", "do it")
	for n := range 6 {
		l.step("t1", fmt.Sprint("c", n), fmt.Sprint("r", n))
	}
	l.add("t1", sessions.KindUser, sessions.User{Text: "and that"}).Cause = "steered"
	s := l.summarize(t, "t1", Budgets{Steps: 80, OwnWords: 1000, EarlierWords: 1000})
	if s.Turn != "t1" {
		t.Errorf("the summary is of %q", s.Turn)
	}
	want := "before|do it|SUM|call c4|result c4=r4|call c5|result c5=r5|and that"
	if got := shownText(Render(l.records, "t1", nil)); got != want {
		t.Errorf("shown %s\nwant  %s", got, want)
	}
	l.step("t1", "c6", "r6")
	l.end("t1", "done")
	l.begin("t2", "next")
	want += "|call c6|result c6=r6|done|next"
	if got := shownText(Render(l.records, "t2", nil)); got != want {
		t.Errorf("in the next turn %s\nwant %s", got, want)
	}
	// The same after a restart, when the covered records are no longer read.
	var read []journal.Record
	for _, r := range l.records {
		if !s.Hides(r.N) {
			read = append(read, r)
		}
	}
	if got := shownText(Render(read, "t2", nil)); got != want {
		t.Errorf("after a restart %s\nwant %s", got, want)
	}
}

// A turn that waits while /new has begun a new conversation is shown only itself, with the summary of its own past, and
// the new conversation shows none of it.
func TestATurnThatWasSummedUpIsLeftBehind(t *testing.T) {
	var l testLog
	l.begin("t1", "do it")
	for n := range 6 {
		l.step("t1", fmt.Sprint("c", n), fmt.Sprint("r", n))
	}
	l.summarize(t, "t1", Budgets{Steps: 60, OwnWords: 1000})
	l.add("", sessions.KindSummary, sessions.Summary{Covers: int64(len(l.records))})
	l.begin("t2", "new")
	l.end("t2", "hello")
	if got, want := shownText(Render(l.records, "t2", nil)), "new|hello"; got != want {
		t.Errorf("the new conversation shows %s, want %s", got, want)
	}
	if got, want := shownText(Render(l.records, "t1", nil)), "do it|SUM|call c4|result c4=r4|call c5|result c5=r5"; got != want {
		t.Errorf("the turn that was left behind shows %s, want %s", got, want)
	}
	if _, ok := Cut(l.records, "t1", true, Budgets{}); ok {
		t.Error("a turn of another conversation is summed up in this one")
	}
}

// If no part of the turn may be summarized, only the past is.
func TestOnlyThePastIsSummedUp(t *testing.T) {
	var l testLog
	l.begin("t0", "before")
	l.end("t0", "yes")
	l.begin("t1", "do it")
	l.step("t1", "c0", "r0")
	s, ok := Cut(l.records, "t1", false, Budgets{})
	if !ok || s.Covers != 5 || s.Turn != "" {
		t.Errorf("covers %d of %q, %t", s.Covers, s.Turn, ok)
	}
	l.add("t1", sessions.KindSummary, s)
	if _, ok := Cut(l.records, "t1", false, Budgets{}); ok {
		t.Error("there is more past than there was")
	}
}

// Results that the model has not read yet are not summarized if there is room for them, and not emptied, however many
// came at once.
func TestUnreadResultsStay(t *testing.T) {
	var l testLog
	l.begin("t1", "do it")
	for n := range 8 {
		l.step("t1", fmt.Sprint("c", n), strings.Repeat("x", 400))
	}
	l.add("t1", sessions.KindToolUse, sessions.ToolUse{Name: "x", Args: json.RawMessage(`{}`)}).Call = "new1"
	l.add("t1", sessions.KindToolUse, sessions.ToolUse{Name: "x", Args: json.RawMessage(`{}`)}).Call = "new2"
	l.add("t1", sessions.KindUsage, sessions.Usage{})
	for _, call := range []string{"new1", "new2"} {
		l.add("t1", sessions.KindToolResult, sessions.ToolResult{Content: json.RawMessage(`"` + strings.Repeat("y", 2000) + `"`)}).Call = call
	}
	unread := l.records[len(l.records)-2].N
	if upTo, saves := FindClearable(l.records, "t1", 300); upTo >= unread || saves == 0 {
		t.Errorf("emptied up to %d, which saves %d; %d is new", upTo, saves, unread)
	}
	if s, ok := Cut(l.records, "t1", true, Budgets{Steps: 100, Unread: 500, OwnWords: 100}); !ok || s.Covers < unread {
		t.Errorf("covers %d of %d, %t: there is no room for what is new", s.Covers, unread, ok)
	}
	l.summarize(t, "t1", Budgets{Steps: 100, Unread: 2000, OwnWords: 100})
	if got, want := strings.ReplaceAll(shownText(Render(l.records, "t1", nil)), strings.Repeat("y", 2000), "Y"), "do it|SUM|call new1|call new2|result new1=Y|result new2=Y"; got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
}

// The summarizing model reads what people want in the turn, even if their message is too long to be kept, says it at
// its end, and was summarized before.
func TestASummaryIsMadeWithWhatPeopleWant(t *testing.T) {
	var l testLog
	l.begin("t1", "Read this: "+strings.Repeat("päper ", 4000)+"Never touch README.md.")
	for n := range 8 {
		l.step("t1", fmt.Sprint("c", n), strings.Repeat("x", 400))
	}
	for range 2 {
		s, ok := Cut(l.records, "t1", true, Budgets{Steps: 100, OwnWords: 100})
		if !ok || len(s.Keep) > 0 {
			t.Fatalf("summary %+v, %t", s, ok)
		}
		var asked []string
		text, err := SumUp(t.Context(), Retell(l.records, "t1", s.Covers), 2000, func(_ context.Context, r llm.Request) (llm.Answer, error) {
			for _, b := range r.Messages[0].Blocks {
				asked = append(asked, b.Text)
			}
			return llm.Answer{Stop: llm.StopWhole, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "SUM"}}}, nil
		})
		if err != nil || text != "SUM" || len(asked) == 0 {
			t.Fatalf("asked %q, summary %q, %v", asked, text, err)
		}
		if head := asked[0]; !strings.Contains(head, "Read this: ") || !strings.Contains(head, "Never touch README.md.") || !utf8.ValidString(head) || len(head) > 1200 {
			t.Errorf("asked with %d bytes: %s", len(head), head)
		}
		s.Text = text
		l.add("t1", sessions.KindSummary, s)
		for n := range 8 {
			l.step("t1", fmt.Sprint("d", n, len(l.records)), strings.Repeat("x", 400))
		}
	}
}

// Old results are emptied all at once, and don't change after that.
func TestResultsAreClearedInOneGo(t *testing.T) {
	var l testLog
	l.begin("t1", "do it")
	long := strings.Repeat("x", 4000)
	for n := range 8 {
		l.step("t1", fmt.Sprint("c", n), long)
	}
	upTo, saves := FindClearable(l.records, "t1", 2100)
	if saves < 5500 || saves > 6000 {
		t.Errorf("saves %d tokens", saves)
	}
	before := EstimateMessages(Render(l.records, "t1", nil))
	l.add("", sessions.KindSummary, sessions.Summary{Cleared: upTo})
	after := EstimateMessages(Render(l.records, "t1", nil))
	if before-after < 5500 {
		t.Errorf("%d tokens became %d", before, after)
	}
	if got := shownText(Render(l.records, "t1", nil)); strings.Count(got, "cleared to save room") != 6 || strings.Count(got, long) != 2 {
		t.Errorf("shown %s", got)
	}
	l.step("t1", "c8", long)
	first := Render(l.records[:len(l.records)-3], "t1", nil)
	again := Render(l.records, "t1", nil)
	if shownText(first) != shownText(again[:len(first)]) {
		t.Error("the next step changes what was shown before")
	}
}

// If not all of people's words fit, the first message of the turn stays, because it says what the turn is about, and
// then the newest ones.
func TestTheFirstInstructionStays(t *testing.T) {
	var l testLog
	l.begin("t1", "Number the files; never touch README.md.")
	for n := range 6 {
		l.step("t1", fmt.Sprint("c", n), strings.Repeat("x", 400))
		r := l.add("t1", sessions.KindUser, sessions.User{Text: fmt.Sprintf("remark %d %s", n, strings.Repeat("word ", 60))})
		r.Cause, r.Person = fmt.Sprint("m", n), "test:ann"
	}
	l.step("t1", "last", "z")
	s := l.summarize(t, "t1", Budgets{Steps: 50, OwnWords: 350})
	shown := shownText(Render(l.records, "t1", nil))
	if !strings.HasPrefix(shown, "Number the files; never touch README.md.|") || strings.Contains(shown, "remark 0") || !strings.Contains(shown, "remark 5") {
		t.Errorf("kept %v, shown %s", s.Keep, shown)
	}
}

// An answer to the agent's question is a person's words: a summary keeps it like a message, and the summarizing model
// reads it. An approval is not.
func TestAnswersToQuestionsStayWordForWord(t *testing.T) {
	var l testLog
	l.begin("t1", "paint it")
	l.step("t1", "q1", `{\"answer\":\"blue, and never red\"}`)
	answered := l.add("t1", sessions.KindAskEnded, sessions.AskEnded{Ask: "a1", State: "answered", Question: "Which <colour>? (1) red", Answer: "blue, and never red", Name: "Ann"})
	answered.Person, answered.Call = "test:ann", "q1"
	l.add("t1", sessions.KindAskEnded, sessions.AskEnded{Ask: "a2", State: "answered", Answer: "approve"}).Person = "test:bob"
	for n := range 6 {
		l.step("t1", fmt.Sprint("c", n), strings.Repeat("x", 400))
	}
	s := l.summarize(t, "t1", Budgets{Steps: 50, OwnWords: 350})
	messages := Render(l.records, "t1", nil)
	if got, want := shownText(messages[:1]), "paint it|blue, and never red|SUM"; got != want {
		t.Fatalf("kept %v, shown %s, want %s", s.Keep, got, want)
	}
	if got, want := messages[0].Blocks[1].Text, "<message from=\"test:ann\" name=\"Ann\" answers=\"Which 'colour'? (1) red\">\nblue, and never red\n</message>"; got != want {
		t.Errorf("framed as %s, want %s", got, want)
	}
	past := Retell(l.records, "t1", s.Covers)
	if len(past.OwnWords) != 2 || !strings.Contains(past.OwnWords[1].Text, "blue, and never red") {
		t.Errorf("who sums up reads %+v", past.OwnWords)
	}
	l.end("t1", "done")
	l.begin("t2", "and now?")
	l.step("t2", "d0", strings.Repeat("x", 4000))
	l.summarize(t, "t2", Budgets{EarlierWords: 350})
	if shown := shownText(Render(l.records, "t2", nil)); !strings.HasPrefix(shown, "paint it|blue, and never red|SUM") {
		t.Errorf("the next turn shows %s", shown)
	}
	if past := Retell(l.records, "t3", l.records[len(l.records)-1].N); !strings.Contains(fmt.Sprint(past.Events), "blue, and never red") {
		t.Errorf("the next summary is made without it: %v", past.Events)
	}
}
