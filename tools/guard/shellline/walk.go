package shellline

import (
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A collector goes through a line and notes what it runs.
type collector struct {
	found Line
	depth int // of lines within lines
	inner int // lines looked through
	wraps int // programs that run others
	seen  map[string]bool
	// cwd is where the line has changed to; "" is where it began.
	cwd string
}

// A use is one command with what stands around it.
type use struct {
	words   []word
	assigns []string
	redirs  []*syntax.Redirect
	piped   bool // it reads what another command prints
}

func (c *collector) opaque(why string) {
	if c.found.Opaque == "" {
		c.found.Opaque = why
	}
}

// hidden says that the line runs something that is none of its commands: one that
// could be any.
func (c *collector) hidden(why string) {
	c.opaque(why)
	if !c.seen[Hole] {
		c.seen[Hole] = true
		c.found.Commands = append(c.found.Commands, Command{Text: Hole})
	}
}

func (c *collector) deny(format string, args ...any) {
	if c.found.Denied == "" {
		c.found.Denied = strings.ReplaceAll(fmt.Sprintf(format, args...), Hole, "…")
	}
}

func (c *collector) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		c.stmt(s, false)
	}
}

// stmt takes one statement; piped says that it reads what another prints.
func (c *collector) stmt(s *syntax.Stmt, piped bool) {
	if s == nil {
		return
	}
	for _, r := range s.Redirs {
		c.node(r)
	}
	switch cmd := s.Cmd.(type) {
	case *syntax.CallExpr:
		c.call(cmd, s.Redirs, piped)
		return
	case *syntax.BinaryCmd:
		c.stmt(cmd.X, piped)
		c.stmt(cmd.Y, cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll)
	case *syntax.FuncDecl:
		c.function(cmd)
	case *syntax.DeclClause:
		c.declare(cmd)
	case nil:
	default:
		cwd := c.cwd
		c.compound(cmd, piped)
		if _, own := cmd.(*syntax.Subshell); own {
			c.cwd = cwd
		}
	}
	if len(s.Redirs) > 0 {
		c.command(use{redirs: s.Redirs})
	}
}

// compound goes through what a loop, a block or a condition holds.
func (c *collector) compound(cmd syntax.Command, piped bool) {
	switch cmd.(type) {
	case *syntax.ArithmCmd, *syntax.LetClause:
		c.opaque("it computes something as it runs")
	}
	syntax.Walk(cmd, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			c.stmt(n, piped)
			return false
		case *syntax.Word:
			c.word(n)
			return false
		}
		return true
	})
}

// node goes through something that holds words.
func (c *collector) node(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			c.word(w)
			return false
		}
		return true
	})
}

// word reads a word, and goes through the commands within it.
func (c *collector) word(w *syntax.Word) word {
	read := read(w)
	c.found.Words = append(c.found.Words, read.text)
	if w != nil && !read.known() {
		syntax.Walk(w, func(n syntax.Node) bool {
			if why := computed(n); why != "" {
				c.opaque(why)
			}
			if s, ok := n.(*syntax.Stmt); ok {
				cwd := c.cwd
				c.stmt(s, false)
				c.cwd = cwd
				return false
			}
			return true
		})
	}
	return read
}

func (c *collector) call(call *syntax.CallExpr, redirs []*syntax.Redirect, piped bool) {
	u := use{redirs: redirs, piped: piped}
	for _, a := range call.Assigns {
		u.assigns = append(u.assigns, c.assign(a))
	}
	for _, w := range call.Args {
		u.words = append(u.words, c.word(w))
	}
	c.command(u)
}

func (c *collector) assign(a *syntax.Assign) string {
	if a.Index != nil || a.Array != nil {
		c.opaque("it fills a list as it runs")
		c.node(a)
	}
	name := ""
	if a.Name != nil {
		name = a.Name.Value
	}
	value := c.word(a.Value).text
	if a.Naked {
		return name + value
	}
	return name + "=" + value
}

func (c *collector) declare(d *syntax.DeclClause) {
	u := use{words: []word{literal(d.Variant.Value)}}
	for _, a := range d.Args {
		u.words = append(u.words, word{text: c.assign(a)})
	}
	c.command(u)
}

func (c *collector) function(f *syntax.FuncDecl) {
	names := f.Names
	if f.Name != nil {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if multiplies(f.Body, name.Value) {
			c.deny("it is a fork bomb: %s starts itself again and again", name.Value)
		}
	}
	c.stmt(f.Body, false)
}

// multiplies tells whether a function starts itself beside itself: in a pipe or in
// the background.
func multiplies(body *syntax.Stmt, name string) bool {
	calls, beside := false, false
	syntax.Walk(body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				calls = calls || read(n.Args[0]).text == name
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

// command notes one command, and what it runs in turn.
func (c *collector) command(u use) {
	if len(u.words) > 0 && !u.words[0].known() {
		c.opaque("which command it runs is known only as it runs")
	}
	c.note(u)
	for _, r := range u.redirs {
		if writes(r) {
			c.denyDevice(read(r.Word))
		}
	}
	if len(u.words) == 0 {
		return
	}
	c.denyProgram(u)
	c.runs(u)
}

// note adds a command to those found.
func (c *collector) note(u use) {
	var texts []string
	for _, w := range u.words {
		texts = append(texts, w.text)
	}
	plain := strings.Join(texts, " ")
	var files []string
	for _, r := range u.redirs {
		if target := read(r.Word); writes(r) && !discards(target) {
			files = append(files, "> "+target.text)
		}
	}
	cmd := Command{Writes: len(files) > 0}
	cmd.Text = join(strings.Join(u.assigns, " "), plain, strings.Join(files, " "))
	if len(u.assigns) > 0 && plain != "" {
		cmd.Also = append(cmd.Also, join(plain, strings.Join(files, " ")))
	}
	if len(texts) > 0 && strings.Contains(texts[0], "/") {
		cmd.Also = append(cmd.Also, join(path.Base(texts[0]), strings.Join(texts[1:], " "), strings.Join(files, " ")))
	}
	if shorter := withoutGitOptions(u.words); shorter != "" {
		cmd.Also = append(cmd.Also, shorter)
	}
	if cmd.Text != "" && !c.seen[cmd.Text] {
		c.seen[cmd.Text] = true
		c.found.Commands = append(c.found.Commands, cmd)
	}
	if len(texts) > 0 && strings.ContainsAny(texts[0], " \t\n") {
		c.opaque("the name of a program in it has blanks")
	}
}

func join(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

// writes tells whether a redirection opens a file for writing.
func writes(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplOut: // >&1 copies, >&file does not
		return strings.Trim(read(r.Word).text, "0123456789-") != ""
	}
	return true
}

// discards tells whether what is written there is nobody's file.
func discards(target word) bool {
	switch target.text {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return true
	}
	return false
}
