package markup_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"

	"parley/channels/markup"
	"parley/channels/markup/markuptest"
)

var updateGolden = flag.Bool("update", false, "write the golden files")

func allDialects() []markup.Dialect {
	return []markup.Dialect{markup.Plain, markup.Markdown, markup.TelegramHTML, markup.SlackMrkdwn, markup.DiscordMarkdown, markup.HTML}
}

// Each testdata/NAME.md is rendered in each dialect. NAME.DIALECT contains the pieces, separated by lines of =.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.md")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("%d inputs, %v", len(inputs), err)
	}
	r := markup.New()
	for _, input := range inputs {
		md, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		limit := 0
		if strings.Contains(input, "split") {
			limit = 400
		}
		for name, got := range renderAll(r, string(md), limit, 60) {
			golden := strings.TrimSuffix(input, "md") + name
			t.Run(filepath.Base(golden), func(t *testing.T) {
				compareGolden(t, golden, strings.Join(got, "\n==========\n"))
			})
		}
	}
}

// renderAll returns the pieces of a text in each dialect, and in the two richer forms: Slack's markdown blocks,
// and a terminal of the given width.
func renderAll(r *markup.Renderer, md string, limit, width int) map[string][]string {
	all := map[string][]string{"terminal": {r.RenderTerminal(md, markup.Screen{Width: width})}}
	for _, d := range allDialects() {
		for _, p := range r.Render(md, d, limit) {
			all[string(d)] = append(all[string(d)], p.Text)
			if d == markup.SlackMrkdwn {
				all["slack-block"] = append(all["slack-block"], p.Markdown)
			}
		}
	}
	return all
}

var (
	showFile  = flag.String("show", "", "a file of Markdown to render in each dialect, for eyes: go test ./channels/markup -run TestShow -v -show FILE")
	showLimit = flag.Int("limit", 4000, "with -show: the length of a message")
	showWidth = flag.Int("width", 80, "with -show: the columns of the terminal")
)

func TestShow(t *testing.T) {
	if *showFile == "" {
		t.Skip("no file was given with -show")
	}
	md, err := os.ReadFile(*showFile)
	if err != nil {
		t.Fatal(err)
	}
	all := renderAll(markup.New(), string(md), *showLimit, *showWidth)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for i, piece := range all[name] {
			fmt.Printf("\n===== %s, message %d of %d, %d units =====\n%s\n", name, i+1, len(all[name]), utf16Units(piece), piece)
		}
	}
}

func compareGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *updateGolden {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestTextWithoutMarkdownStaysUnchanged(t *testing.T) {
	for _, text := range []string{
		"an underscore_name and a __dunder__name", "2*3*4 = 24", "2**3**2 is 512", "a lone < and a & and a > b",
		"tschüß — naïve", "3.", "1986. A great year", "a\nb\nc", "one\n\ntwo", "C:\\temp\\x", "say \"hi\"; it's 5 o'clock!",
		"[1]: https://example.com/a", "x ~5 to ~10", "#hashtag", "if a < b && c > d", "https://example.com/a_b_c?x=1&y=2", "(see www.example.com)",
		"1~2 and 3~4", "~5 or 6~", "用时1~2天，约3~4元", "~~~~~ wavy", "?lang=en&region=eu;", "x&copy=1; &ampere; &notit; &#x; &#12abc; &;",
		`so \(a \neq 0\) and \(\{x_1, *y*\}\)`, "\\[\n\\sum_{i=1}^n a_i \\\\\n\\]", "$HOME/.bashrc", "a|b|c", "f(x) = y * z", "+1", "5 - 3", "@someone hello",
	} {
		got := markup.Render(text, markup.Plain, 4096)
		if len(got) != 1 || got[0].Text != text {
			t.Errorf("%q became %q", text, got)
		}
		if tg := markup.Render(text, markup.TelegramHTML, 4096); len(tg) != 1 || visibleText(t, tg[0].Text) != text {
			t.Errorf("%q became %q", text, tg)
		}
	}
}

func TestEscapesAreResolved(t *testing.T) {
	for md, want := range map[string]string{
		"a &amp; b &lt;c&gt; &#65;&#x42; &copy;": "a & b <c> AB ©", `\[not a link\] and \*no star\*`: "[not a link] and *no star*",
		`\(no end`: "(no end", `\[\] and \(\)`: "[] and ()", `- \[ \] open`: "• [ ] open", `\\(a\)`: `\(a)`,
		"- so\n  \\[\n  x = 1\n  \\]": "• so\n  \\[\n  x = 1\n  \\]",
	} {
		if got := markup.Render(md, markup.Plain, 4096); len(got) != 1 || got[0].Text != want {
			t.Errorf("%q became %q, want %q", md, got, want)
		}
	}
}

func TestStrikethroughTakesTwoTildes(t *testing.T) {
	const md = "~one~ ~~two~~ ~~~three~~~ ~~a ~b~ c~~ 1~2 ~~1~2~~"
	for d, want := range map[markup.Dialect]string{
		markup.TelegramHTML:    "~one~ <s>two</s> ~~~three~~~ <s>a ~b~ c</s> 1~2 <s>1~2</s>",
		markup.DiscordMarkdown: `\~one\~ ~~two~~ \~\~\~three\~\~\~ ~~a \~b\~ c~~ 1\~2 ~~1\~2~~`,
		markup.SlackMrkdwn:     "~\u200bone~ ~two~ ~~~three~~~ ~a ~\u200bb~ c~ 1~2 ~1~2~",
		markup.Plain:           "~one~ two ~~~three~~~ a ~b~ c 1~2 1~2",
	} {
		if got := markup.Render(md, d, 4096); len(got) != 1 || got[0].Text != want {
			t.Errorf("%s: got %q, want %q", d, got, want)
		}
	}
	// Text that is not struck out in Slack either stays unchanged, so that it can be copied.
	for _, text := range []string{"~/.bashrc and ~/.profile", "1~2 and 3~4", "~5 or ~6", "a ~ b ~ c"} {
		if got := markup.Render(text, markup.SlackMrkdwn, 4096); got[0].Text != text {
			t.Errorf("%q became %q", text, got[0].Text)
		}
	}
}

func TestALinkedImageKeepsItsLink(t *testing.T) {
	for md, want := range map[string]string{
		"[![build](https://a.example/badge.svg)](https://a.example/ci)":    `<a href="https://a.example/ci">build</a>`,
		"[![](https://a.example/badge.svg)](https://a.example/ci)":         `https://a.example/ci`,
		"[a ![b](https://a.example/b.png) c](https://a.example/ci) d":      `<a href="https://a.example/ci">a b c</a> d`,
		"![alone](https://a.example/badge.svg)":                            `<a href="https://a.example/badge.svg">alone</a>`,
		"[![odd](https://a.example/b.png)](relative/path)":                 `<a href="https://a.example/b.png">odd</a> (relative/path)`,
		"[x](https://a.example/?lang=en&region=eu;&amp;y=1 \"and &amp;\")": `<a href="https://a.example/?lang=en&amp;region=eu;&amp;y=1">x</a>`,
	} {
		if got := markup.Render(md, markup.TelegramHTML, 4096); len(got) != 1 || got[0].Text != want {
			t.Errorf("%s became %q, want %q", md, got, want)
		}
	}
}

// The description of an image is plain text, because whoever makes the model show the image may have written
// it.
func TestAnImagesDescriptionIsPlainText(t *testing.T) {
	const md = "![**Approved** by `owner`, ~~no~~ [see](https://evil.example/x) _now_](https://a.example/i.png)"
	const plain = "Approved by owner, no see now"
	for d, want := range map[markup.Dialect]string{
		markup.TelegramHTML:    `<a href="https://a.example/i.png">` + plain + `</a>`,
		markup.SlackMrkdwn:     "<https://a.example/i.png|" + plain + ">",
		markup.DiscordMarkdown: "[" + plain + "](https://a.example/i.png)",
	} {
		if got := markup.Render(md, d, 4096); len(got) != 1 || got[0].Text != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
		if got := markup.Render(strings.Replace(md, "https://a.example/i.png", "data:x", 1), d, 4096); len(got) != 1 || strings.ContainsAny(got[0].Text, "*_~<`") || strings.Contains(got[0].Text, "evil") {
			t.Errorf("%s: without a link %q", d, got)
		}
	}
}

func TestBlankTextsHaveNoPieces(t *testing.T) {
	for _, md := range []string{"", " ", "\n\n\t\n", "\u200b", "&nbsp;", "\x00"} {
		if got := markup.Render(md, markup.TelegramHTML, 100); len(got) != 0 {
			t.Errorf("%q gives %q", md, got)
		}
	}
	for _, md := range []string{"#", "-", ">", "***", "```\n```"} {
		if got := markup.Render(md, markup.TelegramHTML, 100); len(got) != 1 || strings.TrimSpace(got[0].Text) == "" {
			t.Errorf("%q gives %q", md, got)
		}
	}
}

func TestMassMentionsAreDefused(t *testing.T) {
	const md = "@everyone @here <!channel> <!here|x> <!subteam^S1> **@channel** [@here](https://x.example)"
	for _, d := range []markup.Dialect{markup.SlackMrkdwn, markup.DiscordMarkdown} {
		for _, p := range markup.Render(md, d, 1000) {
			for _, form := range []string{p.Text, p.Plain} {
				if regexp.MustCompile(`@(everyone|here|channel)`).MatchString(form) {
					t.Errorf("%s: %q mentions everybody", d, form)
				}
				if d == markup.SlackMrkdwn && strings.Contains(form, "<!") {
					t.Errorf("%q mentions everybody", form)
				}
			}
		}
	}
}

func TestLinksLeadOnlyToTheWeb(t *testing.T) {
	const md = "[a](javascript:alert(1)) [b](file:///etc/passwd) [c](https://ok.example/?a=1&b=2) <javascript:x> [d](mailto:a@b.example) [e](tg://user?id=1) ![f](data:image/png;base64,xx)"
	for _, p := range markup.Render(md, markup.TelegramHTML, 4096) {
		targets := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(p.Text, -1)
		var got []string
		for _, m := range targets {
			got = append(got, m[1])
		}
		if want := "https://ok.example/?a=1&amp;b=2 mailto:a@b.example tg://user?id=1"; strings.Join(got, " ") != want {
			t.Errorf("links %q, want %q", got, want)
		}
		if !strings.Contains(p.Text, "javascript:alert(1)") {
			t.Errorf("a target that is no link is lost: %q", p.Text)
		}
	}
}

// visibleText returns what Telegram shows. It fails the test if tags are not balanced.
func visibleText(t *testing.T, html string) string {
	t.Helper()
	var open []string
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllStringFunc(html, func(tag string) string {
		name := strings.Trim(strings.Fields(tag)[0], "</>")
		if !strings.HasPrefix(tag, "</") {
			open = append(open, name)
			return ""
		}
		if len(open) == 0 || open[len(open)-1] != name {
			t.Errorf("tag %s closes %v in %q", tag, open, html)
			return ""
		}
		open = open[:len(open)-1]
		return ""
	})
	if len(open) > 0 {
		t.Errorf("tags %v stay open in %q", open, html)
	}
	if strings.ContainsAny(text, "<>") {
		t.Errorf("unescaped text in %q", html)
	}
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(text)
}

func utf16Units(s string) int { return len(utf16.Encode([]rune(s))) }

// checkPieces checks what must be true of all pieces of any text.
func checkPieces(t *testing.T, d markup.Dialect, limit int, pieces []markup.Piece) {
	t.Helper()
	for _, p := range pieces {
		if !utf8.ValidString(p.Text) || !utf8.ValidString(p.Plain) {
			t.Errorf("%s: piece is not valid UTF-8", d)
		}
		if strings.TrimSpace(p.Text) == "" || strings.TrimSpace(p.Plain) == "" {
			t.Errorf("%s: piece is blank", d)
		}
		n := utf16Units(p.Text)
		if d == markup.TelegramHTML {
			n = utf16Units(visibleText(t, p.Text))
		}
		if d == markup.HTML {
			n = utf16Units(markuptest.Shown(t, regexp.MustCompile(">\n+").ReplaceAllString(p.Text, ">")))
		}
		if limit > 0 && (n > limit || utf16Units(p.Plain) > limit) {
			t.Errorf("%s: piece has %d units, %d plain; the limit is %d: %.300q", d, n, utf16Units(p.Plain), limit, p.Text)
		}
	}
}

// letterRuns returns the runs of letters in a text.
func letterRuns(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}

func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"Hello **bold *both* x** `code` [link](https://example.com)", "- a\n  - b\n\n    ```go\n    x := 1\n    ```\n- c", "| a | b |\n|---|--:|\n| 1 | 2 |",
		"> quote\n> > deeper\n\n# Head\n\ntext " + strings.Repeat("word ", 100), "```\n" + strings.Repeat("long line of code ", 30) + "\n```",
		strings.Repeat("👨‍👩‍👧‍👦", 40), "e" + strings.Repeat("\u0301", 300), "***a** b*", "1) x\n2) y", "<b>raw</b> &amp; &#0; \\* \\", "a\\\nb  \nc",
		"| a | " + strings.Repeat("wide ", 20) + "|\n|--|--|\n| 1 | " + strings.Repeat("text ", 90) + "|\n| 2 |", "- > q\n  > r\n\n      code\n- :tada: [ ] x\n  1. a",
	} {
		f.Add(seed, 100)
	}
	r := markup.New()
	f.Fuzz(func(t *testing.T, md string, limit int) {
		for line := range strings.SplitSeq(r.RenderTerminal(md, markup.Screen{Width: 40}), "\n") {
			if n := uniseg.StringWidth(ansi.Strip(line)); n > 40 {
				t.Errorf("a line of the terminal has %d columns: %q", n, line)
			}
		}
		limit = 64 + absInt(limit)%4096
		for _, d := range allDialects() {
			pieces := r.Render(md, d, limit)
			checkPieces(t, d, limit, pieces)
			for _, p := range pieces {
				shownText(t, r, d, p.Text)
			}
			if strings.ContainsAny(md, "[]()`~&<>\\|!:@.\t\x00\r#") || !utf8.ValidString(md) || strings.ContainsFunc(md, unicode.IsControl) && !strings.Contains(md, "\n") {
				continue // some of the text is markup, and correctly missing
			}
			var got strings.Builder
			for _, p := range pieces {
				got.WriteString(p.Plain)
			}
			if want, have := strings.Join(letterRuns(md), ""), strings.Join(letterRuns(got.String()), ""); want != have {
				t.Errorf("%s, limit %d: words are lost or changed: %q became %q", d, limit, md, got.String())
			}
		}
	})
}

func TestTheFirstPieceIsLimitedInBytes(t *testing.T) {
	r := markup.New()
	for what, md := range map[string]string{
		"another script": strings.Repeat("これは長い答えの一文です。", 500),
		"entities":       strings.Repeat("a & b < c ", 900),
		"quotes":         strings.Repeat("> これは引用です。\n\n", 400),
		"code":           "```go\n" + strings.Repeat("// これは長い答えの一行です。 <&>\n", 300) + "```",
		"one long line":  "```\n" + strings.Repeat("漢", 9000) + "\n```",
		"a table":        "| 名 | 値 |\n|---|---|\n" + strings.Repeat("| 長い名前 | <値> & more |\n", 300),
		"headings":       strings.Repeat("# 見出し\n\n本文です。\n\n", 500),
		"emoji":          strings.Repeat("👨‍👩‍👧‍👦", 900),
	} {
		for _, d := range allDialects() {
			pieces := r.RenderFirst(md, d, 4000, 4000)
			checkPieces(t, d, 4000, pieces)
			if n := len(pieces[0].Text); n > 4000 || n < 1200 {
				t.Errorf("%s, %s: the first piece has %d bytes", what, d, n)
			}
			if len(pieces) > 2 && d == markup.SlackMrkdwn && what == "another script" && utf8.RuneCountInString(pieces[1].Text) < 3000 {
				t.Errorf("%s: the second piece has but %d characters", what, utf8.RuneCountInString(pieces[1].Text))
			}
			var got strings.Builder
			for _, p := range pieces {
				got.WriteString(p.Plain)
			}
			if what != "a table" && strings.Join(letterRuns(joinTexts(r.Render(md, d, 0))), "") != strings.Join(letterRuns(got.String()), "") {
				t.Errorf("%s, %s: words are lost or changed", what, d)
			}
		}
	}
	if got := r.RenderFirst("short", markup.SlackMrkdwn, 4000, 4000); len(got) != 1 || got[0].Text != "short" {
		t.Errorf("got %+v", got)
	}
}

func joinTexts(pieces []markup.Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Plain)
	}
	return b.String()
}

func absInt(n int) int { return max(n, -(n + 1)) }

// What people do not see does not count, as long as the platform accepts it.
func TestLinksDoNotFillAMessage(t *testing.T) {
	var md strings.Builder
	for i := range 40 {
		fmt.Fprintf(&md, "- [item %d](https://a.example/%s) is here\n", i, strings.Repeat("x", 100))
	}
	pieces := markup.Render(md.String(), markup.TelegramHTML, 4096)
	if len(pieces) != 1 || strings.Count(pieces[0].Text, "<a href") != 40 {
		t.Fatalf("%d pieces", len(pieces))
	}
	plain := pieces[0].Plain
	if n := strings.Count(plain, "https://"); utf16Units(plain) > 4096 || n < 25 || n == 40 || !strings.Contains(plain, "item 39 is here") {
		t.Errorf("the plain form has %d units and %d links", utf16Units(plain), n)
	}
	if long := markup.Render("[x](https://a.example/"+strings.Repeat("y", 1900)+")", markup.TelegramHTML, 1024); len(long) != 1 || utf16Units(long[0].Plain) > 1024 {
		t.Errorf("a long link gives %d pieces", len(long))
	}
}

func TestCutsAreAtNaturalPlaces(t *testing.T) {
	r := markup.New()
	sentence := "The quick brown fox jumps over the lazy dog. "
	for _, p := range r.Render(strings.Repeat(sentence, 50), markup.TelegramHTML, 300) {
		if !strings.HasSuffix(p.Text, "dog.") {
			t.Errorf("cut within a sentence: %q", p.Text)
		}
	}
	for _, p := range r.Render("word"+strings.Repeat(" word", 500), markup.TelegramHTML, 300) {
		if strings.Trim(strings.ReplaceAll(p.Text, "word", ""), " ") != "" {
			t.Errorf("cut within a word: %q", p.Text)
		}
	}
	family := "👨‍👩‍👧‍👦"
	for _, p := range r.Render(strings.Repeat(family, 200), markup.TelegramHTML, 100) {
		if uniseg.GraphemeClusterCount(p.Text)*len(family) != len(p.Text) {
			t.Errorf("cut within a character: %q", p.Text)
		}
	}
	code := "```go\n" + strings.Repeat("fmt.Println(1)\n", 50) + "```"
	for _, p := range r.Render(code, markup.DiscordMarkdown, 200) {
		if !strings.HasPrefix(p.Text, "```go\nfmt") || !strings.HasSuffix(p.Text, "(1)\n```") {
			t.Errorf("piece of code: %q", p.Text)
		}
	}
	for line, parts := range map[string]string{
		"curl " + strings.Repeat("--header 'X-Name: value' ", 40): " ",
		strings.Repeat("alpha.beta(gamma,delta);", 40):            ",;)",
		strings.Repeat("some-long_name+other", 40):                "-_+",
	} {
		pieces := r.Render("```\n"+line+"\n```", markup.TelegramHTML, 200)
		var whole strings.Builder
		for i, p := range pieces {
			whole.WriteString(p.Plain)
			if i < len(pieces)-1 && !strings.ContainsAny(p.Plain[len(p.Plain)-1:], parts) {
				t.Errorf("a line of code is cut within a word: %q", p.Plain)
			}
		}
		if len(pieces) < 3 || whole.String() != line {
			t.Errorf("of a line of code %q is left", whole.String())
		}
	}
	table := "| name | n |\n|---|---|\n" + strings.Repeat("| someone | 1 |\n", 50)
	for _, p := range r.Render(table, markup.TelegramHTML, 200) {
		if !strings.HasPrefix(p.Text, "<pre>name") {
			t.Errorf("piece of a table without its header: %q", p.Text)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	r := markup.New()
	for name, md := range map[string]string{
		"plain":    "Hello, this is a short reply without anything special in it.",
		"short":    "Hello, this is a *short* reply: see `notes.txt`.",
		"answer":   strings.Repeat("Some **bold** text with `code` and a [link](https://example.com/x).\n\n- one\n- two\n\n```go\nx := 1\n```\n\n", 10),
		"enormous": strings.Repeat("Some **bold** text with `code` in it. ", 5000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Render(md, markup.TelegramHTML, 4096)
			}
		})
	}
}
