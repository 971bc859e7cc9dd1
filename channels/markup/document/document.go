// Package document parses Markdown, as people and models write it in chats, into blocks of spans.
//
// parse.go configures the parser; formulas.go, emphasis.go and emoji.go define how it differs from CommonMark;
// costly.go and bounds.go keep it from taking too long. escapes.go cleans the text first. tree.go turns the parsed
// tree into blocks, and inline.go into spans.
package document

import "strings"

// A Style is a combination of the ways in which a span can be marked.
type Style uint8

// The styles; a span may have several at once.
const (
	Bold Style = 1 << iota
	Italic
	Strike
	Code
	// Marker is a list's bullet or number. It is written literally, and the text after it still counts as the
	// beginning of a line.
	Marker
)

// A Span is text in one style, perhaps with a link.
type Span struct {
	Text  string
	Style Style
	URL   string
	Emoji string // the name, if an emoji was written by its name; Text is then its character
}

// A Kind is the kind of a block.
type Kind uint8

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Heading
	CodeBlock
	Table
	Record // a table's row, shown with a line for each cell; Parse makes none, but package markup does
	Rule
)

// A Block is a part of a text that the splitter tries not to cut.
type Block struct {
	Kind  Kind
	Spans []Span   // its text, for a paragraph or heading
	Lines []string // its lines, for a code block
	Info  string   // its language, for a code block; "" if it names none
	Level int      // its level, for a heading

	Head   []Cell // for a table: its first row, with the names of the columns
	Rows   [][]Cell
	Align  []Align
	Widths []int // for a part of a table: the widths of the whole table's columns

	Fields  []Field // for a record: its cells with the names of their columns
	AsTable *Block  // for a whole record: a table with only this row

	Container *Container // the innermost quote or list item around it; nil at the top level
	Indent    string     // what precedes its lines, and the marks of quotes; in a text, a span contains the indent of its list item
	Gap       bool       // whether an empty line precedes it
}

// A Cell is one field of a table.
type Cell []Span

// A Field is a cell together with the name of its column.
type Field struct {
	Name  []Span
	Value Cell
}

// An Align says how the text in a column is aligned.
type Align uint8

// The alignments.
const (
	Unaligned Align = iota
	Left
	Center
	Right
)

// A Container is a quote or an item of a list.
type Container struct {
	Parent *Container // the container around it
	List   *List      // the list that the item belongs to; nil for a quote
	Number int        // the item's number, in an ordered list
}

// A List is a list to which items belong.
type List struct {
	Ordered bool
	Tight   bool // whether its items are lines that follow one another, without empty lines in between
}

// Quotes returns how many quotes a block is in.
func (b Block) Quotes() (n int) {
	for c := b.Container; c != nil; c = c.Parent {
		if c.List == nil {
			n++
		}
	}
	return n
}

// IsEmpty reports whether a block has no content.
func (b Block) IsEmpty() bool {
	return len(b.Spans) == 0 && len(b.Lines) == 0 && len(b.Rows) == 0 && len(b.Fields) == 0
}

// IsBare reports whether a span is a link whose text is its target.
func (s Span) IsBare() bool {
	return s.URL != "" && (s.Text == s.URL || "http://"+s.Text == s.URL || s.IsMail())
}

// IsMail reports whether a span is an email address that links to itself.
func (s Span) IsMail() bool {
	address, ok := strings.CutPrefix(s.URL, "mailto:")
	return ok && s.Text == address
}

// Text returns the text of spans without markup; if targets is true, each link's target follows its text.
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
