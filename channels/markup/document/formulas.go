package document

import (
	"bytes"
	"unicode"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// formulas is the inline parser for \( … \) and \[ … \], between which models write mathematics: the content stays
// as it is, with its backslashes.
type formulas struct{}

// maxFormula is the number of bytes in which the end of a formula is searched for.
const maxFormula = 2000

// Trigger implements parser.InlineParser: formulas begin with a backslash.
func (formulas) Trigger() []byte { return []byte{'\\'} }

// Parse implements parser.InlineParser: it reads one formula.
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
		if line == nil || len(inside) > maxFormula {
			block.SetPosition(at, position)
			return nil
		}
		line = line[:min(len(line), from+maxFormula)]
		if i := formulaEnd(line[from:], end); i >= 0 {
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

// formulaEnd returns the byte position in a line at which the end mark of a formula begins; -1 if there is none. An
// end mark that follows another backslash does not count.
func formulaEnd(line, end []byte) int {
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

// formulaMark distinguishes a formula's node from a code span, whose type it shares.
const formulaMark = "formula"

// isFormula reports whether the text between such brackets is mathematics. People also escape square brackets so
// that they are not a link, as in \[x\].
func isFormula(bracket byte, inside []byte) bool {
	if !bytes.ContainsFunc(inside, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return false
	}
	return bracket == ')' || bytes.ContainsAny(inside, "\\=^_{}+<>")
}
