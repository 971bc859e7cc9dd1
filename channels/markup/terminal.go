package markup

import (
	"strings"
	"unicode"

	"parley/channels/markup/document"
)

// terminal is text as a terminal shows it: styles are escape sequences, each of
// which is ended by its own counterpart, so that they may overlap. Other escape
// sequences cannot get through, not even as a character reference (&#27;).
type terminal struct{}

func (terminal) size(text string) size { return inUnits(text) }

func (terminal) most(limit int) size { return boundless(limit) }

func (terminal) longestLink(limit int) int { return limit / 8 }

func (x terminal) block(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock, document.Table:
		return "  " + escCode + strings.ReplaceAll(withoutControls(b.Rows()), "\n", "\n  ") + escCodeEnd
	case document.Rule:
		return ruleText
	case document.Heading:
		text = inlineText(x, inBold(b.Spans))
	default:
		text = inlineText(x, b.Spans)
	}
	if b.Quote {
		return "│ " + strings.ReplaceAll(text, "\n", "\n│ ")
	}
	return text
}

func (terminal) join(to *strings.Builder, frags []frag) { joinLines(to, frags) }

func (terminal) harmless(plain string) string { return plain }

func (terminal) linksInside() bool { return false }

func (terminal) shown(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

// The escape sequences of what is no mark.
const (
	escCode    = "\x1b[36m"
	escCodeEnd = "\x1b[39m"
)

func (terminal) open(b *strings.Builder, m mark) {
	switch {
	case m.url != "":
		b.WriteString("\x1b[4m")
	case m.style == document.Bold:
		b.WriteString("\x1b[1m")
	case m.style == document.Italic:
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
	case m.style == document.Bold:
		b.WriteString("\x1b[22m")
	case m.style == document.Italic:
		b.WriteString("\x1b[23m")
	default:
		b.WriteString("\x1b[29m")
	}
}

func (terminal) text(b *strings.Builder, s document.Span, _ bool) {
	if s.Style&document.Code != 0 {
		b.WriteString(escCode + withoutControls(s.Text) + escCodeEnd)
		return
	}
	b.WriteString(withoutControls(s.Text))
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
