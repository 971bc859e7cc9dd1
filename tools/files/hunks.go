package files

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"parley/tools"
)

// apply returns the content that a patch turns old into. For both contents, nil means that there is
// no such file.
func (f filePatch) apply(ctx context.Context, old []byte) ([]byte, error) {
	a := hunkApplier{content: old, line: 1, path: f.displayPath()}
	for n, h := range f.hunks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if f.from == "" && h.old != "" {
			return nil, tools.Errorf(tools.InvalidArgs, "hunk %d of %q wants lines of a file that is to be new", n+1, shorten(f.displayPath()))
		}
		if err := a.applyHunk(n+1, h); err != nil {
			return nil, err
		}
	}
	made := append(a.result, a.content[min(a.offset, len(a.content)):]...)
	switch {
	case f.to == "" && len(made) > 0:
		return nil, tools.Errorf(tools.InvalidArgs, "%q is to be removed, and the patch does not take out all of its lines", shorten(f.displayPath()))
	case f.to == "":
		return nil, nil
	case len(made) > maxFileBytes:
		return nil, tools.Errorf(tools.InvalidArgs, "%q would have %d bytes, at most %d are allowed", shorten(f.displayPath()), len(made), maxFileBytes)
	}
	return nonNil(made), nil
}

// A hunkApplier applies the hunks of a patch to one file, from beginning to end.
type hunkApplier struct {
	path    string
	content []byte
	offset  int // everything in content up to this offset is done
	line    int // the number of the line that begins at that offset
	result  []byte
}

// applyHunk applies hunk number n of the patch where the file contains its old lines; that must be
// after the previous hunk.
func (a *hunkApplier) applyHunk(n int, h hunk) error {
	at, old, made, why := a.findHunk(h)
	if why != "" {
		return tools.Errorf(tools.InvalidArgs, "nothing was changed: hunk %d of %q does not apply: %s", n, shorten(a.path), why)
	}
	a.result = append(append(a.result, a.content[a.offset:at]...), made...)
	a.line += bytes.Count(a.content[a.offset:at+len(old)], []byte("\n"))
	a.offset = at + len(old)
	return nil
}

// findHunk returns the offset at which the file contains a hunk's old lines, with the old and the
// new text as the file would contain them. If the file doesn't contain the old lines, why tells the
// model so.
func (a *hunkApplier) findHunk(h hunk) (at int, old, made, why string) {
	expected := a.lineStart(h.line)
	if h.old == "" {
		return a.insertionPoint(h)
	}
	for _, v := range a.lineEndVariants(h) {
		places := a.findLines(v[0])
		for _, at := range places {
			if at == expected {
				return at, v[0], v[1], ""
			}
		}
		switch len(places) {
		case 0:
		case 1:
			return places[0], v[0], v[1], ""
		default:
			return 0, "", "", fmt.Sprintf("its lines stand at %d places, and at line %d they do not: give more unchanged lines around the change", len(places), h.line)
		}
	}
	return 0, "", "", a.describeMismatch(expected, h)
}

// lineEndVariants returns the old and the new text of a hunk in each form that they could have in a
// file: with the file's own line ends, and without a line end at the end of the file.
func (a *hunkApplier) lineEndVariants(h hunk) [][2]string {
	all := [][2]string{{h.old, h.new}}
	if bytes.Contains(a.content, []byte("\r\n")) && !strings.Contains(h.old+h.new, "\r") {
		all = append(all, [2]string{strings.ReplaceAll(h.old, "\n", "\r\n"), strings.ReplaceAll(h.new, "\n", "\r\n")})
	}
	if !bytes.HasSuffix(a.content, []byte("\n")) {
		for _, v := range all {
			if strings.HasSuffix(v[0], "\n") {
				all = append(all, [2]string{strings.TrimRight(v[0], "\r\n"), strings.TrimSuffix(strings.TrimSuffix(v[1], "\n"), "\r")})
			}
		}
	}
	return all
}

// findLines returns all offsets at which text occurs as whole lines.
func (a *hunkApplier) findLines(text string) []int {
	var at []int
	if text == "" {
		return nil
	}
	for _, i := range occurrences(a.content[a.offset:], text) {
		i += a.offset
		begins := i == 0 || a.content[i-1] == '\n'
		ends := strings.HasSuffix(text, "\n") || i+len(text) == len(a.content)
		if begins && ends {
			at = append(at, i)
		}
	}
	return at
}

// lineStart returns the offset of the beginning of the line with this number; -1 if that part of
// the content was copied already, or has no such line.
func (a *hunkApplier) lineStart(line int) int {
	at := a.offset
	for n := a.line; n < line; n++ {
		end := bytes.IndexByte(a.content[at:], '\n')
		if end < 0 {
			return -1
		}
		at += end + 1
	}
	if line < a.line {
		return -1
	}
	return at
}

// insertionPoint returns where to insert the lines of a hunk that only adds lines and shows none
// around them: after the line whose number it states. The results are as for findHunk.
func (a *hunkApplier) insertionPoint(h hunk) (at int, old, made, why string) {
	if len(a.content) == 0 {
		return 0, "", h.new, ""
	}
	at = a.lineStart(h.line + 1)
	switch {
	case h.line == 0:
		at = 0
	case at < 0 && a.lineStart(h.line) >= 0: // the last line, without an end
		return len(a.content), "", "\n" + h.new, ""
	}
	if at < a.offset {
		return 0, "", "", fmt.Sprintf("it shows no unchanged lines, and there is no line %d to put it behind", h.line)
	}
	return at, "", h.new, ""
}

// describeMismatch tells the model which line of the file differs from the hunk at the place where
// the hunk is expected.
func (a *hunkApplier) describeMismatch(expected int, h hunk) string {
	first, _, _ := strings.Cut(h.old, "\n")
	if expected < 0 {
		return fmt.Sprintf("the lines that it shows, from %q on, are not in the file behind line %d", shorten(first), a.line-1)
	}
	at := expected
	n := h.line
	for want := range strings.Lines(h.old) {
		has, _, _ := bytes.Cut(a.content[at:], []byte("\n"))
		want = strings.TrimRight(want, "\r\n")
		if got := strings.TrimSuffix(string(has), "\r"); got != want {
			if at >= len(a.content) {
				return fmt.Sprintf("the file ends before line %d, where it has %q", n, shorten(want))
			}
			return fmt.Sprintf("line %d of the file is %q, where it has %q; read the file and copy the unchanged lines to the letter", n, shorten(got), shorten(want))
		}
		at = min(at+len(has)+1, len(a.content))
		n++
	}
	return fmt.Sprintf("the lines that it shows, from %q on, do not stand in the file so", shorten(first))
}
