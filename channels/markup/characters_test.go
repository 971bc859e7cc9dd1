package markup_test

import (
	"strings"
	"testing"

	"parley/channels/markup"
)

// IsBlank returns true exactly for the texts for which Render returns no piece.
func TestBlank(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " \n\t": true, "\u200b\u200d": true, "\u2060\ufeff": true, "&#8203; &nbsp;": true,
		"\u00ad": true, "\u3164": true, "\u115f\u1160": true, "\u034f": true, "\ufe0f": true, "\u202e\u2066\u2069": true,
		"\U000e0041\U000e007f": true, "\u180e": true, "\u2800": true, "\x00\x1b": true, "\u2028": true,
		"x": false, "0": false, "。": false, "\u200bx": false, "❤\ufe0f": false, "#": false, "\xff": false, "\u0301": false,
	} {
		if got := markup.IsBlank(text); got != want {
			t.Errorf("Blank(%q) is %v", text, got)
		}
		if pieces := markup.Render(text, markup.Markdown, 0); (len(pieces) == 0) != want {
			t.Errorf("%q is rendered as %q", text, pieces)
		}
	}
}

func TestEmojiNamesAreReplaced(t *testing.T) {
	for text, want := range map[string]string{
		":tada: well done :+1:":              "🎉 well done 👍",
		":+1::skin-tone-4::tada:":            "👍🏽🎉",
		":flag-de: and :de:":                 "🇩🇪 and 🇩🇪",
		":flag-DE: :flag-d1: :skin-tone-7:":  ":flag-DE: :flag-d1: :skin-tone-7:",
		":party_parrot: is the team's own":   ":party_parrot: is the team's own",
		"`:tada:` ```a\n:tada:\n``` :tada:":  "`:tada:` ```a\n:tada:\n``` 🎉",
		"``a`:tada:`` `never closed :tada:":  "``a`:tada:`` `never closed 🎉",
		"1:100:2 10:30:45 std::key::x ::key": "1:100:2 10:30:45 std::key::x ::key",
		"(:tada:)!":                          "(🎉)!",
		"::":                                 "::", ":": ":", ":tada": ":tada", ":" + strings.Repeat("a", 100) + ":": ":" + strings.Repeat("a", 100) + ":",
	} {
		if got := markup.WithEmoji(text); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	if e, ok := markup.EmojiNamed("tada"); !ok || e != "🎉" {
		t.Errorf("tada is %q", e)
	}
}

// Slack gets the names of emojis, because it knows them and has names of its own. All other platforms get the
// emojis.
func TestEmojiNamesAreShownAsEmoji(t *testing.T) {
	const md = ":tada: **:+1: done** [:link: here](https://a.example) `:tada:` \\:tada: 1:100:2 :parrot_x: \\(:tada:\\)"
	for d, want := range map[markup.Dialect]string{
		markup.SlackMrkdwn:     ":tada: *:+1: done* <https://a.example|:link: here> `:tada:` :tada: 1:100:2 :parrot_x: \\(:tada:\\)",
		markup.TelegramHTML:    "🎉 <b>👍 done</b> <a href=\"https://a.example\">🔗 here</a> <code>:tada:</code> :tada: 1:100:2 :parrot_x: \\(:tada:\\)",
		markup.DiscordMarkdown: "🎉 **👍 done** [🔗 here](https://a.example) `:tada:` :tada: 1:100:2 :parrot\\_x: \\\\(:tada:\\\\)",
		markup.Plain:           "🎉 👍 done 🔗 here (https://a.example) :tada: :tada: 1:100:2 :parrot_x: \\(:tada:\\)",
		markup.Markdown:        "🎉 **👍 done** [🔗 here](https://a.example) `:tada:` \\:tada: 1:100:2 :parrot_x: \\\\(\\:tada:\\\\)",
	} {
		got := markup.Render(md, d, 4096)
		if len(got) != 1 || got[0].Text != want {
			t.Errorf("%s: got\n%q, want\n%q", d, got[0].Text, want)
		}
	}
	block := markup.Render("# "+md, markup.SlackMrkdwn, 4096)[0].Markdown
	if !strings.HasPrefix(block, "# :tada: **:+1: done**") || !strings.Contains(block, ":parrot_x:") {
		t.Errorf("in a markdown block: %q", block)
	}
}
