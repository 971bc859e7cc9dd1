// Package past shortens what was said earlier in a conversation to what is shown to a person who returns.
package past

import (
	"strings"
	"unicode/utf8"
)

// An Exchange is something that the person said earlier, with the answer; "" if there is none yet.
type Exchange struct{ Said, Answer string }

// How much of the past is shown. More is shown of the last answer, because it is the most likely to matter.
const (
	maxShown              = 3 // exchanges
	linesOfEarlierAnswers = 2
	linesOfLastAnswer     = 10
	maxLineLength         = 240 // characters
)

// Shorten returns the last few exchanges, shortened.
func Shorten(all []Exchange) []Exchange {
	var end []Exchange
	for _, e := range all[max(len(all)-maxShown, 0):] {
		end = append(end, Exchange{firstLines(e.Said, linesOfEarlierAnswers), firstLines(e.Answer, linesOfEarlierAnswers)})
	}
	if n := len(end); n > 0 {
		end[n-1].Answer = firstLines(all[len(all)-1].Answer, linesOfLastAnswer)
	}
	return end
}

// firstLines returns the first lines of a text; of a long line, it returns only the beginning.
func firstLines(text string, most int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	more := len(lines) > most
	lines = lines[:min(len(lines), most)]
	for i, line := range lines {
		if utf8.RuneCountInString(line) > maxLineLength {
			lines[i] = string([]rune(line)[:maxLineLength]) + "…"
		}
	}
	if more {
		lines = append(lines, "…")
	}
	return strings.Join(lines, "\n")
}
