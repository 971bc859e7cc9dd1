package main

import (
	"fmt"
	"html"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

const lastWords = "The end 🏁"

// longAnswer is an answer of so many characters: a table, and then prose with emoji between
// code in three languages. Each line is another one; lines are those of prose and code as
// people read them, and rows are what the table's say.
func longAnswer(length int) (text string, lines, rows []string) {
	var b strings.Builder
	b.WriteString("| what | how |\n| --- | --- |\n")
	for n := range 8 {
		rows = append(rows, fmt.Sprintf("row-%04d", n))
		fmt.Fprintf(&b, "| %s | 👍🏽 |\n", rows[n])
	}
	line := func(format string) string {
		lines = append(lines, fmt.Sprintf(format, len(lines)))
		return lines[len(lines)-1]
	}
	for utf8.RuneCountInString(b.String()) < length {
		b.WriteString("\n")
		for range 12 {
			b.WriteString(line("Prose 🎉 with the number %04d, and a word of another script: これは。") + "\n\n")
		}
		for _, code := range [][2]string{{"go", `fmt.Println("%04d") // <ok> & so on`}, {"python", `    print('%04d')  # a * b * c`}, {"sql", `SELECT '%04d' AS _a_ FROM t;`}} {
			b.WriteString("```" + code[0] + "\n")
			for range 20 {
				b.WriteString(line(code[1]) + "\n")
			}
			b.WriteString("```\n\n")
		}
	}
	return b.String() + lastWords, lines, rows
}

// A long answer is streamed on each platform, and is there in the end as a whole and in
// order: each line once, as it was written, and each message with all its code closed.
func TestALongAnswerIsWhole(t *testing.T) {
	t.Parallel()
	answer, lines, rows := longAnswer(20_000)
	rest := make(chan struct{})
	w := newThree(t, func(agenttest.Request) agenttest.Response {
		r := agenttest.Reply(answer)
		r = r.Split(r.Len()/7 + 1)
		r.Parts[4].Wait = rest
		return r
	}, "")
	p := w.serve()
	w.Telegram.Say(2, 2, "tell me all")
	w.slack.Say("D1", "U1", "tell me all")
	w.discord.Say("51", "501", "tell me all")
	slackSaid(t, w.slack, "D1", 1)
	discordSaid(t, w.discord, "51", 1)
	parleytest.WaitFor(t, "a preview at Telegram", func() bool { return len(w.Telegram.Drafts(2)) > 0 })
	close(rest)
	for platform, parts := range map[string]func() []string{
		"Slack": func() []string {
			return each(w.slack.Sent("D1"), func(m slacktest.Message) string { return html.UnescapeString(m.Shown) })
		},
		"Discord":  func() []string { return discordTexts(w.discord.Sent("51")) },
		"Telegram": func() []string { return each(w.Telegram.Sent(2), telegramFences) },
	} {
		parleytest.WaitFor(t, platform+": the end", func() bool { return strings.Contains(strings.Join(parts(), ""), lastWords) })
		wantWhole(t, platform, parts(), lines, rows)
	}
	p.Stop()
	for _, m := range w.Telegram.Sent(2) {
		if m.Unformatted > 0 {
			t.Errorf("Telegram leaves %d pieces unformatted", m.Unformatted)
		}
	}
	if first := w.discord.Sent("51")[0]; first.Edits == 0 {
		t.Error("Discord: the answer does not take the place of what was shown of it")
	}
}

// telegramFences is a message with its code in fences.
func telegramFences(m telegramtest.Message) string {
	return html.UnescapeString(strings.NewReplacer("<pre>", "```", "</pre>", "```", "<code>", "", `<code class="language-go">`, "", `<code class="language-python">`, "", `<code class="language-sql">`, "", "</code>", "").Replace(m.Raw))
}

// wantWhole wants the messages to say the lines and rows in order, each once, and to close
// what code they open. A character that is cut in two is none.
func wantWhole(t *testing.T, platform string, parts, lines, rows []string) {
	t.Helper()
	if len(parts) < 2 {
		t.Errorf("%s: %d messages", platform, len(parts))
	}
	for i, part := range parts {
		if strings.Count(part, "```")%2 != 0 || !utf8.ValidString(part) || strings.ContainsRune(part, utf8.RuneError) {
			t.Errorf("%s: message %d does not close its code, or cuts a character: %q", platform, i, part)
		}
	}
	all, at := strings.Join(parts, "\n"), 0
	for _, line := range append(rows, lines...) {
		i := strings.Index(all[at:], line)
		if i < 0 || strings.Count(all, line) != 1 {
			t.Fatalf("%s: %q is there %d times, and not behind what was before it", platform, line, strings.Count(all, line))
		}
		at += i
	}
	if n := strings.Count(all, "👍🏽"); n != len(rows) {
		t.Errorf("%s: %d of %d emoji of the table are there", platform, n, len(rows))
	}
}
