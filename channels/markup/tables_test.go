package markup_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"parley/channels/markup"
)

// A table that fits a phone's screen has columns; the rows of a wider one become records. Its width is measured
// as characters appear on a screen.
func TestWideTablesBecomeRecords(t *testing.T) {
	for _, c := range []struct {
		what, md, want string
	}{
		{"32 columns", "| a | " + strings.Repeat("x", 28) + " |\n|--|--|\n| 1 | 2 |", "<pre>a | " + strings.Repeat("x", 28) + "\n--+-" + strings.Repeat("-", 28) + "\n1 | 2</pre>"},
		{"33 columns", "| a | " + strings.Repeat("x", 29) + " |\n|--|--|\n| 1 | **2** |", "<b>a:</b> 1\n<b>" + strings.Repeat("x", 29) + ":</b> <b>2</b>"},
		{"15 wide characters", "| 名 | 値 |\n|--|--|\n| 1 | 一二三四五六七八九十一二三 |", "<pre>名 | 値\n---+---------------------------\n1  | 一二三四五六七八九十一二三</pre>"},
		{"16 wide characters", "| 名 | 値 |\n|--|--|\n| 1 | 一二三四五六七八九十一二三四 |", "<b>名:</b> 1\n<b>値:</b> 一二三四五六七八九十一二三四"},
		{"an empty cell, and an empty row", "| a | " + strings.Repeat("x", 40) + " |\n|--|--|\n| 1 | |\n| | |\n| | 2 |", "<b>a:</b> 1\n<b>" + strings.Repeat("x", 40) + ":</b> –\n\n<b>a:</b> –\n<b>" + strings.Repeat("x", 40) + ":</b> 2"},
		{"a column without a name", "| | b |\n|--|--|\n| " + strings.Repeat("x", 40) + " | 2 |", strings.Repeat("x", 40) + "\n<b>b:</b> 2"},
		{"a header alone", "| " + strings.Repeat("x", 40) + " | b |\n|--|--|", "<b>" + strings.Repeat("x", 40) + "</b>\n<b>b</b>"},
		{"a link", "| a | b |\n|--|--|\n| [there](https://a.example/a/long/path) | x |", "<b>a:</b> <a href=\"https://a.example/a/long/path\">there</a>\n<b>b:</b> x"},
		{"in a quote", "> | a | " + strings.Repeat("x", 40) + " |\n> |--|--|\n> | 1 | 2 |", "<blockquote><b>a:</b> 1\n<b>" + strings.Repeat("x", 40) + ":</b> 2</blockquote>"},
		{"alignment", "| a | b | c |\n|:--|--:|:-:|\n| 1 | 2 | 3 |\n| 100 | 200 | 300 |", "<pre>a   |   b |  c\n----+-----+----\n1   |   2 |  3\n100 | 200 | 300</pre>"},
	} {
		got := markup.Render(c.md, markup.TelegramHTML, 4096)
		if len(got) != 1 || got[0].Text != c.want {
			t.Errorf("%s: got\n%q\nwant\n%q", c.what, got[0].Text, c.want)
		}
	}
}

// A row stays together if it fits into a message. A longer one is cut between its cells. If a cell is cut, its
// rest repeats the name of the column.
func TestCutRowsRepeatTheirColumnNames(t *testing.T) {
	r := markup.New()
	var md strings.Builder
	md.WriteString("| id | what it is and does |\n|--|--|\n")
	for i := range 20 {
		fmt.Fprintf(&md, "| %d | %s |\n", i, strings.Repeat("word ", 8))
	}
	for _, d := range []markup.Dialect{markup.TelegramHTML, markup.DiscordMarkdown} {
		for _, p := range r.Render(md.String(), d, 200) {
			for row := range strings.SplitSeq(p.Plain, "\n\n") {
				if !regexp.MustCompile(`^id: \d+\nwhat it is and does: word`).MatchString(row) {
					t.Errorf("%s: a row is %q", d, row)
				}
			}
		}
	}
	long := "| id | text |\n|--|--|\n| 7 | " + strings.Repeat("some words ", 60) + "|\n| 8 | short |"
	pieces := r.Render(long, markup.TelegramHTML, 200)
	if len(pieces) < 4 || pieces[0].Plain[:6] != "id: 7\n" {
		t.Fatalf("%d pieces: %+v", len(pieces), pieces)
	}
	for _, p := range pieces[1:] {
		if !strings.HasPrefix(p.Text, "<b>text:</b> ") {
			t.Errorf("the rest of a cell is %q", p.Text)
		}
	}
	if last := pieces[len(pieces)-1].Plain; !strings.HasSuffix(last, "id: 8\ntext: short") {
		t.Errorf("it ends in %q", last)
	}
	checkPieces(t, markup.TelegramHTML, 200, pieces)
	// Text without any room is not forced in. A dash of three bytes is one character.
	name := strings.TrimSpace(strings.Repeat("wide ", 20))
	checkPieces(t, markup.Plain, 308, r.Render("| a | "+name+" |\n|--|--|\n| 1 "+strings.TrimSpace(strings.Repeat("text ", 40))+" t", markup.Plain, 308))
}

// Names of columns are shortened if thousands of rows would repeat them.
func TestRepeatedColumnNamesAreShortened(t *testing.T) {
	name := strings.Repeat("a long name ", 12)
	md := "| " + name + " | b |\n|--|--|\n" + strings.Repeat("| x | y |\n", 2000)
	all := joinTexts(markup.Render(md, markup.TelegramHTML, 4096))
	if !strings.Contains(all, strings.TrimSpace(name)+":") || len(all) > 6*len(md) {
		t.Errorf("%d bytes became %d, beginning with %.200q", len(md), len(all), all)
	}
	if n := strings.Count(all, ": x"); n != 2000 {
		t.Errorf("%d rows", n)
	}
}

// In dialects with real tables, each message repeats the header.
func TestSplitTablesRepeatTheirHeader(t *testing.T) {
	md := "| name | number |\n|--|--:|\n" + strings.Repeat("| **someone** | 1 |\n", 50)
	for d, begin := range map[markup.Dialect]string{
		markup.Markdown:        "| name | number |\n| --- | --: |\n| **someone** | 1 |",
		markup.HTML:            "<table>\n<thead>\n<tr>\n<th>name</th>\n<th align=\"right\">number</th>",
		markup.DiscordMarkdown: "```\nname    | number\n--------+-------\nsomeone |      1",
		markup.SlackMrkdwn:     "```\nname    | number\n--------+-------\nsomeone |      1",
		markup.Plain:           "name    | number\n--------+-------\nsomeone |      1",
	} {
		pieces := markup.Render(md, d, 300)
		rows := 0
		for _, p := range pieces {
			rows += strings.Count(p.Text, "someone")
			if !strings.HasPrefix(p.Text, begin) {
				t.Errorf("%s: a piece is %q", d, p.Text)
			}
			if d == markup.SlackMrkdwn && !strings.HasPrefix(p.Markdown, "| name | number |\n| --- | --: |\n| **someone** | 1 |") {
				t.Errorf("its Markdown is %q", p.Markdown)
			}
		}
		if rows != 50 || len(pieces) < 3 {
			t.Errorf("%s: %d rows in %d pieces", d, rows, len(pieces))
		}
		checkPieces(t, d, 300, pieces)
	}
}

// Slack allows one table in a message: the longest one becomes a real table.
func TestOnlyTheLongestTableIsARealOne(t *testing.T) {
	small := "| a | b |\n|--|--|\n| 1 | 2 |\n\n"
	wide := "| name | text |\n|--|--|\n| one | " + strings.Repeat("words ", 20) + "|\n| two | x |\n\n"
	got := markup.Render(small+"between\n\n"+wide+small, markup.SlackMrkdwn, 4000)
	want := "```\na | b\n--+--\n1 | 2\n```\n\nbetween\n\n| name | text |\n| --- | --- |\n| one | " + strings.TrimSpace(strings.Repeat("words ", 20)) +
		" |\n| two | x |\n\n```\na | b\n--+--\n1 | 2\n```"
	if len(got) != 1 || got[0].Markdown != want {
		t.Errorf("got\n%s\nwant\n%s", got[0].Markdown, want)
	}
	if !strings.Contains(got[0].Text, "*name:* two\n*text:* x") {
		t.Errorf("without a markdown block it is\n%s", got[0].Text)
	}
	for _, md := range []string{"no table", "**bold**\n\n- list", "```\ncode\n```"} {
		if p := markup.Render(md, markup.SlackMrkdwn, 4000)[0]; p.Markdown != "" {
			t.Errorf("%q is shown no better as %q", md, p.Markdown)
		}
	}
}
