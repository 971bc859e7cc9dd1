// Package shellline tells which commands a shell line runs, without running any.
//
// A line is parsed as bash and as a POSIX shell would read it, and what either
// finds counts: the commands themselves, and those that other programs are told to
// run (env, xargs, find -exec, sh -c). What only running would tell is a Hole in a
// command's text, and makes the line opaque where it decides what is run.
//
// It is an aid and no wall: a program can do what no line shows. What a command can
// reach is bounded by where it runs.
//
// The files: word.go reads words, walk.go collects commands, program.go knows
// programs that run others, denied.go those that no agent needs.
package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Hole stands in a command's text for what only running the line would tell. No
// line can hold one itself.
const Hole = "\x00"

// Bounds of what is looked at.
const (
	maxBytes = 64 << 10
	// maxNesting bounds what could nest: the parser takes some kilobytes of stack
	// for each.
	maxNesting = 4000
	maxDepth   = 6   // of lines within lines: sh -c "sh -c …"
	maxInner   = 200 // lines, and programs that run others
)

// A Line is what is known of a shell line.
type Line struct {
	Commands []Command
	// Denied says why it should not be run at all; "" if nothing speaks against it.
	Denied string
	// Opaque says why not everything that it runs can be told; "" if all can. What
	// it runs beside its commands is then one whose whole text is a Hole.
	Opaque string
	// Words are the words of the line, and of lines within it, without quotes: what it
	// could name files by. Each has a Hole for what only running would tell.
	Words []string
}

// A Command is one command of a line.
type Command struct {
	// Text is the command as a program would get it: its words without quotes,
	// parted by one blank, assignments before it and redirections to files after it.
	Text string
	// Also are other texts by which the same is known: without assignments, and
	// with the program's base name.
	Also []string
	// Writes says that its output goes to a file.
	Writes bool
}

// Parse reads a line as "sh -c" would get it.
func Parse(line string) Line {
	c := &collector{seen: map[string]bool{}}
	c.line(line)
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
		c.hidden("it is too long to be looked through")
		return c.found
	}
	c.command(use{words: words})
	return c.found
}

// line collects what a line runs.
func (c *collector) line(line string) {
	if c.depth >= maxDepth || c.inner >= maxInner {
		c.hidden("it runs lines within lines within lines")
		return
	}
	switch {
	case strings.Contains(line, Hole):
		c.hidden("it holds a NUL byte")
		return
	case len(line) > maxBytes, nesting(line) > maxNesting:
		c.hidden("it is too long to be looked through")
		return
	}
	c.depth++
	c.inner++
	defer func() { c.depth-- }()
	parsed := 0
	for _, dialect := range dialects(line) {
		file, err := syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(line), "")
		if err != nil {
			continue
		}
		parsed++
		cwd := c.cwd
		c.stmts(file.Stmts)
		c.cwd = cwd
	}
	if parsed == 0 {
		c.hidden("it cannot be read as a shell line")
	}
}

// dialects are those in which a line could mean different things.
func dialects(line string) []syntax.LangVariant {
	for _, mark := range []string{"(", "[[", "$'", "&>", "|&", "<<<"} {
		if strings.Contains(line, mark) {
			return []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX}
		}
	}
	return []syntax.LangVariant{syntax.LangBash}
}

// nesting counts what could make the parser call itself.
func nesting(line string) int {
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
