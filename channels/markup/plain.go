package markup

import (
	"strings"

	"parley/channels/markup/document"
)

// plainDialect renders text without markup, as a person would type it.
type plainDialect struct {
	bareLinks bool // whether to leave out the targets of links
}

func (plainDialect) size(text string) size { return sizeWithMarks(text) }

func (plainDialect) largest(limit int) size { return limitedByLength(limit) }

func (plainDialect) rendersLink(s document.Span, limit int) bool { return hasShortTarget(s, limit) }

func (plainDialect) tableForm(table document.Block) form { return columnsOrRecords(deskWidth, table) }

func (x plainDialect) renderBlock(b document.Block) string {
	var text string
	switch b.Kind {
	case document.CodeBlock:
		return strings.Join(b.Lines, "\n")
	case document.Table:
		return layoutTable(b)
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

func (plainDialect) defuse(plain string) string { return plain }
