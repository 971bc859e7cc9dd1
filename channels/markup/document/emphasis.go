package document

import (
	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// emphasis parses * and _ as CommonMark does, but for a star between letters or
// digits, which in chats is a product or a name.
type emphasis struct{}

// Trigger implements parser.InlineParser.
func (emphasis) Trigger() []byte { return []byte{'*', '_'} }

// Parse implements parser.InlineParser.
func (emphasis) Parse(_ ast.Node, reader text.Reader, pc parser.Context) ast.Node {
	before := reader.PrecendingCharacter()
	line, segment := reader.PeekLine()
	node := parser.ScanDelimiter(line, before, 1, emphasis{})
	if node == nil {
		return nil
	}
	if n := node.OriginalLength; n < len(line) && line[0] == '*' && before < 0x80 {
		after := line[n]
		if n == 1 && isWord(byte(before)) && isWord(after) || n == 2 && isDigit(byte(before)) && isDigit(after) {
			node.CanOpen, node.CanClose = false, false
		}
	}
	node.Segment = segment.WithStop(segment.Start + node.OriginalLength)
	reader.Advance(node.OriginalLength)
	pc.PushDelimiter(node)
	return node
}

// IsDelimiter implements parser.DelimiterProcessor.
func (emphasis) IsDelimiter(b byte) bool { return b == '*' || b == '_' }

// CanOpenCloser implements parser.DelimiterProcessor.
func (emphasis) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor.
func (emphasis) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

// strikethrough parses ~~ alone: one ~ is a range or an estimate in a chat.
type strikethrough struct{}

// Trigger implements parser.InlineParser.
func (strikethrough) Trigger() []byte { return []byte{'~'} }

// Parse implements parser.InlineParser.
func (strikethrough) Parse(_ ast.Node, reader text.Reader, pc parser.Context) ast.Node {
	before := reader.PrecendingCharacter()
	line, segment := reader.PeekLine()
	n := 1
	for n < len(line) && line[n] == '~' {
		n++
	}
	segment = segment.WithStop(segment.Start + n)
	if n != 2 {
		reader.Advance(n)
		return ast.NewTextSegment(segment)
	}
	node := parser.ScanDelimiter(line, before, n, strikethrough{})
	node.Segment = segment
	reader.Advance(n)
	pc.PushDelimiter(node)
	return node
}

// IsDelimiter implements parser.DelimiterProcessor.
func (strikethrough) IsDelimiter(b byte) bool { return b == '~' }

// CanOpenCloser implements parser.DelimiterProcessor.
func (strikethrough) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor.
func (strikethrough) OnMatch(int) ast.Node { return tables.NewStrikethrough() }
