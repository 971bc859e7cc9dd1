package symbols

import "strings"

// An indentedBlock is a class or function; the lines that belong to it are indented deeper than its own.
type indentedBlock struct {
	col     int
	name    string
	isClass bool
}

// pythonReader finds the symbols of a Python file, line by line.
type pythonReader struct {
	open  []indentedBlock
	found []Symbol
}

func findPython(src string) []Symbol {
	var r pythonReader
	l := newLexer(src, syntax{hashComments: true, tripleQuotes: true, singleQuotedStrings: true})
	var line []token
	depth := 0
	for t, ok := l.next(); ok && len(r.found) < MaxSymbols; t, ok = l.next() {
		if t.firstOnLine && depth == 0 {
			r.read(line)
			line = line[:0]
		}
		switch {
		case t.is("("), t.is("["), t.is("{"):
			depth++
		case depth > 0 && (t.is(")") || t.is("]") || t.is("}")):
			depth--
		case depth > 0 && t.firstOnLine && t.col == 0 && isOneOf(t, "def", "class"): // a bracket was never closed
			r.read(line)
			line, depth = line[:0], 0
		}
		if len(line) < 40 {
			line = append(line, t)
		}
	}
	r.read(line)
	return r.found
}

// read reads one line.
func (r *pythonReader) read(line []token) {
	if len(line) < 2 {
		return
	}
	col := line[0].col
	for len(r.open) > 0 && r.open[len(r.open)-1].col >= col {
		r.open = r.open[:len(r.open)-1]
	}
	var in indentedBlock
	if len(r.open) > 0 {
		in = r.open[len(r.open)-1]
	}
	h := withoutWords(line, "async")
	name := at(h, 1)
	switch {
	case isOneOf(at(h, 0), "class") && name.kind == wordToken:
		r.found = append(r.found, Symbol{name.text, Class, in.name, name.line})
		r.open = append(r.open, indentedBlock{col, name.text, true})
	case isOneOf(at(h, 0), "def") && name.kind == wordToken:
		kind := Func
		if in.isClass {
			kind = Method
		}
		r.found = append(r.found, Symbol{name.text, kind, in.name, name.line})
		r.open = append(r.open, indentedBlock{col, name.text, false})
	case (col == 0 || in.isClass) && line[0].kind == wordToken && isAssigned(line):
		kind := Var
		if strings.ToUpper(line[0].text) == line[0].text {
			kind = Const
		}
		r.found = append(r.found, Symbol{line[0].text, kind, in.name, line[0].line})
	}
}

// isAssigned reports whether a line assigns a value to the name that it begins with.
func isAssigned(line []token) bool {
	return line[1].is("=") || line[1].is(":") && indexOutside(line, 2, "=") > 0
}
