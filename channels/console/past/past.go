// Package past shortens what was said earlier in a conversation to what a person is shown on return.
package past

import (
	"strings"
	"unicode/utf8"
)

// An Exchange is something that the person said earlier, and what was answered; "" for nothing yet.
type Exchange struct{ Said, Answer string }

// How much of the past is shown: of the last answer somewhat more, as it is most likely to matter.
const (
	mostShown  = 3 // exchanges
	fewLines   = 2
	lastLines  = 10
	mostOfLine = 240 // characters
)

// End returns the last of the exchanges, shortened.
func End(all []Exchange) []Exchange {
	var end []Exchange
	for _, e := range all[max(len(all)-mostShown, 0):] {
		end = append(end, Exchange{beginningOf(e.Said, fewLines), beginningOf(e.Answer, fewLines)})
	}
	if n := len(end); n > 0 {
		end[n-1].Answer = beginningOf(all[len(all)-1].Answer, lastLines)
	}
	return end
}

// beginningOf returns the first lines of a text, and of a long line the beginning.
func beginningOf(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	more := len(lines) > most
	lines = lines[:min(len(lines), most)]
	for i, line := range lines {
		if utf8.RuneCountInString(line) > mostOfLine {
			lines[i] = string([]rune(line)[:mostOfLine]) + "…"
		}
	}
	if more {
		lines = append(lines, "…")
	}
	return strings.Join(lines, "\n")
}
