package markup

import (
	"strings"

	"parley/channels/markup/document"
)

// marks is Discord's Markdown, and CommonMark where it must be written anew.
type marks struct {
	neutral bool // keep @everyone from calling everyone
}

func (marks) size(text string) size { return inUnits(text) }

func (marks) most(limit int) size { return boundless(limit) }

func (marks) longestLink(limit int) int { return limit / 8 }

func (x marks) block(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock, document.Table:
		return "```" + b.Info + "\n" + partTicks(b.Rows()) + "\n```"
	case document.Rule:
		return ruleText
	case document.Heading:
		if b.Level > 3 || len(b.Spans) > 0 && b.Spans[0].Style == document.Marker {
			text = inlineText(x, inBold(b.Spans))
		} else {
			text = strings.Repeat("#", b.Level) + " " + strings.ReplaceAll(inlineText(x, b.Spans), "\n", " ")
		}
	default:
		text = inlineText(x, b.Spans)
	}
	if b.Quote {
		return quoted(text)
	}
	return text
}

func (marks) join(to *strings.Builder, frags []frag) { joinLines(to, frags) }

func (x marks) harmless(plain string) string {
	if x.neutral {
		return neutral(plain)
	}
	return plain
}

func (marks) linksInside() bool { return false }

func (marks) shown(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

func (m mark) markdownMark() string {
	switch m.style {
	case document.Bold:
		return "**"
	case document.Italic:
		return "*"
	}
	return "~~"
}

func (marks) open(b *strings.Builder, m mark) {
	if m.url != "" {
		b.WriteString("[")
		return
	}
	b.WriteString(m.markdownMark())
}

func (marks) close(b *strings.Builder, m mark, _ rune) {
	if m.url != "" {
		b.WriteString("](" + strings.ReplaceAll(strings.ReplaceAll(m.url, "(", "%28"), ")", "%29") + ")")
		return
	}
	b.WriteString(m.markdownMark())
}

func (x marks) text(b *strings.Builder, s document.Span, lineStart bool) {
	switch {
	case s.Style == document.Marker:
		b.WriteString(strings.Replace(s.Text, "•", "-", 1))
	case s.Style&document.Code != 0:
		writeCode(b, s.Text)
	default:
		text := s.Text
		if x.neutral {
			text = neutral(text)
		}
		escapeMarkdown(b, text, lineStart)
	}
}

func (marks) bare(b *strings.Builder, url string) { b.WriteString(url) }

// writeCode uses as many ticks as the text does not have.
func writeCode(b *strings.Builder, text string) {
	ticks := "`"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	if len(ticks) > 1 {
		text = " " + text + " "
	}
	b.WriteString(ticks + text + ticks)
}

// escapeMarkdown writes text so that nothing in it is read as a mark.
func escapeMarkdown(b *strings.Builder, s string, lineStart bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case strings.IndexByte("\\*_~`|[", c) >= 0:
			b.WriteByte('\\')
		case lineStart && (c == '#' || c == '>' || c == '-' || c == '+'):
			b.WriteByte('\\')
		case lineStart && isDigit(c):
			j := i
			for j < len(s) && isDigit(s[j]) {
				j++
			}
			b.WriteString(s[i:j])
			if j < len(s) && (s[j] == '.' || s[j] == ')') {
				b.WriteByte('\\')
				b.WriteByte(s[j])
				j++
			}
			i, lineStart = j-1, false
			continue
		}
		b.WriteByte(c)
		lineStart = c == '\n' || lineStart && c == ' '
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
