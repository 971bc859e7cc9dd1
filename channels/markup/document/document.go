// Package document reads Markdown as people and models write it in chats, and makes blocks of spans of it.
//
// parse.go puts the parser together; formulas.go, emphasis.go, emoji.go and bounds.go
// are where it differs from CommonMark, tame.go and bounds.go keep it from taking long.
// tree.go makes blocks of what it has read, and inline.go spans.
package document

import "strings"

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
	Emoji string // the name of an emoji that was written by it; Text is its character
}

// A Kind is what a block is.
type Kind uint8

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Heading
	CodeBlock
	Table
	Record // a row of a table, as lines; Parse makes none
	Rule
)

// A Block is what the splitter would rather not cut.
type Block struct {
	Kind  Kind
	Spans []Span   // of a paragraph or heading
	Lines []string // of a code block
	Info  string   // of a code block: its language
	Level int      // of a heading

	Head   []Cell // of a table: its first row, which names the columns
	Rows   [][]Cell
	Align  []Align
	Widths []int // of a table: those of its columns, where it is but a part of one

	Fields []Field // of a record
	Of     *Block  // of a whole record: a table of nothing but its row

	Within *Container // what it stands in; nil is the text itself
	Indent string     // before its lines and the marks of quotes; text has that of its item as a span
	Gap    bool       // an empty line is before it
}

// A Cell is one field of a table.
type Cell []Span

// A Field is a cell behind the name of its column.
type Field struct {
	Name  []Span
	Value Cell
}

// An Align says where the text of a column stands.
type Align uint8

// The alignments.
const (
	Unaligned Align = iota
	Left
	Center
	Right
)

// A Container is a quote, or an item of a list.
type Container struct {
	In     *Container // the one that it stands in
	List   *List      // whose item it is; nil is a quote
	Number int        // of an item of an ordered list
}

// A List is what items are of.
type List struct {
	Ordered bool
	Tight   bool // its items are lines, not paragraphs
}

// Quotes is how many quotes a block stands in.
func (b Block) Quotes() (n int) {
	for c := b.Within; c != nil; c = c.In {
		if c.List == nil {
			n++
		}
	}
	return n
}

// IsEmpty tells of a block that says nothing.
func (b Block) IsEmpty() bool {
	return len(b.Spans) == 0 && len(b.Lines) == 0 && len(b.Rows) == 0 && len(b.Fields) == 0
}

// IsBare tells of a link that is its own text.
func (s Span) IsBare() bool {
	return s.URL != "" && (s.Text == s.URL || "http://"+s.Text == s.URL || s.IsMail())
}

// IsMail tells of an address that is its own text.
func (s Span) IsMail() bool {
	address, ok := strings.CutPrefix(s.URL, "mailto:")
	return ok && s.Text == address
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
