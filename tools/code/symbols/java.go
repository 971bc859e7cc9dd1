package symbols

// javaGrammar reads Java.
type javaGrammar struct{}

// strip removes annotations and modifiers. isConst reports that these were static and final.
func (javaGrammar) strip(head []token) (h []token, isConst bool) {
	static, final := false, false
	for len(head) > 0 {
		switch {
		case head[0].is("@") && !isOneOf(at(head, 1), "interface"):
			i := 2
			for at(head, i).is(".") {
				i += 2
			}
			if at(head, i).is("(") {
				i = afterGroup(head, i)
			}
			head = head[min(i, len(head)):]
			continue
		case head[0].is("<"):
			head = head[afterAngles(head, 0):]
			continue
		case head[0].kind == groupToken:
			head = head[1:]
			continue
		case isOneOf(head[0], "static"):
			static = true
		case isOneOf(head[0], "final"):
			final = true
		case head[0].text == "non" && at(head, 1).is("-"):
			head = head[2:]
		case !isOneOf(head[0], "public", "private", "protected", "abstract", "native", "synchronized", "transient", "volatile", "strictfp", "default", "sealed"):
			return head, static && final
		}
		head = head[1:]
	}
	return head, static && final
}

func (j javaGrammar) open(r *braceReader, head []token, inParens bool) scope {
	if inParens {
		return scope{kind: inNothing, continues: true}
	}
	h, _ := j.strip(head)
	if h0 := at(h, 0); h0.is("@") {
		h = h[1:]
	}
	in := r.scope()
	switch {
	case isOneOf(at(h, 0), "class", "interface", "enum", "record") && at(h, 1).kind == wordToken && (h[0].text != "record" || at(h, 2).is("(") || at(h, 2).is("<")):
		kind, scoped := Class, inClass
		switch h[0].text {
		case "interface":
			kind = Interface
		case "enum":
			kind, scoped = Enum, inEnum
		}
		r.emit(kind, h[1], r.container())
		return scope{kind: scoped, name: h[1].text}
	case in.kind == inEnum:
		return scope{kind: inNothing, continues: true} // a constant with a body
	case indexOutside(h, 0, "=") >= 0:
		j.end(r, head)
		return scope{kind: inNothing, continues: true}
	case in.kind == inClass:
		j.emitMethod(r, h)
		if in.name != "" && len(h) == 1 && h[0].text == in.name { // a record's compact constructor
			r.emit(Method, h[0], in.name)
		}
	}
	return scope{kind: inNothing}
}

// emitMethod adds the method that a statement declares; false if it declares none.
func (javaGrammar) emitMethod(r *braceReader, h []token) bool {
	paren := indexOutside(h, 0, "(")
	if paren < 1 || indexOutside(h[:paren], 0, "=", ".") >= 0 && paren == 1 {
		return false
	}
	name := h[paren-1]
	if paren == 1 && name.text != r.scope().name { // only a constructor has no type before its name
		return false
	}
	r.emit(Method, name, r.scope().name)
	return true
}

func (j javaGrammar) end(r *braceReader, head []token) {
	h, isConst := j.strip(head)
	in := r.scope()
	if in.kind != inClass || len(h) < 2 || isOneOf(h[0], "package", "import", "return", "throw") {
		return
	}
	equals := indexOutside(h, 0, "=")
	if equals < 0 && j.emitMethod(r, h) {
		return
	}
	if equals > 1 && isConst {
		r.emit(Const, h[equals-1], in.name)
	}
}

func (javaGrammar) begins(*braceReader, token) bool { return false }
