package symbols

// rubyReader finds the symbols of a Ruby file, line by line.
type rubyReader struct {
	open  []indentedBlock
	found []Symbol
}

func findRuby(src string) []Symbol {
	var r rubyReader
	l := newLexer(src, syntax{hashComments: true, multilineStrings: true, regexLiterals: true, rubyLiterals: true})
	var line []token
	for t, ok := l.next(); ok && len(r.found) < MaxSymbols; t, ok = l.next() {
		if t.firstOnLine {
			if t.is("__END__") {
				break
			}
			r.read(line)
			line = line[:0]
		}
		if len(line) < 40 || t.is("end") {
			line = append(line[:min(len(line), 40)], t)
		}
	}
	r.read(line)
	return r.found
}

// read reads one line.
func (r *rubyReader) read(line []token) {
	if len(line) == 0 {
		return
	}
	col := line[0].col
	h := withoutWords(line, "private", "public", "protected", "private_class_method", "module_function")
	first := at(h, 0)
	switch {
	case at(h, 1).is(":") && h[1].noSpaceBefore: // a hash key
	case first.is("end"):
		for len(r.open) > 0 && r.open[len(r.open)-1].col >= col {
			r.open = r.open[:len(r.open)-1]
		}
	case isOneOf(first, "class", "module"):
		r.readType(line, h)
	case isOneOf(first, "def"):
		r.readMethod(h)
	case first.kind == wordToken && first.text[0] >= 'A' && first.text[0] <= 'Z' && at(h, 1).is("="):
		r.found = append(r.found, Symbol{first.text, Const, r.container(), first.line})
	}
}

func (r *rubyReader) container() string {
	for i := len(r.open) - 1; i >= 0; i-- {
		if r.open[i].name != "" {
			return r.open[i].name
		}
	}
	return ""
}

// readType reads the declaration of a class or module.
func (r *rubyReader) readType(line, h []token) {
	col := line[0].col
	for len(r.open) > 0 && r.open[len(r.open)-1].col >= col {
		r.open = r.open[:len(r.open)-1]
	}
	if at(h, 1).is("<<") { // methods of the class itself
		r.open = append(r.open, indentedBlock{col, "", true})
		return
	}
	i := 1
	container := r.container()
	for at(h, i+1).is("::") && at(h, i+2).kind == wordToken {
		container = h[i].text
		i += 2
	}
	name := at(h, i)
	if name.kind != wordToken || name.text[0] < 'A' || name.text[0] > 'Z' {
		return
	}
	kind := Class
	if h[0].text == "module" {
		kind = Module
	}
	r.found = append(r.found, Symbol{name.text, kind, container, name.line})
	if !line[len(line)-1].is("end") {
		r.open = append(r.open, indentedBlock{col, name.text, true})
	}
}

// readMethod reads the declaration of a method, whose name may be an operator.
func (r *rubyReader) readMethod(h []token) {
	i := 1
	container := r.container()
	if at(h, 2).is(".") && h[2].noSpaceBefore {
		if !isOneOf(h[1], "self") {
			container = h[1].text
		}
		i = 3
	}
	name := at(h, i)
	for i++; i < len(h) && h[i].noSpaceBefore && !h[i].is("("); i++ {
		if h[i].is(";") || name.kind == wordToken && !h[i].is("?") && !h[i].is("!") && !h[i].is("=") {
			break
		}
		name.text += h[i].text
	}
	if name.text == "" || name.text == "(" {
		return
	}
	kind := Method
	if container == "" {
		kind = Func
	}
	r.found = append(r.found, Symbol{name.text, kind, container, name.line})
}
