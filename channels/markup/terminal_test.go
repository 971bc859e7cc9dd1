package markup_test

import (
	"strings"
	"testing"

	"parley/channels/markup"
)

func TestTerminalShowsStylesAndNoForeignEscapes(t *testing.T) {
	for md, want := range map[string]string{
		"a **b** _c_ ~~d~~":                 "a \x1b[1mb\x1b[22m \x1b[3mc\x1b[23m \x1b[9md\x1b[29m",
		"# Head\n\ntext":                    "\x1b[1mHead\x1b[22m\n\ntext",
		"`x` and [there](https://a.b/c)":    "\x1b[36mx\x1b[39m and \x1b[4mthere\x1b[24m (https://a.b/c)",
		"```go\na\nb\n```":                  "  \x1b[36ma\n  b\x1b[39m",
		"> said\n> so":                      "│ said\n│ so",
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
