package transcript

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

// A rememberer is a conversation whose agent has a memory.
type rememberer struct {
	t       *testing.T
	records []journal.Record
	memory  []Memory
	turns   int
}

// write appends an entry to the log.
func (c *rememberer) write(turn string, kind sessions.Kind, data any) {
	n := int64(1)
	if len(c.records) > 0 {
		n = c.records[len(c.records)-1].N + 1
	}
	c.records = append(c.records, journal.Record{N: n, Turn: turn, Kind: kind, Cause: fmt.Sprint("m", n), Person: "test:1", Data: data, Size: 40})
}

// begin begins a turn as a worker does, and returns its id.
func (c *rememberer) begin() string {
	c.turns++
	id := fmt.Sprint("t", c.turns)
	c.write(id, sessions.KindTurnStarted, sessions.TurnStarted{})
	c.write(id, sessions.KindUser, sessions.User{Text: fmt.Sprint("question ", c.turns)})
	c.mark(id)
	return id
}

// mark marks the memory as a worker does before it asks the model.
func (c *rememberer) mark(turn string) {
	if notice, is := MarkMemory(c.records, turn, c.memory); is {
		c.write(turn, sessions.KindNotice, notice)
	}
	if _, again := MarkMemory(c.records, turn, c.memory); again {
		c.t.Fatal("what is marked is to be marked again")
	}
}

// end ends a turn.
func (c *rememberer) end(turn string) {
	c.write(turn, sessions.KindText, sessions.Text{Text: fmt.Sprint("answer ", c.turns)})
	c.write(turn, sessions.KindTurnDone, sessions.TurnDone{})
}

// shown returns all that a model is shown in a turn, as one text.
func (c *rememberer) shown(turn string) string { return allTexts(Render(c.records, turn, c.memory)) }

// allTexts returns all texts of messages.
func allTexts(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, block := range m.Blocks {
			b.WriteString(string(m.Role) + ": " + block.Text + "\n\n")
		}
	}
	return b.String()
}

// memoryText returns the text of one memory from all its frames.
func memoryText(text, of string) string {
	var all []string
	for _, found := range regexp.MustCompile(`(?s)<remembered of="`+of+`"[^>]*>\n(.*?)\n</remembered>`).FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return strings.Join(all, "\n\n")
}

// Memory is shown before the words of the turn that read it first, and an addition at the turn that read the addition.
func TestAddedMemoryIsShownLater(t *testing.T) {
	c := &rememberer{t: t, memory: []Memory{{Scope: "session", Whose: "this conversation", File: "MEMORY.md", Text: "likes tea"}, {Scope: "agent", Whose: "all"}}}
	first := c.begin()
	before := c.shown(first)
	if want := "user: <remembered of=\"this conversation\" file=\"MEMORY.md\">\nlikes tea\n</remembered>\n\nuser: <message from=\"test:1\">\nquestion 1\n</message>\n\n"; before != want {
		t.Fatalf("the first turn is shown\n%s\nwant\n%s", before, want)
	}
	c.end(first)
	c.memory[0].Text += "\n\nlikes cake</remembered>"
	c.memory[1].Text = "deploys on Mondays"
	second := c.begin()
	after := c.shown(second)
	if !strings.HasPrefix(after, before) || !strings.Contains(after, "answer 1\n\nuser: <remembered of=\"this conversation\" file=\"MEMORY.md\" added=\"later\">\nlikes cake&lt;/remembered>\n</remembered>\n\n"+
		"<remembered of=\"all\">\ndeploys on Mondays\n</remembered>\n\nuser: <message from=\"test:1\">\nquestion 2") {
		t.Errorf("the second turn is shown\n%s", after)
	}
	// Memory that was changed since is not shown anymore.
	c.end(second)
	c.memory[0].Text = "hates tea"
	third := c.begin()
	if got := c.shown(third); strings.Contains(got, "likes") || strings.Index(got, "hates tea") < strings.Index(got, "answer 2") || !strings.Contains(got, "deploys") {
		t.Errorf("the third turn is shown\n%s", got)
	}
	// A turn that has begun to answer is not shown additions, as if it had not been resumed.
	c.write(third, sessions.KindToolUse, sessions.ToolUse{Name: "read_file", Args: []byte(`{}`)})
	c.write(third, sessions.KindToolResult, sessions.ToolResult{Content: []byte(`"x"`)})
	before = c.shown(third)
	c.memory[0].Text += "\n\nhates cake"
	c.memory[1].Text = ""
	c.mark(third)
	if got := c.shown(third); got != strings.Replace(before, "user: <remembered of=\"all\">\ndeploys on Mondays\n</remembered>\n\n", "", 1) {
		t.Errorf("the turn that continues is shown\n%s\nand was shown\n%s", got, before)
	}
	// If memory that the turn was shown has changed, it is shown anew, and still nothing comes after the turn's calls.
	c.memory[0].Text = "hates everything"
	c.mark(third)
	if got := c.shown(third); strings.Contains(got, "hates tea") || !strings.Contains(got, "hates everything\n</remembered>\n\nuser: <message from=\"test:1\">\nquestion 3") {
		t.Errorf("the turn that continues is shown\n%s", got)
	}
	c.end(third)
	fourth := c.begin()
	if got := c.shown(fourth); strings.Count(got, "hates everything") != 1 || strings.Index(got, "hates") < strings.Index(got, "answer 3") {
		t.Errorf("the fourth turn is shown\n%s", got)
	}
}

// Whatever happens to the memory and the conversation, a model is shown each remembered word once and no forgotten one,
// at the same places after a restart; and additions or an unchanged memory change nothing before them.
func TestTheMemoryIsShownOnceWhateverHappens(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		c := &rememberer{t: t, memory: []Memory{{Scope: "session", Whose: "session"}, {Scope: "agent", Whose: "agent"}, {Scope: "person", Whose: "person"}}}
		last, words := "", 0
		var done []string
		for range 25 {
			m := &c.memory[random.IntN(len(c.memory))]
			words++
			keeps := true
			switch op := random.IntN(10); op {
			case 0, 1, 2:
				m.Text = strings.TrimSpace(m.Text + fmt.Sprintf("\n\n<word%d>", words))
			case 3:
				m.Text, keeps = fmt.Sprintf("word%d", words), m.Text == ""
			case 4:
				m.Text, keeps = "", m.Text == ""
			case 5:
				m.Text, keeps = fmt.Sprintf("word%d\n\n%s", words, m.Text), m.Text == ""
				m.Text = strings.TrimSpace(m.Text)
			case 6, 7:
				if s, ok := Cut(c.records, "", false, Budgets{EarlierWords: 30}); ok {
					if s.Text, keeps = "what was", false; op == 7 { // as /new does
						s = sessions.Summary{Covers: c.records[len(c.records)-1].N}
					}
					c.write("", sessions.KindSummary, s)
					if _, again := MarkMemory(c.records, "", c.memory); again && op == 6 {
						t.Fatalf("seed %d: after %q a summary has left out the places of the memory", seed, done)
					}
				}
			}
			done = append(done, fmt.Sprint(m.Scope, "=", m.Text))
			turn := c.begin()
			got := c.shown(turn)
			if keeps && !strings.HasPrefix(got, last) {
				t.Fatalf("seed %d: after %q a turn is shown\n%s\nand the last one was shown\n%s", seed, done, got, last)
			}
			for _, m := range c.memory {
				if stands := memoryText(got, m.Scope); stands != m.Text {
					t.Fatalf("seed %d: after %q the memory %s is shown as %q, want %q:\n%s", seed, done, m.Scope, stands, m.Text, got)
				}
			}
			if again := allTexts(Render(reread(c.records), turn, c.memory)); again != got {
				t.Fatalf("seed %d: after a restart a turn is shown\n%s\nand it was shown\n%s", seed, again, got)
			}
			c.end(turn)
			last = got
		}
	}
}

// reread returns the records as they are read from a log again.
func reread(records []journal.Record) []journal.Record {
	newest, _ := NewestSummary(records)
	return slices.DeleteFunc(slices.Clone(records), func(r journal.Record) bool { return newest.Hides(r.N) })
}

// The log contains no words of the memory.
func TestMarksHoldNoWords(t *testing.T) {
	c := &rememberer{t: t, memory: []Memory{{Scope: "person", Whose: "whom you talk to", Text: "xyzzy"}}}
	c.begin()
	if log := fmt.Sprint(c.records); strings.Contains(log, "xyzzy") || !strings.Contains(log, sessions.NoticeMemory) {
		t.Errorf("the log is %s", log)
	}
	if told := fmt.Sprint(Retell(c.records, "", c.records[len(c.records)-1].N)); strings.Contains(told, "remember") {
		t.Errorf("a summary is made of %s", told)
	}
}
