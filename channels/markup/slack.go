package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// slack is Slack's mrkdwn. It has no escapes but for & < >, so a star or an
// underscore that is meant as such may be read as a mark.
type slack struct{}

func (slack) size(text string) size { return inUnits(text) }

func (slack) most(limit int) size { return boundless(limit) }

func (slack) longestLink(limit int) int { return limit / 8 }

func (x slack) block(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock, document.Table:
		return "```\n" + partTicks(escapeSlack(b.Rows())) + "\n```"
	case document.Rule:
		return ruleText
	case document.Heading:
		text = inlineText(x, inBold(b.Spans))
	default:
		text = inlineText(x, b.Spans)
	}
	if b.Quote {
		return quoted(text)
	}
	return text
}

func (slack) join(to *strings.Builder, frags []frag) { joinLines(to, frags) }

func (slack) harmless(plain string) string {
	return neutral(strings.ReplaceAll(plain, "<!", "<"+zeroWidth+"!"))
}

func (slack) linksInside() bool { return true }

func (slack) shown(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

func (m mark) slackMark() string {
	switch m.style {
	case document.Bold:
		return "*"
	case document.Italic:
		return "_"
	}
	return "~"
}

// open parts a mark from a word before it: within one Slack sees none.
func (slack) open(b *strings.Builder, m mark) {
	if m.url != "" {
		b.WriteString("<" + escapeSlack(m.url) + "|")
		return
	}
	if last, _ := utf8.DecodeLastRuneInString(b.String()); unicode.IsLetter(last) || unicode.IsDigit(last) {
		b.WriteString(zeroWidth)
	}
	b.WriteString(m.slackMark())
}

func (slack) close(b *strings.Builder, m mark, next rune) {
	if m.url != "" {
		b.WriteString(">")
		return
	}
	b.WriteString(m.slackMark())
	if unicode.IsLetter(next) || unicode.IsDigit(next) {
		b.WriteString(zeroWidth)
	}
}

func (slack) text(b *strings.Builder, s document.Span, _ bool) {
	text := escapeSlack(s.Text)
	if s.Style&document.Code != 0 && !strings.Contains(text, "`") && s.URL == "" {
		b.WriteString("`" + text + "`")
		return
	}
	b.WriteString(neutral(apart(text)))
}

// apart parts a ~ that is meant as such from the word behind it, if another would
// end what it begins: for Slack one ~ strikes out.
func apart(s string) string {
	if strings.Count(s, "~") < 2 {
		return s
	}
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); i++ {
		if s[i] != '~' || !startsStrike(s, i) {
			continue
		}
		end := endOfStrike(s, i+1)
		if end < 0 {
			continue
		}
		b.WriteString(s[done:i+1] + zeroWidth + s[i+1:end+1])
		done, i = end+1, end
	}
	return b.String() + s[done:]
}

// startsStrike tells whether a ~ could begin what is struck out: it is at a word's
// beginning.
func startsStrike(s string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at+1:])
	return !unicode.IsLetter(before) && !unicode.IsDigit(before) && before != '~' && !unicode.IsSpace(after) && after != '~'
}

// endOfStrike is the next ~ of a line, if it is at a word's end, else -1.
func endOfStrike(s string, from int) int {
	line, _, _ := strings.Cut(s[from:], "\n")
	i := strings.IndexByte(line, '~')
	if i < 1 || line[i-1] == ' ' {
		return -1
	}
	return from + i
}

func (slack) bare(b *strings.Builder, url string) { b.WriteString("<" + escapeSlack(url) + ">") }

func escapeSlack(s string) string { return escape(s, "&<>") }

// neutral keeps words that call everybody from doing so.
func neutral(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	for _, all := range []string{"everyone", "here", "channel"} {
		s = strings.ReplaceAll(s, "@"+all, "@"+zeroWidth+all)
	}
	return s
}

// partTicks keeps a fence within a code block from ending it.
func partTicks(s string) string {
	return strings.ReplaceAll(s, "```", "``"+zeroWidth+"`")
}
