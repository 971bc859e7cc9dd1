package document

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// A tree turns a parsed document into a list of blocks: nesting becomes prefixes and flags, so that later steps
// need to know nothing about it.
type tree struct {
	source []byte
	blocks []Block

	within          *Container // the innermost quote or list item around the next block
	indent          string     // the indent of the lines in the current list item
	firstLinePrefix string     // what precedes the item's first line instead of indent
	quoteIndent     string     // the indent of whatever contains the outermost quote
	needsGap        bool       // whether an empty line precedes the next block
}

// walkBlocks appends the blocks inside a node.
func (t *tree) walkBlocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		t.needsGap = t.needsGap || n.HasBlankPreviousLines()
		switch n := n.(type) {
		case *ast.Heading:
			if n.ChildCount() == 0 {
				t.add(Block{Kind: Paragraph, Spans: []Span{{Text: strings.Repeat("#", n.Level)}}})
				continue
			}
			t.add(Block{Kind: Heading, Spans: t.spansOf(n), Level: n.Level})
		case *ast.FencedCodeBlock:
			t.add(Block{Kind: CodeBlock, Lines: t.linesOf(n.Lines()), Info: language(n.Language(t.source))})
		case *ast.CodeBlock:
			t.add(Block{Kind: CodeBlock, Lines: t.linesOf(n.Lines())})
		case *ast.HTMLBlock:
			t.addHTML(n)
		case *ast.ThematicBreak:
			t.add(Block{Kind: Rule})
		case *ast.Blockquote:
			t.walkQuote(n)
		case *ast.List:
			t.walkList(n)
		case *tables.Table:
			t.needsGap = true // the parser does not say whether there was one
			t.addTable(n)
		default:
			t.add(Block{Kind: Paragraph, Spans: t.spansOf(n)})
		}
	}
}

// add appends a block; the first block of a list item gets the item's marker.
func (t *tree) add(b Block) {
	prefix := t.indent
	if t.firstLinePrefix != "" {
		prefix = t.firstLinePrefix
	}
	switch {
	case b.Kind == Paragraph || b.Kind == Heading:
		if prefix != "" {
			b.Spans = append([]Span{{Text: prefix, Style: Marker}}, b.Spans...)
		}
		t.firstLinePrefix = ""
	case t.firstLinePrefix != "": // a code block that directly follows the marker
		t.add(Block{Kind: Paragraph})
	}
	b.Container, b.Indent = t.within, t.quoteIndent
	if b.Kind != Paragraph && b.Kind != Heading && b.Quotes() == 0 {
		b.Indent = t.indent
	}
	if len(b.Spans) == 0 && (b.Kind == Paragraph || b.Kind == Heading) {
		return
	}
	b.Gap, t.needsGap = t.needsGap, false
	t.blocks = append(t.blocks, b)
}

// enter walks the content of a quote or list item, so that c becomes the container of its blocks.
func (t *tree) enter(c *Container, n ast.Node) {
	c.Parent, t.within = t.within, c
	t.walkBlocks(n)
	t.within = c.Parent
}

// walkQuote walks a quote. A quote inside a list item is indented as a whole.
func (t *tree) walkQuote(n ast.Node) {
	indent, outer := t.indent, t.quoteIndent
	if t.firstLinePrefix == "" {
		t.indent = ""
		if outer == "" {
			t.quoteIndent = indent
		}
	}
	t.enter(&Container{}, n)
	t.indent, t.quoteIndent = indent, outer
}

// walkList walks the items of a list.
func (t *tree) walkList(list *ast.List) {
	indent := t.indent
	number := list.Start
	of := &List{Ordered: list.IsOrdered(), Tight: list.IsTight}
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		t.needsGap = t.needsGap || item.HasBlankPreviousLines()
		within := &Container{List: of}
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + string(list.Marker) + " "
			within.Number = number
			number++
		}
		begin := indent
		if t.firstLinePrefix != "" { // a list that directly follows the item's marker
			begin = t.firstLinePrefix
		}
		t.firstLinePrefix = begin + mark
		t.indent = indent + strings.Repeat(" ", len([]rune(mark)))
		t.walkItem(within, item)
	}
	t.indent = indent
}

// walkItem walks the content of a list item; an empty item becomes just its marker.
func (t *tree) walkItem(within *Container, n ast.Node) {
	t.enter(within, n)
	if t.firstLinePrefix == "" {
		return
	}
	// The item was empty.
	t.firstLinePrefix = strings.TrimRight(t.firstLinePrefix, " ")
	t.within = within
	t.add(Block{Kind: Paragraph})
	t.within = within.Parent
}

// addHTML adds HTML as readable text, because no platform accepts it.
func (t *tree) addHTML(n *ast.HTMLBlock) {
	lines := t.linesOf(n.Lines())
	if n.HasClosure() {
		lines = append(lines, strings.TrimRight(string(n.ClosureLine.Value(t.source)), "\n"))
	}
	var spans []Span
	for i, line := range lines {
		if i > 0 {
			t.addNewline(&spans)
		}
		appendSpan(&spans, line, 0, "")
	}
	t.add(Block{Kind: Paragraph, Spans: spans})
}

// addTable appends a table.
func (t *tree) addTable(n *tables.Table) {
	b := Block{Kind: Table}
	for _, a := range n.Alignments {
		b.Align = append(b.Align, map[tables.Alignment]Align{
			tables.AlignLeft: Left, tables.AlignCenter: Center, tables.AlignRight: Right,
		}[a])
	}
	indent := t.indent
	t.indent = "" // the lines of a cell are not indented like those of the item
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []Cell
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, t.spansOf(cell))
		}
		if b.Head == nil {
			b.Head = cells
			continue
		}
		b.Rows = append(b.Rows, cells)
	}
	t.indent = indent
	t.add(b)
}

// linesOf returns the lines in these segments of the source.
func (t *tree) linesOf(segments *text.Segments) []string {
	lines := make([]string, segments.Len())
	for i := range lines {
		s := segments.At(i)
		lines[i] = strings.TrimRight(string(s.Value(t.source)), "\n")
	}
	return lines
}

// language returns the language that a code block names after its opening fence (info): the first word if that
// looks like a language, otherwise "".
func language(info []byte) string {
	s := Unescape(string(info))
	if len(s) > 32 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#-_.") != "" {
		return ""
	}
	return s
}
