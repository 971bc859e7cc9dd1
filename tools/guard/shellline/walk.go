package shellline

import (
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A collector goes through a line and collects the commands that it runs.
type collector struct {
	found Line
	depth int // of lines within lines
	inner int // lines parsed so far
	wraps int // programs so far that run others
	seen  map[string]bool
	// cwd is the directory to which the line has changed; "" is the one in which it began.
	cwd string
}

// An invocation is one command with its assignments and redirections.
type invocation struct {
	words   []word
	assigns []string
	redirs  []*syntax.Redirect
	piped   bool // it reads what another command prints
}

// markOpaque records why not everything is known that the line runs; the first reason stays.
func (c *collector) markOpaque(why string) {
	if c.found.Opaque == "" {
		c.found.Opaque = why
	}
}

// addHidden adds a command of which nothing is known, because the line runs something that cannot
// be seen; why says what.
func (c *collector) addHidden(why string) {
	c.markOpaque(why)
	if !c.seen[Hole] {
		c.seen[Hole] = true
		c.found.Commands = append(c.found.Commands, Command{Text: Hole})
	}
}

// deny records why the line should not be run at all; the first reason stays.
func (c *collector) deny(format string, args ...any) {
	if c.found.Denied == "" {
		c.found.Denied = strings.ReplaceAll(fmt.Sprintf(format, args...), Hole, "…")
	}
}

func (c *collector) collectStmts(list []*syntax.Stmt) {
	for _, s := range list {
		c.collectStmt(s, false)
	}
}

// collectStmt collects the commands of one statement; piped says that the statement reads what
// another one prints.
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
		cwd := c.cwd
		c.collectCompound(cmd, piped)
		if _, own := cmd.(*syntax.Subshell); own {
			c.cwd = cwd
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
		c.markOpaque("it computes something as it runs")
	}
	syntax.Walk(cmd, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			c.collectStmt(n, piped)
			return false
		case *syntax.Word:
			c.collectWord(n)
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
	c.found.Words = append(c.found.Words, read.text)
	if w != nil && !read.isKnown() {
		syntax.Walk(w, func(n syntax.Node) bool {
			if why := whyComputed(n); why != "" {
				c.markOpaque(why)
			}
			if s, ok := n.(*syntax.Stmt); ok {
				cwd := c.cwd
				c.collectStmt(s, false)
				c.cwd = cwd
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
		c.markOpaque("it fills a list as it runs")
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
			c.deny("it is a fork bomb: %s starts itself again and again", name.Value)
		}
	}
	c.collectStmt(f.Body, false)
}

// isForkBomb reports whether a function starts itself beside itself: in a pipe or in the
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

// collectCommand collects one command, and what it runs in turn.
func (c *collector) collectCommand(u invocation) {
	if len(u.words) > 0 && !u.words[0].isKnown() {
		c.markOpaque("which command it runs is known only as it runs")
	}
	c.record(u)
	for _, r := range u.redirs {
		if opensForWriting(r) {
			c.denyDevice(readWord(r.Word))
		}
	}
	if len(u.words) == 0 {
		return
	}
	c.denyProgram(u)
	c.collectInner(u)
}

// record adds a command to those found.
func (c *collector) record(u invocation) {
	var texts []string
	for _, w := range u.words {
		texts = append(texts, w.text)
	}
	plain := strings.Join(texts, " ")
	var files []string
	for _, r := range u.redirs {
		if target := readWord(r.Word); opensForWriting(r) && !isDiscarded(target) {
			files = append(files, "> "+target.text)
		}
	}
	cmd := Command{Writes: len(files) > 0}
	cmd.Text = joinNonEmpty(strings.Join(u.assigns, " "), plain, strings.Join(files, " "))
	if len(u.assigns) > 0 && plain != "" {
		cmd.Also = append(cmd.Also, joinNonEmpty(plain, strings.Join(files, " ")))
	}
	if len(texts) > 0 && strings.Contains(texts[0], "/") {
		cmd.Also = append(cmd.Also, joinNonEmpty(path.Base(texts[0]), strings.Join(texts[1:], " "), strings.Join(files, " ")))
	}
	if shorter := withoutGitOptions(u.words); shorter != "" {
		cmd.Also = append(cmd.Also, shorter)
	}
	if cmd.Text != "" && !c.seen[cmd.Text] {
		c.seen[cmd.Text] = true
		c.found.Commands = append(c.found.Commands, cmd)
	}
	if len(texts) > 0 && strings.ContainsAny(texts[0], " \t\n") {
		c.markOpaque("the name of a program in it has blanks")
	}
}

func joinNonEmpty(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

// opensForWriting reports whether a redirection opens a file for writing.
func opensForWriting(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplOut: // >&1 copies, >&file does not
		return strings.Trim(readWord(r.Word).text, "0123456789-") != ""
	}
	return true
}

// isDiscarded reports whether a redirection to this target changes no file, such as one to
// /dev/null.
func isDiscarded(target word) bool {
	switch target.text {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	return false
}
