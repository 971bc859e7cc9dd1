// Package shellline finds out which commands a shell line runs, without running any.
//
// It parses a line both as bash and as a POSIX shell would read it, and reports what either
// finds: the commands themselves, and those that other programs are told to run (env, xargs, find
// -exec, sh -c). A Hole in a command's text stands for what is known only when the line runs. The
// line is opaque if a Hole decides what is run.
//
// The package is an aid and no wall: a program can do what no line shows. What a command can
// reach is limited by the sandbox in which it runs.
//
// The files: word.go reads words, walk.go collects commands, program.go knows programs that run
// others, and denied.go those that no agent needs.
package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Hole stands in a command's text for what is known only when the line runs. No line can hold a
// Hole itself.
const Hole = "\x00"

// Bounds of what is parsed.
const (
	maxBytes = 64 << 10
	// maxNesting bounds how many constructs could nest: the parser takes some kilobytes of stack
	// for each.
	maxNesting = 4000
	maxDepth   = 6   // of lines within lines: sh -c "sh -c …"
	maxInner   = 200 // bounds both how many lines are parsed within one, and how many programs in it run others
)

// A Line is what is known about a shell line.
type Line struct {
	Commands []Command
	// Denied says why the line should not be run at all; "" if there is no reason.
	Denied string
	// Opaque says why not everything is known that the line runs; "" if all is known. The unknown
	// part is then one more command, whose whole text is a Hole.
	Opaque string
	// Words are the words of the line, and of lines within it, without quotes: by these it could
	// name files. Each has a Hole for what is known only when the line runs.
	Words []string
}

// A Command is one command of a line.
type Command struct {
	// Text is the command as a program would get it: its words without quotes, separated by one
	// blank, with the assignments before it and the redirections to files behind it.
	Text string
	// Also are other texts that name the same command: without assignments, and with the
	// program's base name.
	Also []string
	// Writes says that its output goes to a file.
	Writes bool
}

// Parse reads a line as "sh -c" would get it.
func Parse(line string) Line {
	c := &collector{seen: map[string]bool{}}
	c.collectLine(line)
	return c.found
}

// ParseArgs reads a program and its arguments, which no shell will read.
func ParseArgs(program string, args []string) Line {
	c := &collector{seen: map[string]bool{}}
	words := []word{literal(program)}
	size := len(program)
	for _, a := range args {
		words = append(words, literal(a))
		size += len(a)
	}
	if size > maxBytes {
		c.addHidden("it is too long to be looked through")
		return c.found
	}
	c.collectCommand(invocation{words: words})
	return c.found
}

// collectLine collects the commands that a line runs.
func (c *collector) collectLine(line string) {
	if c.depth >= maxDepth || c.inner >= maxInner {
		c.addHidden("it runs lines within lines within lines")
		return
	}
	switch {
	case strings.Contains(line, Hole):
		c.addHidden("it holds a NUL byte")
		return
	case len(line) > maxBytes, nestingBound(line) > maxNesting:
		c.addHidden("it is too long to be looked through")
		return
	}
	c.depth++
	c.inner++
	defer func() { c.depth-- }()
	parsed := 0
	for _, dialect := range dialectsOf(line) {
		file, err := syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(line), "")
		if err != nil {
			continue
		}
		parsed++
		cwd := c.cwd
		c.collectStmts(file.Stmts)
		c.cwd = cwd
	}
	if parsed == 0 {
		c.addHidden("it cannot be read as a shell line")
	}
}

// dialectsOf returns the shell dialects in which a line could mean different things.
func dialectsOf(line string) []syntax.LangVariant {
	for _, mark := range []string{"(", "[[", "$'", "&>", "|&", "<<<"} {
		if strings.Contains(line, mark) {
			return []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}
		}
	}
	return []syntax.LangVariant{syntax.LangBash}
}

// nestingBound returns how deep the parser might call itself for a line at most: the number of
// constructs in the line that could lie within each other. It does not parse the line.
func nestingBound(line string) int {
	n := 0
	deep := strings.ContainsAny(line, "([") // arithmetic and tests nest by operators as well
	word := 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && 'a' <= line[i] && line[i] <= 'z' {
			continue
		}
		switch line[word:i] {
		case "if", "elif", "while", "until", "for", "case", "select", "time", "coproc", "function", "let":
			n++
		}
		word = i + 1
		if i == len(line) {
			break
		}
		switch line[i] {
		case '(', '{', '[', '`', '$', '|', '&':
			n++
		case '!', '-', '+', '~', '?', '=', ',', '*', '/', '%', '<', '>', '^':
			if deep {
				n++
			}
		}
	}
	return n
}
