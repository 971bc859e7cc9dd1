package document

import (
	"bytes"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// formulas parses \( … \) and \[ … \], between which models write mathematics:
// what is in there stays as it is, with its backslashes.
type formulas struct{}

// mostFormula bounds how far the end of a formula is looked for, in bytes.
const mostFormula = 2000

// Trigger implements parser.InlineParser.
func (formulas) Trigger() []byte { return []byte{'\\'} }

// Parse implements parser.InlineParser.
func (formulas) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if len(line) < 2 || line[1] != '(' && line[1] != '[' {
		return nil
	}
	lines, last, end := 0, 0, []byte(`\)`)
	if line[1] == '[' {
		end = []byte(`\]`)
	}
	at, position := block.Position()
	var inside []byte
	for from := len(end); ; lines, from = lines+1, 0 {
		line, _ := block.PeekLine()
		if line == nil || len(inside) > mostFormula {
			block.SetPosition(at, position)
			return nil
		}
		line = line[:min(len(line), from+mostFormula)]
		if i := endOf(line[from:], end); i >= 0 {
			inside, last = append(inside, line[from:from+i]...), from+i+len(end)
			break
		}
		inside = append(inside, line[from:]...)
		block.AdvanceLine()
	}
	block.SetPosition(at, position)
	if !isFormula(end[1], inside) {
		return nil
	}
	formula := ast.NewCodeSpan()
	formula.SetAttributeString(formulaMark, true)
	for range lines {
		_, segment := block.PeekLine()
		formula.AppendChild(formula, ast.NewRawTextSegment(segment))
		block.AdvanceLine()
	}
	_, segment := block.PeekLine()
	formula.AppendChild(formula, ast.NewRawTextSegment(segment.WithStop(segment.Start+last)))
	block.Advance(last)
	return formula
}

// endOf is where a line has the end of a formula, -1 if nowhere. Behind another backslash
// it is none.
func endOf(line, end []byte) int {
	for at := 0; ; {
		i := bytes.Index(line[at:], end)
		if i < 0 {
			return -1
		}
		at += i
		before := bytes.TrimRight(line[:at], `\`)
		if (at-len(before))%2 == 0 {
			return at
		}
		at++
	}
}

// formulaMark tells a formula from a code span, which it otherwise resembles.
const formulaMark = "formula"

// isFormula tells whether what stands in such brackets is mathematics. Square
// brackets are also written so to keep them from being a link, as in \[x\].
func isFormula(bracket byte, inside []byte) bool {
	if !bytes.ContainsFunc(inside, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return false
	}
	return bracket == ')' || bytes.ContainsAny(inside, "\\=^_{}+<>")
}
