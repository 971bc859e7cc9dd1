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
// The files: word.go, options.go, invocation.go and directory.go read words, options, commands and
// paths; findings.go holds what was found; walk.go collects commands, within bounds.go; program.go,
// runner.go and interpreters.go know programs that run others, writes.go those that write files, and
// denied.go those that no agent needs.
package shellline

import ()

// A Line is what is known about a shell line.
type Line struct {
	Commands []Command
	// Denied says why the line should not be run at all; "" if there is no reason.
	Denied string
	// Opaque says why it is not known what all of the line runs; "" if all is known. The unknown
	// part is then one more command, whose whole text is a Hole.
	Opaque string
	// Maybe are commands that programs might run of which nothing is known here, by what these are
	// given: WRAPPER -x git push might run "git push".
	Maybe []string
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
	// Writes says that its output goes to a file, or that it writes to one by itself, as sort -o
	// does. Text then names that file as a redirection, and the first of Also is the text without it.
	Writes bool
}

// Parse reads a line as "sh -c" would get it.
func Parse(line string) Line {
	c := newCollector()
	c.collectLine(line)
	c.checkEvaluated()
	return c.found
}

// ParseArgs reads a program and its arguments, which no shell will read.
func ParseArgs(program string, args []string) Line {
	c := newCollector()
	words := []word{literal(program)}
	size := len(program)
	for _, a := range args {
		words = append(words, literal(a))
		size += len(a)
	}
	if size > maxBytes {
		c.addHidden("it's too long to inspect")
		return c.found
	}
	c.collectCommand(invocation{words: words})
	c.checkEvaluated()
	return c.found
}
