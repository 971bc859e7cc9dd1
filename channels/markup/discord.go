package markup

import "strings"

// marks is Discord's Markdown, and CommonMark where it must be written anew.
type marks struct {
	neutral bool // keep @everyone from calling everyone
}

func (marks) size(text string) size { return inUnits(text) }

func (marks) most(limit int) size { return boundless(limit) }

func (marks) longestLink(limit int) int { return limit / 8 }

func (x marks) block(b block) string {
	var text string
	switch b.kind {
	case codeBlock, table:
		return "```" + b.info + "\n" + partTicks(b.rows()) + "\n```"
	case rule:
		return ruleText
	case heading:
		if b.level > 3 || len(b.spans) > 0 && b.spans[0].style == marker {
			text = inlineText(x, inBold(b.spans))
		} else {
			text = strings.Repeat("#", b.level) + " " + strings.ReplaceAll(inlineText(x, b.spans), "\n", " ")
		}
	default:
		text = inlineText(x, b.spans)
	}
	if b.quote {
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

func (marks) shown(s span) style { return s.style & (bold | italic | strike) }

func (m mark) markdownMark() string {
	switch m.style {
	case bold:
		return "**"
	case italic:
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

func (x marks) text(b *strings.Builder, s span, lineStart bool) {
	switch {
	case s.style == marker:
		b.WriteString(strings.Replace(s.text, "•", "-", 1))
	case s.style&code != 0:
		writeCode(b, s.text)
	default:
		text := s.text
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
