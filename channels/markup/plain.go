package markup

import "strings"

// plainDialect is text without markup, as it would be typed.
type plainDialect struct {
	bareLinks bool // says nothing of where links lead
}

func (plainDialect) size(text string) size { return inUnits(text) }

func (plainDialect) most(limit int) size { return boundless(limit) }

func (plainDialect) longestLink(limit int) int { return limit / 8 }

func (x plainDialect) block(b block) string {
	var text string
	switch b.kind {
	case codeBlock, table:
		return b.rows()
	case rule:
		return ruleText
	default:
		text = inlineText(x, b.spans)
	}
	if b.quote {
		return quoted(text)
	}
	return text
}

func (plainDialect) join(to *strings.Builder, frags []frag) { joinLines(to, frags) }

func (plainDialect) harmless(plain string) string { return plain }

func (plainDialect) linksInside() bool { return false }

func (plainDialect) shown(span) style { return 0 }

func (plainDialect) open(*strings.Builder, mark) {}

// close puts a link's target behind its text.
func (x plainDialect) close(b *strings.Builder, m mark, _ rune) {
	if m.url != "" && !x.bareLinks {
		b.WriteString(" (" + strings.TrimPrefix(m.url, "mailto:") + ")")
	}
}

func (plainDialect) text(b *strings.Builder, s span, _ bool) { b.WriteString(s.text) }

func (plainDialect) bare(b *strings.Builder, url string) { b.WriteString(url) }
