package webhook

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"parley/channels/markup"
)

// visibleText returns a text without what nobody sees: the kinds of line breaks, and spaces.
func visibleText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\u200b' || unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// Whatever a value contains, people see it literally: none of it becomes markup, nothing is lost, and nobody is
// notified.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{
		"", "a", "**x**", "# x", "1. a\n2) b", "- a\n\n    b", "a | b\n--|--\n1 | 2", "x\n===", "<b>&amp;</b>", "@everyone @here", "<!channel> <@U1> <@&2>",
		"[x](y)", "![x](y)", "```\nx\n```", "~~~\nx", "\tx", "\\*", "a@b.c", "www.example.com", "$x$ ^y^", "\u202eabc", "a\x00\xffb", "mailto:x@y.z", "_a_ __b__ a_b", "&#42;x&#42;",
		"ftp://x_y_", "> q", "+ x", "@", "@@a", "[ ] x", "- [x] y", "[a_b]", "\\(x\\)", "\\[x=y\\]", "(a_b)", "{#id}", ":smile:",
	} {
		f.Add(s)
	}
	call := regexp.MustCompile(`@(everyone|here|channel)|<@|<!`)
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "http") || strings.ContainsRune(s, '\u200b') || len(s) > 1000 {
			t.Skip("addresses are encoded")
		}
		var got []string
		for _, p := range markup.Render(escape(s), markup.Plain, 0) {
			got = append(got, p.Text)
		}
		want := clean(s)
		if visibleText(strings.Join(got, "\n")) != visibleText(want) {
			t.Errorf("%q is read as %q, escaped as %q", s, got, escape(s))
		}
		for _, d := range []markup.Dialect{markup.SlackMrkdwn, markup.DiscordMarkdown, markup.TelegramHTML} {
			for _, p := range markup.Render("**"+escape(line(s))+"** "+escape(s), d, 0) {
				if d != markup.DiscordMarkdown && strings.Contains(strings.ReplaceAll(p.Text, "<b>", ""), "<!") || d == markup.SlackMrkdwn && call.MatchString(p.Text) {
					t.Errorf("%s of %q calls: %q", d, s, p.Text)
				}
			}
		}
	})
}

func TestMentionsAreDefused(t *testing.T) {
	for s, want := range map[string]string{
		"@here": "@\u200bhere", "<@U1>": `\<@` + "\u200b" + `U1\>`, "<@&7>": `\<@` + "\u200b" + `&7\>`, "a@b": "a@b", "@ x": "@ x", "(@x_y)": `(@` + "\u200b" + `x\_y\)`,
	} {
		if got := strings.ReplaceAll(escape(s), `\&`, "&"); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

func TestFindURL(t *testing.T) {
	for s, want := range map[string]string{
		"https://h/a_b*c?d=(e)[f]|g\"h":   "https://h/a_b%2Ac?d=%28e%29%5Bf%5D%7Cg%22h",
		"see http://h/a_b, or https://i)": `see http://h/a_b, or https://i\)`,
		"httpd is not https":              "httpd is not https",
		"http:// alone_":                  `http:// alone\_`,
		"https://h/<b>":                   "https://h/%3Cb%3E",
	} {
		if got := escape(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
}

func TestTidy(t *testing.T) {
	if got := tidy("\n\n a \n\n\n\nb\t\n  \n"); got != " a\n\nb" {
		t.Errorf("%q", got)
	}
	for n, want := range []string{"", "é", "éé", "ééx", "ééx"} {
		if got := cut("ééx", n); got != want {
			t.Errorf("cut to %d: %q", n, got)
		}
	}
	if got := durationText(90 * 60e9); got != "1h30m" {
		t.Errorf("an hour and a half is %s", got)
	}
}

// However many groups there are, only a limited number is remembered, including the newest.
func TestOldGroupsAreForgotten(t *testing.T) {
	w := newRecentNotifications()
	for i := range 3 * maxGroups {
		w.store(strconv.Itoa(i), lastNotification{key: strconv.Itoa(i)})
	}
	if n := len(w.current) + len(w.previous); n > 2*maxGroups {
		t.Errorf("%d groups are remembered", n)
	}
	for i, want := range map[int]bool{3*maxGroups - 1: true, 2 * maxGroups: true, 0: false} {
		if s := w.lastOf(strconv.Itoa(i)); s.isKnown() != want || want && s.key != strconv.Itoa(i) {
			t.Errorf("group %d is remembered: %v", i, s)
		}
	}
}

// What is printed completely is equal to the output of encoding/json.
func FuzzEncoded(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":[],"b":{}}`, `{"b":1.50,"a":[true,false,null,"<x>&\u2028"],"c":{"d":[{"e":1e99}]}}`, `"x"`, `[[[1,2],[3]]]`, `{"\u0000":"\ud800"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in := json.NewDecoder(strings.NewReader(s))
		in.UseNumber()
		var v any
		if in.Decode(&v) != nil {
			t.Skip("no JSON")
		}
		for _, indent := range []string{"", "  "} {
			var b bytes.Buffer
			out := json.NewEncoder(&b)
			out.SetEscapeHTML(false)
			out.SetIndent("", indent)
			if err := out.Encode(v); err != nil {
				t.Fatal(err)
			}
			if got, want := encodeJSON(v, indent, 1<<30), strings.TrimSuffix(b.String(), "\n"); got != want {
				t.Errorf("%s is printed as %s, want %s", s, got, want)
			}
		}
	})
}
