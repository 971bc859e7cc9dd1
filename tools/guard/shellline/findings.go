package shellline

import (
	"fmt"
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// findings hold what has been found out about a line.
type findings struct {
	line Line
	seen map[string]bool // the texts of the commands found
}

// markOpaque records why not everything that the line runs is known; the first reason is kept.
func (f *findings) markOpaque(why string) {
	if f.line.Opaque == "" {
		f.line.Opaque = why
	}
}

// addHidden adds a command of which nothing is known, because the line runs something that cannot
// be seen; why says what.
func (f *findings) addHidden(why string) {
	f.markOpaque(why)
	if !f.seen[Hole] {
		f.seen[Hole] = true
		f.line.Commands = append(f.line.Commands, Command{Text: Hole})
	}
}

// deny records why the line should not be run at all; the first reason is kept.
func (f *findings) deny(format string, args ...any) {
	if f.line.Denied == "" {
		f.line.Denied = strings.ReplaceAll(fmt.Sprintf(format, args...), Hole, "…")
	}
}

// record adds a command to the findings, with its other texts (see Command.OtherTexts), unless a command
// with the same text is there.
func (f *findings) record(u invocation) {
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
	byOption := writtenByOption(u)
	cmd := Command{Writes: len(files)+len(byOption) > 0}
	if len(byOption) > 0 {
		cmd.OtherTexts = append(cmd.OtherTexts, joinNonEmpty(strings.Join(u.assigns, " "), plain, strings.Join(files, " ")))
		files = append(files, byOption...)
	}
	cmd.Text = joinNonEmpty(strings.Join(u.assigns, " "), plain, strings.Join(files, " "))
	if len(u.assigns) > 0 && plain != "" {
		cmd.OtherTexts = append(cmd.OtherTexts, joinNonEmpty(plain, strings.Join(files, " ")))
	}
	if len(texts) > 0 && strings.Contains(texts[0], "/") {
		cmd.OtherTexts = append(cmd.OtherTexts, joinNonEmpty(path.Base(texts[0]), strings.Join(texts[1:], " "), strings.Join(files, " ")))
	}
	if shorter := withoutGitOptions(u.words); shorter != "" {
		cmd.OtherTexts = append(cmd.OtherTexts, shorter)
	}
	if cmd.Text != "" && !f.seen[cmd.Text] {
		f.seen[cmd.Text] = true
		f.line.Commands = append(f.line.Commands, cmd)
	}
	if len(texts) > 0 && strings.ContainsAny(texts[0], " \t\n") {
		f.markOpaque("a program name in it contains spaces")
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

// withoutGitOptions returns a git command without the options before its subcommand, which is how
// rules name it; "" if there are no such options.
func withoutGitOptions(words []word) string {
	if len(words) < 3 || path.Base(words[0].text) != "git" || !strings.HasPrefix(words[1].text, "-") {
		return ""
	}
	rest := skipOptions(words[1:], "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env")
	if len(rest) == 0 {
		return ""
	}
	return joinWords(append([]word{literal("git")}, rest...)).text
}

// opensForWriting reports whether a redirection opens a file for writing.
func opensForWriting(r *syntax.Redirect) bool {
	switch r.Op {
	case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return false
	case syntax.DplOut: // >&1 duplicates a descriptor, >&file opens a file
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
