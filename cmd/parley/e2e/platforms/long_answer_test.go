package platforms

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

const lastWords = "The end 🏁"

// A listing is code in an answer.
type listing struct{ language, text string }

// A longAnswer is an answer with tables, lists, quotes, prose, code in three languages, and emoji. It contains each
// word of the form w0000 once, outside of code.
type longAnswer struct {
	text     string
	words    int
	listings []listing
	emoji    map[string]int // the count of each emoji
}

func (l *longAnswer) word() string {
	l.words++
	return fmt.Sprintf("w%04d", l.words-1)
}

// table adds a table with this many rows.
func (l *longAnswer) table(rows int) {
	l.text += "| Service | State | p99 |\n|:--|:-:|--:|\n"
	for range rows {
		l.text += fmt.Sprintf("| %s 👩🏽‍💻 | ⚠️ *%s* | %s ms |\n", l.word(), l.word(), l.word())
	}
	l.text += "\n"
}

// prose adds the text between tables and code.
func (l *longAnswer) prose() {
	l.text += fmt.Sprintf("## %s 🚀\n\nProse **%s 👨‍👩‍👧‍👦 %s**, `%s` and [%s 🇩🇪](https://example.com/?a=1&b=2): 1 < 2 && 3 > 2, これは %s。 ", l.word(), l.word(), l.word(), l.word(), l.word(), l.word())
	for range 30 {
		l.text += l.word() + " goes on. "
	}
	l.text += fmt.Sprintf("\n\n1. %s\n   - *%s*\n   - %s\n2. %s\n\n> %s\n\n", l.word(), l.word(), l.word(), l.word(), l.word())
}

// code adds code with this many lines, including characters that have a meaning elsewhere, and blank lines.
func (l *longAnswer) code(language, line string, lines int) {
	var code []string
	for n := range lines {
		code = append(code, fmt.Sprintf(line, n))
		if n%5 == 2 && n < lines-1 {
			code = append(code, "")
		}
	}
	one := listing{language, strings.Join(code, "\n")}
	l.listings = append(l.listings, one)
	l.text += "```" + language + "\n" + one.text + "\n```\n\n"
}

// newLongAnswer returns an answer of about this many characters.
func newLongAnswer(length int) *longAnswer {
	l := new(longAnswer)
	for lines := 12; utf8.RuneCountInString(l.text) < length; lines += 58 {
		l.prose()
		l.table(12)
		l.prose()
		l.code("go", "\tfmt.Println(%d, \"<b>&amp; *so* _on_\") // 👨‍👩‍👧‍👦 </code></pre>", lines)
		l.prose()
		l.code("python", "    print('%d', {k: v for k in a}, `~~x~~`)  # a * b | c \\", lines)
		l.prose()
		l.code("sql", "SELECT '%d' AS _a_, \"b\" -- &lt; 🇩🇪\n  FROM t WHERE x <> '%%' AND y LIKE '\\_';", lines)
	}
	l.text += lastWords
	l.emoji = map[string]int{}
	for _, e := range []string{"👩🏽‍💻", "⚠️", "👨‍👩‍👧‍👦", "🚀", "🇩🇪", "🏁"} {
		l.emoji[e] = strings.Count(l.text, e)
	}
	return l
}

// A long answer arrives completely on each platform, whether or not the platform shows it while it is written. The
// messages together contain what the model said, and each message is readable on its own.
func TestALongAnswerIsWhole(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"auto", "edit", "off"} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			answer := newLongAnswer(20_000)
			rest := make(chan struct{})
			w := newThree(t, func(agenttest.Request) agenttest.Response {
				r := agenttest.Reply(answer.text)
				r = r.Split(r.Len()/7 + 1)
				if stream != "off" {
					r.Parts[4].Wait = rest
				}
				return r
			}, "")
			w.everywhere(fmt.Sprintf("stream = %q\n", stream))
			p := w.serve()
			w.Telegram.Say(2, 2, "tell me all")
			w.slack.Say("D1", "U1", "tell me all")
			w.slack.Say("C1", "U1", "<@"+slacktest.Bot+"> tell me all")
			w.discord.Say("51", "501", "tell me all")
			if stream != "off" {
				parleytest.SlackSaid(t, w.slack, "D1", 1)
				parleytest.SlackSaid(t, w.slack, "C1", 1)
				parleytest.DiscordSaid(t, w.discord, "51", 1)
				parleytest.WaitFor(t, "a preview at Telegram", func() bool { return len(w.Telegram.Drafts(2))+len(w.Telegram.Sent(2)) > 0 })
				close(rest)
			}
			slackShown := func(m slacktest.Message) string { return m.Shown }
			for platform, parts := range map[string]func() []string{
				"Slack, privately":   func() []string { return each(w.slack.Sent("D1"), slackShown) },
				"Slack, in a thread": func() []string { return each(w.slack.Sent("C1"), slackShown) },
				"Discord":            func() []string { return parleytest.DiscordTexts(w.discord.Sent("51")) },
				"Telegram":           func() []string { return each(w.Telegram.Sent(2), telegramFences) },
			} {
				parleytest.WaitFor(t, platform+": the end", func() bool { return strings.Contains(strings.Join(parts(), ""), lastWords) })
				answer.wantWhole(t, platform, parts())
			}
			p.Stop()
			for _, m := range w.Telegram.Sent(2) {
				if m.Unformatted > 0 {
					t.Errorf("Telegram leaves %d pieces unformatted", m.Unformatted)
				}
			}
			if first := w.discord.Sent("51")[0]; (first.Edits > 0) != (stream != "off") {
				t.Errorf("Discord: what was shown first was edited %d times", first.Edits)
			}
		})
	}
}

// telegramFences returns the text of a message with its code in fences.
func telegramFences(m telegramtest.Message) string {
	text := regexp.MustCompile(`<pre><code class="language-([a-z]+)">`).ReplaceAllString(m.Raw, "```$1\n")
	text = strings.NewReplacer("<pre>", "```\n", "</code></pre>", "\n```", "</pre>", "\n```").Replace(text)
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text, ""))
}

// wantWhole checks that messages together contain the whole answer. Each message closes the code that it opens. If code
// continues in the next message, that message opens it again with its language.
func (l *longAnswer) wantWhole(t *testing.T, platform string, parts []string) {
	t.Helper()
	if len(parts) < 2 {
		t.Errorf("%s: %d messages", platform, len(parts))
	}
	var prose []string
	var listings []listing
	for i, part := range parts {
		if !utf8.ValidString(part) || strings.ContainsRune(part, utf8.RuneError) {
			t.Errorf("%s: message %d cuts a character: %q", platform, i, part)
		}
		if before, _, found := strings.Cut(part, "👩🏽‍💻"); found && !strings.Contains(before, "Service") {
			t.Errorf("%s: message %d has rows of a table without its head: %q", platform, i, part)
		}
		found, open := pieces(part)
		if open {
			t.Errorf("%s: message %d does not close its code: %q", platform, i, part)
		}
		for j, piece := range found {
			switch last := len(listings) - 1; {
			case piece.language == "prose", piece.language == "": // a table in columns is not code
				prose = append(prose, piece.text)
			case i > 0 && j == 0 && last >= 0 && endsInCode(parts[i-1]) && listings[last].language == piece.language:
				listings[last].text += "\n" + piece.text
			default:
				listings = append(listings, piece)
			}
		}
	}
	if !slices.Equal(listings, l.listings) {
		t.Errorf("%s: its code is\n%q\nwant\n%q", platform, listings, l.listings)
	}
	said := html.UnescapeString(strings.Join(prose, "\n"))
	words := regexp.MustCompile(`w[0-9]{4}`).FindAllString(said, -1)
	for i, word := range words {
		if i >= l.words || word != fmt.Sprintf("w%04d", i) {
			t.Fatalf("%s: word %d of %d is %s", platform, i, l.words, word)
		}
	}
	if len(words) != l.words {
		t.Errorf("%s: %d of %d words", platform, len(words), l.words)
	}
	const symbols = "1 < 2 && 3 > 2, これは w"
	if n, want := strings.Count(said, symbols), strings.Count(l.text, symbols); n != want {
		t.Errorf("%s: %q is there %d times, want %d", platform, symbols, n, want)
	}
	for e, want := range l.emoji {
		if n := strings.Count(strings.Join(parts, "\n"), e); n != want {
			t.Errorf("%s: %s is there %d times, want %d", platform, e, n, want)
		}
	}
}

// pieces returns the prose and the code of a message in order, and whether the message ends in unclosed code.
func pieces(part string) (all []listing, open bool) {
	language, fence := "prose", ""
	var lines []string
	end := func(next string) {
		if text := strings.Join(lines, "\n"); language != "prose" || strings.TrimSpace(text) != "" {
			all = append(all, listing{language, text})
		}
		language, lines = next, nil
	}
	for line := range strings.Lines(part) {
		line = strings.TrimSuffix(line, "\n")
		switch mark := regexp.MustCompile("^ *```+").FindString(line); {
		case fence == "" && mark != "":
			fence = strings.TrimSpace(mark)
			end(strings.TrimPrefix(line, mark))
		case fence != "" && strings.TrimSpace(line) == fence:
			fence = ""
			end("prose")
		default:
			lines = append(lines, line)
		}
	}
	end("prose")
	return all, fence != ""
}

func endsInCode(part string) bool { return strings.HasSuffix(strings.TrimSpace(part), "```") }

// each returns the result of a function for each message.
func each[M any](all []M, text func(M) string) []string {
	var list []string
	for _, m := range all {
		list = append(list, text(m))
	}
	return list
}
