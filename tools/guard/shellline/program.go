package shellline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// name is the program of a command: in small letters, without its directory.
func (u use) name() string { return strings.ToLower(path.Base(u.words[0].text)) }

// runs notes what a command runs in turn.
func (c *collector) runs(u use) {
	args := u.words[1:]
	switch name := u.name(); name {
	case "eval":
		c.inLine(joined(args))
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash":
		c.shell(u)
	case ".", "source", "alias", "hash", "enable", "parallel", "script", "expect", "at", "batch", "crontab", "bind", "complete", "mapfile", "readarray":
		c.hidden(name + " changes what the line means, or runs what cannot be seen here")
	case "trap":
		if len(args) > 0 {
			c.inLine(args[0])
		}
	case "find", "fd", "fdfind":
		c.find(u)
	case "awk", "gawk", "mawk", "nawk":
		c.awk(args)
	case "watch":
		c.inLine(joined(skip(args, "-n", "--interval")))
	case "python", "python2", "python3", "perl", "ruby", "node", "nodejs", "php", "lua", "tclsh", "deno", "bun":
		c.interpreter(u)
	default:
		rest, wraps := c.wrapped(name, args)
		if !wraps || len(rest) == 0 {
			return
		}
		if c.wraps++; c.wraps > maxInner {
			c.hidden("its programs run programs that run programs")
		} else {
			c.command(use{words: rest, piped: u.piped})
		}
	}
}

// wrapped is the command that a program like env runs, and whether it is such one.
func (c *collector) wrapped(name string, args []word) ([]word, bool) {
	switch name {
	case "env":
		return c.env(args), true
	case "exec":
		return skip(args, "-a"), true
	case "command":
		if len(args) > 0 && (args[0].text == "-v" || args[0].text == "-V") {
			return nil, true
		}
		return skip(args), true
	case "nohup", "setsid", "builtin", "busybox", "toybox", "fakeroot", "noglob", "nocorrect", "eatmydata":
		return skip(args), true
	case "nice":
		return skip(args, "-n", "--adjustment"), true
	case "ionice":
		return skip(args, "-c", "-n", "--class", "--classdata"), true
	case "time":
		return skip(args, "-f", "-o", "--format", "--output"), true
	case "stdbuf":
		return skip(args, "-i", "-o", "-e", "--input", "--output", "--error"), true
	case "timeout":
		return after(skip(args, "-k", "-s", "--kill-after", "--signal"), 1), true
	case "flock":
		return c.flock(args), true
	case "taskset", "chrt", "setarch", "linux64":
		return after(skip(args), 1), true
	case "chroot":
		return after(skip(args), 1), true
	case "unshare", "nsenter", "strace", "ltrace":
		return skip(args, "-t", "-e", "-o", "-p", "-S", "-G", "--target"), true
	case "xargs":
		rest := skip(args, "-I", "-n", "-P", "-d", "-a", "-L", "-s", "-E", "--max-args", "--max-procs", "--delimiter", "--arg-file", "--replace")
		if len(rest) > 0 {
			rest = append(slices.Clip(rest), word{Hole, Hole})
		}
		return rest, true
	}
	return nil, false
}

// skip leaves out the options before a command; those of valued have a value behind
// them.
func skip(args []word, valued ...string) []word {
	for len(args) > 0 {
		text := args[0].text
		switch {
		case text == "--":
			return args[1:]
		case !strings.HasPrefix(text, "-") || text == "-":
			return args
		case slices.Contains(valued, text):
			args = after(args, 2)
		default:
			args = args[1:]
		}
	}
	return nil
}

// after is what follows the first n words.
func after(args []word, n int) []word { return args[min(n, len(args)):] }

// flock is what flock runs: a command behind the file, or -c and a line.
func (c *collector) flock(args []word) []word {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") && args[0].text != "--" {
		text := args[0].text
		args = args[1:]
		valued := strings.IndexAny(text, "wE") == len(text)-1
		if strings.HasPrefix(text, "--") { // it may be cut short
			valued = slices.ContainsFunc([]string{"--timeout", "--wait", "--conflict-exit-code"}, func(long string) bool { return strings.HasPrefix(long, text) })
		}
		if valued {
			args = after(args, 1)
		}
	}
	rest := after(skip(args), 1)
	if len(rest) > 1 && (rest[0].text == "-c" || rest[0].text == "--command") {
		c.inLine(rest[1])
		return nil
	}
	return rest
}

// env is what env runs.
func (c *collector) env(args []word) []word {
	for len(args) > 0 {
		text := args[0].text
		switch {
		case text == "-S", text == "--split-string", strings.HasPrefix(text, "-S"), strings.HasPrefix(text, "--split-string="):
			c.opaque("env takes a text apart that is a command")
			c.inLine(joined(append([]word{literal(strings.TrimPrefix(strings.TrimPrefix(text, "--split-string="), "-S"))}, args[1:]...)))
			return nil
		case text == "-u", text == "--unset", text == "-C", text == "--chdir":
			if len(args) > 1 && strings.HasPrefix(strings.ToLower(text), "-c") {
				c.cwd = c.resolve(args[1].path)
			}
			args = after(args, 2)
		case strings.HasPrefix(text, "-"), strings.Contains(text, "="):
			args = args[1:]
		default:
			return args
		}
	}
	return nil
}

// joined is words as one text, which a shell reads again.
func joined(args []word) word {
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
	}
	text := strings.Join(texts, " ")
	return word{text, text}
}

// inLine goes through a text that is a shell line itself.
func (c *collector) inLine(line word) {
	if !line.known() {
		c.opaque("it runs a line that is put together as it runs")
		line.text = strings.ReplaceAll(line.text, Hole, "$_")
	}
	c.line(line.text)
}

// shell goes through what a shell is told to run: a text, its input, or a file.
func (c *collector) shell(u use) {
	args := u.words[1:]
	for len(args) > 0 {
		text := args[0].text
		if text == "--" || text == "-" || len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.Contains(text, "c") {
			c.commandText(args[1:])
			return
		}
		switch text {
		case "-o", "+o", "-O", "+O", "--rcfile", "--init-file":
			args = args[1:]
		}
		args = after(args, 1)
	}
	if len(args) > 0 && args[0].text != "-" && args[0].text != "--" && args[0].text != "/dev/stdin" {
		return // a file, which the line does not show
	}
	for _, r := range u.redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			c.inLine(literal(here(r.Hdoc)))
		case syntax.WordHdoc:
			c.inLine(read(r.Word))
		}
	}
	if u.piped {
		c.hidden("a shell runs what another command prints")
	}
}

// commandText goes through the text behind a shell's -c.
func (c *collector) commandText(args []word) {
	args = skip(args, "-o", "+o", "-O", "+O")
	if len(args) > 0 {
		c.inLine(args[0])
	}
}

// here is the text of a here-document as it is written.
func here(w *syntax.Word) string {
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

// find notes what find runs for each file.
func (c *collector) find(u use) {
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
			c.command(use{words: rest})
		}
	}
}

func (c *collector) awk(args []word) {
	for _, a := range args {
		if strings.Contains(a.text, "system") || strings.ContainsAny(a.text, "|") || strings.Contains(a.text, "getline") {
			c.hidden("awk runs other commands")
		}
	}
}

// interpreter is a program that runs code of another language.
func (c *collector) interpreter(u use) {
	input := u.piped
	for _, r := range u.redirs {
		input = input || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc
	}
	file := false
	for _, a := range u.words[1:] {
		switch text := a.text; {
		case !strings.HasPrefix(text, "-"):
			file = file || text != ""
		case strings.HasPrefix(text, "--eval"), strings.HasPrefix(text, "--print"), strings.HasPrefix(text, "--run"):
			c.hidden(u.name() + " runs code that is no shell line")
		case !strings.HasPrefix(text, "--") && strings.ContainsAny(text, "ceErpn"):
			if !file {
				c.hidden(u.name() + " runs code that is no shell line")
			}
		}
	}
	if input && !file {
		c.hidden(u.name() + " runs code that is no shell line")
	}
}

// withoutGitOptions is a git command without the options before its name, by which
// rules know it; "" if there are none.
func withoutGitOptions(words []word) string {
	if len(words) < 3 || path.Base(words[0].text) != "git" || !strings.HasPrefix(words[1].text, "-") {
		return ""
	}
	rest := skip(words[1:], "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")
	if len(rest) == 0 {
		return ""
	}
	return joined(append([]word{literal("git")}, rest...)).text
}
