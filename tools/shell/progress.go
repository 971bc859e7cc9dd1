package shell

import (
	"strings"
	"time"
)

const (
	// progressEvery is how often watchers are told of what a command prints.
	progressEvery = 500 * time.Millisecond
	maxLine       = 200
)

// lastLines tells watchers the last whole line that a command has printed, and not
// more often than they can read. Nil where nobody watches.
func lastLines(tell func(string), now func() time.Time) func(p []byte) {
	if tell == nil {
		return nil
	}
	var rest, line string
	var told time.Time
	return func(p []byte) {
		if len(p) > 4*maxLine { // what is before is not told any more
			p, rest = p[len(p)-4*maxLine:], ""
		}
		rest += string(p)
		whole, open, ends := cutLast(rest)
		rest = open[max(0, len(open)-maxLine):]
		if !ends {
			return
		}
		_, line, _ = cutLast(whole)
		if line = shown(line); line == "" || now().Sub(told) < progressEvery {
			return
		}
		told = now()
		tell(line)
	}
}

// cutLast parts a text at its last line break.
func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexAny(text, "\r\n")
	if i < 0 {
		return "", text, false
	}
	return strings.TrimRight(text[:i], "\r\n"), text[i+1:], true
}

// shown is a line as watchers see it: text alone.
func shown(line string) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	line = strings.TrimSpace(line)
	if r := []rune(line); len(r) > maxLine {
		line = string(r[:maxLine]) + "…"
	}
	return line
}
