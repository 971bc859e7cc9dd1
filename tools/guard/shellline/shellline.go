// Package shellline finds out which commands a shell line runs, without running any.
//
// It parses a line as bash would, and also as a POSIX shell would if that could differ, and reports
// what it finds either way: the commands themselves, and those that other programs are told to run
// (env, xargs, find -exec, sh -c). A Hole in a command's text represents something that is known
// only when the line runs. The line is opaque if not everything that it runs is known.
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
	// Opaque says why not everything that the line runs is known; "" if everything is. If a whole
	// command is unknown, Commands has one more command, whose text is a Hole.
	Opaque string
	// MaybeCommands are commands that unknown programs might run, judging by their arguments: WRAPPER -x
	// git push might run "git push".
	MaybeCommands []string
	// Words are the words of the line, and of lines within it, without quotes: any of them could
	// name a file. Each has a Hole for what is known only when the line runs.
	Words []string
}

// A Command is one command of a line.
type Command struct {
	// Text is the command as a program would get it: its words without quotes, separated by one
	// blank, with the assignments before it and the redirections to files after it.
	Text string
	// OtherTexts are other texts for the same command: without assignments, with the program's base name,
	// and, for git, without the options before the subcommand.
	OtherTexts []string
	// Writes says that the command's output goes to a file, or that the command writes a file
	// itself, like sort -o. Text then names that file as a redirection. For a file that the command
	// writes itself, the first of Also is the text without that redirection.
	Writes bool
}

// Parse reads a line the way "sh -c" would.
func Parse(line string) Line {
	c := newCollector()
	c.collectLine(line)
	c.checkEvaluated()
	return c.line
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
		return c.line
	}
	c.collectCommand(invocation{words: words})
	c.checkEvaluated()
	return c.line
}
