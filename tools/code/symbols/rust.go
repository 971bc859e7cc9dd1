package symbols

// rustGrammar reads Rust.
type rustGrammar struct{}

// strip removes attributes, visibility and the qualifiers that may precede fn.
func (rustGrammar) strip(head []token) []token {
	for len(head) > 0 {
		switch {
		case head[0].is("#"):
			i := 1
			if at(head, i).is("!") {
				i++
			}
			head = head[min(afterGroup(head, i), len(head)):]
		case isOneOf(head[0], "pub") && at(head, 1).is("("):
			head = head[afterGroup(head, 1):]
		case isOneOf(head[0], "pub", "unsafe", "async", "default", "auto"):
			head = head[1:]
		case isOneOf(head[0], "const") && isOneOf(at(head, 1), "fn", "unsafe", "async", "extern"):
			head = head[1:]
		case isOneOf(head[0], "extern") && isOneOf(at(head, 1), "fn"):
			head = head[1:]
		case isOneOf(head[0], "extern") && at(head, 1).kind == textToken && len(head) > 2:
			head = head[2:]
		default:
			return head
		}
	}
	return head
}

func (u rustGrammar) open(r *braceReader, head []token, inParens bool) scope {
	if inParens {
		return scope{kind: inNothing, continues: true}
	}
	h := u.strip(head)
	name := at(h, 1)
	switch {
	case isOneOf(at(h, 0), "macro_rules") && name.is("!"):
		r.emit(Macro, at(h, 2), "")
		return scope{kind: inNothing}
	case isOneOf(at(h, 0), "impl"):
		return scope{kind: inClass, name: implementedType(h)}
	case isOneOf(at(h, 0), "extern"):
		return scope{kind: inModule, name: r.scope().name}
	case !u.emitItem(r, h):
		if r.scope().kind == inFunction {
			return scope{kind: inFunction}
		}
		return scope{kind: inNothing}
	}
	switch h[0].text {
	case "fn":
		return scope{kind: inFunction}
	case "mod":
		return scope{kind: inModule, name: name.text}
	case "trait":
		return scope{kind: inClass, name: name.text}
	case "const", "static", "type":
		return scope{kind: inNothing, continues: true}
	}
	return scope{kind: inNothing}
}

// emitItem adds the symbol that an item declares; false if it declares none.
func (rustGrammar) emitItem(r *braceReader, h []token) bool {
	kind, ok := map[string]string{
		"fn": Func, "struct": Struct, "union": Struct, "enum": Enum, "trait": Interface, "mod": Module, "type": Type, "const": Const, "static": Var,
	}[at(h, 0).text]
	name := at(h, 1)
	if isOneOf(name, "mut", "ref") {
		name = at(h, 2)
	}
	if !ok || name.kind != wordToken || h[0].text == "union" && !at(h, 2).is("<") && len(h) > 2 {
		return false
	}
	in := r.scope()
	if in.kind == inFunction && (kind == Const || kind == Var) {
		return true
	}
	if kind == Func && in.kind == inClass {
		kind = Method
	}
	r.emit(kind, name, r.container())
	return true
}

// implementedType returns the type that an impl block implements.
func implementedType(h []token) string {
	i := 1
	if at(h, i).is("<") {
		i = afterAngles(h, i)
	}
	for j := i; j < len(h); { // impl Trait for Type
		switch {
		case h[j].is("<"):
			j = afterAngles(h, j)
			continue
		case isOneOf(h[j], "for"):
			i = j + 1
		case isOneOf(h[j], "where"):
			j = len(h)
		}
		j++
	}
	name := ""
	for ; i < len(h); i++ {
		switch {
		case isOneOf(h[i], "dyn", "mut"), h[i].is("&"), h[i].is("::"), h[i].is("["), h[i].is("("), h[i].kind == textToken:
		case h[i].kind == wordToken && !isOneOf(h[i], "where"):
			name = h[i].text
		default:
			return name
		}
	}
	return name
}

func (u rustGrammar) end(r *braceReader, head []token) {
	u.emitItem(r, u.strip(head))
}

func (rustGrammar) begins(*braceReader, token) bool { return false }
