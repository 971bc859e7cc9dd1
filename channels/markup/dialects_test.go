package markup_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/net/html"

	"parley/channels/markup"
	"parley/channels/markup/markuptest"
)

// shownText returns what people see of a message in a dialect. It fails the test if the platform would misread
// the message.
func shownText(t *testing.T, r *markup.Renderer, d markup.Dialect, text string) string {
	t.Helper()
	switch d {
	case markup.TelegramHTML:
		return visibleText(t, text)
	case markup.HTML:
		checkPage(t, text)
		return markuptest.Shown(t, text)
	case markup.Terminal:
		for _, sequence := range regexp.MustCompile("\x1b(?:\\[[0-9]+m)?").FindAllString(text, -1) {
			if sequence == "\x1b" {
				t.Errorf("a foreign escape sequence in %q", text)
			}
		}
		return ansi.Strip(text)
	case markup.SlackMrkdwn:
		return slackText(t, text)
	case markup.DiscordMarkdown:
		return discordText(text, func(md string) string { return joinTexts(r.Render(md, markup.Plain, 0)) })
	case markup.Markdown:
		return joinTexts(r.Render(text, markup.Plain, 0))
	}
	return text
}

// discordText parses a text as Discord does: as Markdown without HTML and character references.
func discordText(text string, read func(md string) string) string {
	text = regexp.MustCompile("&(#?[A-Za-z0-9]+;)").ReplaceAllString(text, "＆$1")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "<", "＜"), "＜http", "<http")
	return strings.NewReplacer("＜", "<", "＆", "&").Replace(read(text))
}

// slackText returns what Slack shows for a text in which all tags are our links.
func slackText(t *testing.T, text string) string {
	t.Helper()
	link := regexp.MustCompile(`(?i)<((?:https?://|mailto:|www\.)[^<>|]*)(?:\|([^<>]*))?>`)
	text = link.ReplaceAllStringFunc(text, func(tag string) string {
		target, label, _ := strings.Cut(strings.Trim(tag, "<>"), "|")
		return cmp.Or(label, target)
	})
	if strings.Contains(text, "<") {
		t.Errorf("a tag that is not ours in %q", text)
	}
	if i := strings.Index(text, "&"); i >= 0 {
		for _, part := range strings.Split(text[i:], "&")[1:] {
			if !strings.HasPrefix(part, "amp;") && !strings.HasPrefix(part, "lt;") && !strings.HasPrefix(part, "gt;") {
				t.Errorf("an & that is not escaped in %q", text)
			}
		}
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}

// checkPage checks that HTML can load and run nothing, and that all tags are closed.
func checkPage(t *testing.T, source string) {
	t.Helper()
	var open []string
	for z := html.NewTokenizer(strings.NewReader(source)); z.Next() != html.ErrorToken; {
		token := z.Token()
		switch token.Type {
		case html.StartTagToken:
			if !slices.Contains(strings.Fields("p h1 h2 h3 h4 h5 h6 pre code table thead tbody tr th td hr blockquote ol ul li a strong em del br"), token.Data) {
				t.Errorf("<%s> in %q", token.Data, source)
			}
			for _, a := range token.Attr {
				checkAttribute(t, token.Data, a)
			}
			if token.Data != "br" && token.Data != "hr" {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> closes %v in %q", token.Data, open, source)
			}
			open = open[:len(open)-1]
		case html.TextToken:
		default:
			t.Errorf("%v in %q", token, source)
		}
	}
	if len(open) > 0 {
		t.Errorf("%v stay open in %q", open, source)
	}
}

func checkAttribute(t *testing.T, tag string, a html.Attribute) {
	t.Helper()
	switch tag + " " + a.Key {
	case "a href":
		if !markuptest.MayLead(a.Val) {
			t.Errorf("a link to %q", a.Val)
		}
	case "a rel", "code class", "th align", "td align", "ol start":
	default:
		t.Errorf("attribute %s of <%s>", a.Key, tag)
	}
}

// In every dialect, and split at any limit, people see the same text for each example as in the specification's
// HTML.
func TestEveryDialectShowsTheSpecificationsExamples(t *testing.T) {
	r := markup.New()
	all := append(allDialects(), markup.Terminal)
	for _, e := range specExamples(t) {
		want := markuptest.Letters(markuptest.Shown(t, e.HTML))
		for _, d := range all {
			whole := ""
			limits := []int{0, 64, 100, 250}
			if d == markup.Terminal {
				limits = limits[:1]
			}
			for _, limit := range limits {
				pieces := r.Render(e.Markdown, d, limit)
				if d != markup.Terminal {
					checkPieces(t, d, limit, pieces)
				}
				var texts strings.Builder
				for _, p := range pieces {
					texts.WriteString(shownText(t, r, d, p.Text))
				}
				if limit == 0 {
					whole = texts.String()
				}
				if got := markuptest.Letters(texts.String()); !markuptest.IsWithin(want, got) || !markuptest.IsWithin(markuptest.Letters(whole), got) {
					t.Errorf("%s as %s, limit %d: %q is shown as %q", e.Name, d, limit, e.Markdown, texts.String())
				}
				if got := markuptest.Letters(joinTexts(pieces)); !markuptest.IsWithin(want, got) {
					t.Errorf("%s as %s, limit %d: %q without markup is %q", e.Name, d, limit, e.Markdown, joinTexts(pieces))
				}
			}
		}
	}
}

// Text that was parsed and rendered as Markdown is parsed the same way again: no mark is lost, and none is
// added.
func TestRenderedMarkdownParsesTheSame(t *testing.T) {
	r := markup.New()
	const limit = 4096 // without a limit, the text would stay unchanged
	exceptions := map[markup.Dialect]string{
		markup.Markdown: "commonmark 300," + // a heading inside a list item becomes bold
			"commonmark 600," + // a link whose text is empty
			"gfm autolinks 10,", // an address whose last character keeps it from being a link
		markup.DiscordMarkdown: "commonmark 62,commonmark 72,commonmark 300," + // headings that are too deep become bold
			"commonmark 93," + // a text that would be a heading in CommonMark
			"commonmark 597,commonmark 600," + // links with unusual addresses
			"gfm tables 1,gfm tables 2,gfm tables 3,gfm tables 4,gfm tables 5,gfm tables 7,gfm tables 8," + // tables become code
			"gfm autolinks 10,", // email addresses become text
	}
	for _, e := range specExamples(t) {
		was := renderHTML(r, e.Markdown)
		for _, d := range []markup.Dialect{markup.Markdown, markup.DiscordMarkdown} {
			var again strings.Builder
			for _, p := range r.Render(e.Markdown, d, limit) {
				again.WriteString(p.Text)
			}
			var got string
			if d == markup.Markdown {
				got = inlineRuns(flattenHTML(t, renderHTML(r, again.String()), false))
			} else {
				got = discordText(again.String(), func(md string) string { return inlineRuns(flattenHTML(t, renderHTML(r, md), false)) })
			}
			excepted := strings.Contains(exceptions[d], e.Name+",")
			if want := inlineRuns(flattenHTML(t, was, false)); (got != want) != excepted {
				t.Errorf("%s: %q in %s is %q:\n%s\nwant\n%s", e.Name, e.Markdown, d, again.String(), got, want)
			}
		}
	}
}

// inlineRuns returns the runs of text in blocks, without blanks, each with its styles.
func inlineRuns(flat string) string {
	var runs strings.Builder
	last := ""
	for line := range strings.SplitSeq(flat, "\n") {
		style, text, ok := strings.Cut(line, "|")
		text = strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || strings.ContainsRune("⏎—\u200b", r) {
				return -1
			}
			return r
		}, text)
		if !ok || strings.HasPrefix(line, "<") || text == "" {
			continue
		}
		if style != last {
			runs.WriteString("\n" + style + "|")
		}
		runs.WriteString(text)
		last = style
	}
	return runs.String()
}

func TestHTMLRunsAndLoadsNothing(t *testing.T) {
	r := markup.New()
	for _, md := range markuptest.Hostile() {
		for _, limit := range []int{0, 64} {
			for _, p := range r.Render(md, markup.HTML, limit) {
				checkPage(t, p.Text)
			}
		}
	}
	got := renderHTML(r, "[a](https://a.example/x?y=1&z=\"2\") [b](tg://user?id=1) <me@a.example> ![c](https://a.example/c.png)")
	want := `<p><a href="https://a.example/x?y=1&amp;z=%222%22" rel="nofollow noopener noreferrer">a</a> b (tg://user?id=1) ` +
		`<a href="mailto:me@a.example" rel="nofollow noopener noreferrer">me@a.example</a> <a href="https://a.example/c.png" rel="nofollow noopener noreferrer">c</a></p>`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// One visible character may consist of several code points, and of surrogates in UTF-16. It is never cut,
// wherever it is.
func TestNoCharacterIsCutInHalf(t *testing.T) {
	for _, c := range []string{"👨‍👩‍👧‍👦", "👍🏽", "🇩🇪", "❤️‍🔥", "Z\u0301\u0323", "각", "नि", "𝄞", "漢"} {
		run := strings.Repeat(c, 300)
		for place, text := range map[string]string{
			"a text": run, "words": strings.Repeat(strings.Repeat(c, 7)+" ", 40), "strong": "**" + run + "**", "a quote": "> " + run, "an item": "- " + run,
			"code": "```\n" + run + "\n```", "inline code": "`" + run + "`", "a link": "[" + run + "](https://x.example)", "a heading": "# " + run,
			"a table": "| a | b |\n|--|--|\n| 1 | " + run + " |",
		} {
			for _, d := range allDialects() {
				for _, limit := range []int{100, 101, 102, 103, 107} {
					whole := 0
					for _, p := range markup.Render(text, d, limit) {
						whole += strings.Count(p.Plain, c)
						if rest := strings.ReplaceAll(p.Plain, c, ""); strings.ContainsAny(rest, c) {
							t.Errorf("%s: %s of %s is cut at %d: %q", d, place, c, limit, p.Plain)
						}
						if rest := strings.ReplaceAll(p.Text, c, ""); strings.ContainsAny(rest, c) {
							t.Errorf("%s: %s of %s is cut at %d: %q", d, place, c, limit, p.Text)
						}
					}
					if want := strings.Count(text, c); whole != want {
						t.Errorf("%s: %s: %d of %d %s are left", d, place, whole, want, c)
					}
				}
			}
		}
	}
}

// Slack refuses a message with more than 12,000 characters of Markdown, even if its text may be longer. A
// longer piece has no Markdown.
func TestMarkdownStaysWithinSlacksLimit(t *testing.T) {
	for words, want := range map[int]bool{2300: true, 2390: true, 2410: false, 2600: false, 3000: false} {
		text := "# a\n\n" + strings.Repeat("word ", words)
		pieces := markup.Render(text, markup.SlackMrkdwn, 40_000)
		if len(pieces) != 1 {
			t.Fatalf("%d words are %d pieces", words, len(pieces))
		}
		n := utf16Units(pieces[0].Markdown)
		if (n > 0) != want || n > 12_000 || !strings.Contains(pieces[0].Text, strings.TrimSpace(text[5:])) {
			t.Errorf("%d words have %d characters of Markdown", words, n)
		}
	}
}
