package symbols

import "slices"

// cGrammar reads C and, if plus is set, C++.
type cGrammar struct{ plus bool }

// strip removes leading tokens, such as specifiers and attributes, that say nothing about the declared name. linkage
// says that one of them was extern "C", or extern with another language.
func (cGrammar) strip(head []token) (h []token, linkage bool) {
	for len(head) > 0 {
		switch {
		case isOneOf(head[0], "template") && at(head, 1).is("<"):
			head = head[afterAngles(head, 1):]
		case head[0].is("[") && at(head, 1).is("["):
			head = head[afterGroup(head, 0):]
		case isOneOf(head[0], "extern") && at(head, 1).kind == textToken:
			head, linkage = head[2:], true
		case isOneOf(head[0], "public", "private", "protected", "signals", "slots") && indexOutside(head[:min(len(head), 3)], 0, ":") > 0:
			head = head[indexOutside(head, 0, ":")+1:]
		case isOneOf(head[0], "__attribute__", "__declspec", "alignas", "explicit", "requires") && at(head, 1).is("("):
			head = head[afterGroup(head, 1):]
		case isOneOf(head[0], "static", "inline", "virtual", "explicit", "constexpr", "consteval", "constinit", "__extension__", "__inline", "__inline__", "mutable", "export", "_Noreturn", "thread_local"):
			head = head[1:]
		default:
			return head, linkage
		}
	}
	return head, linkage
}

func (g cGrammar) open(r *braceReader, head []token, inParens bool) scope {
	if inParens {
		return scope{kind: inNothing, continues: true}
	}
	h, linkage := g.strip(head)
	if linkage && len(h) == 0 {
		return scope{kind: inModule}
	}
	h = withoutWords(h, "typedef", "const", "volatile", "friend")
	equals := indexOutside(h, 0, "=")
	switch {
	case r.scope().kind == inEnum:
		return scope{kind: inNothing, continues: true}
	case isOneOf(at(h, 0), "namespace") || isOneOf(at(h, 1), "namespace"):
		return g.openNamespace(r, h)
	case equals < 0 && isOneOf(at(h, 0), "class", "struct", "union", "enum"):
		if s, ok := g.openType(r, h); ok {
			return s
		}
	case equals > 0 && indexOutside(h[:equals], 0, "operator") < 0:
		return scope{kind: inNothing, continues: true}
	}
	if last := at(h, len(h)-1); indexOutside(h, 0, ":") > 1 && (last.kind == wordToken || last.is(">")) && indexOutside(h, 0, "(") > 0 && !isOneOf(last, "const", "noexcept", "override", "final") {
		return scope{kind: inNothing, continues: true} // the value of a member before a constructor's body
	}
	if name, container, _, ok := g.function(h); ok {
		g.emitFunction(r, name, container)
		return scope{kind: inNothing}
	}
	return scope{kind: inNothing, continues: indexOutside(h, 0, "(") < 0 && len(h) > 0}
}

// openNamespace reads the beginning of a namespace declaration, which may open several nested ones.
func (cGrammar) openNamespace(r *braceReader, h []token) scope {
	s := scope{kind: inModule}
	for _, t := range h {
		if t.kind == wordToken && !isOneOf(t, "inline", "namespace") {
			r.emit(Module, t, r.container())
			s.name = t.text
		}
	}
	return s
}

// openType reads the beginning of a class, struct, union or enum. It returns false if there is none, for example
// for a function that returns one.
func (cGrammar) openType(r *braceReader, h []token) (scope, bool) {
	kind, in := map[string]string{"class": Class, "struct": Struct, "union": Struct, "enum": Enum}[h[0].text], inClass
	i := 1
	if kind == Enum {
		in = inEnum
		if isOneOf(at(h, 1), "class", "struct") {
			i++
		}
	}
	var name token
	for ; i < len(h); i++ {
		switch {
		case h[i].is(":"):
			i = len(h)
		case h[i].is("("):
			if !isOneOf(h[i-1], "__attribute__", "__declspec", "alignas") {
				return scope{}, false
			}
			i = afterGroup(h, i) - 1
			name = token{}
		case h[i].is("["):
			i = afterGroup(h, i) - 1
		case h[i].is("<"):
			i = afterAngles(h, i) - 1
		case h[i].kind == wordToken && !isOneOf(h[i], "final"):
			name = h[i]
		}
	}
	r.emit(kind, name, r.container())
	return scope{kind: in, name: name.text, continues: true}, true
}

// function returns the name of the function that a statement declares, its class, and whether a type precedes the
// name; ok is false if it declares none.
func (g cGrammar) function(h []token) (name token, container string, typed, ok bool) {
	for i := 0; i < len(h); i++ {
		switch {
		case isOneOf(h[i], "operator"):
			return g.operator(h, i)
		case h[i].is("<") && g.plus && i > 0 && h[i-1].kind == wordToken:
			if end := afterAngles(h, i); end < len(h) {
				i = end - 1
			}
		case h[i].is("="), h[i].is(":"), h[i].is("?"):
			return token{}, "", false, false
		case h[i].is("("):
			if i == 0 || h[i-1].kind != wordToken || isOneOf(h[i-1], "if", "for", "while", "switch", "return", "static_assert", "_Static_assert", "__asm__", "sizeof", "catch", "decltype", "noexcept", "defined") {
				if i > 0 && isOneOf(h[i-1], "decltype", "__attribute__", "noexcept", "alignas") {
					i = afterGroup(h, i) - 1
					continue
				}
				return token{}, "", false, false
			}
			end := afterGroup(h, i)
			if next := at(h, end); isOneOf(h[i-1], "__attribute__", "__declspec") || next.kind == wordToken &&
				!isOneOf(next, "const", "noexcept", "override", "final", "volatile", "throw", "try", "requires", "__attribute__", "mutable") && indexOutside(h, end, "(") > 0 {
				i = end - 1 // a macro before the declaration
				continue
			}
			container, before := g.qualifier(h, i-1)
			name = h[i-1]
			if at(h, i-2).is("~") {
				name.text = "~" + name.text
			}
			return name, container, before > 0, true
		}
	}
	return token{}, "", false, false
}

// operator reads the name of an operator at i; ok is false if its parameters don't follow.
func (g cGrammar) operator(h []token, i int) (name token, container string, typed, ok bool) {
	container, _ = g.qualifier(h, i)
	name = h[i]
	for j := i + 1; j < len(h); j++ {
		if h[j].is("(") && j > i+1 {
			return name, container, true, true
		}
		if !h[j].noSpaceBefore && h[j].kind == wordToken {
			name.text += " "
		}
		name.text += h[j].text
	}
	return token{}, "", false, false
}

// qualifier returns the class that qualifies a name with ::, and how many tokens precede both.
func (cGrammar) qualifier(h []token, name int) (container string, before int) {
	i := name
	if at(h, i-1).is("~") {
		i--
	}
	for at(h, i-1).is("::") {
		i -= 2
		if at(h, i).is(">") {
			depth := 0
			for ; i >= 0; i-- {
				if h[i].is(">") {
					depth++
				}
				if h[i].is("<") {
					depth--
				}
				if depth == 0 {
					break
				}
			}
			i--
		}
		if i < 0 {
			return container, 0
		}
		if container == "" {
			container = h[i].text
		}
	}
	return container, i
}

func (cGrammar) emitFunction(r *braceReader, name token, container string) {
	kind := Func
	if container == "" {
		container = r.container()
	}
	if r.scope().kind == inClass || container != r.container() {
		kind = Method
	}
	r.emit(kind, name, container)
}

func (g cGrammar) end(r *braceReader, head []token) {
	h, _ := g.strip(head)
	in := r.scope()
	switch {
	case in.kind == inEnum:
		r.emit(Const, at(h, 0), in.name)
		return
	case len(h) < 2 || isOneOf(h[0], "extern", "friend", "return", "goto", "static_assert") && !isPrototype(h):
		return
	case isOneOf(h[0], "typedef"):
		g.emitNames(r, Type, h[1:])
		return
	case isOneOf(h[0], "using"):
		if at(h, 2).is("=") {
			r.emit(Type, h[1], r.container())
		}
		return
	}
	if name, container, typed, ok := g.function(h); ok {
		if typed || in.kind == inClass && (name.text == in.name || name.text == "~"+in.name) {
			g.emitFunction(r, name, container)
		}
		return
	}
	if in.kind == inModule {
		kind := Var
		if isOneOf(at(head, 0), "const", "constexpr") || indexOutside(head, 0, "const") >= 0 && isOneOf(at(head, 0), "static") || indexOutside(head, 0, "constexpr") >= 0 {
			kind = Const
		}
		g.emitNames(r, kind, h)
	}
}

// isPrototype reports whether a statement with extern declares a function.
func isPrototype(h []token) bool {
	return isOneOf(h[0], "extern") && indexOutside(h, 0, "(") > 1
}

// emitNames adds the names at the end of a typedef or a declaration of variables.
func (g cGrammar) emitNames(r *braceReader, kind string, h []token) {
	if isOneOf(at(h, 0), "class", "struct", "union", "enum") && indexOutside(h, 0, "=", ",") < 0 && (len(h) <= 2 || h[len(h)-1].kind == groupToken) {
		return // no name after the type, or a type that is defined elsewhere
	}
	behind := slices.IndexFunc(h, func(t token) bool { return t.kind == groupToken })
	if behind > 0 && indexOutside(h[:behind], 0, "=") < 0 && isOneOf(h[0], "class", "struct", "union", "enum") {
		h = h[behind:] // without the base classes before it
	}
	for first := true; len(h) > 0; first = false {
		end := g.declaratorEnd(h)
		part := h[:end]
		if equals := indexOutside(part, 0, "="); equals >= 0 {
			part = part[:equals]
		}
		if name, ok := g.declaratorName(part); ok && (!first || len(part) > 1) {
			r.emit(kind, name, r.container())
		}
		h = h[min(end+1, len(h)):]
	}
}

// declaratorEnd returns the index at which the first of several declarators ends.
func (g cGrammar) declaratorEnd(h []token) int {
	for i := 0; i < len(h); {
		switch {
		case h[i].is(","):
			return i
		case h[i].is("("), h[i].is("["):
			i = afterGroup(h, i)
		case h[i].is("<") && g.plus:
			i = afterAngles(h, i)
		default:
			i++
		}
	}
	return len(h)
}

// declaratorName returns the name that one declarator declares; false if it declares none.
func (cGrammar) declaratorName(part []token) (token, bool) {
	for i := range part {
		if part[i].is("(") && at(part, i+1).is("*") { // a pointer to a function
			for j := i + 1; j < len(part); j++ {
				if part[j].kind == wordToken && !isOneOf(part[j], "const") {
					return part[j], true
				}
			}
		}
	}
	for i := len(part) - 1; i >= 0; i-- {
		switch {
		case part[i].is("]"), part[i].is(")"):
			depth := 0
			for ; i >= 0; i-- {
				if part[i].is("]") || part[i].is(")") {
					depth++
				}
				if part[i].is("[") || part[i].is("(") {
					depth--
				}
				if depth == 0 {
					break
				}
			}
		case part[i].kind == wordToken && !isOneOf(part[i], "__attribute__"):
			return part[i], true
		case part[i].kind == groupToken:
			if i != len(part)-1 { // an initial value in braces
				return token{}, false
			}
		}
	}
	return token{}, false
}

func (cGrammar) begins(*braceReader, token) bool { return false }
