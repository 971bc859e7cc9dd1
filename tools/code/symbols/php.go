package symbols

import "strings"

// phpGrammar reads PHP.
type phpGrammar struct{}

// strip removes attributes and modifiers.
func (phpGrammar) strip(head []token) []token {
	for len(head) > 0 {
		switch {
		case head[0].is("#"):
			head = head[min(afterGroup(head, 1), len(head)):]
		case isOneOf(head[0], "abstract", "final", "readonly", "public", "private", "protected", "static", "var"):
			head = head[1:]
		default:
			return head
		}
	}
	return head
}

func (p phpGrammar) open(r *braceReader, head []token, inParens bool) scope {
	if inParens {
		return scope{kind: inNothing, continues: true}
	}
	h := p.strip(head)
	name := at(h, 1)
	switch {
	case isOneOf(at(h, 0), "class", "interface", "trait", "enum") && name.kind == wordToken:
		kind := map[string]string{"class": Class, "interface": Interface, "trait": Class, "enum": Enum}[h[0].text]
		r.emit(kind, name, "")
		return scope{kind: inClass, name: name.text}
	case isOneOf(at(h, 0), "namespace"):
		p.emitNamespace(r, h)
		return scope{kind: inModule}
	case p.emitFunction(r, h):
		return scope{kind: inFunction}
	case r.scope().kind == inClass, indexOutside(h, 0, "=") >= 0:
		return scope{kind: inNothing, continues: indexOutside(h, 0, "=") >= 0}
	}
	return scope{kind: inFunction}
}

// emitFunction adds the function or method that a statement declares; false if it declares none.
func (phpGrammar) emitFunction(r *braceReader, h []token) bool {
	if !isOneOf(at(h, 0), "function") {
		return false
	}
	name := at(h, 1)
	if name.is("&") {
		name = at(h, 2)
	}
	kind := Func
	if r.scope().kind == inClass {
		kind = Method
	}
	r.emit(kind, name, r.scope().name)
	return true
}

// emitNamespace adds a namespace with its full name.
func (phpGrammar) emitNamespace(r *braceReader, h []token) {
	var b strings.Builder
	for _, t := range h[1:] {
		b.WriteString(t.text)
	}
	name := at(h, 1)
	name.text = b.String()
	r.emit(Module, name, "")
}

func (p phpGrammar) end(r *braceReader, head []token) {
	h := p.strip(head)
	switch {
	case p.emitFunction(r, h):
	case isOneOf(at(h, 0), "const"):
		if equals := indexOutside(h, 0, "="); equals > 1 {
			r.emit(Const, h[equals-1], r.scope().name)
		}
	case isOneOf(at(h, 0), "define") && at(h, 1).is("(") && at(h, 2).kind == textToken:
		name := h[2]
		name.kind, name.text = wordToken, strings.Trim(name.text, `"'`)
		r.emit(Const, name, "")
	case isOneOf(at(h, 0), "namespace"):
		p.emitNamespace(r, h)
	}
}

func (phpGrammar) begins(*braceReader, token) bool { return false }
