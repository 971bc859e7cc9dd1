package markup

import (
	"strings"

	"parley/channels/markup/document"
)

// plainDialect renders text without markup, as a person would type it.
type plainDialect struct {
	bareLinks bool // leaves out the targets of links
}

func (plainDialect) size(text string) size { return inUnits(text) }

func (plainDialect) most(limit int) size { return limitedByLength(limit) }

func (plainDialect) links(s document.Span, limit int) bool { return isShort(s, limit) }

func (plainDialect) form(table document.Block) form { return columnsUpTo(deskWidth, table) }

func (x plainDialect) block(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock:
		return strings.Join(b.Lines, "\n")
	case document.Table:
		return layout(b)
	case document.Rule:
		return ruleText
	default:
		text = document.Text(b.Spans, !x.bareLinks)
	}
	if isQuoted(b) {
		return indented(b.Indent, quoted(text))
	}
	return text
}

func (plainDialect) join(to *strings.Builder, frags []renderedBlock) { joinLines(to, frags) }

func (plainDialect) harmless(plain string) string { return plain }
