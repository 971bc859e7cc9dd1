package markup_test

import (
	"testing"

	"parley/channels/markup"
)

// What Blank calls blank is what Render makes nothing of.
func TestBlank(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " \n\t": true, "\u200b\u200d": true, "\u2060\ufeff": true, "&#8203; &nbsp;": true,
		"\u00ad": true, "\u3164": true, "\u115f\u1160": true, "\u034f": true, "\ufe0f": true, "\u202e\u2066\u2069": true,
		"\U000e0041\U000e007f": true, "\u180e": true, "\u2800": true, "\x00\x1b": true, "\u2028": true,
		"x": false, "0": false, "。": false, "\u200bx": false, "❤\ufe0f": false, "#": false, "\xff": false, "\u0301": false,
	} {
		if got := markup.Blank(text); got != want {
			t.Errorf("Blank(%q) is %v", text, got)
		}
		if pieces := markup.Render(text, markup.Markdown, 0); (len(pieces) == 0) != want {
			t.Errorf("%q is rendered as %q", text, pieces)
		}
	}
}
