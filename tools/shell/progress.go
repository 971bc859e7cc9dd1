package shell

import (
	"strings"
	"time"
)

const (
	// progressEvery is the shortest time between two reports of a command's output.
	progressEvery = 500 * time.Millisecond
	maxShownLine  = 200
)

// lastLines returns a function that receives a command's output and reports its last whole line to
// the people who watch the turn, but not more often than they can read. It returns nil if report is
// nil, because nobody watches.
func lastLines(report func(string), now func() time.Time) func(p []byte) {
	if report == nil {
		return nil
	}
	var rest string
	var headless bool // the beginning of rest is missing
	var reportedAt time.Time
	return func(p []byte) {
		if len(p) > 4*maxShownLine { // skip all but the end: earlier lines are no longer reported
			p, rest, headless = p[len(p)-4*maxShownLine:], "", true
		}
		rest += string(p)
		whole, open, ends := cutLast(rest)
		_, line, follows := cutLast(whole)
		if headless && !follows { // half a word could be half a secret, which nobody would recognize
			_, line, _ = strings.Cut(line, " ")
		}
		rest = open[max(0, len(open)-maxShownLine):]
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

// cutLast splits a text at its last line break; if it has none, all of it is after.
func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexAny(text, "\r\n")
	if i < 0 {
		return "", text, false
	}
	return strings.TrimRight(text[:i], "\r\n"), text[i+1:], true
}

// printable returns a line as it is shown to the people who watch: shortened, and without control
// characters. If a long line is a single word, it only says that there is one.
func printable(line string) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, ""))
	line = strings.TrimSpace(line)
	r := []rune(line)
	if len(r) <= maxShownLine {
		return line
	}
	shown := string(r[:maxShownLine])
	whole := strings.LastIndexByte(shown, ' ') + 1 // half a word could be half a secret
	if whole == 0 {
		return "a long line without spaces"
	}
	return shown[:whole] + "…"
}
