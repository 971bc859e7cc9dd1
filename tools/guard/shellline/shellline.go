// Package shellline finds out which commands a shell line runs, without running any.
//
// It parses a line both as bash and as a POSIX shell would, and reports what it finds either way:
// the commands themselves, and those that other programs are told to run (env, xargs, find -exec,
// sh -c). A Hole in a command's text represents something that is known only when the line runs.
// The line is opaque if a Hole decides what is run.
//
// The package is no security boundary: a program can do more than its line shows. The sandbox
// limits what a command can reach.
//
// The files: word.go, options.go, invocation.go and directory.go read words, options, commands and
// paths; findings.go holds what was found; walk.go collects commands, within the limits in
// bounds.go; inner_commands.go, runner.go and interpreters.go know programs that run others,
// writes.go those that write files, plain.go those that read only the files that they name, and
// denied.go those that no agent needs.
package shellline

import ()

// A Line is what is known about a shell line.
type Line struct {
	Commands []Command
	// Denied says why the line should not be run at all; "" if there is no reason.
	Denied string
	// Opaque says why not everything that the line runs is known; "" if everything is. The unknown
	// part is then one more command, whose whole text is a Hole.
	Opaque string
	// Maybe are commands that unknown programs might run, judging by their arguments: WRAPPER -x
	// git push might run "git push".
	Maybe []string
	// Words are the words of the line, and of lines within it, without quotes: any of them could
	// name a file. Each has a Hole for what is known only when the line runs.
	Words []string
}

// A Command is one command of a line.
type Command struct {
	// Text is the command as a program would get it: its words without quotes, separated by one
	// blank, with the assignments before it and the redirections to files after it.
	Text string
	// Also are other texts for the same command: without assignments, and with the program's base
	// name.
	Also []string
	// Writes says that its output goes to a file, or that it writes a file itself, like sort -o.
	// Text then names that file as a redirection, and the first of Also is the text without it.
	Writes bool
}

// Parse reads a line the way "sh -c" would.
func Parse(line string) Line {
	c := newCollector()
	c.collectLine(line)
	c.checkEvaluated()
	return c.found
}

// ParseArgs reads a program and its arguments, which no shell interprets.
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
