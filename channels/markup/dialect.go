package markup

import (
	"slices"
	"strings"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// A dialect renders blocks (paragraphs, lists, tables, code) in the markup of one platform.
type dialect interface {
	// renderBlock renders a whole block that is well formed on its own.
	renderBlock(b document.Block) string
	// size returns how much of a message's limits a rendered text takes up.
	size(text string) size
	// largest returns the size of the largest message whose length is at most limit.
	largest(limit int) size
	// rendersLink reports whether the dialect renders a span's link as a link in a message of at most limit units; 0
	// means no limit. If not, the link's target is written as text.
	rendersLink(s document.Span, limit int) bool
	// tableForm returns the form in which the dialect shows a table.
	tableForm(table document.Block) form
	// join appends rendered blocks to a text, with separators between them.
	join(to *strings.Builder, frags []renderedBlock)
	// defuse changes a text without markup so that the platform does not act on anything in it either, for example
	// by notifying everybody.
	defuse(plain string) string
}

// A richDialect is a dialect that has a second, richer form for blocks that its platform shows better in that form.
type richDialect interface {
	renderRich(b document.Block) richText
	// joinRich joins the rendered blocks of a piece in the richer form; it returns "" if that form shows nothing
	// better.
	joinRich(frags []renderedBlock) string
}

// A form is a way to show a table.
type form uint8

const (
	formTable   form = iota // in the dialect's own syntax for tables
	formColumns             // laid out in columns, where all characters must have the same width
	formRecords             // row by row, with a line for each cell, which begins with the name of the cell's column
)

// A renderedBlock is one block in all the forms in which it may be sent.
type renderedBlock struct {
	text           string              // the block in the dialect
	plain          string              // the block without markup
	withoutTargets string              // the block without markup and without the targets of links
	size           size                // the size of text, but at least the size of plain
	needsGap       bool                // whether an empty line precedes it
	isHeading      bool                // whether it is a heading, which should stay with the block after it
	container      *document.Container // the innermost quote or list item around it
	isQuote        bool                // whether it is shown with the marks of a quote
	rich           richText            // the block in the dialect's richer form, if it has one
	record         *document.Block     // the row of a table that this block shows; nil for others
}

// separator returns what goes between the block and the one before it, in dialects in which blocks are lines.
func (f renderedBlock) separator() string {
	if f.needsGap {
		return "\n\n"
	}
	return "\n"
}

// A richText is a block rendered for Slack's markdown block.
type richText struct {
	text     string
	table    string // text with a real table in it, of which a message may contain only one; "" if the block is not a table that fits
	isBetter bool   // whether text shows more than the ordinary form does
}

// A syntax writes the spans of a block (pieces of text in one style) with a dialect's marks.
type syntax interface {
	// shownStyle returns which of bold, italic and strike a span should have.
	shownStyle(s document.Span) document.Style
	// openMark and closeMark write the beginning and the end of a mark: a style or a link. next is the character
	// after the mark, 0 at the end of the text.
	openMark(b *strings.Builder, m mark)
	closeMark(b *strings.Builder, m mark, next rune)
	// writeText writes a span's text, with the marks of code if it is code. lineStart says that nothing precedes
	// the text on its line, except perhaps a list marker.
	writeText(b *strings.Builder, s document.Span, lineStart bool)
	// writeBareLink writes a link whose text is its target.
	writeBareLink(b *strings.Builder, s document.Span)
	// linksInnermost reports whether links must be inside all other marks, because their texts can't contain any.
	linksInnermost() bool
}

// A mark is one style or one link that begins and ends in a text.
type mark struct {
	style document.Style
	url   string
}

// isOn reports whether a span has the mark; shown is the span's style as the dialect shows it.
func (m mark) isOn(s document.Span, shown document.Style) bool {
	if m.url != "" {
		return s.URL == m.url && !s.IsBare()
	}
	return shown&m.style != 0
}

// lookAhead is the number of spans in which the end of a mark is searched for.
const lookAhead = 32

// writeInline writes spans so that their marks are nested: if several marks begin together, the longest one is
// outermost.
func writeInline(b *strings.Builder, x syntax, spans []document.Span) {
	var active []mark
	lineStart := true
	for i, s := range spans {
		shown := x.shownStyle(s)
		next, _ := utf8.DecodeRuneInString(s.Text)
		keep := 0
		for keep < len(active) && active[keep].isOn(s, shown) {
			keep++
		}
		for len(active) > keep {
			x.closeMark(b, active[len(active)-1], next)
			active = active[:len(active)-1]
		}
		for _, m := range newMarks(x, spans[i:], active) {
			x.openMark(b, m)
			active = append(active, m)
		}
		if s.IsBare() {
			x.writeBareLink(b, s)
		} else {
			x.writeText(b, s, lineStart)
		}
		if nl := strings.LastIndexByte(s.Text, '\n'); s.Style != document.Marker && strings.TrimLeft(s.Text[nl+1:], " ") != "" {
			lineStart = false
		} else if nl >= 0 {
			lineStart = true
		}
	}
	for len(active) > 0 {
		x.closeMark(b, active[len(active)-1], 0)
		active = active[:len(active)-1]
	}
}

// newMarks returns the first span's marks that are not active yet, outermost first.
func newMarks(x syntax, spans []document.Span, active []mark) []mark {
	s := spans[0]
	shown := x.shownStyle(s)
	if shown == 0 && (s.URL == "" || s.IsBare()) {
		return nil
	}
	var ms []mark
	var lasts []int
	for _, m := range []mark{{url: s.URL}, {style: document.Bold}, {style: document.Italic}, {style: document.Strike}} {
		if m == (mark{}) || !m.isOn(s, shown) || hasMark(active, m) {
			continue
		}
		n := 1
		for n < len(spans) && n < lookAhead && m.isOn(spans[n], x.shownStyle(spans[n])) {
			n++
		}
		if m.url != "" && x.linksInnermost() {
			n = 0
		}
		at := len(ms)
		for at > 0 && lasts[at-1] < n {
			at--
		}
		ms, lasts = append(ms, mark{}), append(lasts, 0)
		copy(ms[at+1:], ms[at:])
		copy(lasts[at+1:], lasts[at:])
		ms[at], lasts[at] = m, n
	}
	return ms
}

// hasMark reports whether m is one of the marks.
func hasMark(ms []mark, m mark) bool {
	return slices.Contains(ms, m)
}

// inlineText returns the spans as a text in a dialect's syntax.
func inlineText(x syntax, spans []document.Span) string {
	var b strings.Builder
	b.Grow(len(spans) * 24)
	writeInline(&b, x, spans)
	return b.String()
}

// makeBold returns a heading's spans in bold, for platforms without headings.
func makeBold(spans []document.Span) []document.Span {
	all := make([]document.Span, len(spans))
	for i, s := range spans {
		if s.Style != document.Marker {
			s.Style |= document.Bold
		}
		all[i] = s
	}
	return all
}

// isQuoted reports whether a block is shown with the marks of a quote.
func isQuoted(b document.Block) bool {
	return (b.Kind == document.Paragraph || b.Kind == document.Heading || b.Kind == document.Record) && b.Quotes() > 0
}

// hasShortTarget reports whether a link's target takes up only a small part of a message of at most limit units (0
// means no limit), on platforms that count targets. It returns false for targets with Telegram's own scheme, which
// lead nowhere on other platforms.
func hasShortTarget(s document.Span, limit int) bool {
	if strings.HasPrefix(s.URL, "tg:") {
		return false
	}
	return limit == 0 || len(s.URL) <= limit/8
}

// quoted returns a text with the mark of a quote (>) before each line.
func quoted(text string) string {
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// indented returns a text with the indent before each line.
func indented(indent, text string) string {
	if indent == "" {
		return text
	}
	return indent + strings.ReplaceAll(text, "\n", "\n"+indent)
}

// ruleText is shown for a rule on platforms that have no rules.
const ruleText = "———"

// zeroWidth is an invisible character. It is put between characters that a platform would otherwise read together
// as a mark or a mention.
const zeroWidth = "\u200b"

// joinLines does what dialect.join says, for dialects in which blocks are lines.
func joinLines(to *strings.Builder, frags []renderedBlock) {
	for i, f := range frags {
		if i > 0 {
			to.WriteString(f.separator())
		}
		to.WriteString(f.text)
	}
}
