package document

import (
	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// emphasis parses * and _ as CommonMark does, except that * between letters or digits, and ** between digits, are
// text: in chats they mean a product or a power, or belong to a name.
type emphasis struct{}

// Trigger implements parser.InlineParser: emphasis begins with * or _.
func (emphasis) Trigger() []byte { return []byte{'*', '_'} }

// Parse implements parser.InlineParser: it reads one run of stars or underscores.
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

// IsDelimiter implements parser.DelimiterProcessor: * and _ are delimiters.
func (emphasis) IsDelimiter(b byte) bool { return b == '*' || b == '_' }

// CanOpenCloser implements parser.DelimiterProcessor: a delimiter can only end one with the same character.
func (emphasis) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor: it makes the emphasis node.
func (emphasis) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }

// strikethrough parses only ~~, because in chats a single ~ means a range or an estimate.
type strikethrough struct{}

// Trigger implements parser.InlineParser: strikethrough begins with ~.
func (strikethrough) Trigger() []byte { return []byte{'~'} }

// Parse implements parser.InlineParser: it reads one run of tildes.
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

// IsDelimiter implements parser.DelimiterProcessor: ~ is the delimiter.
func (strikethrough) IsDelimiter(b byte) bool { return b == '~' }

// CanOpenCloser implements parser.DelimiterProcessor: a delimiter ends one with the same character.
func (strikethrough) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char
}

// OnMatch implements parser.DelimiterProcessor: it makes the node for the struck-out text.
func (strikethrough) OnMatch(int) ast.Node { return tables.NewStrikethrough() }
