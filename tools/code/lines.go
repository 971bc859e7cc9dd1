package code

import (
	"context"
	"regexp"
	"strings"
	"unicode"

	"parley/tools"
)

// Limits for the lines that are searched and shown.
const (
	maxSearched = 1 << 20 // bytes of a file
	maxLine     = 4 << 10 // bytes of a line that are searched
	maxShown    = 300     // bytes of a line
	maxSteps    = 1 << 22 // of matching, between two checks whether the call has ended
)

// A lineMatcher finds lines that contain a text. A text without capitals matches in any case.
type lineMatcher struct {
	text        string
	ignoresCase bool
	pattern     *regexp.Regexp // used instead of text
	steps       int            // the most steps that the pattern takes for each byte
}

func newLineMatcher(text string) lineMatcher {
	if strings.IndexFunc(text, unicode.IsUpper) >= 0 {
		return lineMatcher{text: text}
	}
	return lineMatcher{text: text, ignoresCase: true}
}

// forEachMatch calls found for each matching line of a text, until found returns false.
func (m lineMatcher) forEachMatch(ctx context.Context, content string, found func(number int, line string) bool) error {
	if m.pattern == nil && !m.ignoresCase && !strings.Contains(content, m.text) {
		return nil
	}
	number, taken := 0, 0
	for line := range strings.Lines(content) {
		number++
		line = strings.TrimRight(line, "\r\n")
		line = line[:min(len(line), maxLine)]
		if taken += (len(line) + 1) * max(m.steps, 1); taken > maxSteps {
			if err := ctx.Err(); err != nil {
				return err
			}
			taken = 0
		}
		if m.matches(line) && !found(number, line) {
			return nil
		}
	}
	return nil
}

func (m lineMatcher) matches(line string) bool {
	switch {
	case m.pattern != nil:
		return m.pattern.MatchString(line)
	case m.ignoresCase:
		return containsFold(line, m.text)
	}
	return strings.Contains(line, m.text)
}

// containsFold reports whether a line contains a text that has no capitals, ignoring case.
func containsFold(line, text string) bool {
	first := text[0]
	if first >= 0x80 {
		return strings.Contains(strings.ToLower(line), text)
	}
	upper := first
	if 'a' <= first && first <= 'z' {
		upper -= 'a' - 'A'
	}
	for i := 0; i+len(text) <= len(line); i++ {
		if b := line[i]; (b == first || b == upper) && strings.EqualFold(line[i:i+len(text)], text) {
			return true
		}
	}
	return false
}

// showLines adds to each match the line that it is in.
func showLines(ctx context.Context, dir Dir, found []match) error {
	contents := map[string][]string{}
	for i, m := range found {
		lines, ok := contents[m.Path]
		if !ok {
			if err := ctx.Err(); err != nil {
				return err
			}
			content, _ := readText(dir, m.Path, maxSearched)
			lines = strings.Split(content, "\n")
			contents[m.Path] = lines
		}
		if m.Line <= len(lines) {
			found[i].Text = tools.ShortenLine(strings.TrimSpace(lines[m.Line-1]), maxShown)
		}
	}
	return nil
}
