package symbols

import "slices"

// Limits of how much of one statement is read, and of how many levels of braces are tracked.
const (
	maxHead  = 200 // tokens
	maxDepth = 200
)

// A grammar knows what the statements of a language declare.
type grammar interface {
	// open reads the tokens before a brace, and says what the braces contain. inParens says that the brace is
	// inside parentheses.
	open(r *braceReader, head []token, inParens bool) scope
	// end reads a statement that has no braces, or the tokens after them.
	end(r *braceReader, head []token)
	// begins reports whether a token begins a new statement although nothing has ended the previous one.
	begins(r *braceReader, t token) bool
}

// The kinds of scopes.
const (
	inModule   = iota // the file, a module or a namespace: everything is declared here
	inClass           // a type with methods
	inFunction        // a function: only the functions and types in it count
	inObject          // an object of JavaScript, whose members are separated by commas
	inEnum            // names separated by commas
	inNothing         // nothing in it counts
)

// A scope is the code between two braces.
type scope struct {
	kind      int
	name      string // of the type or the module
	continues bool   // the statement continues after the braces

	head   []token // the statement before the brace
	parens int     // how many of the statement's parentheses are open
}

// A braceReader finds the symbols of a text whose language has braces.
type braceReader struct {
	grammar
	head       []token
	parens     int
	stack      []scope
	extraDepth int // how many braces are open beyond maxDepth
	saved      []snapshot
	found      []Symbol
	emitted    map[Symbol]bool
}

// A snapshot is the state of a reader at an #if of the preprocessor, from which each branch begins.
type snapshot struct {
	head                  []token
	parens, depth, deeper int
}

// braces returns a function that finds the symbols of a language with braces.
func braces(g grammar, s syntax) func(src string) []Symbol {
	return func(src string) []Symbol {
		r := &braceReader{grammar: g, stack: []scope{{kind: inModule}}, emitted: map[Symbol]bool{}}
		l := newLexer(src, s)
		for t, ok := l.next(); ok && len(r.found) < MaxSymbols; t, ok = l.next() {
			r.take(t)
		}
		r.finish()
		return r.found
	}
}

// scope returns the innermost scope.
func (r *braceReader) scope() scope { return r.stack[len(r.stack)-1] }

// container returns the name of the innermost type or module.
func (r *braceReader) container() string {
	for i := len(r.stack) - 1; i >= 0; i-- {
		if r.stack[i].name != "" {
			return r.stack[i].name
		}
	}
	return ""
}

// emit adds a symbol, unless it was added before.
func (r *braceReader) emit(kind string, name token, container string) {
	s := Symbol{Name: name.text, Kind: kind, Container: container, Line: name.line}
	if name.kind != wordToken || s.Name == "" || s.Name[0] >= '0' && s.Name[0] <= '9' || r.emitted[s] {
		return
	}
	r.emitted[s] = true
	r.found = append(r.found, s)
}

// take reads one token.
func (r *braceReader) take(t token) {
	switch {
	case t.kind == directiveToken:
		r.takeDirective(t)
	case r.extraDepth > 0 && !t.is("{") && !t.is("}"):
	case t.is("{"):
		r.takeOpen()
	case t.is("}"):
		r.takeClose(t)
	case t.is(";") && r.parens == 0:
		r.finish()
		if in := &r.stack[len(r.stack)-1]; in.kind == inEnum {
			in.kind = inClass // the constants of a Java enum end here
		}
	case t.is(",") && r.parens == 0 && (r.scope().kind == inObject || r.scope().kind == inEnum):
		r.finish()
	default:
		if r.parens == 0 && len(r.head) > 0 && r.begins(r, t) {
			r.finish()
		}
		r.add(t)
	}
}

// add adds a token to the current statement.
func (r *braceReader) add(t token) {
	switch {
	case t.is("("), t.is("["):
		r.parens++
	case (t.is(")") || t.is("]")) && r.parens > 0:
		r.parens--
	}
	if len(r.head) < maxHead && r.scope().kind != inNothing {
		r.head = append(r.head, t)
	}
}

// finish has the grammar read the statement that has ended, and begins another one.
func (r *braceReader) finish() {
	if len(r.head) > 0 && r.scope().kind != inNothing {
		r.end(r, r.head)
	}
	r.head, r.parens = nil, 0
}

func (r *braceReader) takeOpen() {
	if len(r.stack) > maxDepth {
		r.extraDepth++
		return
	}
	next := scope{kind: inNothing, continues: true}
	if r.scope().kind != inNothing {
		next = r.open(r, r.head, r.parens > 0)
	}
	if next.continues {
		next.head, next.parens = r.head, r.parens
	}
	r.stack = append(r.stack, next)
	r.head, r.parens = nil, 0
}

func (r *braceReader) takeClose(t token) {
	if r.extraDepth > 0 {
		r.extraDepth--
		return
	}
	r.finish()
	if len(r.stack) == 1 {
		return // one closing brace too many
	}
	closed := r.scope()
	r.stack = r.stack[:len(r.stack)-1]
	r.head, r.parens = closed.head, closed.parens
	if closed.continues {
		r.add(token{kind: groupToken, text: "{}", line: t.line})
	}
}

// takeDirective reads a preprocessor line. It reads the code between #else and #endif as if the code before #else
// weren't there, so that braces that are in both branches are counted once.
func (r *braceReader) takeDirective(t token) {
	l := newLexer(t.text[1:], syntax{slashComments: true})
	name, _ := l.next()
	switch name.text {
	case "define":
		if macro, ok := l.next(); ok {
			macro.line += t.line - 1
			r.emit(Macro, macro, "")
		}
	case "if", "ifdef", "ifndef":
		if len(r.saved) < maxDepth {
			r.saved = append(r.saved, snapshot{slices.Clone(r.head), r.parens, len(r.stack), r.extraDepth})
		}
	case "else", "elif", "elifdef", "elifndef":
		if len(r.saved) == 0 {
			return
		}
		at := r.saved[len(r.saved)-1]
		if len(r.stack) >= at.depth {
			r.stack, r.head, r.parens, r.extraDepth = r.stack[:at.depth], slices.Clone(at.head), at.parens, at.deeper
		}
	case "endif":
		if len(r.saved) > 0 {
			r.saved = r.saved[:len(r.saved)-1]
		}
	}
}

// afterGroup returns the index after the parentheses or brackets that open at i.
func afterGroup(head []token, i int) int {
	depth := 0
	for ; i < len(head); i++ {
		switch {
		case head[i].is("("), head[i].is("["):
			depth++
		case head[i].is(")"), head[i].is("]"):
			depth--
		}
		if depth <= 0 {
			return i + 1
		}
	}
	return i
}

// afterAngles returns the index after the angle brackets that open at i.
func afterAngles(head []token, i int) int {
	depth := 0
	for ; i < len(head); i++ {
		switch {
		case head[i].is("<"):
			depth++
		case head[i].is("<<"):
			depth += 2
		case head[i].is(">"):
			depth--
		}
		if depth <= 0 {
			return i + 1
		}
	}
	return i
}

// indexOutside returns the index of the first of some marks at or after i that is not inside parentheses; -1 if
// there is none.
func indexOutside(head []token, i int, marks ...string) int {
	for i < len(head) {
		if slices.ContainsFunc(marks, head[i].is) {
			return i
		}
		if head[i].is("(") || head[i].is("[") {
			i = afterGroup(head, i)
			continue
		}
		i++
	}
	return -1
}

// at returns a token of a statement, or an empty token after its end.
func at(head []token, i int) token {
	if i < 0 || i >= len(head) {
		return token{}
	}
	return head[i]
}

// isOneOf reports whether a token is one of some words.
func isOneOf(t token, words ...string) bool {
	return t.kind == wordToken && slices.Contains(words, t.text)
}

// withoutWords returns a statement without certain words at its beginning.
func withoutWords(head []token, words ...string) []token {
	for len(head) > 0 && isOneOf(head[0], words...) {
		head = head[1:]
	}
	return head
}
