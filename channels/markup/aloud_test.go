package markup_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"parley/channels/markup"
)

// Only words are read aloud: no code, no tables, and no addresses.
func TestAloudReadsWords(t *testing.T) {
	for md, want := range map[string]string{
		"Hello **there**, _you_.":                             "Hello there, you.",
		"# Plan\n\nWe go.":                                    "Plan.\nWe go.",
		"See [the page](https://a.b/c) now":                   "See the page now.",
		"See (https://a.b/c) or <https://a.b>.":               "See or.",
		"Write to me@example.com , please!":                   "Write to, please!",
		"Run:\n\n```sh\nrm -rf /\n```\n\nDone.":               "Run:\nDone.",
		"    indented code\n\nDone.":                          "Done.",
		"Set `max_size` in `app.toml`, not `x = {1: \"a\"}`.": "Set max_size in app.toml, not.",
		"`https://a.b/c`":                                     "",
		"- one\n- two\n- [ ] three":                           "one.\ntwo.\nthree.",
		"1. one\n2. two":                                      "1. one.\n2. two.",
		"| a | b |\n|---|---|\n| 1 | 2 |\n\nThat is all":      "That is all.",
		"```\nonly code\n```":                                 "",
		"---":                                                 "",
		"":                                                    "",
		"👍":                                                   "",
		":thumbsup: Good":                                     "Good.",
		"It costs ~~5~~ 4 euros":                              "It costs 4 euros.",
		"> quoted\n> words":                                   "quoted.\nwords.",
		"![a chart](chart.png) shows it":                      "a chart (chart.png) shows it.",
		"Grüße, 世界。":                                          "Grüße, 世界。",
		"so <b>bold</b> ❤️ at 20 °C":                          "so bold at 20 °C.",
	} {
		if got, whole := markup.New().RenderAloud(md, 4096); got != want || !whole {
			t.Errorf("of %q is read %q, %v, want %q", md, got, whole, want)
		}
	}
}

// A text that is too long ends with a whole sentence, or at least a whole word, and the result says that
// something is missing.
func TestAloudEndsWithASentence(t *testing.T) {
	for _, c := range []struct {
		md   string
		most int
		want string
	}{
		{"One. Two is longer. Three.", 22, "One. Two is longer."},
		{"One. Two is longer. Three.", 19, "One."},
		{"One two three four", 10, "One two"},
		{"Onetwothree", 5, "Onetw"},
		{"一。二三四五六", 5, "一。"},
	} {
		if got, whole := markup.New().RenderAloud(c.md, c.most); got != c.want || whole {
			t.Errorf("of %q is read %q, %v, want %q", c.md, got, whole, c.want)
		}
	}
	long := strings.Repeat("A sentence of some words. ", 20_000)
	got, whole := markup.New().RenderAloud(long, 4096)
	if n := utf8.RuneCountInString(got); whole || n > 4096 || n < 4000 || !strings.HasSuffix(got, "words.") {
		t.Errorf("of a long text %d characters are read, %v", n, whole)
	}
}
