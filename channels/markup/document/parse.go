package document

import (
	"slices"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// A Parser parses Markdown; several goroutines may use it at the same time.
type Parser struct {
	markdown parser.Parser
}

// NewParser makes a Parser. That takes longer than parsing a short text, so keep the Parser.
func NewParser() *Parser {
	inline := []util.PrioritizedValue{
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
		util.Prioritized(boundedInlineParser{formulas{}}, 50),
		util.Prioritized(boundedInlineParser{parser.NewCodeSpanParser()}, 100),
		util.Prioritized(boundedInlineParser{parser.NewLinkParser()}, 200),
		util.Prioritized(boundedInlineParser{parser.NewAutoLinkParser()}, 300),
		util.Prioritized(boundedInlineParser{parser.NewRawHTMLParser()}, 400),
		util.Prioritized(boundedInlineParser{emphasis{}}, 500),
		util.Prioritized(boundedInlineParser{strikethrough{}}, 500),
		util.Prioritized(emojiNames{}, 600),
		util.Prioritized(boundedInlineParser{extension.NewLinkifyParser()}, 999),
	}
	// Link reference definitions are not parsed: in a chat they are lines that somebody wants to read, and parsing
	// would make them disappear.
	return &Parser{markdown: parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(util.Prioritized(boundedTables{extension.NewTableParagraphTransformer()}, 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)}
}

// Parse parses a Markdown text that Clean has returned.
func (p *Parser) Parse(md string) []Block {
	source := []byte(escapeCostly(md))
	t := tree{source: source}
	t.walkBlocks(p.parse(source))
	return t.blocks
}

func (p *Parser) parse(source []byte) ast.Node {
	return p.markdown.Parse(text.NewReader(source), parser.WithContext(&parseState{Context: parser.NewContext()}))
}

// Images returns the destinations of the images in a Markdown text, in order and each only once. It ignores
// anything in code that looks like an image.
func (p *Parser) Images(md string) []string {
	var all []string
	// The walk returns no error of its own.
	_ = ast.Walk(p.parse([]byte(escapeCostly(md))), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		image, ok := n.(*ast.Image)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to := string(util.ResolveNumericReferences(util.ResolveEntityNames(util.UnescapePunctuations(image.Destination))))
		if to != "" && !slices.Contains(all, to) {
			all = append(all, to)
		}
		return ast.WalkContinue, nil
	})
	return all
}
