package shellline

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Programs can run others in more ways than the shell's grammar shows. This file covers those that take a command
// among their options or in a language of their own, the variables that name a command, and how to treat unknown
// programs.

// commandOptions returns the options of a program whose values are commands that it runs.
func commandOptions(name string) []string {
	switch name {
	case "tar", "bsdtar", "gtar":
		return []string{"-I", "-F", "--use-compress-program", "--to-command", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"}
	case "sort":
		return []string{"--compress-program"}
	case "split":
		return []string{"--filter"}
	case "install":
		return []string{"--strip-program"}
	case "rsync":
		return []string{"-e", "--rsh", "--rsync-path"}
	case "scp", "sftp":
		return []string{"-S"}
	case "man":
		return []string{"-P", "--pager", "-H", "--html"}
	case "rg":
		return []string{"--pre", "--hostname-bin"}
	case "go":
		return []string{"-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"}
	}
	return nil
}

// hidingOptions returns the options that make a program run something that cannot be seen here.
func hidingOptions(name string) []string {
	switch name {
	case "scp", "sftp":
		return []string{"-o", "-F", "-D"}
	case "ssh":
		return []string{"-o", "-F", "-E"}
	case "make", "gmake":
		return []string{"--eval", "-E"}
	case "zip":
		return []string{"-TT", "--unzip-command"}
	case "gcc", "g++", "cc", "c++", "clang", "clang++":
		return []string{"-wrapper"}
	case "apt", "apt-get", "apt-cache":
		return []string{"-o", "-c", "--option", "--config-file"}
	case "nc", "ncat", "netcat":
		return []string{"-e", "-c", "--exec", "--sh-exec", "--lua-exec"}
	}
	return nil
}

// collectByOption collects what a program runs because of one of its options or arguments.
func (c *collector) collectByOption(u invocation) {
	name, args := u.program(), u.words[1:]
	c.collectOptionLines(args, commandOptions(name)...)
	c.hideIfOption(name, args, hidingOptions(name)...)
	switch name {
	case "tar", "bsdtar", "gtar":
		for _, value := range optionValues(args, "--checkpoint-action") {
			if line, runs := strings.CutPrefix(value.text, "exec="); runs {
				c.collectText(literalWithHoles(line))
			} else if !value.isKnown() {
				c.addHidden("you can't tell what tar runs until it runs")
			}
		}
	case "make", "gmake":
		for _, a := range args {
			if variable, value, ok := strings.Cut(a.text, "="); ok && variable == "SHELL" {
				c.collectText(literalWithHoles(value))
			}
		}
	case "git":
		c.checkGit(args)
	case "sed", "gsed":
		c.interpreters.checkSed(args)
	case "test", "[", "printf", "read", "unset", "let", "declare", "typeset", "local", "export", "readonly", "wait", "getopts":
		for _, a := range args {
			c.checkIndex(a)
		}
	}
}

// collectOptionLines collects the commands in the values of options.
func (c *collector) collectOptionLines(args []word, names ...string) {
	for _, value := range optionValues(args, names...) {
		c.collectText(value)
	}
}

// hideIfOption adds a hidden command if a program is given one of the options.
func (c *collector) hideIfOption(name string, args []word, options ...string) {
	for _, a := range args {
		option, _, _ := strings.Cut(a.text, "=")
		if slices.ContainsFunc(options, func(o string) bool {
			return option == o || !strings.HasPrefix(o, "--") && len(o) == 2 && strings.HasPrefix(option, o) && !strings.HasPrefix(option, "--")
		}) {
			c.addHidden(name + " is given an option that can run other commands")
		}
	}
}

// runsItsOwnLanguage reports whether a program reads commands in a language of its own, which can run
// any other program.
func runsItsOwnLanguage(name string) bool {
	switch name {
	case "gdb", "lldb", "cgdb", "vim", "vi", "view", "vimdiff", "rvim", "nvim", "gvim", "ex", "ed", "red", "emacs", "emacsclient", "nano", "pico", "joe",
		"less", "more", "most", "pg", "lynx", "w3m", "elinks", "links", "mutt", "mail", "mailx",
		"mysql", "mariadb", "sqlite3", "psql", "ftp", "lftp", "tftp", "telnet", "dc", "m4", "r", "rscript", "julia", "octave", "gnuplot", "ghc", "ghci", "runghc", "ocaml", "guile", "scheme", "sbcl", "clisp", "erl", "elixir", "iex", "scala", "groovy", "jshell", "jrunscript", "irb", "pry", "ipython", "wish", "qjs", "d8",
		"socat", "screen", "tmux", "byobu", "zellij", "dtach", "csh", "tcsh", "pwsh", "powershell", "elvish", "nu", "xonsh", "rc", "es", "yash", "posh", "oksh", "loksh", "hush",
		"latex", "pdflatex", "xelatex", "lualatex", "tex", "pdftex", "cmake", "ansible", "puppet", "salt-call", "docker", "podman", "kubectl", "systemd-run", "machinectl", "run-parts", "run-mailcap", "see", "cscope", "crash", "bpftrace", "stap", "dtrace":
		return true
	}
	return false
}

// namesCommand reports whether the value of an environment variable is a command that other programs, or a shell,
// run.
func namesCommand(variable string) bool {
	switch variable {
	case "PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "EDITOR", "VISUAL", "FCEDIT", "BROWSER", "SHELL",
		"RSYNC_RSH", "CVS_RSH", "SVN_SSH", "SSH_ASKPASS", "SUDO_ASKPASS", "BAT_PAGER", "DELTA_PAGER", "GOFLAGS":
		return true
	}
	return false
}

// injectsCode reports whether an environment variable makes programs run code that the line doesn't show.
func injectsCode(variable string) bool {
	switch variable {
	case "BASH_ENV", "ENV", "TAR_OPTIONS", "MAKEFLAGS", "PERL5OPT", "PERL5DB", "RUBYOPT", "NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONBREAKPOINT", "PYTHONWARNINGS", "LD_PRELOAD", "LD_AUDIT", "GCONV_PATH", "VIMINIT", "EXINIT", "LESS", "SHELLOPTS", "BASHOPTS":
		return true
	}
	switch variable {
	case "GIT_PAGER", "GIT_EDITOR": // their usual value is cat, and asking about it would be pointless
		return false
	}
	return strings.HasPrefix(variable, "BASH_FUNC_") || strings.HasPrefix(variable, "GIT_CONFIG") ||
		strings.HasPrefix(variable, "GIT_") && (strings.HasSuffix(variable, "_COMMAND") || strings.HasSuffix(variable, "_EDITOR") || strings.HasSuffix(variable, "ASKPASS") || variable == "GIT_SSH" || variable == "GIT_EXTERNAL_DIFF" || variable == "GIT_EXEC_PATH" || variable == "GIT_TEMPLATE_DIR")
}

// checkVariable collects the commands that an assignment makes programs run.
func (c *collector) checkVariable(name, value string) {
	switch {
	case namesCommand(name), name == "GIT_PAGER", name == "GIT_EDITOR":
		c.collectText(literalWithHoles(value))
	case injectsCode(name):
		c.addHidden(name + " makes programs run something that can't be seen here")
	}
}

// checkIndex adds a hidden command if a builtin evaluates a word as a variable with an index, such as test -v
// 'a[$(x)]': the shell runs the command in the index.
func (c *collector) checkIndex(w word) {
	open := strings.IndexByte(w.text, '[')
	if open > 0 && strings.ContainsAny(w.text[open:], "$`") {
		c.addHidden("an array index in it runs commands")
	}
}

// checkEvaluated adds a hidden command if the shell evaluates variables as expressions, and a text in the line
// could be such an expression that runs commands: a='b[$(x)]'; echo $((a)).
func (c *collector) checkEvaluated() {
	if c.evaluatesExpressions && slices.ContainsFunc(c.line.Words, func(w string) bool { return strings.Contains(w, "$(") || strings.Contains(w, "`") }) {
		c.addHidden("it evaluates text that can run commands")
	}
}

// runsCode reports whether the shell, when it expands this part of a word, evaluates the value of a variable and so
// may run commands in it. always says that it does so for any value.
func runsCode(n syntax.Node) (always, mayDo bool) {
	switch p := n.(type) {
	case *syntax.ArithmExp:
		return false, hasNames(p.X)
	case *syntax.ParamExp:
		if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
			lit := ""
			if p.Exp.Word != nil {
				lit = p.Exp.Word.Lit()
			}
			return lit == "P" || lit == "", false
		}
		return false, p.Excl || p.Index != nil || p.Slice != nil || p.NestedParam != nil
	}
	return false, false
}

// hasNames reports whether an arithmetic expression contains anything except numbers.
func hasNames(x syntax.ArithmExpr) bool {
	found := false
	if x == nil {
		return false
	}
	syntax.Walk(x, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			lit := w.Lit()
			found = found || lit == "" || strings.Trim(lit, "0123456789") != ""
			return false
		}
		return true
	})
	return found
}

// checkGit collects what a git command runs besides git.
func (c *collector) checkGit(args []word) {
	for i := 0; i < len(args); i++ {
		switch text := args[i].text; {
		case text == "-c" && i+1 < len(args):
			i++
			c.checkGitSetting(args[i])
		case strings.HasPrefix(text, "--config-env"), strings.HasPrefix(text, "--exec-path="):
			c.addHidden("git is given settings that can run other commands")
		case text == "-C", text == "--git-dir", text == "--work-tree", text == "--namespace":
			i++
		case strings.HasPrefix(text, "-"):
		default:
			c.checkGitCommand(text, args[i+1:])
			return
		}
	}
}

// checkGitSetting adds a hidden command if a setting given to git with -c may run one. Any setting may that isn't
// known to be harmless.
func (c *collector) checkGitSetting(setting word) {
	key, _, _ := strings.Cut(strings.ToLower(setting.text), "=")
	section, _, _ := strings.Cut(key, ".")
	switch section {
	case "user", "author", "committer", "color", "advice", "init", "fetch", "push", "pull", "log", "status", "safe", "column", "branch", "a":
		return
	}
	switch key {
	case "core.quotepath", "core.autocrlf", "core.safecrlf", "core.filemode", "core.abbrev", "core.longpaths", "core.bare", "core.symlinks", "commit.gpgsign", "tag.gpgsign", "gc.auto", "diff.renames", "diff.algorithm", "diff.context", "merge.conflictstyle", "http.sslverify", "http.postbuffer":
		return
	}
	c.addHidden("git is given a setting that can run other commands")
}

// checkGitCommand collects what a git subcommand is told to run. A subcommand that git doesn't have may be an alias
// for anything.
func (c *collector) checkGitCommand(name string, args []word) {
	switch name {
	case "bisect":
		if len(args) > 1 && args[0].text == "run" {
			c.collectCommand(invocation{words: args[1:]})
		}
	case "submodule":
		for i, a := range args {
			if a.text == "foreach" {
				c.collectText(joinWords(skipOptions(args[i+1:])))
			}
		}
	case "rebase":
		c.collectOptionLines(args, "-x", "--exec")
	case "difftool":
		c.collectOptionLines(args, "-x", "--extcmd")
	case "grep":
		c.hideIfOption("git grep", args, "-O", "--open-files-in-pager")
	case "clone", "fetch", "pull", "ls-remote", "push", "archive", "fetch-pack", "send-pack":
		c.collectOptionLines(args, "--upload-pack", "--receive-pack", "--exec")
		if name == "clone" || name == "fetch-pack" || name == "ls-remote" {
			c.collectOptionLines(args, "-u")
		}
		for _, a := range args {
			if strings.HasPrefix(a.text, "ext::") {
				c.addHidden("git runs a command to reach a repository")
			}
			if value, ok := strings.CutPrefix(a.text, "--config="); ok {
				c.checkGitSetting(literalWithHoles(value))
			}
		}
		if name == "clone" {
			for _, value := range optionValues(args, "-c", "--config") {
				c.checkGitSetting(value)
			}
		}
	case "filter-branch", "mergetool", "send-email", "instaweb", "gui", "citool", "credential", "remote-ext", "hook", "maintenance", "for-each-repo":
		c.addHidden("git " + name + " runs other commands")
	default:
		if !strings.Contains(name, Hole) && !isGitCommand(name) {
			c.addHidden("git " + name + " may be an alias of another command")
		}
	}
}

// isGitCommand reports whether git has a built-in subcommand with that name that runs nothing else.
func isGitCommand(name string) bool {
	switch name {
	case "add", "am", "annotate", "apply", "blame", "branch", "bundle", "cat-file", "check-attr", "check-ignore", "checkout", "cherry", "cherry-pick", "clean", "commit", "commit-graph", "commit-tree", "config", "count-objects", "describe", "diff", "diff-files", "diff-index", "diff-tree", "fast-export", "fast-import", "for-each-ref", "format-patch", "fsck", "gc", "get-tar-commit-id", "hash-object", "help", "index-pack", "init", "init-db", "log", "ls-files", "ls-tree", "merge", "merge-base", "merge-file", "merge-tree", "mktag", "mktree", "mv", "name-rev", "notes", "pack-objects", "pack-refs", "prune", "range-diff", "read-tree", "reflog", "remote", "repack", "replace", "rerere", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "shortlog", "show", "show-branch", "show-ref", "sparse-checkout", "stage", "stash", "status", "stripspace", "switch", "symbolic-ref", "tag", "unpack-objects", "update-index", "update-ref", "var", "verify-commit", "verify-pack", "verify-tag", "version", "whatchanged", "worktree", "write-tree", "lfs":
		return true
	}
	return false
}

// wrappedByName returns the command that one of the many wrapper programs runs, which change something about their
// own process and then run their arguments; false if name is none of them. Where a word may precede the command, it
// returns all possible readings.
func wrappedByName(name string, args []word) (readings [][]word, wraps bool) {
	one := func(valued ...string) ([][]word, bool) {
		return [][]word{skipOptions(args, valued...)}, true
	}
	either := func(valued ...string) ([][]word, bool) {
		rest := skipOptions(args, valued...)
		return [][]word{rest, dropFirst(rest, 1), skipOptions(dropFirst(rest, 1), valued...)}, true
	}
	switch name {
	case "setpriv":
		return one("--ambient-caps", "--inh-caps", "--bounding-set", "--ruid", "--euid", "--reuid", "--rgid", "--egid", "--regid", "--groups", "--securebits", "--pdeathsig", "--selinux-label", "--apparmor-profile", "--landlock-access", "--landlock-rule", "--seccomp-filter", "--ptracer")
	case "prlimit":
		return one("-p", "--pid", "-o", "--output")
	case "dbus-run-session", "dbus-launch":
		return one("--config-file", "--dbus-daemon")
	case "linux32", "linux64", "i386", "i486", "i586", "i686", "x86_64", "aarch64", "uname26", "setarch", "taskset", "chrt", "uclampset", "numactl", "faketime", "torsocks", "torify", "proxychains", "proxychains4":
		return either("-p", "--pid", "-T", "-P", "-D", "-f", "-m", "-M", "-c", "-C", "-N", "-i", "-l")
	}
	if strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so") || name == "ld.so" {
		return one("--library-path", "--preload", "--audit", "--argv0", "--inhibit-rpath", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask")
	}
	return nil, false
}

// collectDaemon collects what start-stop-daemon starts.
func (c *collector) collectDaemon(args []word) {
	var behind []word
	for i, a := range args {
		if a.text == "--" {
			behind, args = args[i+1:], args[:i]
			break
		}
	}
	for _, program := range append(optionValues(args, "-x", "--exec", "-a", "--startas"), bundledValues(args, 'x', 'a')...) {
		c.collectCommand(invocation{words: append([]word{program}, behind...)})
	}
}

// collectCapsh collects the command that capsh runs in a shell: the arguments after --.
func (c *collector) collectCapsh(u invocation) {
	c.collectOptionLines(u.words[1:], "--shell")
	for i, a := range u.words[1:] {
		if a.text == "--" || a.text == "==" || a.text == "-+" {
			c.collectCommand(invocation{words: append([]word{literal("bash")}, u.words[i+2:]...), piped: u.piped})
			return
		}
	}
}

// collectXargs returns the command that xargs runs for each item that it reads. With -I, the placeholder may be
// part of any word.
func (c *collector) collectXargs(args []word) []word {
	rest := skipOptions(args, "-I", "-n", "-P", "-d", "-a", "-L", "-s", "-E", "--max-args", "--max-procs", "--max-lines", "--max-chars", "--delimiter", "--arg-file", "--process-slot-var")
	if len(rest) == 0 {
		return nil
	}
	mark, replaces := "", false
	for i, a := range args[:len(args)-len(rest)] {
		switch text := a.text; {
		case text == "-I" && i+1 < len(args):
			mark, replaces = args[i+1].text, true
		case strings.HasPrefix(text, "-I"):
			mark, replaces = text[2:], true
		case text == "-i", text == "--replace":
			mark, replaces = "{}", true
		case strings.HasPrefix(text, "-i"):
			mark, replaces = text[2:], true
		case strings.HasPrefix(text, "--replace="):
			mark, replaces = strings.TrimPrefix(text, "--replace="), true
		}
	}
	rest = slices.Clone(rest)
	if !replaces || mark == "" || strings.Contains(mark, Hole) {
		return append(rest, word{Hole, Hole})
	}
	for i, a := range rest {
		rest[i] = word{mergeHoles(strings.ReplaceAll(a.text, mark, Hole)), strings.ReplaceAll(a.path, mark, Hole)}
	}
	return rest
}

// Limits of how many words of an unknown program are examined.
const (
	maxGuessed = 40  // words of a command at which an inner command might begin
	maxGuesses = 400 // of a line
)

// collectUnknown collects the commands that an unknown program might run: any of its words could begin a command,
// and any word could be a shell line.
func (c *collector) collectUnknown(u invocation) {
	if c.isGuess || takesNoCommand(u.program()) {
		return
	}
	args := u.words[1:]
	for i, a := range args[:min(len(args), maxGuessed)] {
		if strings.HasPrefix(a.text, "-") && !strings.ContainsAny(a.text, " =") || len(c.line.MaybeCommands) >= maxGuesses {
			continue
		}
		c.line.MaybeCommands = append(c.line.MaybeCommands, joinWords(args[i:]).text)
		if base := path.Base(a.text); base != a.text {
			c.line.MaybeCommands = append(c.line.MaybeCommands, joinWords(append([]word{literalWithHoles(base)}, args[i+1:]...)).text)
		}
		text := a.text
		if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
			text = value
		}
		if text != a.text || strings.ContainsAny(text, " ;|&$`!") {
			c.guessLine(strings.TrimLeft(text, "!:@|"))
		}
	}
}

// guessLine collects the commands that a text would run if it were a shell line.
func (c *collector) guessLine(text string) {
	if strings.Contains(text, Hole) || c.innerLines >= maxInner {
		return
	}
	guess := newCollector()
	guess.isGuess, guess.innerLines = true, c.innerLines
	guess.collectLine(text)
	c.innerLines = guess.innerLines
	for _, one := range guess.line.Commands {
		if one.Text != Hole && len(c.line.MaybeCommands) < maxGuesses {
			c.line.MaybeCommands = append(c.line.MaybeCommands, one.Text)
			c.line.MaybeCommands = append(c.line.MaybeCommands, one.OtherTexts...)
		}
	}
}

// takesNoCommand reports whether a program is known not to run any of its arguments.
func takesNoCommand(name string) bool {
	switch name {
	case "echo", "printf", "cat", "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "ls", "dir", "vdir", "cp", "mv", "rm", "mkdir", "rmdir", "touch", "ln", "chmod", "chown", "chgrp",
		"head", "tail", "wc", "cut", "tr", "uniq", "sort", "diff", "cmp", "comm", "join", "paste", "fold", "fmt", "nl", "tac", "rev", "seq", "shuf", "split", "expand", "unexpand", "column", "od", "xxd", "hexdump", "strings", "tee",
		"test", "[", "[[", "true", "false", ":", "cd", "pushd", "popd", "pwd", "date", "sleep", "basename", "dirname", "realpath", "readlink", "stat", "file", "which", "whereis", "type", "man", "apropos", "whatis", "info", "help",
		"id", "whoami", "groups", "uname", "hostname", "ps", "pgrep", "kill", "jobs", "wait", "df", "du", "free", "uptime", "nproc", "lscpu", "lsblk", "mount", "getconf", "locale",
		"git", "sed", "gsed", "jq", "yq", "curl", "wget", "tar", "zip", "unzip", "gzip", "gunzip", "zcat", "bzip2", "xz", "zstd", "md5sum", "sha1sum", "sha256sum", "sha512sum", "b2sum", "cksum", "base64", "base32",
		"export", "declare", "typeset", "local", "readonly", "unset", "set", "shift", "read", "return", "exit", "break", "continue", "let", "umask", "ulimit", "getopts", "times",
		"make", "gmake", "go", "gofmt", "gcc", "g++", "cc", "c++", "clang", "rustc", "javac", "tree", "bc", "expr", "numfmt", "factor", "mktemp", "truncate", "install", "rsync", "dd", "sync", "tsort", "look", "iconv", "ssh-keygen", "dig", "host", "nslookup", "ping", "openssl", "apt", "apt-get", "apt-cache", "dpkg", "rpm", "apk", "pip", "pip3":
		return true
	}
	return false
}
