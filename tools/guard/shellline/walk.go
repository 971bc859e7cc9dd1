package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A collector walks through a line and collects the commands that it runs.
type collector struct {
	*findings
	denier       *denier
	interpreters interpreters
	directory    *directory

	depth           int // of lines within lines
	innerLines      int // lines parsed so far
	wrapperPrograms int // programs so far that run others
	// evaluatesExpressions says that the shell evaluates the values of variables as expressions.
	evaluatesExpressions bool
	// isGuess says that the line is only a guess at what an unknown program might run.
	isGuess bool
}

// newCollector makes an empty collector.
func newCollector() *collector {
	found, at := &findings{seen: map[string]bool{}}, new(directory)
	return &collector{findings: found, denier: &denier{findings: found, directory: at}, interpreters: interpreters{found}, directory: at}
}

// collectLine collects the commands that a line runs.
func (c *collector) collectLine(line string) {
	if c.depth >= maxDepth || c.innerLines >= maxInner {
		c.addHidden("it nests command lines too deeply")
		return
	}
	switch {
	case strings.Contains(line, Hole):
		c.addHidden("it contains a NUL byte")
		return
	case len(line) > maxBytes, nestingBound(line) > maxNesting:
		c.addHidden("it's too long to inspect")
		return
	}
	c.depth++
	c.innerLines++
	defer func() { c.depth-- }()
	parsed := 0
	for _, dialect := range dialectsOf(line) {
		file, err := syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(line), "")
		if err != nil {
			continue
		}
		parsed++
		path := c.directory.path
		c.collectStmts(file.Stmts)
		c.directory.path = path
	}
	if parsed == 0 {
		c.addHidden("it can't be read as a shell line")
	}
}

// dialectsOf returns the shell dialects in which a line could have different meanings.
func dialectsOf(line string) []syntax.LangVariant {
	for _, mark := range []string{"(", "[[", "$'", "&>", "|&", "<<<"} {
		if strings.Contains(line, mark) {
			return []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}
		}
	}
	return []syntax.LangVariant{syntax.LangBash}
}

func (c *collector) collectStmts(list []*syntax.Stmt) {
	for _, s := range list {
		c.collectStmt(s, false)
	}
}

// collectStmt collects the commands of one statement; piped says that the statement reads the
// output of another one.
func (c *collector) collectStmt(s *syntax.Stmt, piped bool) {
	if s == nil {
		return
	}
	for _, r := range s.Redirs {
		c.collectWords(r)
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		c.collectCall(cmd, s.Redirs, piped)
		return
	case *syntax.BinaryCmd:
		c.collectStmt(cmd.X, piped)
		c.collectStmt(cmd.Y, cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll)
	case *syntax.FuncDecl:
		c.collectFunction(cmd)
	case *syntax.DeclClause:
		c.collectDeclaration(cmd)
	case nil:
	default:
		path := c.directory.path
		c.collectCompound(cmd, piped)
		if _, own := cmd.(*syntax.Subshell); own {
			c.directory.path = path
		}
	}
	if len(s.Redirs) > 0 {
		c.collectCommand(invocation{redirs: s.Redirs})
	}
}

// collectCompound collects the commands of a loop, a block or a condition.
func (c *collector) collectCompound(cmd syntax.Command, piped bool) {
	switch cmd.(type) {
	case *syntax.ArithmCmd, *syntax.LetClause:
		c.markOpaque("it computes something while it runs")
		c.evaluatesExpressions = true
	case *syntax.TestClause:
		c.evaluatesExpressions = true
	}
	syntax.Walk(cmd, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			c.collectStmt(n, piped)
			return false
		case *syntax.Word:
			c.checkIndex(c.collectWord(n))
			return false
		}
		return true
	})
}

// collectWords reads all words of a node, and collects the commands within them.
func (c *collector) collectWords(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			c.collectWord(w)
			return false
		}
		return true
	})
}

// collectWord reads a word, and collects the commands within it.
func (c *collector) collectWord(w *syntax.Word) word {
	read := readWord(w)
	c.line.Words = append(c.line.Words, read.text)
	if w != nil && !read.isKnown() {
		syntax.Walk(w, func(n syntax.Node) bool {
			if why := whyComputed(n); why != "" {
				c.markOpaque(why)
			}
			switch always, mayDo := runsCode(n); {
			case always:
				c.addHidden("it runs whatever is in a variable")
			case mayDo:
				c.evaluatesExpressions = true
			}
			if s, ok := n.(*syntax.Stmt); ok {
				path := c.directory.path
				c.collectStmt(s, false)
				c.directory.path = path
				return false
			}
			return true
		})
	}
	return read
}

// collectCall collects a simple command with its assignments and redirections.
func (c *collector) collectCall(call *syntax.CallExpr, redirs []*syntax.Redirect, piped bool) {
	u := invocation{redirs: redirs, piped: piped}
	for _, a := range call.Assigns {
		u.assigns = append(u.assigns, c.readAssign(a))
	}
	for _, w := range call.Args {
		u.words = append(u.words, c.collectWord(w))
	}
	c.collectCommand(u)
}

// readAssign returns an assignment as text, and collects the commands within it.
func (c *collector) readAssign(a *syntax.Assign) string {
	if a.Index != nil || a.Array != nil {
		c.markOpaque("it fills an array while it runs")
		c.collectWords(a)
	}
	name := ""
	if a.Name != nil {
		name = a.Name.Value
	}
	value := c.collectWord(a.Value).text
	if a.Naked {
		return name + value
	}
	if a.Index != nil {
		c.evaluatesExpressions = true
	}
	c.checkVariable(name, value)
	return name + "=" + value
}

// collectDeclaration collects a command such as export or declare.
func (c *collector) collectDeclaration(d *syntax.DeclClause) {
	u := invocation{words: []word{literal(d.Variant.Value)}}
	for _, a := range d.Args {
		u.words = append(u.words, word{text: c.readAssign(a)})
	}
	c.collectCommand(u)
}

// collectFunction collects the commands in the body of a function, and denies fork bombs.
func (c *collector) collectFunction(f *syntax.FuncDecl) {
	names := f.Names
	if f.Name != nil {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if isForkBomb(f.Body, name.Value) {
			c.deny("it's a fork bomb: %s starts itself again and again", name.Value)
		}
	}
	c.collectStmt(f.Body, false)
}

// isForkBomb reports whether a function starts itself again without waiting: in a pipe or in the
// background.
func isForkBomb(body *syntax.Stmt, name string) bool {
	calls, beside := false, false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				calls = calls || readWord(n.Args[0]).text == name
			}
		case *syntax.Stmt:
			beside = beside || n.Background || n.Coprocess
		case *syntax.BinaryCmd:
			beside = beside || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.CoprocClause:
			beside = true
		}
		return true
	})
	return calls && beside
}

// collectCommand collects one command, and the commands that it runs in turn.
func (c *collector) collectCommand(u invocation) {
	if len(u.words) > 0 && !u.words[0].isKnown() {
		c.markOpaque("you can't tell which command it runs until it runs")
	}
	c.record(u)
	for _, r := range u.redirs {
		if opensForWriting(r) {
			c.denier.denyDevice(readWord(r.Word))
		}
	}
	if len(u.words) == 0 {
		return
	}
	c.denier.denyProgram(u)
	c.collectInner(u)
}
