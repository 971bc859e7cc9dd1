package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"parley/tools"
)

const (
	maxDiffedBytes = 64 << 10 // the largest file, in bytes, whose change is shown line by line
	contextLines   = 3        // how many unchanged lines are shown on either side of a change
)

// showWrite shows what writing a file would change: the whole text of a new file, or the lines of an existing one
// that would be removed and added.
func (b fileTools) showWrite(ctx context.Context, call tools.Call) tools.Showing {
	var args writeArgs
	if json.Unmarshal(call.Args, &args) != nil {
		return tools.Showing{}
	}
	text := fmt.Sprintf("%s, all of it:\n\n%s", args.Path, args.Content)
	switch old, err := b.currentContent(ctx, call, args.Path); {
	case errors.Is(err, fs.ErrNotExist):
		text = fmt.Sprintf("%s, a new file:\n\n%s", args.Path, args.Content)
	case err == nil && len(old) <= maxDiffedBytes && len(args.Content) <= maxDiffedBytes:
		text = diffOf(args.Path, old, args.Content)
	}
	return tools.Showing{Text: text, ShownArgs: []string{"path", "content"}}
}

// currentContent returns the content of a file, or the first bytes of a file that is too large to show.
func (b fileTools) currentContent(ctx context.Context, call tools.Call, path string) (string, error) {
	dir, err := b.open(ctx, call)
	if err != nil {
		return "", err
	}
	name, err := dir.Name(path)
	if err != nil {
		return "", err
	}
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxDiffedBytes+1))
	return string(raw), errors.Join(err, f.Close())
}

// showEdit shows the lines that an edit removes, and those that it adds.
func showEdit(a editArgs) tools.Showing {
	return tools.Showing{Text: fmt.Sprintf("%s\n%s%s", a.Path, withMarks("-", a.OldText), withMarks("+", a.NewText)), ShownArgs: []string{"path", "old_text", "new_text"}}
}

// diffOf returns the lines of a file that are removed and added, with some of the unchanged lines around them. It
// only treats lines at the beginning and end of the file as unchanged.
func diffOf(path, before, after string) string {
	old, now := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	if before == after {
		return path + ": nothing would change"
	}
	from := max(0, head-contextLines)
	until := min(tail, contextLines)
	var b strings.Builder
	fmt.Fprintf(&b, "%s, from line %d:\n", path, from+1)
	b.WriteString(withMarks(" ", strings.Join(old[from:head], "")))
	b.WriteString(withMarks("-", strings.Join(old[head:len(old)-tail], "")))
	b.WriteString(withMarks("+", strings.Join(now[head:len(now)-tail], "")))
	b.WriteString(withMarks(" ", strings.Join(old[len(old)-tail:len(old)-tail+until], "")))
	return b.String()
}

// withMarks returns a text with a mark before each line. It adds a note if the last line has no line end.
func withMarks(mark, text string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		if line == "" {
			break
		}
		b.WriteString(mark + line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ without a line end\n")
		}
	}
	return b.String()
}
