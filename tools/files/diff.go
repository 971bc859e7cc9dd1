package files

import (
	"bytes"
	"strconv"
	"strings"

	"parley/tools"
)

// This file reads unified diffs that models write. Models get the numbers of a hunk wrong and leave
// out the blank of an empty line, and libraries that read diffs made by programs refuse such diffs.
// So here the text of a hunk counts, and its numbers are only a hint.

// Limits of a patch.
const (
	maxPatch        = 4 << 20 // bytes
	maxPatchedFiles = 200
)

// A filePatch holds the changes that a patch makes to one file.
type filePatch struct {
	from, to string // paths; from is "" if the file is new, to is "" if it is removed
	hunks    []hunk
}

// displayPath returns the path that results and errors use for the file.
func (f filePatch) displayPath() string {
	if f.to == "" {
		return f.from
	}
	return f.to
}

// A hunk is one replacement within a file: some consecutive lines, and the lines that replace them.
type hunk struct {
	line           int    // the number of its first line in the old file, counted from 1, as the patch states it
	old, new       string // whole lines; the last has no line end if the file has none there
	added, removed int
}

// patchPaths returns the paths of the files that a patch changes. If the patch cannot be read to
// its end, it returns those before the error.
func patchPaths(patch string) []string {
	var paths []string
	list, _ := parsePatch(patch)
	for _, f := range list {
		for _, p := range []string{f.from, f.to} {
			if p != "" && (len(paths) == 0 || paths[len(paths)-1] != p) {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// A diffReader reads a patch line by line.
type diffReader struct {
	lines []string // with their line ends
	at    int
	files []filePatch
}

// parsePatch reads a patch, a unified diff of any number of files. If there is an error, it also
// returns the files that it has read before the error.
func parsePatch(patch string) ([]filePatch, error) {
	if len(patch) > maxPatch {
		return nil, tools.Errorf(tools.InvalidArgs, "the patch has %d bytes, at most %d are allowed: make several", len(patch), maxPatch)
	}
	r := &diffReader{lines: strings.SplitAfter(patch, "\n")}
	if r.lines[len(r.lines)-1] == "" {
		r.lines = r.lines[:len(r.lines)-1]
	}
	for r.at < len(r.lines) {
		if err := r.readNext(); err != nil {
			return r.files, err
		}
	}
	if len(r.files) == 0 {
		return nil, tools.Errorf(tools.InvalidArgs, "the patch changes no file: it needs lines --- a/PATH and +++ b/PATH, and hunks that begin with @@")
	}
	return r.files, r.checkFiles()
}

// checkFiles returns an error for a patch that names a file twice, changes too many files, or
// doesn't say how a file is changed.
func (r *diffReader) checkFiles() error {
	if len(r.files) > maxPatchedFiles {
		return tools.Errorf(tools.InvalidArgs, "the patch changes %d files, at most %d are allowed: make several", len(r.files), maxPatchedFiles)
	}
	seen := map[string]bool{}
	for _, f := range r.files {
		names := []string{f.from}
		if f.to != f.from {
			names = append(names, f.to)
		}
		for _, name := range names {
			if name != "" && seen[name] {
				return tools.Errorf(tools.InvalidArgs, "%q is in the patch twice: put its hunks together", shorten(name))
			}
			seen[name] = true
		}
		if len(f.hunks) == 0 && f.from == f.to {
			return tools.Errorf(tools.InvalidArgs, "the patch of %q has no hunk: they begin with @@", shorten(f.displayPath()))
		}
	}
	return nil
}

// lineAt returns line n of the patch without its line end; "" past the last line.
func (r *diffReader) lineAt(n int) string {
	if n >= len(r.lines) {
		return ""
	}
	return strings.TrimRight(r.lines[n], "\r\n")
}

// readNext reads the header of a file, or a hunk, and skips any other line.
func (r *diffReader) readNext() error {
	line := r.lineAt(r.at)
	switch {
	case strings.HasPrefix(line, "diff --git "):
		return r.readGitHeader()
	case r.isHeader(r.at):
		return r.addNamedFile(filePatch{})
	case strings.HasPrefix(line, "@@"):
		if len(r.files) == 0 {
			return tools.Errorf(tools.InvalidArgs, "line %d of the patch: a hunk stands before the lines --- a/PATH and +++ b/PATH", r.at+1)
		}
		return r.readHunk()
	}
	r.at++ // skip text that mail and version control programs put around a diff
	return nil
}

// isHeader reports whether line n and the next one are the two lines, --- and +++, that begin a
// file.
func (r *diffReader) isHeader(n int) bool {
	return strings.HasPrefix(r.lineAt(n), "--- ") && strings.HasPrefix(r.lineAt(n+1), "+++ ")
}

// readGitHeader reads the lines that git writes before a file's two lines (--- and +++), or in
// place of them.
func (r *diffReader) readGitHeader() error {
	start := r.at
	f := filePatch{}
	added, removed := false, false
	for r.at++; r.at < len(r.lines); r.at++ {
		line := r.lineAt(r.at)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "diff --git "), word == "@@":
			return r.addGitOnly(start, f, added, removed)
		case r.isHeader(r.at):
			return r.addNamedFile(f)
		case strings.HasPrefix(line, "rename from "):
			f.from = unquotePath(strings.TrimPrefix(line, "rename from "))
		case strings.HasPrefix(line, "rename to "):
			f.to = unquotePath(strings.TrimPrefix(line, "rename to "))
		case strings.HasPrefix(line, "new file"):
			added = true
		case strings.HasPrefix(line, "deleted file"):
			removed = true
		case word == "copy", strings.HasPrefix(line, "GIT binary patch"), word == "Binary" && strings.HasSuffix(rest, "differ"):
			return tools.Errorf(tools.InvalidArgs, "line %d of the patch: only texts are patched, and copies are written with write_file", r.at+1)
		}
	}
	return r.addGitOnly(start, f, added, removed)
}

// addGitOnly adds a file that only git's own header describes: a rename, or an empty file.
func (r *diffReader) addGitOnly(start int, f filePatch, added, removed bool) error {
	if f.from == "" && f.to == "" {
		before, after, _ := strings.Cut(strings.TrimPrefix(r.lineAt(start), "diff --git "), " b/")
		f.from, f.to = strings.TrimPrefix(before, "a/"), after
		switch {
		case added:
			f.from = ""
		case removed:
			f.to = ""
		case f.from == f.to:
			if strings.HasPrefix(r.lineAt(r.at), "@@") {
				break // the model left the two lines out
			}
			return tools.Errorf(tools.InvalidArgs, "line %d of the patch changes nothing of the file's text", start+1)
		}
	}
	return r.addFile(f)
}

// addNamedFile reads the lines --- and +++, and adds the file that they name. If git's header has stated both names of
// a rename, these hold instead of those in the lines.
func (r *diffReader) addNamedFile(git filePatch) error {
	from, to := headerPath(r.lineAt(r.at), "--- "), headerPath(r.lineAt(r.at+1), "+++ ")
	r.at += 2
	a, hasA := strings.CutPrefix(from, "a/")
	b, hasB := strings.CutPrefix(to, "b/")
	if (hasA || from == "") && (hasB || to == "") {
		from, to = a, b
	}
	if from == "" && to == "" {
		return tools.Errorf(tools.InvalidArgs, "line %d of the patch names no file", r.at-1)
	}
	if git.from != "" && git.to != "" { // a rename, whose names git writes without a/ and b/
		from, to = git.from, git.to
	} else if from != "" && to != "" && from != to {
		// If the old and new names differ, as "a.txt.orig" and "a.txt", the new one is meant unless
		// a rename is stated.
		from = to
	}
	return r.addFile(filePatch{from: from, to: to})
}

func (r *diffReader) addFile(f filePatch) error {
	r.files = append(r.files, f)
	return nil
}

// headerPath returns the path in a line that begins with mark, which is --- or +++. It returns ""
// for /dev/null, which means that the file does not exist.
func headerPath(line, mark string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(line, mark), "\t")
	if path = unquotePath(strings.TrimSpace(path)); path == "/dev/null" {
		return ""
	}
	return path
}

func unquotePath(path string) string {
	if strings.HasPrefix(path, `"`) {
		if plain, err := strconv.Unquote(path); err == nil {
			return plain
		}
	}
	return path
}

// readHunk reads a hunk. It takes as many lines as the hunk's header says, if that is consistent.
// Otherwise, because models often count wrongly, it takes all lines that look like part of the
// hunk.
func (r *diffReader) readHunk() error {
	line, olds, news, ok := parseHunkHeader(r.lineAt(r.at))
	r.at++
	start := r.at
	var text hunkText
	end, whole := r.countedEnd(start, olds, news)
	if !ok || !whole {
		end = r.lookalikeEnd(start)
	}
	for r.at = start; r.at < end; r.at++ {
		text.addLine(r.lines[r.at], r.lineAt(r.at-1))
	}
	h := hunk{line: line, old: string(text.old), new: string(text.new), added: text.added, removed: text.removed}
	f := &r.files[len(r.files)-1]
	if h.old == "" && h.new == "" {
		return tools.Errorf(tools.InvalidArgs, "line %d of the patch: the hunk is empty", start)
	}
	f.hunks = append(f.hunks, h)
	return nil
}

// A hunkText collects the lines of a hunk while it is read.
type hunkText struct {
	old, new       []byte
	added, removed int
}

// addLine adds one line of the hunk; before is the previous line.
func (h *hunkText) addLine(text, before string) {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if strings.TrimRight(text, "\r\n") == "" {
		text = " " + text // an empty line without its leading blank
	}
	switch mark, rest := text[0], text[1:]; mark {
	case '-':
		h.old = append(h.old, rest...)
		h.removed++
	case '+':
		h.new = append(h.new, rest...)
		h.added++
	case ' ':
		h.old = append(h.old, rest...)
		h.new = append(h.new, rest...)
	case '\\': // the previous line has no line end
		if !strings.HasPrefix(before, "+") {
			h.old = withoutLineEnd(h.old)
		}
		if !strings.HasPrefix(before, "-") {
			h.new = withoutLineEnd(h.new)
		}
	}
}

func withoutLineEnd(text []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
}

// parseHunkHeader reads "@@ -12,5 +12,6 @@ …"; ok is false if the numbers are missing.
func parseHunkHeader(line string) (at, olds, news int, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 || !strings.HasPrefix(fields[1], "-") || !strings.HasPrefix(fields[2], "+") {
		return 0, 0, 0, false
	}
	at, olds, ok = parseSpan(fields[1][1:])
	_, news, also := parseSpan(fields[2][1:])
	return at, olds, news, ok && also
}

// parseSpan reads the line and the number of lines in "12,5"; "12" means one line. ok is false for anything else.
func parseSpan(s string) (at, count int, ok bool) {
	first, second, has := strings.Cut(s, ",")
	at, err := strconv.Atoi(first)
	if err != nil || at < 0 {
		return 0, 0, false
	}
	if !has {
		return at, 1, true
	}
	count, err = strconv.Atoi(second)
	return at, count, err == nil && count >= 0
}

// countedEnd returns the number of the line after a hunk that begins at line n, assuming that the
// hunk has as many old and new lines as its header says. ok reports whether the hunk really ends
// there, with something else after it.
func (r *diffReader) countedEnd(n, olds, news int) (end int, ok bool) {
	for olds > 0 || news > 0 {
		if n >= len(r.lines) {
			return n, false
		}
		switch mark := r.lineAt(n) + " "; mark[0] {
		case '-':
			olds--
		case '+':
			news--
		case ' ':
			olds--
			news--
		case '\\':
		default:
			return n, false
		}
		n++
	}
	for strings.HasPrefix(r.lineAt(n), `\`) {
		n++
	}
	next := r.lineAt(n)
	more := next != "" && strings.IndexByte(" +-", next[0]) >= 0 && !r.isHeader(n) && next != "-- " && next != "--"
	return n, olds == 0 && news == 0 && !more
}

// lookalikeEnd returns the number of the line after the last one, from line n on, that looks like
// part of a hunk.
func (r *diffReader) lookalikeEnd(n int) int {
	last := n
	for ; n < len(r.lines); n++ {
		line := r.lineAt(n)
		switch {
		case line == "": // part of the hunk if more of it follows
			continue
		case r.isHeader(n), strings.IndexByte(` +-\`, line[0]) < 0:
			return last
		}
		last = n + 1
	}
	return last
}
