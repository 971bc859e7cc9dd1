package shell

import (
	"strings"
	"time"
)

const (
	// progressEvery is the shortest time between two reports of what a command prints.
	progressEvery = 500 * time.Millisecond
	maxLine       = 200
)

// lastLines returns a function that takes what a command prints and reports, to the people who
// watch the turn, its last whole line, but not more often than they can read. It returns nil if
// report is nil, because nobody watches.
func lastLines(report func(string), now func() time.Time) func(p []byte) {
	if report == nil {
		return nil
	}
	var rest string
	var headless bool // the beginning of rest is missing
	var reportedAt time.Time
	return func(p []byte) {
		if len(p) > 4*maxLine { // skip all but the end: earlier lines are not reported any more
			p, rest, headless = p[len(p)-4*maxLine:], "", true
		}
		rest += string(p)
		whole, open, ends := cutLast(rest)
		_, line, follows := cutLast(whole)
		if headless && !follows { // half a word could be half a secret, which nobody knows any more
			_, line, _ = strings.Cut(line, " ")
		}
		rest = open[max(0, len(open)-maxLine):]
		headless = len(rest) < len(open) || headless && !ends
		if !ends {
			return
		}
		if line = printable(line); line == "" || now().Sub(reportedAt) < progressEvery {
			return
		}
		reportedAt = now()
		report(line)
	}
}

// cutLast splits a text at its last line break.
func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexAny(text, "\r\n")
	if i < 0 {
		return "", text, false
	}
	return strings.TrimRight(text[:i], "\r\n"), text[i+1:], true
}

// printable returns a line without control characters, and shortened, as it is shown to the
// people who watch. Of a long line that is one word it only says that there is one.
func printable(line string) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	line = strings.TrimSpace(line)
	r := []rune(line)
	if len(r) <= maxLine {
		return line
	}
	shown := string(r[:maxLine])
	whole := strings.LastIndexByte(shown, ' ') + 1 // half a word could be half a secret
	if whole == 0 {
		return "a long line without spaces"
	}
	return shown[:whole] + "…"
}
