package document

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	// mostMarks bounds how many marks of one block are looked at; those behind
	// are text. Where a mark ends depends on those before it, so that the time
	// for a block grows with their square.
	mostMarks = 1000
	// mostCells bounds a table: rows that are too short are filled up, so that a
	// table can be far larger than its text.
	mostCells = 8192
)

// A parse is one of a text, with the marks of the block that is being read.
type parse struct {
	parser.Context
	block ast.Node
	marks int

	emojiEnd int // where in the text the last emoji ends
}

// bounded is a parser that gives up on a block with too many marks.
type bounded struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (b bounded) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	p, ok := pc.(*parse)
	if !ok {
		return b.InlineParser.Parse(parent, block, pc)
	}
	if p.block != parent {
		p.block, p.marks = parent, 0
	}
	// The parser of bare links is called at blanks and at a line's beginning. It
	// looks at one word there and no further, so that this is no mark.
	if line, _ := block.PeekLine(); !isPunct(line[0]) {
		return b.InlineParser.Parse(parent, block, pc)
	}
	if p.marks++; p.marks > mostMarks {
		return nil
	}
	return b.InlineParser.Parse(parent, block, pc)
}

// CloseBlock implements parser.CloseBlocker.
func (b bounded) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := b.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// smallTables makes tables of paragraphs, unless they would have too many cells.
type smallTables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t smallTables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines, columns := node.Lines(), 0
	for i := range lines.Len() {
		line := lines.At(i)
		row := line.Value(reader.Source())
		if len(bytes.Trim(row, "|:- \t\n")) == 0 { // only such a line makes a table
			columns = max(columns, bytes.Count(bytes.Trim(row, "| \t\n"), []byte("|"))+1)
		}
	}
	if columns > 0 && columns*lines.Len() <= mostCells {
		t.ParagraphTransformer.Transform(node, reader, pc)
	}
}
