// Package markuptest judges renderers of Markdown: those of package markup, and that of the web page.
package markuptest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
)

// An Example is one of a specification: what is written, and its HTML.
type Example struct{ Name, Markdown, HTML string }

// Examples returns the examples of the specifications in a folder, testdata/spec of package markup.
func Examples(t testing.TB, folder string) []Example {
	t.Helper()
	var all []Example
	for _, spec := range []string{"commonmark", "gfm"} {
		f, err := os.Open(filepath.Join(folder, spec+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var e [3]string
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			all = append(all, Example{spec + " " + e[0], e[1], e[2]})
		}
		if err := f.Close(); err != nil || lines.Err() != nil {
			t.Fatal(err, lines.Err())
		}
	}
	if len(all) < 670 {
		t.Fatalf("%d examples", len(all))
	}
	return all
}

// Hostile returns texts that would load or run something, or lead somewhere else than to the web, if a page believed them.
func Hostile() []string {
	return []string{
		"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1)) [b](JaVaScRiPt://x%0aalert(1)) [c](data:text/html,x) [d](tg://user?id=1)",
		"![a](https://a.example/x.png\" onerror=\"alert(1))", "[a](https://a.example/\"onmouseover=alert(1))", "[a](<https://a.example/' onclick='x>)",
		"```\"><script>\nx\n```", "```x\" onload=\"y\nz\n```", "| <b onclick=x> |\n|--|\n| [x](vbscript:y) |", "&lt;script&gt; &#60;script&#62;",
		"<https://a.example/\"><script>>", "[x](mailto:a@b.c?subject=\"><script>)", "<!-- x --><svg/onload=alert(1)>", "[a]: javascript:alert(1)\n\n[a]",
		"www.a.example/\"onclick=\"x", "- <script>\n\n> <iframe src=x>", "[![x](javascript:y)](https://a.example)", ":tada: <b>:tada:</b>",
	}
}

// MayLead reports whether a link of a page may lead to an address: to the web, or to an email address.
func MayLead(to string) bool {
	scheme, _, found := strings.Cut(strings.ToLower(to), ":")
	return found && slices.Contains([]string{"http", "https", "mailto"}, scheme)
}

// Letters returns the letters and digits of a text, which nothing may take away.
func Letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// IsWithin reports whether all of part is in the whole, in its order.
func IsWithin(part, whole string) bool {
	rest := []rune(part)
	for _, r := range whole {
		if len(rest) > 0 && rest[0] == r {
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}

// Shown returns what people see of HTML: its text, and what pictures are called.
func Shown(t testing.TB, source string) string {
	t.Helper()
	n, err := html.Parse(strings.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
		for _, a := range c.Attr {
			if a.Key == "alt" {
				b.WriteString(a.Val)
			}
		}
	}
	return b.String()
}
