package symbols

// scriptGrammar reads JavaScript and TypeScript.
type scriptGrammar struct{ typed bool }

func scriptSyntax() syntax {
	return syntax{slashComments: true, templateStrings: true, regexLiterals: true}
}

// strip removes decorators and words that don't matter for what is declared.
func (scriptGrammar) strip(head []token) []token {
	for {
		head = withoutWords(head, "export", "default", "declare", "abstract", "async")
		if !at(head, 0).is("@") {
			return head
		}
		i := 2
		for at(head, i).is(".") {
			i += 2
		}
		if at(head, i).is("(") {
			i = afterGroup(head, i)
		}
		head = head[min(i, len(head)):]
	}
}

func (s scriptGrammar) open(r *braceReader, head []token, inParens bool) scope {
	if inParens {
		return scope{kind: inFunction, continues: true}
	}
	switch r.scope().kind {
	case inClass, inObject:
		return s.openMember(r, head)
	}
	h := s.strip(head)
	if isOneOf(at(h, 0), "const") && isOneOf(at(h, 1), "enum") {
		h = h[1:]
	}
	name := at(h, 1)
	switch {
	case len(head) > 0 && len(h) == 0: // export default {
		return scope{kind: inObject}
	case isOneOf(at(h, 0), "function"):
		if name.is("*") {
			name = at(h, 2)
		}
		r.emit(Func, name, r.container())
		return scope{kind: inFunction}
	case isOneOf(at(h, 0), "class"):
		return s.openClass(r, h)
	case isOneOf(at(h, 0), "const", "let", "var"):
		return s.openValue(r, h)
	case s.typed && name.kind == wordToken && isOneOf(at(h, 0), "interface", "enum", "type"):
		r.emit(map[string]string{"interface": Interface, "enum": Enum, "type": Type}[h[0].text], name, r.container())
		if h[0].text == "interface" {
			return scope{kind: inClass, name: name.text}
		}
		return scope{kind: inNothing, continues: h[0].text == "type"}
	case s.typed && isOneOf(at(h, 0), "namespace", "module", "global"):
		return s.openModule(r, h)
	case indexOutside(h, 0, "=") > 0:
		return s.openAssigned(r, h, indexOutside(h, 0, "="))
	}
	return scope{kind: inFunction}
}

func (scriptGrammar) openClass(r *braceReader, h []token) scope {
	if name := at(h, 1); name.kind == wordToken && !isOneOf(name, "extends", "implements") {
		r.emit(Class, name, r.container())
		return scope{kind: inClass, name: name.text}
	}
	return scope{kind: inClass}
}

func (scriptGrammar) openModule(r *braceReader, h []token) scope {
	last := at(h, len(h)-1)
	r.emit(Module, last, r.container())
	if last.kind != wordToken {
		return scope{kind: inModule}
	}
	return scope{kind: inModule, name: last.text}
}

// openMember reads a method of a class or an object.
func (s scriptGrammar) openMember(r *braceReader, head []token) scope {
	name, value, isMethod := s.member(head)
	switch {
	case isMethod || isFunctionValue(value):
		r.emit(Method, name, r.scope().name)
		return scope{kind: inFunction, continues: !isMethod && r.scope().kind == inClass}
	case len(value) == 0 && len(head) > 1 && r.scope().kind == inObject && name.kind == wordToken:
		return scope{kind: inObject, name: name.text}
	case len(value) == 0:
		return scope{kind: inFunction} // static { … }
	}
	return scope{kind: inNothing, continues: true}
}

// member returns the name of a member, its value, and whether it is a method.
func (s scriptGrammar) member(head []token) (name token, value []token, isMethod bool) {
	h := s.strip(head)
	for len(h) > 1 && (h[1].kind == wordToken || h[1].is("#") || h[1].is("*") || h[1].is("[")) &&
		isOneOf(h[0], "static", "async", "get", "set", "public", "private", "protected", "readonly", "override", "abstract", "accessor", "declare") {
		h = h[1:]
	}
	for len(h) > 0 && (h[0].is("#") || h[0].is("*")) {
		h = h[1:]
	}
	name = at(h, 0)
	i := 1
	for at(h, i).is("?") || at(h, i).is("!") {
		i++
	}
	if at(h, i).is("<") {
		i = afterAngles(h, i)
	}
	if at(h, i).is("(") {
		return name, nil, name.kind == wordToken && !isOneOf(name, "if", "for", "while", "switch", "catch", "with", "function")
	}
	if equals := indexOutside(h, 1, "="); equals > 0 {
		return name, h[equals+1:], false
	}
	if at(h, 1).is(":") {
		return name, h[2:], false
	}
	return name, nil, false
}

// isFunctionValue reports whether a value is a function.
func isFunctionValue(value []token) bool {
	value = withoutWords(value, "async")
	if isOneOf(at(value, 0), "function") {
		return true
	}
	if !at(value, 0).is("(") && !at(value, 0).is("<") && !at(value, 1).is("=>") {
		return false
	}
	return indexOutside(value, 0, "=>") >= 0
}

// openValue reads a declaration whose last value contains a brace.
func (s scriptGrammar) openValue(r *braceReader, h []token) scope {
	name, value := s.declare(r, h)
	switch {
	case isOneOf(at(value, 0), "class"):
		return scope{kind: inClass, name: name.text, continues: true}
	case len(value) == 0 && name.kind == wordToken && r.scope().kind == inModule:
		return scope{kind: inObject, name: name.text, continues: true}
	case isFunctionValue(value):
		return scope{kind: inFunction, continues: true}
	case name.kind == wordToken:
		return scope{kind: inFunction, continues: true}
	}
	return scope{kind: inNothing, continues: true} // an object is destructured into names
}

// declare reads what const, let or var declares, and returns the last name and its value.
func (s scriptGrammar) declare(r *braceReader, h []token) (name token, value []token) {
	kind := Var
	if h[0].text == "const" {
		kind = Const
	}
	for i := 1; i < len(h); {
		name, value = h[i], nil
		if name.kind != wordToken {
			return token{}, nil
		}
		i++
		if at(h, i).is("!") {
			i++
		}
		if at(h, i).is(":") {
			for i < len(h) && !h[i].is("=") && !h[i].is(",") {
				switch {
				case h[i].is("<"):
					i = afterAngles(h, i)
				case h[i].is("("), h[i].is("["):
					i = afterGroup(h, i)
				default:
					i++
				}
			}
		}
		if i < len(h) && !h[i].is("=") && !h[i].is(",") {
			if isOneOf(h[i], "of", "in") {
				return token{}, nil
			}
			break // not a declaration
		}
		end := len(h)
		if at(h, i).is("=") {
			if comma := indexOutside(h, i, ","); comma > 0 {
				end = comma
			}
			value = h[i+1 : end]
		} else if i < len(h) {
			end = i
		}
		s.emitDeclared(r, kind, name, value)
		i = end + 1
	}
	return name, value
}

// emitDeclared adds the name that const, let or var declares. Inside a function only functions count.
func (scriptGrammar) emitDeclared(r *braceReader, kind string, name token, value []token) {
	switch {
	case isFunctionValue(value):
		kind = Func
	case r.scope().kind != inModule:
		return
	case isOneOf(at(value, 0), "class"):
		kind = Class
	}
	r.emit(kind, name, r.container())
}

// openAssigned reads an assignment whose value contains a brace, such as module.exports = { or A.prototype.b =
// function () {.
func (s scriptGrammar) openAssigned(r *braceReader, h []token, equals int) scope {
	value := h[equals+1:]
	name, container := s.assigned(h[:equals])
	switch {
	case isOneOf(at(value, 0), "class"):
		if at(value, 1).kind == wordToken {
			return s.openClass(r, value)
		}
		return scope{kind: inClass, name: name.text, continues: true}
	case isFunctionValue(value):
		s.emitAssigned(r, name, container)
		return scope{kind: inFunction, continues: true}
	case len(value) == 0 && isOneOf(name, "prototype", "exports"):
		return scope{kind: inObject, name: container, continues: true}
	}
	return scope{kind: inFunction, continues: true}
}

// assigned returns the name that an assignment sets, and the object or class that it is a member of.
func (scriptGrammar) assigned(left []token) (name token, container string) {
	for i := 1; i < len(left); i += 2 {
		if !left[i].is(".") {
			return token{}, ""
		}
	}
	if len(left)%2 == 0 {
		return token{}, ""
	}
	name = at(left, len(left)-1)
	before := left[:len(left)-1]
	for len(before) >= 2 {
		owner := before[len(before)-2]
		if !isOneOf(owner, "prototype", "exports", "module", "window", "globalThis", "this", "self") {
			return name, owner.text
		}
		before = before[:len(before)-2]
	}
	return name, ""
}

func (scriptGrammar) emitAssigned(r *braceReader, name token, container string) {
	if container != "" {
		r.emit(Method, name, container)
		return
	}
	r.emit(Func, name, "")
}

func (s scriptGrammar) end(r *braceReader, head []token) {
	switch r.scope().kind {
	case inClass, inObject:
		if name, value, isMethod := s.member(head); isMethod && r.scope().kind == inClass || isFunctionValue(value) {
			r.emit(Method, name, r.scope().name)
		}
		return
	}
	h := s.strip(head)
	switch {
	case len(h) < 2:
	case isOneOf(h[0], "const", "let", "var"):
		s.declare(r, h)
	case isOneOf(h[0], "function") && s.typed:
		r.emit(Func, h[1], r.container())
	case isOneOf(h[0], "type") && s.typed && (at(h, 2).is("=") || at(h, 2).is("<")):
		r.emit(Type, h[1], r.container())
	case len(h) > 3 && indexOutside(h, 0, "=") > 2 && isFunctionValue(h[indexOutside(h, 0, "=")+1:]):
		name, container := s.assigned(h[:indexOutside(h, 0, "=")])
		s.emitAssigned(r, name, container)
	}
}

func (s scriptGrammar) begins(r *braceReader, t token) bool {
	if !t.firstOnLine {
		return false
	}
	last := r.head[len(r.head)-1]
	switch r.scope().kind {
	case inObject:
		return false
	case inClass:
		if t.is("[") || t.is("#") || t.is("*") || t.is("@") {
			return last.kind != punctToken || last.is(")") || last.is("]")
		}
	}
	if t.kind != wordToken || isOneOf(t, "extends", "implements", "in", "of", "instanceof", "as", "is", "satisfies") {
		return false
	}
	if last.kind == wordToken {
		return !isOneOf(last, "extends", "implements", "return", "typeof", "new", "async", "static", "export", "default", "function", "class")
	}
	return last.kind != punctToken || last.is(")") || last.is("]") || last.is(">")
}
