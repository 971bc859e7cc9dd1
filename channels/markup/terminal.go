package markup

import (
	"strings"
	"unicode"
)

// terminal is text as a terminal shows it: styles are escape sequences, each of
// which is ended by its own counterpart, so that they may overlap. Other escape
// sequences cannot get through, not even as a character reference (&#27;).
type terminal struct{}

func (terminal) size(text string) size { return inUnits(text) }

func (terminal) most(limit int) size { return boundless(limit) }

func (terminal) longestLink(limit int) int { return limit / 8 }

func (x terminal) block(b block) string {
	var text string
	switch b.kind {
	case codeBlock, table:
		return "  " + escCode + strings.ReplaceAll(withoutControls(b.rows()), "\n", "\n  ") + escCodeEnd
	case rule:
		return ruleText
	case heading:
		text = inlineText(x, inBold(b.spans))
	default:
		text = inlineText(x, b.spans)
	}
	if b.quote {
		return "│ " + strings.ReplaceAll(text, "\n", "\n│ ")
	}
	return text
}

func (terminal) join(to *strings.Builder, frags []frag) { joinLines(to, frags) }

func (terminal) harmless(plain string) string { return plain }

func (terminal) linksInside() bool { return false }

func (terminal) shown(s span) style { return s.style & (bold | italic | strike) }

// The escape sequences of what is no mark.
const (
	escCode    = "\x1b[36m"
	escCodeEnd = "\x1b[39m"
)

func (terminal) open(b *strings.Builder, m mark) {
	switch {
	case m.url != "":
		b.WriteString("\x1b[4m")
	case m.style == bold:
		b.WriteString("\x1b[1m")
	case m.style == italic:
		b.WriteString("\x1b[3m")
	default:
		b.WriteString("\x1b[9m")
	}
}

// close puts a link's target behind its text.
func (terminal) close(b *strings.Builder, m mark, _ rune) {
	switch {
	case m.url != "":
		b.WriteString("\x1b[24m (" + withoutControls(strings.TrimPrefix(m.url, "mailto:")) + ")")
	case m.style == bold:
		b.WriteString("\x1b[22m")
	case m.style == italic:
		b.WriteString("\x1b[23m")
	default:
		b.WriteString("\x1b[29m")
	}
}

func (terminal) text(b *strings.Builder, s span, _ bool) {
	if s.style&code != 0 {
		b.WriteString(escCode + withoutControls(s.text) + escCodeEnd)
		return
	}
	b.WriteString(withoutControls(s.text))
}

func (terminal) bare(b *strings.Builder, url string) { b.WriteString(withoutControls(url)) }

// withoutControls takes out what a terminal would obey.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}
