package document

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// maxMarks is the maximum number of marks that are parsed in one block; later ones are text. Where a mark ends
	// depends on those before it, so the time for a block grows with the square of their number.
	maxMarks = 1000
	// maxCells limits the number of cells in a table. Short rows are padded, so a table can be far larger than its
	// text.
	maxCells = 8192
)

// A parseState is the state of parsing one text. It counts the marks (emphasis, links, code) in the current block;
// at most maxMarks of them are parsed.
type parseState struct {
	parser.Context
	block ast.Node
	marks int

	emojiEnd int // the position right after the last emoji in the text
}

// A boundedInlineParser is an inline parser that parses no more marks in a block once it has found maxMarks.
type boundedInlineParser struct{ parser.InlineParser }

// Parse implements parser.InlineParser: it counts the mark, and parses it unless the block
// has too many.
func (b boundedInlineParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	p, ok := pc.(*parseState)
	if !ok {
		return b.InlineParser.Parse(parent, block, pc)
	}
	if p.block != parent {
		p.block, p.marks = parent, 0
	}
	// The parser of bare links is called at blanks and at the beginning of a line. It reads only one word there, so
	// such a call does not count as a mark.
	if line, _ := block.PeekLine(); !isPunct(line[0]) {
		return b.InlineParser.Parse(parent, block, pc)
	}
	if p.marks++; p.marks > maxMarks {
		return nil
	}
	return b.InlineParser.Parse(parent, block, pc)
}

// CloseBlock implements parser.CloseBlocker: it passes the call on to the wrapped parser.
func (b boundedInlineParser) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := b.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// boundedTables turns paragraphs into tables, unless the tables would have too many cells.
type boundedTables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer: it lets the table parser see a paragraph only if the table
// would be small enough.
func (t boundedTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, columns := node.Lines(), 0
	for i := range lines.Len() {
		line := lines.At(i)
		row := line.Value(reader.Source())
		if len(bytes.Trim(row, "|:- \t\n")) == 0 { // only such a line makes the paragraph a table
			columns = max(columns, bytes.Count(bytes.Trim(row, "| \t\n"), []byte("|"))+1)
		}
	}
	if columns > 0 && columns*lines.Len() <= maxCells {
		t.ParagraphTransformer.Transform(node, reader, pc)
	}
}
