package markup

import (
	"strings"

	"parley/channels/markup/document"
)

// plainDialect is text without markup, as it would be typed.
type plainDialect struct {
	bareLinks bool // says nothing of where links lead
}

func (plainDialect) size(text string) size { return inUnits(text) }

func (plainDialect) most(limit int) size { return boundless(limit) }

func (plainDialect) longestLink(limit int) int { return limit / 8 }

func (x plainDialect) block(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock, document.Table:
		return b.Rows()
	case document.Rule:
		return ruleText
	default:
		text = document.Text(b.Spans, !x.bareLinks)
	}
	if b.Quote {
		return quoted(text)
	}
	return text
}

func (plainDialect) join(to *strings.Builder, frags []frag) { joinLines(to, frags) }

func (plainDialect) harmless(plain string) string { return plain }
