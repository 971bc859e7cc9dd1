package markup_test

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"parley/channels/markup"
)

func TestTerminalShowsStylesAndNoForeignEscapes(t *testing.T) {
	for md, want := range map[string]string{
		"a **b** _c_ ~~d~~":                 "a \x1b[1mb\x1b[22m \x1b[3mc\x1b[23m \x1b[9md\x1b[29m",
		"# Head\n\ntext":                    "\x1b[1mHead\x1b[22m\n\ntext",
		"`x` and [there](https://a.b/c)":    "\x1b[36mx\x1b[39m and \x1b[4mthere\x1b[24m (https://a.b/c)",
		"```go\na\nb\n```":                  "  \x1b[2mgo\x1b[22m\n  \x1b[36ma\x1b[39m\n  \x1b[36mb\x1b[39m",
		"> said\n> so":                      "\x1b[2m│ \x1b[22msaid\n\x1b[2m│ \x1b[22mso",
		"- one\n- two":                      "• one\n• two",
		"&#27;]0;owned&#7; \u009b31m **x**": "]0;owned 31m \x1b[1mx\x1b[22m",
		"`&#27;[2J` [a](http://x/&#27;[2J)": "\x1b[36m&#27;[2J\x1b[39m \x1b[4ma\x1b[24m (http://x/[2J)",
	} {
		var got []string
		for _, p := range markup.Render(md, markup.Terminal, 0) {
			got = append(got, p.Text)
		}
		if text := strings.Join(got, "\n---\n"); text != want {
			t.Errorf("%q is shown as %q, want %q", md, text, want)
		}
	}
}

// terminalText returns what a terminal of a width shows, without styles.
func terminalText(md string, s markup.Screen) string {
	return ansi.Strip(markup.New().RenderTerminal(md, s))
}

func TestTerminalBreaksLinesBetweenWords(t *testing.T) {
	for _, c := range []struct{ md, want string }{
		{"one two three four", "one two\nthree four"},
		{"a verylongwordthatisbroken b", "a\nverylongwo\nrdthatisbr\noken b"},
		{"漢字は幅が二つ分あります", "漢字は幅が\n二つ分あり\nます"},
		{"ab cdefghi漢字", "ab cdefghi\n漢字"},
		{"- one two three\n  - four five six", "• one two\n  three\n  • four\n    five\n    six"},
		{"> one two three", "│ one two\n│ three"},
		{"[link](https://a.b) x", "link\n(https://a\n.b) x"},
		{"10. one two", "10. one\n    two"},
		{"e\u0301e\u0301e\u0301e\u0301 e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301", "e\u0301e\u0301e\u0301e\u0301\ne\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"},
		{"```\n0123456789ab\n```", "  01234567\n  89ab"},
		{"| a | b |\n|--|--|\n| long words here | x |", "a      │ b\n───────┼──\nlong   │ x\nwords  │ \nhere   │ "},
		{"| a | b |\n|--|--|\n| long words here | long too |", "a: long\nwords here\nb: long\ntoo"},
		{"***", "──────────"},
	} {
		if got := terminalText(c.md, markup.Screen{Width: 10}); got != c.want {
			t.Errorf("%q is shown as\n%s\nwant\n%s", c.md, got, c.want)
		}
	}
}

// However narrow the terminal is, no line is wider than it, and each line has complete styles.
func TestTerminalLinesFit(t *testing.T) {
	r := markup.New()
	var texts []string
	for _, file := range []string{"answer", "split", "tables"} {
		md, err := os.ReadFile("testdata/" + file + ".md")
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(md))
	}
	for _, e := range specExamples(t) {
		texts = append(texts, e.Markdown)
	}
	for _, width := range []int{24, 40, 80} {
		for _, md := range texts {
			for line := range strings.SplitSeq(r.RenderTerminal(md, markup.Screen{Width: width, Links: true}), "\n") {
				if n := ansi.StringWidth(line); n > width {
					t.Errorf("at width %d a line has %d columns: %q", width, n, line)
				}
				if on, off := strings.Count(line, "\x1b[1m")+strings.Count(line, "\x1b[2m"), strings.Count(line, "\x1b[22m"); on != off {
					t.Errorf("%d styles begin and %d end in %q", on, off, line)
				}
			}
		}
	}
}

func TestTerminalShowsLinksIfItCan(t *testing.T) {
	const md = "see [the *page*](https://a.example/x) or https://b.example"
	const link = "\x1b]8;;https://a.example/x\x1b\\"
	got := markup.New().RenderTerminal(md, markup.Screen{Links: true})
	if want := "see " + link + "\x1b[4mthe \x1b[3mpage\x1b[23m\x1b[24m\x1b]8;;\x1b\\ or \x1b]8;;https://b.example\x1b\\\x1b[4mhttps://b.example\x1b[24m\x1b]8;;\x1b\\"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := markup.New().RenderTerminal(md, markup.Screen{}); strings.Contains(got, "\x1b]8") {
		t.Errorf("a terminal that makes none gets %q", got)
	}
}

// However narrow the terminal is, no word of a table is cut, and its rows are recognizable: if there is no room
// for columns, the rows become records.
func TestTerminalTablesAreReadable(t *testing.T) {
	const table = "| Service | Owner | Region | What it does | Since |\n|--|--|--|--|--|\n" +
		"| billing-gateway | payments | eu-central | Takes the orders from the shop, checks them against the ledger, and hands them to the bank in batches, every ten minutes | 2021 |\n" +
		"| search | discovery | 東京 | Finds things | 2019 |\n"
	for width, columns := range map[int]bool{160: true, 100: true, 70: true, 60: false, 40: false, 24: false} {
		shown := ansi.Strip(markup.New().RenderTerminal(table, markup.Screen{Width: width}))
		if got := strings.Contains(shown, "│"); got != columns {
			t.Errorf("%d columns: it is laid out as columns: %t\n%s", width, got, shown)
		}
		for _, word := range strings.FieldsFunc(table, func(r rune) bool { return strings.ContainsRune("|\n ", r) }) {
			if word != "--" && word != "東京" && !strings.Contains(shown, word) {
				t.Errorf("%d columns: %q is broken\n%s", width, word, shown)
			}
		}
	}
}

// Long lines of code are broken at natural places and keep their indentation, and no text is lost.
func TestTerminalBreaksCodeBetweenWords(t *testing.T) {
	const code = "    SELECT users.id, count(*) FROM users LEFT JOIN orders ON orders.user_id = users.id"
	for _, width := range []int{30, 40, 60} {
		shown := ansi.Strip(markup.New().RenderTerminal("```\n"+code+"\n```", markup.Screen{Width: width}))
		var whole strings.Builder
		whole.WriteString("    ")
		for line := range strings.SplitSeq(shown, "\n") {
			rest, indented := strings.CutPrefix(line, "      ")
			if !indented || strings.HasPrefix(rest, " ") {
				t.Errorf("%d columns: %q is not indented as its line is", width, line)
			}
			whole.WriteString(rest)
		}
		if whole.String() != code {
			t.Errorf("%d columns: it is %q", width, whole.String())
		}
		for _, word := range []string{"users.id", "count(*)", "orders.user_id"} {
			if !strings.Contains(shown, word) {
				t.Errorf("%d columns: %s is broken:\n%s", width, word, shown)
			}
		}
	}
	if long := strings.Repeat("x", 100); strings.Count(markup.New().RenderTerminal("```\n"+long+"\n```", markup.Screen{Width: 42}), "x") != 100 {
		t.Error("a word that is too long is not whole")
	}
}
