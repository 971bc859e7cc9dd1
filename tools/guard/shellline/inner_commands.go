package shellline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// collectInner collects the commands that a command runs itself, for example env, xargs or sh -c.
func (c *collector) collectInner(u invocation) {
	args := u.words[1:]
	switch name := u.program(); name {
	case "eval":
		c.collectText(joinWords(args))
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash":
		c.collectShell(u)
	case ".", "source", "alias", "hash", "enable", "parallel", "script", "expect", "at", "batch", "crontab", "bind", "complete", "mapfile", "readarray":
		c.addHidden(name + " changes what the line means, or runs something that can't be seen here")
	case "trap":
		if len(args) > 0 {
			c.collectText(args[0])
		}
	case "find", "fd", "fdfind":
		c.collectFind(u)
	case "awk", "gawk", "mawk", "nawk":
		c.interpreters.checkAwk(args)
	case "watch":
		c.collectText(joinWords(skipOptions(args, "-n", "--interval")))
	case "python", "python2", "python3", "perl", "ruby", "node", "nodejs", "php", "lua", "tclsh", "deno", "bun":
		c.interpreters.checkInterpreter(u)
	case "start-stop-daemon":
		c.collectDaemon(args)
	case "capsh":
		c.collectCapsh(u)
	default:
		c.collectWrapped(u)
	}
}

// collectWrapped collects the command that a wrapper program runs, or the commands that an unknown program might
// run.
func (c *collector) collectWrapped(u invocation) {
	name, args := u.program(), u.words[1:]
	rest, wraps := c.wrappedCommand(name, args)
	readings := [][]word{rest}
	if !wraps {
		readings, wraps = wrappedByName(name, args)
	}
	if !wraps {
		if runsItsOwnLanguage(name) && len(args) > 0 {
			c.addHidden(name + " can run other commands")
		}
		c.collectByOption(u)
		c.collectUnknown(u)
		return
	}
	for _, rest := range readings {
		if len(rest) == 0 {
			continue
		}
		if c.wrapperPrograms++; c.wrapperPrograms > maxInner {
			c.addHidden("it nests commands that run other commands too deeply")
			return
		}
		c.collectCommand(invocation{words: rest, piped: u.piped})
	}
}

// wrappedCommand returns the command that a program such as env runs, and whether name is such a program.
func (c *collector) wrappedCommand(name string, args []word) ([]word, bool) {
	switch name {
	case "env":
		return c.envCommand(args), true
	case "exec":
		return skipOptions(args, "-a"), true
	case "command":
		if len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
			return nil, true
		}
		return skipOptions(args), true
	case "nohup", "setsid", "builtin", "busybox", "toybox", "fakeroot", "noglob", "nocorrect", "eatmydata":
		return skipOptions(args), true
	case "nice":
		return skipOptions(args, "-n", "--adjustment"), true
	case "ionice":
		return skipOptions(args, "-c", "-n", "--class", "--classdata"), true
	case "time":
		return skipOptions(args, "-f", "-o", "--format", "--output"), true
	case "stdbuf":
		return skipOptions(args, "-i", "-o", "-e", "--input", "--output", "--error"), true
	case "timeout":
		return dropFirst(skipOptions(args, "-k", "-s", "--kill-after", "--signal"), 1), true
	case "flock":
		return c.flockCommand(args), true
	case "chroot":
		return dropFirst(skipOptions(args), 1), true
	case "unshare", "nsenter", "strace", "ltrace":
		return skipOptions(args, "-t", "-e", "-o", "-p", "-S", "-G", "--target"), true
	case "xargs":
		return c.collectXargs(args), true
	}
	return nil, false
}

// flockCommand returns the command that flock runs, which follows the name of a file. If flock is given a shell
// line with -c instead, it collects that line and returns nil.
func (c *collector) flockCommand(args []word) []word {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") && args[0].text != "--" {
		text := args[0].text
		args = args[1:]
		valued := strings.IndexAny(text, "wE") == len(text)-1
		if strings.HasPrefix(text, "--") { // a long option may be abbreviated
			valued = slices.ContainsFunc([]string{"--timeout", "--wait", "--conflict-exit-code"}, func(long string) bool { return strings.HasPrefix(long, text) })
		}
		if valued {
			args = dropFirst(args, 1)
		}
	}
	rest := dropFirst(skipOptions(args), 1)
	if len(rest) > 1 && (rest[0].text == "-c" || rest[0].text == "--command") {
		c.collectText(rest[1])
		return nil
	}
	return rest
}

// envCommand returns the command that env runs, and checks the variables that env sets. With -S it collects the
// command itself, and returns nil.
func (c *collector) envCommand(args []word) []word {
	for len(args) > 0 {
		text := args[0].text
		switch {
		case text == "-S", text == "--split-string", strings.HasPrefix(text, "-S"), strings.HasPrefix(text, "--split-string="):
			c.markOpaque("env turns text into a command")
			c.collectText(joinWords(append([]word{literal(strings.TrimPrefix(strings.TrimPrefix(text, "--split-string="), "-S"))}, args[1:]...)))
			return nil
		case text == "-u", text == "--unset", text == "-C", text == "--chdir":
			if len(args) > 1 && strings.HasPrefix(strings.ToLower(text), "-c") {
				c.directory.enter(args[1].path)
			}
			args = dropFirst(args, 2)
		case strings.HasPrefix(text, "-"):
			args = args[1:]
		case strings.Contains(text, "="):
			name, value, _ := strings.Cut(text, "=")
			c.checkVariable(name, value)
			args = args[1:]
		default:
			return args
		}
	}
	return nil
}

// collectText collects the commands of a text that is itself a shell line.
func (c *collector) collectText(line word) {
	if !line.isKnown() {
		c.markOpaque("it runs a line that's put together while it runs")
		line.text = strings.ReplaceAll(line.text, Hole, "$_")
	}
	c.collectLine(line.text)
}

// collectShell collects the commands that a shell is told to run: in an argument, on its standard input, or in a
// file.
func (c *collector) collectShell(u invocation) {
	args := u.words[1:]
	for len(args) > 0 {
		text := args[0].text
		if text == "--" || text == "-" || len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.Contains(text, "c") {
			c.collectDashC(args[1:])
			return
		}
		switch text {
		case "-o", "+o", "-O", "+O", "--rcfile", "--init-file":
			args = args[1:]
		}
		args = dropFirst(args, 1)
	}
	if len(args) > 0 && args[0].text != "-" && args[0].text != "--" && args[0].text != "/dev/stdin" {
		return // a file, whose content the line doesn't show
	}
	for _, r := range u.redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			c.collectText(literal(hereDocument(r.Hdoc)))
		case syntax.WordHdoc:
			c.collectText(readWord(r.Word))
		}
	}
	if u.piped {
		c.addHidden("a shell runs what another command prints")
	}
}

// collectDashC collects the commands in the text after a shell's -c.
func (c *collector) collectDashC(args []word) {
	args = skipOptions(args, "-o", "+o", "-O", "+O")
	if len(args) > 0 {
		c.collectText(args[0])
	}
}

// hereDocument returns the text of a here-document (after <<), with $_ for each part that the shell replaces.
func hereDocument(w *syntax.Word) string {
	var b strings.Builder
	if w != nil {
		for _, part := range w.Parts {
			if lit, ok := part.(*syntax.Lit); ok {
				b.WriteString(lit.Value)
			} else {
				b.WriteString("$_")
			}
		}
	}
	return b.String()
}

// collectFind collects the commands that find runs for each file.
func (c *collector) collectFind(u invocation) {
	for i, a := range u.words {
		switch a.text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		default:
			continue
		}
		rest := slices.Clone(u.words[i+1:])
		for end, a := range rest {
			if a.text == ";" || a.text == "+" {
				rest = rest[:end]
				break
			}
		}
		for n, a := range rest {
			if strings.Contains(a.text, "{}") {
				rest[n] = word{Hole, Hole}
			}
		}
		if len(rest) > 0 {
			c.collectCommand(invocation{words: rest})
		}
	}
}
