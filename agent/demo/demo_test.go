package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/agent/demo"
	"parley/agent/llm"
	"parley/tools"
)

// chat is a conversation with the model: its tools answer from a script.
type chat struct {
	t        *testing.T
	model    *demo.Model
	granted  []tools.Spec
	results  map[string]string // tool → result
	messages []llm.Message
	calls    []string // "tool {args}", in order
	steer    string   // said once, after the first call
}

func newChat(t *testing.T, results map[string]string) *chat {
	c := &chat{t: t, model: demo.New(), results: results}
	for _, name := range []string{"grep", "list_directory", "memory_read", "memory_write", "message", "read_file", "write_file"} {
		c.granted = append(c.granted, tools.Spec{Name: name})
	}
	return c
}

// ask says something as the agent would render it, and gives the answer.
func (c *chat) ask(text string) string {
	c.t.Helper()
	c.messages = append(c.messages, user("<message from=\"telegram:1\" name=\"Ann\">\n"+text+"\n</message>"))
	for range 20 {
		a := c.generate(&llm.Request{Messages: c.messages, Tools: c.granted})
		c.messages = append(c.messages, llm.Message{Role: llm.RoleAssistant, Blocks: a.Blocks})
		if a.Blocks[0].Kind == llm.BlockText {
			return a.Blocks[0].Text
		}
		c.messages = append(c.messages, c.run(a.Blocks))
	}
	c.t.Fatalf("no answer to %q after 20 steps: %q", text, c.calls)
	return ""
}

func (c *chat) run(uses []llm.Block) llm.Message {
	m := llm.Message{Role: llm.RoleUser}
	for i := range uses {
		uses[i].Call = fmt.Sprintf("call%d", len(c.calls))
		c.calls = append(c.calls, uses[i].Name+" "+string(uses[i].Args))
		result := c.results[uses[i].Name]
		m.Blocks = append(m.Blocks, llm.Block{Kind: llm.BlockToolResult, Call: uses[i].Call, Name: uses[i].Name,
			Content: json.RawMessage(result), Failed: strings.HasPrefix(result, `{"error"`)})
	}
	if c.steer != "" {
		m.Blocks = append(m.Blocks, user(c.steer).Blocks...)
		c.steer = ""
	}
	return m
}

// generate asks the model once and checks that what it emitted is its answer.
func (c *chat) generate(r *llm.Request) *llm.Answer {
	c.t.Helper()
	var streamed strings.Builder
	a, err := c.model.Generate(c.t.Context(), r, func(d llm.Delta) { streamed.WriteString(d.Text) })
	if err != nil {
		c.t.Fatal(err)
	}
	if len(a.Blocks) != 1 {
		c.t.Fatalf("answer has %d blocks, want 1: %+v", len(a.Blocks), a.Blocks)
	}
	if want := a.Blocks[0].Text + string(a.Blocks[0].Args); streamed.String() != want {
		c.t.Errorf("streamed %q, answered %q", streamed.String(), want)
	}
	if a.Usage != (llm.Usage{}) {
		c.t.Errorf("usage %+v, want none", a.Usage)
	}
	return a
}

func user(texts ...string) llm.Message {
	m := llm.Message{Role: llm.RoleUser}
	for _, t := range texts {
		m.Blocks = append(m.Blocks, llm.Block{Kind: llm.BlockText, Text: t})
	}
	return m
}

func wantAll(t *testing.T, answer string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(answer, p) {
			t.Errorf("answer lacks %q:\n%s", p, answer)
		}
	}
}

func TestUnderstands(t *testing.T) {
	const list, read, write, grep, remember, recall, message = "list_directory ", "read_file ", "write_file ", "grep ", "memory_write ", "memory_read ", "message "
	cases := map[string][]string{
		"list the files":                     {list + `{"path":"."}`},
		"List the files.":                    {list + `{"path":"."}`},
		"please list all files":              {list + `{"path":"."}`},
		"ls":                                 {list + `{"path":"."}`},
		"ls docs/":                           {list + `{"path":"docs/"}`},
		"What files are there?":              {list + `{"path":"."}`},
		"list the files in docs":             {list + `{"path":"docs"}`},
		"list the files in the docs folder":  {list + `{"path":"docs"}`},
		"list docs":                          {list + `{"path":"docs"}`},
		"show me the files in the workspace": {list + `{"path":"."}`},

		"read notes.txt":               {read + `{"path":"notes.txt"}`},
		"Read `notes.txt`.":            {read + `{"path":"notes.txt"}`},
		"could you read the file a.md": {read + `{"path":"a.md"}`},
		`open "my notes.txt", please`:  {read + `{"path":"my notes.txt"}`},
		"what's in notes.txt?":         {read + `{"path":"notes.txt"}`},

		"write hello to notes.txt":              {write + `{"content":"hello","path":"notes.txt"}`},
		`Write "Hello, world!" into notes.txt.`: {write + `{"content":"Hello, world!","path":"notes.txt"}`},
		"write go to bed to the file a/b.txt":   {write + `{"content":"go to bed","path":"a/b.txt"}`},
		"save tea as drinks.txt":                {write + `{"content":"tea","path":"drinks.txt"}`},

		"find hello":             {grep + `{"pattern":"(?i)hello"}`},
		"search for a.b in docs": {grep + `{"path":"docs","pattern":"(?i)a\\.b"}`},

		"remember that I like tea.":       {remember + `{"content":"I like tea."}`},
		"Remember: eat first, then sleep": {remember + `{"content":"eat first, then sleep"}`},
		"what do you remember?":           {recall + `{}`},
		"What do you know about tea?":     {recall + `{"query":"tea"}`},

		"tell telegram 42 that lunch is ready":    {message + `{"channel":"telegram","chat_id":"42","content":"lunch is ready"}`},
		"Tell slack C1: the build, that is, runs": {message + `{"channel":"slack","chat_id":"C1","content":"the build, that is, runs"}`},
		"tell telegram:-100 that hi":              {message + `{"channel":"telegram","chat_id":"-100","content":"hi"}`},
		"tell oncall that I think that it is red": {message + `{"channel":"oncall","content":"I think that it is red"}`},

		"write hello to a.txt and then read a.txt":        {write + `{"content":"hello","path":"a.txt"}`, read + `{"path":"a.txt"}`},
		"First list the files, then read a, then read b.": {list + `{"path":"."}`, read + `{"path":"a"}`, read + `{"path":"b"}`},
		"list the files\nread a.txt":                      {list + `{"path":"."}`, read + `{"path":"a.txt"}`},

		"hello":              nil,
		"help!":              nil,
		"what is love?":      nil,
		"read me a story":    nil,
		"write a poem":       nil,
		"tell me that again": nil,
		"":                   nil,
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			c := newChat(t, map[string]string{"read_file": `{"content":"x"}`, "write_file": `{"message":"ok"}`})
			c.ask(text)
			if strings.Join(c.calls, "\n") != strings.Join(want, "\n") {
				t.Errorf("called\n%s\nwant\n%s", strings.Join(c.calls, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func TestTellsResults(t *testing.T) {
	cases := []struct {
		ask, tool, result string
		want              []string
	}{
		{"list the files", "list_directory", `{"entries":[{"name":"docs","is_dir":true,"size":0},{"name":"a.txt","is_dir":false,"size":5},{"name":"b","is_dir":false,"size":1}]}`,
			[]string{"docs/\na.txt\nb\n"}},
		{"list the files", "list_directory", `{"entries":[]}`, []string{"I found nothing."}},
		{"list docs", "list_directory", `{"entries":[{"name":"a","size":2},{"_truncated":"…"}]}`, []string{"a\n… and more"}},
		{"list the files", "list_directory", `{"_truncated_json":"{\"entries\":[{"}`, []string{"came back", "_truncated_json"}},
		{"read a.txt", "read_file", `{"content":"one\ntwo\n"}`, []string{"Done: read a.txt.", "```\none\ntwo\n```"}},
		{"read a.md", "read_file", "{\"content\":\"```go\\nx\\n```\"}", []string{"````\n```go\nx\n```\n````"}},
		{"read a.txt", "read_file", `{"content":""}`, []string{"I found nothing."}},
		{"read a.txt", "read_file", `{"error":{"code":"file_not_found","message":"there is no a.txt, but a.md"}}`,
			[]string{"I couldn't do this: read a.txt.", "there is no a.txt, but a.md", "file_not_found"}},
		{"write x to a.txt", "write_file", `{"message":"Successfully wrote 1 bytes to a.txt"}`, []string{"Successfully wrote 1 bytes to a.txt."}},
		{"find tea", "grep", `{"matches":[{"path":"a.txt","line":3,"text":"green tea"}]}`, []string{"a.txt:3: green tea"}},
		{"find tea", "grep", `{"matches":[{"path":"a","line":1,"text":"tea"}],"count":1,"truncated":"more"}`, []string{"a:1: tea", "… and more"}},
		{"find tea", "grep", `{"matches":[]}`, []string{"I found nothing."}},
		{"remember that I like tea", "memory_write", `{"message":"Successfully wrote 10 bytes to memory (mode: append)"}`, []string{"Done: remember that I like tea.", "10 bytes"}},
		{"what do you remember", "memory_read", `{"content":"I like tea"}`, []string{"I like tea"}},
		{"what do you remember", "memory_read", `{"content":"","message":"No memory file found"}`, []string{"No memory file found."}},
		{"what do you know about tea", "memory_read", `{"query":"tea","matches":["I like tea"],"count":1}`, []string{"about tea", "```\nI like tea\n```"}},
		{"what do you know about tea", "memory_read", `{"query":"tea","matches":[],"count":0}`, []string{"I found nothing."}},
		{"tell telegram 42 that hi", "message", `{"status":"sent","channel":"telegram","chat_id":"42","content_length":2}`, []string{"telegram 42", "on its way"}},
		{"tell telegram 42 that hi", "message", `{"error":{"code":"permission_denied","message":"allowed are: slack C1"}}`,
			[]string{"couldn't do this: tell telegram 42 that hi", "allowed are: slack C1"}},
	}
	for _, tc := range cases {
		t.Run(tc.ask+" "+tc.result, func(t *testing.T) {
			c := newChat(t, map[string]string{tc.tool: tc.result})
			wantAll(t, c.ask(tc.ask), tc.want...)
			if len(c.calls) != 1 {
				t.Errorf("calls %q, want one of %s", c.calls, tc.tool)
			}
		})
	}
}

func TestSaysWhatItIs(t *testing.T) {
	for _, text := range []string{"hello", "what is love?", "[not a header]"} {
		wantAll(t, newChat(t, nil).ask(text), "demo model", "no AI", "OPENAI_API_KEY", "[model]", "list the files")
	}
	answer := newChat(t, nil).ask("what is love? ")
	wantAll(t, answer, "didn't understand")
}

func TestSequenceAnswersEachInOrder(t *testing.T) {
	c := newChat(t, map[string]string{
		"write_file": `{"error":{"code":"permission_denied","message":"no"}}`,
		"read_file":  `{"content":"old"}`,
	})
	answer := c.ask("write hello to a.txt and then read a.txt")
	wantAll(t, answer, "couldn't do this: write hello to a.txt", "old")
	if strings.Index(answer, "couldn't") > strings.Index(answer, "old") {
		t.Errorf("answers out of order:\n%s", answer)
	}
	// What was answered is not asked again.
	c.calls = nil
	c.ask("list the files")
	if len(c.calls) != 1 {
		t.Errorf("second message called %q, want one list_directory", c.calls)
	}
}

func TestSteeredMessagesAreAnswered(t *testing.T) {
	c := newChat(t, map[string]string{"list_directory": `{"entries":[]}`, "read_file": `{"content":"tea"}`})
	c.steer = "and read a.txt"
	wantAll(t, c.ask("list the files"), "list the files. I found nothing.", "tea")
	if len(c.calls) != 2 {
		t.Errorf("calls %q, want two", c.calls)
	}
}

func TestSeveralWaitingMessages(t *testing.T) {
	c := newChat(t, map[string]string{"list_directory": `{"entries":[]}`, "read_file": `{"content":"tea"}`})
	c.messages = []llm.Message{user("[telegram · Ann]", "list the files"), user("[telegram · Ann]", "what is love?")}
	wantAll(t, c.ask("read a.txt"), "list the files. I found nothing.", "didn't understand", "tea")
}

func TestCancelledRequestsAreForgotten(t *testing.T) {
	c := newChat(t, map[string]string{"list_directory": `{"error":{"code":"cancelled","message":"stopped"}}`, "read_file": `{"content":"tea"}`})
	a := c.generate(&llm.Request{Messages: []llm.Message{user("list the files")}, Tools: c.granted})
	c.messages = []llm.Message{user("list the files"), {Role: llm.RoleAssistant, Blocks: a.Blocks}, c.run(a.Blocks)}
	if answer := c.ask("read a.txt"); strings.Contains(answer, "list the files") || !strings.Contains(answer, "tea") {
		t.Errorf("answer %q, want only what a.txt says", answer)
	}
}

func TestSummary(t *testing.T) {
	c := newChat(t, nil)
	c.ask("hello")
	a := c.generate(&llm.Request{Messages: append(c.messages, user("Summarize the conversation so far for yourself: keep names."))})
	wantAll(t, a.Blocks[0].Text, "hello")
	c = newChat(t, map[string]string{"read_file": `{"content":"tea"}`})
	c.messages = []llm.Message{user("<summary of=\"what was said before\">\n" + a.Blocks[0].Text + "\n</summary>")}
	if answer := c.ask("read a.txt"); strings.Contains(answer, "understand") {
		t.Errorf("answered the summary: %s", answer)
	}
}

func TestToolNotGranted(t *testing.T) {
	c := newChat(t, map[string]string{"read_file": `{"content":"tea"}`})
	c.granted = []tools.Spec{{Name: "read_file"}}
	wantAll(t, c.ask("write x to a.txt, then read a.txt"), "`write_file`", "don't have it", "tea")
	if len(c.calls) != 1 {
		t.Errorf("calls %q, want only read_file", c.calls)
	}
}

func TestNoCallsSaysWhatRemains(t *testing.T) {
	c := newChat(t, nil)
	a := c.generate(&llm.Request{Messages: []llm.Message{user("read a.txt")}, Tools: c.granted, NoCalls: true})
	wantAll(t, a.Blocks[0].Text, "before I could", "read a.txt")
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := demo.New().Generate(ctx, &llm.Request{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func FuzzGenerate(f *testing.F) {
	for _, text := range []string{"list the files", "write a to b then read b", "tell x 1 that", "then then then", "“”", "\xff then \xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := newChat(t, nil)
		if a := c.generate(&llm.Request{Messages: []llm.Message{user(text)}, Tools: c.granted}); a.Blocks[0].Kind == llm.BlockToolUse {
			if !json.Valid(a.Blocks[0].Args) {
				t.Errorf("arguments are not JSON: %s", a.Blocks[0].Args)
			}
		} else if a.Blocks[0].Text == "" {
			t.Error("empty answer")
		}
	})
}
