package markup

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"parley/channels/markup/document"
)

// plainPrefix returns the beginning of the spans' text, a little longer than what could fit into room; room is in
// the platform's unit of length.
func plainPrefix(spans []document.Span, room int) string {
	var b strings.Builder
	n := 0
	for _, s := range spans {
		for i, r := range s.Text {
			if n += utf16.RuneLen(r); n > room+8 {
				b.WriteString(s.Text[:i])
				return b.String()
			}
		}
		b.WriteString(s.Text)
	}
	return b.String()
}

// runeStart returns the largest index up to i at which a character of s begins.
func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return min(i, len(s))
}

// niceCut returns the byte position, up to at, where s should be cut: after a line, a sentence or a word if that
// wastes less than half of the room, and otherwise between two characters as people see them.
func niceCut(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	half := at / 2
	if i := strings.LastIndexByte(s[half:at+1], '\n'); i > 0 {
		return half + i
	}
	space := 0
	for i := at; i > half; {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		next, _ := utf8.DecodeRuneInString(s[i:])
		switch {
		case strings.ContainsRune("。！？", r), strings.ContainsRune(".!?…:;", r) && unicode.IsSpace(next):
			return i
		case space == 0 && unicode.IsSpace(next):
			space = i
		}
		i -= n
	}
	if space > 0 {
		return space
	}
	return lastBoundary(s, at)
}

// lastBoundary returns the last byte position up to at that is between two characters as people see them. If the
// first such character is longer than at, the position is inside it.
func lastBoundary(s string, at int) int {
	start := 0
	for i := at - 1; i > 0; i-- {
		if s[i] == ' ' || isWord(s[i]) {
			start = i
			break
		}
	}
	end, state := start, -1
	for rest := s[start:]; rest != ""; {
		var c string
		c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if end+len(c) > at {
			break
		}
		end += len(c)
	}
	if end == 0 {
		return at
	}
	return end
}

// isWord reports whether a byte is an ASCII letter or digit.
func isWord(c byte) bool {
	return c < utf8.RuneSelf && (unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)))
}

// spansBefore returns the part of the spans whose text is before a byte position.
func spansBefore(spans []document.Span, at int) []document.Span {
	for i, s := range spans {
		if at <= len(s.Text) {
			s.Text = s.Text[:at]
			return append(spans[:i:i], s)
		}
		at -= len(s.Text)
	}
	return spans
}

// spansFrom returns the part of the spans whose text begins at a byte position. It changes the given slice instead
// of copying it, because a long text is cut many times.
func spansFrom(spans []document.Span, at int) []document.Span {
	for i, s := range spans {
		if at <= len(s.Text) {
			spans[i].Text = s.Text[at:]
			return spans[i:]
		}
		at -= len(s.Text)
	}
	return nil
}

// trimEnd removes white space at the end of the spans' text.
func trimEnd(spans []document.Span) []document.Span {
	for n := len(spans); n > 0; n = len(spans) {
		last := spans[n-1]
		last.Text = strings.TrimRightFunc(last.Text, unicode.IsSpace)
		spans = spans[: n-1 : n-1]
		if last.Text != "" {
			return append(spans, last)
		}
	}
	return nil
}

// trimStart removes white space at the beginning of the spans' text.
func trimStart(spans []document.Span) []document.Span {
	for len(spans) > 0 {
		spans[0].Text = strings.TrimLeftFunc(spans[0].Text, unicode.IsSpace)
		if spans[0].Text != "" {
			return spans
		}
		spans = spans[1:]
	}
	return nil
}

// codeCut returns the byte position, up to at, where a line of code should be cut: after blanks, or else after a
// character that separates words, if that wastes less than half of the room, and otherwise between two characters.
func codeCut(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	half := at / 2
	if i := strings.LastIndexAny(s[half:at], " \t"); i >= 0 {
		return half + i + 1
	}
	if i := strings.LastIndexAny(s[half:at], ",;)]}>|&/"); i >= 0 {
		return half + i + 1
	}
	for i := at; i > half; i-- {
		if s[i] < utf8.RuneSelf && s[i-1] < utf8.RuneSelf && !isWord(s[i-1]) {
			return i
		}
	}
	return lastBoundary(s, at)
}

// breakCode breaks a line of code into lines no wider than width characters, after blanks or
// characters that separate words if there are any nearby. Width 0 means no limit.
func breakCode(line string, width int) (lines []string) {
	for width > 0 {
		at, used, state := 0, 0, -1
		for rest := line; rest != ""; {
			var c string
			var bounds int
			c, rest, bounds, state = uniseg.StepString(rest, state)
			if used += bounds >> uniseg.ShiftWidth; used > width && at > 0 {
				break
			}
			at += len(c)
		}
		if at == len(line) {
			break
		}
		cut := codeCut(line, at)
		if strings.TrimSpace(line[:cut]) == "" {
			cut = at // cutting there would leave a line with nothing but the indentation
		}
		lines = append(lines, line[:cut])
		line = line[cut:]
	}
	return append(lines, line)
}
