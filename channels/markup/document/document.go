// Package document reads Markdown as people and models write it in chats, and makes blocks of spans of it.
//
// parse.go puts the parser together; formulas.go, emphasis.go and bounds.go are
// where it differs from CommonMark, tame.go and bounds.go keep it from taking long.
// tree.go and table.go make blocks of what it has read.
package document

import (
	"slices"
	"strings"
)

// A Style is how a span looks.
type Style uint8

// The styles; a span has any of them at once.
const (
	Bold Style = 1 << iota
	Italic
	Strike
	Code
	// Marker is a list's bullet or number: it is written as it is, and what
	// follows it still begins a line.
	Marker
)

// A Span is text in one style, perhaps with a link.
type Span struct {
	Text  string
	Style Style
	URL   string
}

// A Kind is what a block is.
type Kind uint8

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Heading
	CodeBlock
	Table
	Rule
)

// A Block is what the splitter would rather not cut.
type Block struct {
	Kind  Kind
	Spans []Span   // of a paragraph or heading
	Lines []string // of a code block or table
	Head  []string // of a table: the lines to repeat
	Info  string   // of a code block: its language
	Level int      // of a heading
	Quote bool
	Gap   bool // an empty line is before it
}

// Rows are all lines of a code block or table.
func (b Block) Rows() string { return strings.Join(slices.Concat(b.Head, b.Lines), "\n") }

// IsEmpty tells of a block that says nothing.
func (b Block) IsEmpty() bool { return len(b.Spans) == 0 && len(b.Lines) == 0 }

// IsBare tells of a link that is its own text.
func (s Span) IsBare() bool {
	return s.URL != "" && (s.Text == s.URL || "http://"+s.Text == s.URL)
}

// Text is what spans say without markup; with targets, where a link leads stands
// behind its text.
func Text(spans []Span, targets bool) string {
	var b strings.Builder
	b.Grow(len(spans) * 24)
	for i, s := range spans {
		b.WriteString(s.Text)
		if !targets || s.URL == "" || s.IsBare() {
			continue
		}
		if i+1 == len(spans) || spans[i+1].URL != s.URL || spans[i+1].IsBare() {
			b.WriteString(" (" + strings.TrimPrefix(s.URL, "mailto:") + ")")
		}
	}
	return b.String()
}
